"""Sessions at work in this process: the registry, the ports that lead to them, and the services
that they share.

Wires models, tools, workspaces and hooks into turns, and reaches sessions that another process
owns. The API above turns calls into commands.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for wires: start-up time
    from weft.runtime.relay.session_relay import JoinedSource, RelayHub
    from weft.runtime.relay.wire_codec import (
        DraftEvent,
        EncodedEvents,
        ErrorBody,
        decode_wire_event,
        error_body,
        raised_error,
    )

__all__ = [
    "DraftEvent",
    "EncodedEvents",
    "ErrorBody",
    "JoinedSource",
    "RelayHub",
    "decode_wire_event",
    "error_body",
    "raised_error",
]

_HOMES = {
    "DraftEvent": "relay.wire_codec",
    "EncodedEvents": "relay.wire_codec",
    "ErrorBody": "relay.wire_codec",
    "JoinedSource": "relay.session_relay",
    "RelayHub": "relay.session_relay",
    "decode_wire_event": "relay.wire_codec",
    "error_body": "relay.wire_codec",
    "raised_error": "relay.wire_codec",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
