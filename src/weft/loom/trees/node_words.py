"""The words of a tree's nodes, held in memory so that a view never waits for them.

A small tree is read whole when it is opened.  Of a large one the words that a view needs next are;
what is missing is read when it is asked for, by a look at a local file (`Store.read_now`).  A store
that is further away has no such look, and then every tree is read whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from weft.errors import Corrupt
from weft.events import (
    AnyFact,
    NewMessage,
    NodeEdited,
    NodesJoined,
    NodeSplit,
    ToolComplete,
    decode,
)
from weft.ids import BlobId, CallUid, NodeId, SessionId
from weft.loom.branches.token_scores import TokenScores, read_scores
from weft.loom.node import LOGPROBS
from weft.messages import Node, Part, Text, ToolCall, Usage
from weft.session import blob_of, first_of, read_places, unspill, words_of
from weft.store import Store
from weft.tree import LogPosition, NodeSkeleton

READ_WHOLE: Final = 2_000
"""Nodes of a tree that is read whole when it is opened."""
PAGE: Final = 2_000


class NodeHead(msgspec.Struct, frozen=True, gc=False):
    """What never changes of a node."""

    model: str
    usage: Usage | None
    at: float
    calls: tuple[ToolCall, ...] = ()


class NodeWords:
    """Texts by the place in a log that holds them, and the heads of nodes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._heads: dict[NodeId, NodeHead] = {}
        self._texts: dict[LogPosition, dict[NodeId, str] | str] = {}
        self._mixed: set[LogPosition] = set()
        """Where messages are that hold more than text."""
        self._results: dict[LogPosition, str] = {}
        self._scores: dict[str, TokenScores | None] = {}

    # -- taking in

    def take(self, fact: AnyFact) -> None:
        """Hold the words of a fact that has them in full."""
        place = LogPosition(fact.session_id, fact.seq)
        match fact:
            case NewMessage(node=node):
                self._put_head(node, fact.at)
                self._put(place, node.id, node.parts)
            case NodeEdited(node=edited, parts=parts) | NodesJoined(node=edited, parts=parts):
                self._put(place, edited, parts)
            case NodeSplit(node=edited, parts=parts, tail=tail):
                self._put(place, edited, parts)
                self._put(place, tail.id, tail.parts)
                self._put_head(tail, fact.at)
            case ToolComplete(result=result):
                self._results[place] = result.text
            case _:
                pass

    def _put_head(self, node: Node, at: float) -> None:
        self._heads.setdefault(node.id, NodeHead(node.model, node.usage, at, node.calls))

    def _put(self, place: LogPosition, node: NodeId, parts: Sequence[Part]) -> None:
        # Nearly always: one short text, and no place that it shares.
        if len(parts) == 1 and type(part := parts[0]) is Text and part.blob is None:
            self._put_text(place, node, part.text)
            return
        if any(not isinstance(part, Text) for part in parts):
            self._mixed.add(place)
        # A long part has only its beginning in the log; it is read when it is asked for.
        if any(blob_of(part) for part in parts):
            return
        self._put_text(place, node, _text(parts))

    def _put_text(self, place: LogPosition, node: NodeId, text: str) -> None:
        known = self._texts.get(place)
        # A split has the words of two nodes in one place.
        if isinstance(known, dict):
            known[node] = text
        elif known is not None:
            self._texts[place] = {node: text, NodeId(""): known}
        else:
            self._texts[place] = text

    def moved(self, before: LogPosition, fact: AnyFact) -> None:
        """A fact that was taken in before it was stored has its place in the log now."""
        known = self._texts.pop(before, None)
        if known is not None:
            self._texts[LogPosition(fact.session_id, fact.seq)] = known

    # -- reading

    def head(self, node: NodeId, held: NodeSkeleton) -> NodeHead:
        """What never changes of a node."""
        known = self._heads.get(node)
        if known is None:
            first = held.earlier[0] if held.earlier else held.at
            self._read(node, [first])
            known = self._heads[node]
        return known

    def text(self, node: NodeId, held: NodeSkeleton, revision: int | None = None) -> str:
        """What a node says, in its newest revision or in an earlier one."""
        place = _place_of(held, revision)
        known = self._known(place, node)
        if known is None:
            self._read(node, [place])
            known = self._known(place, node)
        return known or ""

    def is_plain(self, node: NodeId, held: NodeSkeleton) -> bool:
        """Whether a node holds nothing but text."""
        self.text(node, held)  # has it read
        return not held.calls and held.at not in self._mixed

    def result(self, place: LogPosition) -> str:
        """What a tool answered."""
        if place not in self._results:
            self._read(NodeId(""), [place])
        return self._results.get(place, "")

    def scores(self, blob_id: object) -> TokenScores | None:
        """The tokens of a node with their probabilities."""
        if not isinstance(blob_id, str):
            return None
        if blob_id not in self._scores:
            data = self._store.blob_now(BlobId(blob_id))
            self._scores[blob_id] = None if data is None else read_scores(data)
        return self._scores[blob_id]

    def _known(self, place: LogPosition, node: NodeId) -> str | None:
        known = self._texts.get(place)
        if isinstance(known, dict):
            return known.get(node, known.get(NodeId("")))
        return known

    def _read(self, node: NodeId, places: Sequence[LogPosition]) -> None:
        """Read what is missing, without waiting."""
        for place in places:
            records = self._store.read_now(place.log, [place.seq])
            if records is None:
                raise Corrupt(place.log, "its words were not loaded", seq=place.seq)
            self._take_read(place, node, decode(records[0].body))

    def _take_read(self, place: LogPosition, node: NodeId, fact: AnyFact) -> None:
        self.take(fact)
        if node and isinstance(fact, NewMessage | NodeEdited | NodeSplit | NodesJoined):
            self._fill(place, node, words_of(fact, node))

    def _fill(self, place: LogPosition, node: NodeId, parts: Sequence[Part]) -> None:
        """Hold a long text as well, whose blob is at hand."""
        if len(parts) == 1 and type(part := parts[0]) is Text and part.blob is None:
            return
        if any(blob_of(part) for part in parts):
            whole = "".join(self._whole(part) for part in parts if isinstance(part, Text))
            self._put_text(place, node, whole)

    def _whole(self, part: Text) -> str:
        blob_id = blob_of(part)
        if blob_id is None:
            return part.text
        data = self._store.blob_now(blob_id)
        return part.text if data is None else data.decode("utf-8", "replace")

    def look(self, wanted: Iterable[tuple[NodeId, NodeSkeleton, int | None]]) -> None:
        """Read what is missing of these nodes' texts, in the revisions that are wanted, in one go
        and without waiting, where the store is near enough for that.
        """
        by_log: dict[str, dict[int, NodeId]] = {}
        for node, held, revision in wanted:
            place = _place_of(held, revision)
            if place not in self._texts:
                by_log.setdefault(place.log, {})[place.seq] = node
        for log, nodes in by_log.items():
            # One alone is read when it is asked for.
            records = self._store.read_now(log, list(nodes)) if len(nodes) > 1 else None
            for record, node in zip(records or (), nodes.values(), strict=False):
                self._take_read(LogPosition(SessionId(log), record.seq), node, decode(record.body))

    # -- loading

    @property
    def can_look(self) -> bool:
        """Whether what is missing can be read without waiting."""
        return self._store.read_now("", ()) is not None

    async def load(self, nodes: Iterable[tuple[NodeId, NodeSkeleton]]) -> None:
        """Read all words of these nodes, earlier revisions and results too."""
        ahead = [(node, held) for node, held in nodes if not self._is_loaded(node, held)]
        for start in range(0, len(ahead), PAGE):
            await self._load_page(ahead[start : start + PAGE])

    def _is_loaded(self, node: NodeId, held: NodeSkeleton) -> bool:
        return node in self._heads and all(
            self._known(place, node) is not None for place in (*held.earlier, held.at)
        )

    async def _load_page(self, page: Sequence[tuple[NodeId, NodeSkeleton]]) -> None:
        spots = [
            (node, (*held.earlier, held.at), tuple(held.results.values())) for node, held in page
        ]
        wanted = (place for _, places, results in spots for place in (*places, *results))
        facts = await read_places(wanted, self._store)
        for node, places, results in spots:
            first = facts[places[0]]
            self._put_head(first_of(first, node), first.at)
            for place in places:
                parts = words_of(facts[place], node)
                self._put(place, node, await unspill(parts, self._store))
            for place in results:
                self.take(facts[place])
        for _, held in page:
            await self._load_scores(held)

    async def _load_scores(self, held: NodeSkeleton) -> None:
        blob_id = held.marks.get(LOGPROBS)
        if isinstance(blob_id, str) and blob_id not in self._scores:
            data = await self._store.blob(BlobId(blob_id))
            self._scores[blob_id] = None if data is None else read_scores(data)


def _text(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


def _place_of(held: NodeSkeleton, revision: int | None) -> LogPosition:
    if revision is None or revision >= held.revision or not held.earlier:
        return held.at
    return held.earlier[max(0, min(revision, len(held.earlier) - 1))]


def folded_calls(head: NodeHead, held: NodeSkeleton, words: NodeWords) -> list[dict[str, Any]]:
    """The calls of a coding turn with their results, for a node's metadata."""
    results: dict[CallUid, LogPosition] = dict(held.results)
    return [
        {
            "tool": call.name,
            "arguments": call.args,
            "result": words.result(results[call.call_uid]) if call.call_uid in results else None,
        }
        for call in head.calls
    ]
