"""The words of a line, held while they are needed.

`LineCache` keeps the end of the present line, from the last compaction on, and grows with it, so
that a round of a long conversation reads nothing, and what was compacted is read (`stored_line`)
only where someone asks for it.  Anything but growth (a moved head, an edit) drops it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, assert_never

import msgspec

from weft.events import (
    AnyFact,
    Compacted,
    CompactionUndone,
    HeadMoved,
    NewMessage,
    NodeEdited,
    NodesJoined,
    NodeSplit,
    Rewound,
    SubtreeDeleted,
    SubtreeRestored,
    ToolComplete,
)
from weft.ids import CallUid, NodeId
from weft.loop import ContextLine, LineEntry, RenderedLine
from weft.messages import File, Image, Part, Text, Thinking, ToolCall, ToolResult
from weft.session.log.long_parts import blob_of
from weft.store import Store
from weft.tree import ConversationTree, LogPosition, TreeCompaction

CACHED_BYTES: Final = 32 * 1024 * 1024
"""How much a session holds of its line; a longer one is read again each time."""
CACHED_BYTES_IN_ALL: Final = 64 * 1024 * 1024
"""How much all sessions of a process hold of their lines."""
ENTRY_BYTES: Final = 1_000
"""About what an entry weighs besides its words."""


NOTHING_CLEARED: Final[Mapping[CallUid, int]] = {}
NOTHING_EXCLUDED: Final[Mapping[NodeId, LineEntry]] = {}


class CompactedPart(msgspec.Struct, frozen=True):
    """What the model reads in place of the compacted part of a line."""

    fact: Compacted
    summary: str
    """The message that stands for it."""
    pinned: tuple[LineEntry, ...]
    unpinned: tuple[LineEntry, ...] = ()


_ON_THE_LINE: Final = frozenset(
    {
        NewMessage,
        ToolComplete,
        HeadMoved,
        Rewound,
        NodeEdited,
        NodeSplit,
        NodesJoined,
        SubtreeDeleted,
        SubtreeRestored,
        Compacted,
        CompactionUndone,
    }
)
"""The facts that make a line longer, or another one."""
_CHANGES_A_NODE: Final = (NodeEdited, NodeSplit, NodesJoined, ToolComplete)


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
        self._clearing: tuple[LogPosition, Mapping[CallUid, int]] | None = None
        self._shown: dict[NodeId, tuple[LineEntry, LineEntry]] = {}
        """Entries, and what the model sees of them once results are cleared."""
        self._emptied: dict[NodeId, tuple[LineEntry, LineEntry]] = {}
        """Entries that were excluded, and what stands for them."""
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
        from weft.session.log.stored_line import load_line  # few lines are compacted

        seen = self._seen
        before = await load_line(tree, compaction.upto, self._store)
        whole = before + await self._end(tree, tip, compaction.upto)
        # What came while the one part was read would be in the other only.
        return whole if self._seen == seen else await load_line(tree, tip, self._store)

    async def nodes(self, tree: ConversationTree, nodes: Sequence[NodeId]) -> list[LineEntry]:
        """These nodes with their words; read only where the cache does not hold them all."""
        if self._entries is not None and all(node in self._places for node in nodes):
            return [self._entries[self._places[node]] for node in nodes]
        from weft.session.log.stored_line import load_nodes  # a new session has all it said

        return await load_nodes(tree, nodes, self._store)

    async def context(self, tree: ConversationTree, tip: NodeId | None) -> ContextLine:
        """The line that ends at `tip` as the model is to see it: what was compacted as a summary,
        and the rest.
        """
        compaction = tree.compaction_for(tip)
        cleared = await self._cleared_results(tree, tip)
        if compaction is None:
            alone = self._cleared_of(await self._end(tree, tip, None), cleared)
            shown, excluded = self._without_excluded(alone, tree)
            return ContextLine(
                entries=shown, cleared=cleared, excluded=excluded, rendered=self._rendered
            )
        entries = self._cleared_of(await self._end(tree, tip, compaction.upto), cleared)
        part = await self._compacted_part(tree, compaction)
        shown, excluded = self._without_excluded(entries, tree)
        return ContextLine(
            entries=shown,
            cleared=cleared,
            excluded=excluded,
            summary=part.summary,
            upto=compaction.upto,
            pinned=part.pinned,
            unpinned=part.unpinned,
            compacted=part.fact,
            rendered=self._rendered,
        )

    async def _cleared_results(
        self, tree: ConversationTree, tip: NodeId | None
    ) -> Mapping[CallUid, int]:
        clearing = tree.clearing_for(tip)
        if clearing is None:
            return NOTHING_CLEARED
        if self._clearing is None or self._clearing[0] != clearing.at:
            from weft.session.log.stored_line import load_clearing  # few lines have one

            self._clearing = (clearing.at, await load_clearing(clearing, self._store))
            self._shown = {}
        return self._clearing[1]

    def _cleared_of(
        self, entries: list[LineEntry], cleared: Mapping[CallUid, int]
    ) -> tuple[LineEntry, ...]:
        """The entries as the model sees them; the same objects each time, as what was rendered of
        them is found by identity.
        """
        if not cleared:
            return tuple(entries)
        from weft.loop import cleared_entry  # few lines have cleared results

        for entry in entries:
            known = self._shown.get(entry.node.id)
            if known is None or known[0] is not entry:
                self._shown[entry.node.id] = (entry, cleared_entry(entry, cleared))
        return tuple(self._shown[entry.node.id][1] for entry in entries)

    def _without_excluded(
        self, entries: tuple[LineEntry, ...], tree: ConversationTree
    ) -> tuple[tuple[LineEntry, ...], Mapping[NodeId, LineEntry]]:
        """The entries as they are sent, and what was said in those that are not."""
        if not tree.excluded:
            return entries, NOTHING_EXCLUDED
        excluded = {each.node.id: each for each in entries if each.node.id in tree.excluded}
        from weft.loop import without_words  # few messages are excluded

        for node, entry in excluded.items():
            known = self._emptied.get(node)
            if known is None or known[0] is not entry:
                self._emptied[node] = (entry, without_words(entry))
        shown = (
            self._emptied[each.node.id][1] if each.node.id in excluded else each for each in entries
        )
        return tuple(shown), excluded

    async def _end(
        self, tree: ConversationTree, tip: NodeId | None, after: NodeId | None
    ) -> list[LineEntry]:
        # Not the list itself: the cache grows while the caller reads.
        if self._entries is not None and (self._tip(), self._after) == (tip, after):
            found = list(self._entries)
            self._budget.hold(self, self._weight)
            return found
        from weft.session.log.stored_line import load_nodes  # as above

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
        key = (compaction.at, (*tree.pins, *tree.excluded))
        if self._compacted is not None and self._compacted[0] == key:
            return self._compacted[1]
        from weft.loop import compacted_message  # as above
        from weft.session.log.stored_line import load_compaction, load_nodes

        seen = self._seen
        kept = tuple(await load_nodes(tree, tree.pinned_on(compaction.upto), self._store))
        fact = await load_compaction(compaction, self._store)
        once = () if fact.kept is None else fact.kept.pinned
        freed = [
            node
            for node in once
            if node not in tree.pins and node in tree.nodes and node not in tree.excluded
        ]
        unpinned = tuple(await load_nodes(tree, freed, self._store)) if freed else ()
        gone = [node for node in tree.excluded if node in tree.walk_up(compaction.upto)]
        if gone:
            from weft.loop import without_excluded  # few messages are excluded

            fact = without_excluded(fact, await load_nodes(tree, gone, self._store))
        part = CompactedPart(fact, compacted_message(fact, kept), kept, unpinned)
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
            case NewMessage(node=node) if any(blob_of(part) for part in node.parts):
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
                | NodeSplit()
                | NodesJoined()
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
        if self._compacted is None or not isinstance(fact, _CHANGES_A_NODE):
            return
        if any(entry.node.id == fact.node for entry in self._compacted[1].pinned):
            self._compacted = None

    def _begin(self, after: NodeId | None) -> None:
        self._after, self._entries, self._places, self._weight = after, [], {}, 0
        # It holds the entries too: kept on, it would keep what was let go for the budget.
        self._rendered = RenderedLine()
        self._shown = {}
        self._emptied = {}

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
