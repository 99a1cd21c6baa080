"""The words of a line, read from the log: exactly the records that the tree names."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from weft.errors import Corrupt
from weft.events import (
    AnyFact,
    Compacted,
    NewMessage,
    NodeEdited,
    NodesJoined,
    NodeSplit,
    PermissionAction,
    PermissionRequest,
    PermissionResolved,
    ResultsCleared,
    ToolComplete,
    ToolExecuting,
    decode,
)
from weft.ids import CallUid, NodeId
from weft.loop import LineEntry
from weft.messages import Image, Node, Part, ToolResult
from weft.session.log.long_parts import blob_of
from weft.state import QueueEntry
from weft.store import Store
from weft.tree import ConversationTree, LogPosition, TreeCompaction

_ALLOWED: Final[dict[PermissionAction, Literal["call", "turn", "session"]]] = {
    "allow_once": "call",
    "allow_turn": "turn",
    "allow_always": "session",
}
ROUND_FACTS: Final = 500
"""Facts behind an answer among which those of its calls are looked for."""


# --- nodes ------------------------------------------------------------------------------


async def load_line(tree: ConversationTree, tip: NodeId | None, store: Store) -> list[LineEntry]:
    """The line that ends at `tip`, with all words, as it is at this moment."""
    return await load_nodes(tree, tree.line(tip), store)


async def load_nodes(
    tree: ConversationTree, nodes: Iterable[NodeId], store: Store
) -> list[LineEntry]:
    """These nodes with all words, as they are at this moment.

    The tree may grow while the words are read, so where they are is written down before.
    """
    spots = [_spot(tree, node) for node in nodes]
    facts = await read_places((place for spot in spots for place in spot.places), store)
    return [await _in_full(_entry(spot, facts), store) for spot in spots]


async def load_beginnings(
    tree: ConversationTree, nodes: Iterable[NodeId], store: Store
) -> list[LineEntry]:
    """These nodes with what the log itself has of their words: the beginning of long ones, and no
    results.
    """
    spots = [msgspec.structs.replace(_spot(tree, node), results={}) for node in nodes]
    facts = await read_places((place for spot in spots for place in spot.places), store)
    return [_entry(spot, facts) for spot in spots]


class _Spot(msgspec.Struct, frozen=True):
    """Where the words of one node are, at one moment."""

    node: NodeId
    revision: int
    first: LogPosition
    newest: LogPosition
    results: dict[CallUid, LogPosition]

    @property
    def places(self) -> tuple[LogPosition, ...]:
        return (self.first, self.newest, *self.results.values())


def _spot(tree: ConversationTree, node: NodeId) -> _Spot:
    skeleton = tree.nodes[node]
    first = skeleton.earlier[0] if skeleton.earlier else skeleton.at
    return _Spot(node, skeleton.revision, first, skeleton.at, dict(skeleton.results))


class CallRecord(msgspec.Struct, frozen=True):
    """How a call went, besides its result."""

    duration_ms: int = 0
    allowed: Literal["", "call", "turn", "session"] = ""
    """For how long the user allowed it when asked; empty when they were not asked."""


async def load_call_records(
    tree: ConversationTree, nodes: Iterable[NodeId], store: Store
) -> dict[CallUid, CallRecord]:
    """How the settled calls of these nodes went."""
    found: dict[CallUid, CallRecord] = {}
    for spot in [_spot(tree, node) for node in nodes if node in tree.nodes]:
        for log, after, last in _rounds(spot):
            # The tree does not know where intents and requests are, but they stand between an
            # answer and its results.  A result may have come much later, so there is a limit.
            limit = min(last - after, ROUND_FACTS)
            records = await store.read(log, after=after, limit=limit)
            found |= _call_records([decode(record.body) for record in records])
    return found


def _rounds(spot: _Spot) -> Iterable[tuple[str, int, int]]:
    """The parts of the logs, each with its two ends, in which the calls of a node were settled."""
    by_log: dict[str, list[int]] = {}
    for place in spot.results.values():
        by_log.setdefault(place.log, []).append(place.seq)
    for log, seqs in by_log.items():
        yield log, spot.first.seq if spot.first.log == log else min(seqs) - 1, max(seqs)


def _call_records(facts: Iterable[AnyFact]) -> dict[CallUid, CallRecord]:
    began: dict[CallUid, float] = {}
    asked: dict[str, CallUid] = {}
    allowed: dict[CallUid, Literal["call", "turn", "session"]] = {}
    found: dict[CallUid, CallRecord] = {}
    for fact in facts:
        match fact:
            # A child's call is its own session's; its uid could name one of ours.
            case PermissionRequest(request_id=request_id, call_uid=uid, child=None):
                asked[request_id] = uid
            case PermissionResolved(request_id=request_id, action=action) if request_id in asked:
                if action != "deny":
                    allowed[asked[request_id]] = _ALLOWED[action]
            case ToolExecuting(call_uid=uid, at=at):
                began[uid] = at
            case ToolComplete(call_uid=uid, duration_ms=duration_ms, at=at):
                # A call that was stopped did not come to measure itself.
                if not duration_ms and uid in began:
                    duration_ms = max(0, round((at - began[uid]) * 1000))
                found[uid] = CallRecord(duration_ms, allowed.get(uid, ""))
            case _:
                pass
    return found


async def load_revisions(
    tree: ConversationTree, node: NodeId, store: Store
) -> list[tuple[Part, ...]]:
    """What a node said in each revision, oldest first."""
    skeleton = tree.require(node)
    places = [*skeleton.earlier, skeleton.at]
    facts = await read_places(places, store)
    return [await unspill(words_of(facts[place], node), store) for place in places]


def words_of(fact: AnyFact, node: NodeId) -> tuple[Part, ...]:
    """What a node says by the fact that the tree names for it."""
    match fact:
        case NewMessage(node=said) if said.id == node:
            return said.parts
        case NodeSplit(tail=tail) if tail.id == node:
            return tail.parts
        case NodeEdited(parts=parts) | NodeSplit(parts=parts) | NodesJoined(parts=parts):
            return parts
        case _:
            raise Corrupt(fact.session_id, f"expected words of the message {node}", seq=fact.seq)


def first_of(fact: AnyFact, node: NodeId) -> Node:
    """A node as it was added by the fact that the tree names for it."""
    match fact:
        case NewMessage(node=said) if said.id == node:
            return said
        case NodeSplit(tail=tail) if tail.id == node:
            return tail
        case _:
            raise Corrupt(fact.session_id, f"expected the message {node}", seq=fact.seq)


async def load_compaction(compaction: TreeCompaction, store: Store) -> Compacted:
    """The compaction that the tree names."""
    fact = (await read_places([compaction.at], store))[compaction.at]
    if not isinstance(fact, Compacted):
        raise Corrupt(fact.session_id, "expected a compaction", seq=fact.seq)
    return fact


async def load_clearing(clearing: TreeCompaction, store: Store) -> Mapping[CallUid, int]:
    """The results that are cleared, each with the characters of it that stay."""
    fact = (await read_places([clearing.at], store))[clearing.at]
    if not isinstance(fact, ResultsCleared):
        raise Corrupt(fact.session_id, "expected cleared results", seq=fact.seq)
    return fact.results


async def read_places(places: Iterable[LogPosition], store: Store) -> dict[LogPosition, AnyFact]:
    """The facts at these places."""
    by_log: dict[str, list[int]] = {}
    for place in places:
        by_log.setdefault(place.log, []).append(place.seq)
    found: dict[LogPosition, AnyFact] = {}
    for log, seqs in by_log.items():
        # A forked session's line lies in several logs; each is read once, in the order in which it
        # is stored.
        for record in await store.read_at(log, sorted(set(seqs))):
            fact = decode(record.body)
            found[LogPosition(fact.session_id, fact.seq)] = fact
    return found


def _entry(spot: _Spot, facts: Mapping[LogPosition, AnyFact]) -> LineEntry:
    first = facts[spot.first]
    node = first_of(first, spot.node)
    if spot.newest != spot.first:
        parts = words_of(facts[spot.newest], spot.node)
        node = msgspec.structs.replace(node, parts=parts, revision=spot.revision)
    results = {uid: _result(facts[place]) for uid, place in spot.results.items()}
    times = {uid: facts[place].at for uid, place in spot.results.items()}
    return LineEntry(node=node, results=results, at=first.at, result_times=times)


async def _in_full(entry: LineEntry, store: Store) -> LineEntry:
    """The entry with its blobs read."""
    node = entry.node
    return msgspec.structs.replace(
        entry,
        node=msgspec.structs.replace(node, parts=await unspill(node.parts, store)),
        results={uid: await _whole(result, store) for uid, result in entry.results.items()},
    )


async def _whole(result: ToolResult, store: Store) -> ToolResult:
    """The result with all its pictures."""
    if not any(image.blob for image in result.images):
        return result
    images = await unspill(result.images, store)
    return msgspec.structs.replace(result, images=images)


def _result(fact: AnyFact) -> ToolResult:
    if not isinstance(fact, ToolComplete):
        raise Corrupt(fact.session_id, "expected a tool's result", seq=fact.seq)
    return fact.result


# --- long parts -------------------------------------------------------------------------


async def unspill(parts: Sequence[Part], store: Store) -> tuple[Part, ...]:
    """The parts in full, blobs read."""
    if not any(blob_of(part) for part in parts):
        return tuple(parts)
    return tuple([await _unspill_part(part, store) for part in parts])


async def _unspill_part(part: Part, store: Store) -> Part:
    blob_id = blob_of(part)
    if blob_id is None:
        return part
    data = await store.blob(blob_id)
    # Content and fact are in one append, so that only damage can part them.
    if data is None:
        raise Corrupt("blobs", f"the content {blob_id} is missing")
    if isinstance(part, Image):
        return msgspec.structs.replace(part, data=base64.b64encode(data).decode(), blob=None)
    return msgspec.structs.replace(part, text=data.decode("utf-8", "replace"), blob=None)


async def unspill_entries(entries: Iterable[QueueEntry], store: Store) -> tuple[QueueEntry, ...]:
    """Queued entries with all their words."""
    return tuple(
        [
            msgspec.structs.replace(entry, parts=await unspill(entry.parts, store))
            for entry in entries
        ]
    )
