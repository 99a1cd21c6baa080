"""What fills the context window: the zones of the last request, in tokens.

Vendors count a request as a whole.  Its zones are estimated from their text, and then scaled so
that together they are what the last request was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from weft.api import ContextZone
from weft.api.reports import prefix_zones, scaled
from weft.api.session import Session
from weft.context import (
    ContextTarget,
    LineEntry,
    cleared_entry,
    estimate,
    estimate_text,
    notes_for_model,
    render,
    room,
)
from weft.errors import WeftError
from weft.events import Compacted
from weft.ids import NodeId
from weft.messages import CallResults, ChatMessage, File, Message
from weft.providers import ModelInfo
from weft.runtime.session_host import SessionHost
from weft.session.log.stored_line import load_clearing, read_places
from weft.session.port import SessionPort
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
    """What the model was sent last, by zones; None before anything was sent."""
    port = await session._port()
    state = port.state
    if state.prefix is None or state.ledger.last_call is None:
        return None
    zones = await prefix_zones(host, state.prefix, state.settings.model)
    in_prefix = sum(zone.tokens for zone in zones)
    line = await _sent_line(port, host, state)
    summary = ContextZone(name="summary", tokens=await _summary_tokens(host, state))
    zones += [summary, *_conversation_zones(line, state)]
    used = state.ledger.last_call.total_tokens
    whole = sum(zone.tokens for zone in zones)
    scale = used / whole if whole else 0.0
    info, ratio = _info(host, state), state.ledger.ratio(state.settings.model)
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


async def _sent_line(
    port: SessionPort, host: SessionHost, state: SessionState
) -> Sequence[LineEntry]:
    """The line behind its summary, with its results as the model sees them."""
    tree = state.tree
    compaction, clearing = tree.compaction_for(tree.head), tree.clearing_for(tree.head)
    # Not the whole line: what was summarized is as long as the session, and no longer sent.
    after = None if compaction is None else compaction.upto
    line = await port.nodes(tree.line(tree.head, after))
    if clearing is None:
        return line
    async with host.registry.reading(state.session_id) as store:
        cleared = await load_clearing(clearing, store)
    return [cleared_entry(entry, cleared) for entry in line]


async def _summary_tokens(host: SessionHost, state: SessionState) -> int:
    """What stands in the place of the messages that were compacted."""
    compaction = state.tree.compaction_for(state.tree.head)
    if compaction is None:
        return 0
    async with host.registry.reading(state.session_id) as store:
        fact = (await read_places([compaction.at], store))[compaction.at]
    if not isinstance(fact, Compacted):
        return 0
    return fact.tokens_after or estimate_text(sum(map(len, (fact.summary, *fact.carried))))


def _conversation_zones(line: Sequence[LineEntry], state: SessionState) -> list[ContextZone]:
    provider, _, model = state.settings.model.partition(":")
    target = ContextTarget(provider, model)
    sent = [message for entry in line for message in render(entry, target)]
    outputs = [message for message in sent if isinstance(message, CallResults)]
    said = [message for message in sent if isinstance(message, ChatMessage)]
    files = estimate_text(sum(len(part.text) for part in _files(said)))
    compaction = state.tree.compaction_for(state.tree.head)
    shown: list[NodeId | None] = [entry.node.id for entry in line]
    shown.append(None if compaction is None else compaction.upto)
    notes = notes_for_model(state.tree)
    told = sum(len(text) for node in shown for text in notes.get(node, ()))
    tokens = {
        "messages": max(0, estimate(said) - files),
        "files": files,
        "notes": estimate_text(told),
        "outputs": estimate(outputs),
    }
    return [ContextZone(name=name, tokens=count) for name, count in tokens.items()]


def _files(messages: Iterable[Message]) -> list[File]:
    """What came with messages as files, mentioned or attached."""
    parts = [part for each in messages if isinstance(each, ChatMessage) for part in each.parts]
    return [part for part in parts if isinstance(part, File)]


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
