"""The words of a line: read from the log where they are kept, and held while they are needed.

The tree knows where each node's words are.  `load_line` reads exactly those records.  `LineCache`
keeps the end of the present line, from the last compaction on, and grows with it, so that a round
of a long conversation reads nothing, and what was compacted is read only where someone asks for it.
Anything but growth (a moved head, an edit) drops it.
"""

from __future__ import annotations

import base64
import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, assert_never

import msgspec

from weft.errors import Corrupt
from weft.events import (
    AnyFact,
    Compacted,
    CompactionUndone,
    Fact,
    HeadMoved,
    InputEdited,
    InputQueued,
    NewMessage,
    NodeEdited,
    PermissionAction,
    PermissionRequest,
    PermissionResolved,
    Rewound,
    SubtreeDeleted,
    SubtreeRestored,
    ToolComplete,
    ToolExecuting,
    decode,
)
from weft.ids import BlobId, CallUid, NodeId
from weft.loop import ContextLine, LineEntry, RenderedLine
from weft.messages import File, Image, Part, Text, Thinking, ToolCall, ToolResult
from weft.state import QueueEntry
from weft.store import Store
from weft.tree import ConversationTree, LogPosition, TreeCompaction

BLOB_OVER: Final = 32 * 1024
"""Parts longer than this are kept as blobs."""
KEPT_OF_BLOB: Final = 1_000
"""Characters of a long text that stay in the log, to be shown without the blob."""
CACHED_BYTES: Final = 32 * 1024 * 1024
"""How much a session holds of its line; a longer one is read again each time."""
CACHED_BYTES_IN_ALL: Final = 64 * 1024 * 1024
"""How much all sessions of a process hold of their lines."""
ENTRY_BYTES: Final = 1_000
"""About what an entry weighs besides its words."""
_ALLOWED: Final[dict[PermissionAction, Literal["call", "turn", "session"]]] = {
    "allow_once": "call",
    "allow_turn": "turn",
    "allow_always": "session",
}
ROUND_FACTS: Final = 500
"""Facts behind an answer among which those of its calls are looked for."""


# --- long parts ------------------------------------------------------------------------

_WITH_PARTS: Final = frozenset({NewMessage, InputQueued, InputEdited, NodeEdited, ToolComplete})


def spill(fact: Fact) -> tuple[Fact, dict[BlobId, bytes]]:
    """The fact as it is stored: long parts moved out into blobs."""
    if type(fact) not in _WITH_PARTS:
        return fact, {}
    blobs: dict[BlobId, bytes] = {}
    match fact:
        case NewMessage(node=node) if _is_long(node.parts):
            slim = msgspec.structs.replace(node, parts=_spilled(node.parts, blobs))
            return msgspec.structs.replace(fact, node=slim), blobs
        case InputQueued(parts=parts) | InputEdited(parts=parts) | NodeEdited(parts=parts) if (
            _is_long(parts)
        ):
            return msgspec.structs.replace(fact, parts=_spilled(parts, blobs)), blobs
        case ToolComplete(result=result) if _is_long(result.images):
            images = tuple(_spilled(result.images, blobs))
            slim_result = msgspec.structs.replace(result, images=images)
            return msgspec.structs.replace(fact, result=slim_result), blobs
        case _:
            return fact, blobs


def _is_long(parts: Iterable[Part]) -> bool:
    return any(_length(part) > BLOB_OVER for part in parts)


def _length(part: Part) -> int:
    match part:
        case Text(text=text) | File(text=text):
            return len(text)
        case Image(data=data):
            return len(data)
        case _:
            return 0


def _spilled(parts: Sequence[Part], blobs: dict[BlobId, bytes]) -> tuple[Part, ...]:
    return tuple(_spill_part(part, blobs) if _length(part) > BLOB_OVER else part for part in parts)


def _spill_part(part: Part, blobs: dict[BlobId, bytes]) -> Part:
    match part:
        case Text(text=text) | File(text=text):
            blob_id = _add(blobs, text.encode())
            return msgspec.structs.replace(part, text=text[:KEPT_OF_BLOB], blob=blob_id)
        case Image(data=data):
            blob_id = _add(blobs, base64.b64decode(data))
            return msgspec.structs.replace(part, data="", blob=blob_id)
        case _:
            return part


