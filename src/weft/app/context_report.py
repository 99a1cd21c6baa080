"""What fills the context window: the zones of the last request, in tokens.

Vendors count a request as a whole.  Its zones are estimated from their text, and then scaled so
that together they are what the last request was.  Where the next request will not go on from that
one (after a compaction, an undo or a rewind), or where the report can be no count of that one, they
are scaled as the vendor counted until now.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from weft.api import ContextZone
from weft.api.context_size import is_outdated, line_zones, sent_line
from weft.api.reports import may_be_count, prefix_zones, scaled
from weft.api.session import Session
from weft.context import LineEntry, estimate_text, room
from weft.errors import WeftError
from weft.providers import ModelInfo
from weft.runtime.session_host import SessionHost
from weft.state import SessionState

LARGEST = 3


class LargeOutput(msgspec.Struct, frozen=True, kw_only=True):
    """One of the largest results of tools."""

    name: str
    args: dict[str, Any]
    tokens: int


class ContextReport(msgspec.Struct, frozen=True, kw_only=True):
    """The zones, in tokens; all of them are about so many."""

    model: str = ""
    used: int
    window: int
    """0 where it is not known."""
    zones: tuple[ContextZone, ...]
    """Those of the prefix first, then the conversation: summary, messages, files, notes (what Weft
    told the model beside), outputs (results of tools)."""
    largest: tuple[LargeOutput, ...] = ()
    compacts_at: int = 0
    """From how many tokens on older messages are summarized; 0 where that is not known."""
    reserved: int = 0
    """What is kept free for the answer."""
    ratio: float = 1.0
    """How many tokens the vendor counts where we estimate one."""


async def context_report(session: Session, host: SessionHost) -> ContextReport | None:
    """What fills the window now, by zones; None before anything was sent."""
    port = await session._port()
    state = port.state
    if state.prefix is None or state.ledger.last_call is None:
        return None
    zones = await prefix_zones(host, state.prefix, state.settings.model)
    in_prefix = sum(zone.tokens for zone in zones)
    line = await sent_line(port, host, state)
    zones += await line_zones(line, host, state)
    whole = sum(zone.tokens for zone in zones)
    info, ratio = _info(host, state), state.ledger.ratio(state.settings.model)
    used = state.ledger.last_call.total_tokens
    if await is_outdated(state, host) or not may_be_count(used, whole):
        used = round(whole * ratio)
    scale = used / whole if whole else 0.0
    share = host.services.config.get("compaction.soft")
    return ContextReport(
        model=state.settings.model,
        used=used,
        window=info.context_window if info is not None else 0,
        zones=tuple(scaled(zone, scale) for zone in zones),
        largest=tuple(
            msgspec.structs.replace(each, tokens=round(each.tokens * scale))
            for each in _largest(line)
        ),
        compacts_at=_compacts_at(info, in_prefix, ratio, share) if info is not None else 0,
        reserved=_reserved(info) if info is not None else 0,
        ratio=round(ratio, 3),
    )


def _info(host: SessionHost, state: SessionState) -> ModelInfo | None:
    try:
        return host.model(state.settings.model).info
    except WeftError:
        return None  # its provider is gone; what was sent is still known


def _largest(line: Sequence[LineEntry]) -> list[LargeOutput]:
    found = [
        LargeOutput(name=call.name, args=call.args, tokens=estimate_text(len(result.text)))
        for entry in line
        for call in entry.node.calls
        if (result := entry.results.get(call.call_uid)) is not None and result.text
    ]
    return sorted(found, key=lambda each: each.tokens, reverse=True)[:LARGEST]


def _compacts_at(info: ModelInfo, prefix: int, ratio: float, share: float) -> int:
    left = max(1, int(info.context_window / ratio) - prefix)
    return round((prefix + room(left, info.max_output_tokens) * share) * ratio)


def _reserved(info: ModelInfo) -> int:
    return info.context_window - room(info.context_window, info.max_output_tokens)
