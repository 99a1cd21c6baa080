"""The ids of messages in stored facts, for stores that have no index of them and read every log."""

from __future__ import annotations

from typing import Final

import msgspec

from weft.events import NewMessage, NodeSplit, decode
from weft.ids import NodeId

_KINDS: Final = ("new_message", "node_split")
"""The facts that bring messages."""


def message_id(kind: str, body: bytes) -> NodeId | None:
    """The id of the message that a stored fact brings; None where it brings none."""
    if kind not in _KINDS:
        return None
    try:
        fact = decode(body)
    except msgspec.MsgspecError:
        return None
    if isinstance(fact, NewMessage):
        return fact.node.id
    return fact.tail.id if isinstance(fact, NodeSplit) else None