def _add(blobs: dict[BlobId, bytes], data: bytes) -> BlobId:
    blob_id = BlobId(hashlib.sha256(data).hexdigest())
    blobs[blob_id] = data
    return blob_id


async def unspill(parts: Sequence[Part], store: Store) -> tuple[Part, ...]:
    """The parts in full, blobs read."""
    if not any(_blob_of(part) for part in parts):
        return tuple(parts)
    return tuple([await _unspill_part(part, store) for part in parts])


async def _unspill_part(part: Part, store: Store) -> Part:
    blob_id = _blob_of(part)
    if blob_id is None:
        return part
    data = await store.blob(blob_id)
    # Content and fact are in one append, so that only damage can part them.
    if data is None:
        raise Corrupt("blobs", f"the content {blob_id} is missing")
    if isinstance(part, Image):
        return msgspec.structs.replace(part, data=base64.b64encode(data).decode(), blob=None)
    return msgspec.structs.replace(part, text=data.decode("utf-8", "replace"), blob=None)


def _blob_of(part: Part) -> BlobId | None:
    return part.blob if isinstance(part, Text | File | Image) else None


async def unspill_entries(entries: Iterable[QueueEntry], store: Store) -> tuple[QueueEntry, ...]:
    """Queued entries with all their words."""
    return tuple(
        [
            msgspec.structs.replace(entry, parts=await unspill(entry.parts, store))
            for entry in entries
        ]
    )


# --- reading ---------------------------------------------------------------------------


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
    first: LogPosition
    newest: LogPosition
    results: dict[CallUid, LogPosition]

    @property
    def places(self) -> tuple[LogPosition, ...]:
        return (self.first, self.newest, *self.results.values())


def _spot(tree: ConversationTree, node: NodeId) -> _Spot:
    skeleton = tree.nodes[node]
    first = skeleton.earlier[0] if skeleton.earlier else skeleton.at
    return _Spot(node, first, skeleton.at, dict(skeleton.results))


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
    found: list[tuple[Part, ...]] = []
    for place in places:
        fact = facts[place]
        parts = fact.node.parts if isinstance(fact, NewMessage) else _edited_parts(fact)
        found.append(await unspill(parts, store))
    return found


async def load_summary(
    compaction: TreeCompaction, store: Store, pinned: Sequence[LineEntry] = ()
) -> str:
    """What the model reads in place of what was compacted.

    `pinned` is carried too, where it was pinned only afterwards.
    """
    fact = (await read_places([compaction.at], store))[compaction.at]
    if not isinstance(fact, Compacted):
        raise Corrupt(fact.session_id, "expected a compaction", seq=fact.seq)
    # What was pinned at the time of the compaction is in it already.
    from weft.loop import as_message, pin_block  # few lines are compacted

    late = [block for block in map(pin_block, pinned) if block not in fact.carried]
    return as_message(fact.summary, (*fact.carried, *late))


def _edited_parts(fact: AnyFact) -> tuple[Part, ...]:
    if not isinstance(fact, NodeEdited):
        raise Corrupt(fact.session_id, "expected a revision of a message", seq=fact.seq)
    return fact.parts


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
    if not isinstance(first, NewMessage):
        raise Corrupt(first.session_id, f"expected the message {spot.node}", seq=first.seq)
    node = first.node
    newest = facts[spot.newest]
    if isinstance(newest, NodeEdited):
        node = msgspec.structs.replace(node, parts=newest.parts, revision=newest.revision)
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


# --- keeping ---------------------------------------------------------------------------


class CompactedPart(msgspec.Struct, frozen=True):
    """What the model reads in place of the compacted part of a line."""

    summary: str
    pinned: tuple[LineEntry, ...]


_ON_THE_LINE: Final = frozenset(
    {
        NewMessage,
        ToolComplete,
        HeadMoved,
        Rewound,
        NodeEdited,
        SubtreeDeleted,
        SubtreeRestored,
        Compacted,
        CompactionUndone,
    }
)
"""The facts that make a line longer, or another one."""


