"""How much of the window the line takes where the last request no longer tells: after a compaction,
an undo or a rewind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from weft.api.reports import last_answer, may_be_count, may_be_outdated, prefix_zones
from weft.context import (
    ContextTarget,
    LineEntry,
    cleared_entry,
    estimate,
    estimate_text,
    notes_for_model,
    render,
)
from weft.events import Compacted, CompactionUndone, decode
from weft.ids import NodeId
from weft.messages import CallResults, ChatMessage, File, Message
from weft.runtime.session_host import SessionHost
from weft.session.log.stored_line import load_clearing, read_places
from weft.session.port import SessionPort
from weft.state import SessionState
from weft.view.snapshot import ContextZone

PAGE: Final = 500


async def estimated_use(port: SessionPort, host: SessionHost) -> int | None:
    """About how many tokens the next request has; None where the last one tells."""
    state = port.state
    last = state.ledger.last_call
    is_doubtful = await is_outdated(state, host)
    zones = await prefix_zones(host, state.prefix, state.settings.model)
    zones += await line_zones(await sent_line(port, host, state), host, state)
    whole = sum(zone.tokens for zone in zones)
    if not is_doubtful and (last is None or may_be_count(last.total_tokens, whole)):
        return None
    return round(whole * state.ledger.ratio(state.settings.model))


async def is_outdated(state: SessionState, host: SessionHost) -> bool:
    """Whether the next request does not go on from the last one."""
    doubt = may_be_outdated(state)
    last = last_answer(state)
    if doubt != "undone" or last is None:
        return doubt != "no"
    # The state does not say when a compaction was undone: calls may have been made since.
    after = last.at.seq
    async with host.registry.reading(state.session_id) as store:
        while records := await store.read(last.at.log, after=after, limit=PAGE):
            if any(isinstance(decode(record.body), CompactionUndone) for record in records):
                return True
            after = records[-1].seq
    return False


async def sent_line(
    port: SessionPort, host: SessionHost, state: SessionState
) -> Sequence[LineEntry]:
    """The line behind its summary, with its results as the model sees them."""
    tree = state.tree
    compaction, clearing = tree.compaction_for(tree.head), tree.clearing_for(tree.head)
    # Not the whole line: what was summarized is as long as the session, and no longer sent.
    after = None if compaction is None else compaction.upto
    sent = [node for node in tree.line(tree.head, after) if node not in tree.excluded]
    line = await port.nodes(sent)
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


async def line_zones(
    line: Sequence[LineEntry], host: SessionHost, state: SessionState
) -> list[ContextZone]:
    """The zones of a line, unscaled: its summary, messages, files, notes and outputs."""
    summary = ContextZone(name="summary", tokens=await _summary_tokens(host, state))
    return [summary, *_conversation_zones(line, state)]


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
