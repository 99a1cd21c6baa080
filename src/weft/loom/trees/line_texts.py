"""Lines as views show them, kept while nothing on them changes.

A line may have thousands of nodes, and a view goes from a node to its child or its parent all day
long: each of these lines is made from the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from weft.ids import NodeId
from weft.loom.node import CONTEXT, LOOM, TextSegment
from weft.loom.trees.node_words import NodeWords
from weft.tree import NodeSkeleton

MOST_LINES: Final = 16


class LineText(msgspec.Struct, frozen=True):
    """The text of one line, by its segments."""

    segments: tuple[TextSegment, ...]
    text: str
    context: str | None
    """What models are told there; None where no node of the line says so."""


class LineTexts:
    """The lines of a tree that were asked for last."""

    def __init__(
        self, words: NodeWords, marks: Callable[[NodeId, NodeSkeleton], Mapping[str, Any]]
    ) -> None:
        self._words = words
        self._marks = marks
        self._lines: dict[NodeId, LineText] = {}
        self._edition: object = None

    def line(self, node: NodeId, nodes: Mapping[NodeId, NodeSkeleton], edition: object) -> LineText:
        """The line that ends at a node; `edition` is another one whenever texts have changed."""
        if edition != self._edition:
            self._edition = edition
            self._lines.clear()
        known = self._lines.pop(node, None) or self._next(node, nodes) or self._made(node, nodes)
        # The one used last is last.
        self._lines[node] = known
        if len(self._lines) > MOST_LINES:
            del self._lines[next(iter(self._lines))]
        return known

    def _next(self, node: NodeId, nodes: Mapping[NodeId, NodeSkeleton]) -> LineText | None:
        """A line that is one longer than a known one, or one shorter."""
        held = nodes[node]
        above = self._lines.get(held.parent) if held.parent is not None else None
        if above is not None and held.parent_revision == nodes[held.parent].revision:  # type: ignore[index]
            segment, context = self._segment(node, held, None)
            return LineText(
                (*above.segments, segment),
                above.text + segment.text,
                above.context if context is None else context,
            )
        for child in held.children:
            below = self._lines.get(child)
            known = nodes[child]
            # Not below a child that has a context of its own: what holds above it is not known.
            if below is None or known.parent_revision != held.revision:
                continue
            if CONTEXT not in self._marks(child, known):
                last = below.segments[-1]
                end = len(below.text) - len(last.text)
                return LineText(below.segments[:-1], below.text[:end], below.context)
        return None

    def _made(self, node: NodeId, nodes: Mapping[NodeId, NodeSkeleton]) -> LineText:
        line: list[tuple[NodeId, NodeSkeleton, int | None]] = []
        at: NodeId | None = node
        revision: int | None = None
        while at is not None and (held := nodes.get(at)) is not None:
            line.append((at, held, revision))
            at, revision = held.parent, held.parent_revision
        line.reverse()
        self._words.look(line)
        segments: list[TextSegment] = []
        context: str | None = None
        for each, held, read in line:
            segment, own = self._segment(each, held, read)
            segments.append(segment)
            context = context if own is None else own
        return LineText(tuple(segments), "".join(each.text for each in segments), context)

    def _segment(
        self, node: NodeId, held: NodeSkeleton, revision: int | None
    ) -> tuple[TextSegment, str | None]:
        marks = self._marks(node, held)
        role = marks.get("role") if LOOM in marks else held.role
        context = marks.get(CONTEXT)
        segment = TextSegment(
            self._words.text(node, held, revision), role if isinstance(role, str) else None, node
        )
        return segment, None if context is None else str(context)
