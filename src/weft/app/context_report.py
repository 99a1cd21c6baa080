"""What fills the context window: the parts of the next request, in tokens.

Vendors count a request as a whole.  Its parts are estimated from their text, and then scaled so
that together they are what the last request was.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from weft.api.session import Session
from weft.context import (
    ContextTarget,
    LineEntry,
    PromptPrefix,
    estimate,
    estimate_text,
    load_prefix,
    room,
)
from weft.context.build import render
from weft.context.sizes import SOFT_SHARE
from weft.ids import BlobId
from weft.messages import CallResults
from weft.providers import ModelInfo

LARGEST = 3


class LargeOutput(msgspec.Struct, frozen=True, kw_only=True):
    """One of the largest results of tools."""

    name: str
    args: dict[str, Any]
    tokens: int


class ContextReport(msgspec.Struct, frozen=True, kw_only=True):
    """The parts, in tokens; all of them are about so many."""

    used: int
    window: int
    """0 where it is not known."""
    system: int
    tools: int
    instructions: int
    messages: int
    outputs: int
    """Results of tools."""
    largest: tuple[LargeOutput, ...]
    compacts_at: int
    """From how many tokens on older messages are summarized; 0 where that is not known."""


async def context_report(
    session: Session, info: ModelInfo | None, blob: Callable[[BlobId], Awaitable[bytes | None]]
) -> ContextReport | None:
    """What the model was sent last, in parts; None before anything was sent."""
    port = await session._port()
    state = port.state
    if state.prefix is None or state.ledger.last_call is None:
        return None
    data = await blob(state.prefix) or b"{}"
    prefix = load_prefix(data)
    line = await port.line()
    compaction = state.tree.compaction_for(state.tree.head)
    if compaction is not None:
        upto = [number for number, each in enumerate(line) if each.node.id == compaction.upto]
        line = line[upto[0] + 1 :] if upto else line
    provider, _, model = state.settings.model.partition(":")
    parts = _parts(prefix, line, ContextTarget(provider, model))
    used = state.ledger.last_call.total_tokens
    whole = sum(parts.values())
    scale = used / whole if whole else 0.0
    window = info.context_window if info is not None else 0
    return ContextReport(
        used=used,
        window=window,
        largest=tuple(
            msgspec.structs.replace(each, tokens=round(each.tokens * scale))
            for each in _largest(line)
        ),
        compacts_at=_compacts_at(info, estimate_text(len(data))) if info is not None else 0,
        # A small part beside large ones is little, and not none.
        **{name: max(round(each * scale), min(each, 1)) for name, each in parts.items()},
    )


def _parts(prefix: PromptPrefix, line: list[LineEntry], target: ContextTarget) -> dict[str, int]:
    sent = [message for entry in line for message in render(entry, target)]
    outputs = [message for message in sent if isinstance(message, CallResults)]
    said = [message for message in sent if not isinstance(message, CallResults)]
    instructions = estimate_text(len(prefix.instructions_text))
    return {
        "system": estimate_text(len(prefix.system)) - instructions,
        "tools": estimate_text(len(msgspec.json.encode(prefix.tools))) if prefix.tools else 0,
        "instructions": instructions,
        "messages": estimate(said),
        "outputs": estimate(outputs),
    }


def _largest(line: list[LineEntry]) -> list[LargeOutput]:
    found = [
        LargeOutput(name=call.name, args=call.args, tokens=estimate_text(len(result.text)))
        for entry in line
        for call in entry.node.calls
        if (result := entry.results.get(call.call_uid)) is not None and result.text
    ]
    return sorted(found, key=lambda each: each.tokens, reverse=True)[:LARGEST]


def _compacts_at(info: ModelInfo, prefix: int) -> int:
    left = max(1, info.context_window - prefix)
    return prefix + round(room(left, info.max_output_tokens) * SOFT_SHARE)