class LineCacheBudget:
    """What the line caches of a process may hold together; the one used longest ago gives way."""

    def __init__(self, most_bytes: int = CACHED_BYTES_IN_ALL) -> None:
        self._most = most_bytes
        self._held: dict[LineCache, int] = {}
        """The one used last is last."""
        self.held_bytes = 0

    def hold(self, cache: LineCache, weight: int) -> None:
        """A cache is used, and holds so much."""
        self.release(cache)
        self._held[cache] = weight
        self.held_bytes += weight
        while self.held_bytes > self._most:
            next(iter(self._held)).drop()

    def release(self, cache: LineCache) -> None:
        """A cache holds nothing more."""
        self.held_bytes -= self._held.pop(cache, 0)


class LineCache:
    """The end of the head's line with all its words, as long as it only grows."""

    def __init__(self, store: Store, budget: LineCacheBudget | None = None) -> None:
        self._store = store
        self._budget = budget or LineCacheBudget()
        self._after: NodeId | None = None
        """Where the end begins: the node that the last compaction goes up to."""
        self._entries: list[LineEntry] | None = None
        self._rendered = RenderedLine()
        self._compacted: tuple[tuple[LogPosition, tuple[NodeId, ...]], CompactedPart] | None = None
        self._places: dict[NodeId, int] = {}
        self._weight = 0
        self._is_closed = False
        self._seen = 0
        """Facts that were applied so far."""

    def start_empty(self) -> None:
        """Begin with a session that has no line yet."""
        self._begin(None)

    async def line(self, tree: ConversationTree, tip: NodeId | None) -> list[LineEntry]:
        """The whole line that ends at `tip`; a list of the caller's own."""
        compaction = tree.compaction_for(tip)
        if compaction is None:
            return await self._end(tree, tip, None)
        seen = self._seen
        before = await load_line(tree, compaction.upto, self._store)
        whole = before + await self._end(tree, tip, compaction.upto)
        # What came while the one part was read would be in the other only.
        return whole if self._seen == seen else await load_line(tree, tip, self._store)

    async def nodes(self, tree: ConversationTree, nodes: Sequence[NodeId]) -> list[LineEntry]:
        """These nodes with their words; read only where the cache does not hold them all."""
        if self._entries is not None and all(node in self._places for node in nodes):
            return [self._entries[self._places[node]] for node in nodes]
        return await load_nodes(tree, nodes, self._store)

    async def context(self, tree: ConversationTree, tip: NodeId | None) -> ContextLine:
        """The line that ends at `tip` as the model is to see it: what was compacted as a summary,
        and the rest.
        """
        compaction = tree.compaction_for(tip)
        if compaction is None:
            alone = tuple(await self._end(tree, tip, None))
            return ContextLine(entries=alone, rendered=self._rendered)
        entries = await self._end(tree, tip, compaction.upto)
        part = await self._compacted_part(tree, compaction)
        return ContextLine(
            entries=tuple(entries),
            summary=part.summary,
            upto=compaction.upto,
            pinned=part.pinned,
            rendered=self._rendered,
        )

    async def _end(
        self, tree: ConversationTree, tip: NodeId | None, after: NodeId | None
    ) -> list[LineEntry]:
        # Not the list itself: the cache grows while the caller reads.
        if self._entries is not None and (self._tip(), self._after) == (tip, after):
            found = list(self._entries)
            self._budget.hold(self, self._weight)
            return found
        seen = self._seen
        loaded = await load_nodes(tree, tree.line(tip, after), self._store)
        if self._seen == seen:
            # Else it is a moment old, and what came meanwhile would be missing from it.
            self._keep(loaded, after)
        return loaded

    async def _compacted_part(
        self, tree: ConversationTree, compaction: TreeCompaction
    ) -> CompactedPart:
        # The line above a node never changes, so that only a pin, or another compaction, can
        # change what is carried over; an edit drops it.
        key = (compaction.at, tuple(tree.pins))
        if self._compacted is not None and self._compacted[0] == key:
            return self._compacted[1]
        seen = self._seen
        kept = tuple(await load_nodes(tree, tree.pinned_on(compaction.upto), self._store))
        part = CompactedPart(await load_summary(compaction, self._store, kept), kept)
        if self._seen == seen:
            self._compacted = (key, part)
        return part

    def apply(self, fact: AnyFact) -> None:
        """Grow with the log, or let go."""
        self._seen += 1
        # Of the facts of a round only the answer and its results concern the line.
        if type(fact) not in _ON_THE_LINE:
            return
        self._forget_changed_pin(fact)
        if self._entries is None:
            return
        match fact:
            # The fact has only the beginning of a long part; the cache must hold all of it or
            # nothing.
            case NewMessage(node=node) if any(_blob_of(part) for part in node.parts):
                self.drop()
            case ToolComplete(result=result) if any(image.blob for image in result.images):
                self.drop()
            case NewMessage(node=node, advance=True) if node.parent == self._tip():
                self._append(LineEntry(node=node, at=fact.at))
            case ToolComplete(node=node_id, call_uid=call_uid, result=result):
                self._add_result(node_id, call_uid, result, fact.at)
            case (
                NewMessage(advance=True)
                | HeadMoved()
                | Rewound()
                | NodeEdited()
                | SubtreeDeleted()
                | SubtreeRestored()
                | Compacted()
                | CompactionUndone()
            ):
                self.drop()
            case _:
                pass

    def drop(self) -> None:
        """Hold nothing; the next reader loads."""
        self._begin(None)
        self._entries = None
        self._compacted = None
        self._budget.release(self)

    def _forget_changed_pin(self, fact: AnyFact) -> None:
        if self._compacted is None or not isinstance(fact, NodeEdited | ToolComplete):
            return
        if any(entry.node.id == fact.node for entry in self._compacted[1].pinned):
            self._compacted = None

    def _begin(self, after: NodeId | None) -> None:
        self._after, self._entries, self._places, self._weight = after, [], {}, 0
        # It holds the entries too: kept on, it would keep what was let go for the budget.
        self._rendered = RenderedLine()

    def _tip(self) -> NodeId | None:
        return self._entries[-1].node.id if self._entries else self._after

    def close(self) -> None:
        """Hold nothing, from now on: the budget would keep a closed session's cache for ever."""
        self.drop()
        self._is_closed = True

    def _keep(self, entries: list[LineEntry], after: NodeId | None) -> None:
        if self._is_closed:
            return
        self._begin(after)
        for entry in entries:
            self._append(entry)

    def _append(self, entry: LineEntry) -> None:
        if self._entries is None:
            return
        self._places[entry.node.id] = len(self._entries)
        self._entries.append(entry)
        results = sum(map(_result_weight, entry.results.values()))
        self._grow(ENTRY_BYTES + sum(map(_part_weight, entry.node.parts)) + results)

    def _add_result(self, node: NodeId, call_uid: CallUid, result: ToolResult, at: float) -> None:
        place = self._places.get(node)
        if place is None or self._entries is None:
            return
        entry = self._entries[place]
        if call_uid not in entry.results:
            self._entries[place] = msgspec.structs.replace(
                entry,
                results={**entry.results, call_uid: result},
                result_times={**entry.result_times, call_uid: at},
            )
            self._grow(_result_weight(result))

    def _grow(self, weight: int) -> None:
        self._weight += weight
        if self._weight > CACHED_BYTES:
            self.drop()
        else:
            self._budget.hold(self, self._weight)


def _part_weight(part: Part) -> int:
    """The bytes that a part has in memory, about."""
    match part:
        case Text(text=text) | File(text=text):
            return sys.getsizeof(text)
        case Image(data=data):
            return sys.getsizeof(data)
        case Thinking(text=text, signature=signature, redacted=redacted):
            return sum(map(sys.getsizeof, (text, signature, redacted)))
        case ToolCall(args=args):
            return _json_weight(args)
        case _:
            assert_never(part)


def _result_weight(result: ToolResult) -> int:
    pictures = sum(map(_part_weight, result.images))
    return sys.getsizeof(result.text) + pictures + _json_weight(result.data)


def _json_weight(value: dict[str, Any]) -> int:
    # A small value weighs several times its JSON, a long text as much as it.
    return 2 * len(msgspec.json.encode(value)) if value else 0
