"""Reads from a session what the view shows: the end of the line, the branches that may be seen, and
of everything else a number.  Nothing here looks at the whole tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from weft.cli.chat.screens.terminal.region_painter import ScreenSize
from weft.cli.loom_view.growth import BranchGrowth
from weft.cli.loom_view.scene import BranchRow, LinePart, LoomScene, shown_places
from weft.cli.loom_view.text_rows import stable_start
from weft.cli.sanitize import clean_line
from weft.ids import NodeId
from weft.loom import LoomSession, TextSegment
from weft.sha256 import sha256

ROW_TEXT: Final = 4_000
"""Characters of a branch that a screen may have room for."""
BELOW_TEXT: Final = 600
PATH_NODES: Final = 300
"""Nodes above the current one that are looked at for names."""
TITLE: Final = 40
_UNNAMED: Final = ("", "Loom")


class SceneReader:
    """Scenes of one session."""

    def __init__(self, session: LoomSession) -> None:
        self._session = session

    def read(
        self,
        size: ScreenSize,
        *,
        growth: BranchGrowth | None = None,
        scroll: int = 0,
        marked: NodeId | None = None,
        hoist: NodeId | None = None,
    ) -> LoomScene:
        """The view as it is now, as much as a window of this size may show."""
        session, tree = self._session, self._session.loom_tree
        current = session.current_node_id
        is_blind = not session.show_model_names
        branches = self._branches(current, growth)
        chosen = session.selected_child(current)
        selected = next((n for n, each in enumerate(branches) if each == chosen), -1)
        is_growing = growth is not None and growth.source == current and not growth.is_over
        places = shown_places(len(branches), selected, max(4, size.rows), is_growing=is_growing)
        rows = [replace(self._row(branches[n], marked, growth), place=n) for n in places]
        target = chosen if selected >= 0 else current
        line = tree.shown_line(current)
        start = stable_start(line.text, size.columns * (size.rows + scroll + 2))
        parts, is_cut = _line_end(line.segments, len(line.text), start, hoist)
        marks = tree.marks(current)
        rating = marks.get("rating")
        entries = [each for each in session.model_plan if each.enabled]
        entry = entries[0] if entries else session.model_plan[0]
        return LoomScene(
            title=self.title,
            nodes=tree.descendant_count(tree.root_id) + 1,
            cost_usd=tree.state.ledger.total.cost_usd,
            models=len(entries),
            node=current,
            line=parts,
            is_cut=is_cut,
            rows=tuple(map(_unnamed, rows)) if is_blind else tuple(rows),
            count=len(branches),
            selected=selected,
            target=target,
            target_text=tree.text(target) if target is not None else "",
            below=self._below(chosen) if chosen is not None else "",
            path=self._path(current),
            depth=tree.tree.nodes[current].depth - 1,
            n_branches=session.n_branches,
            max_tokens=entry.max_tokens,
            temperature=entry.temperature,
            has_context=bool(line.context),
            is_blind=is_blind,
            is_hoisted=hoist is not None,
            is_read_only=session.read_only,
            is_bookmarked=bool(marks.get("bookmark")),
            rating=rating if isinstance(rating, int) else None,
        )

    @property
    def title(self) -> str:
        """What the tree is called; one without a name by its first words."""
        tree = self._session.loom_tree
        name = clean_line(tree.name)
        return name if name not in _UNNAMED else clean_line(tree.text(tree.root_id)[:200])[:TITLE]

    def ordered(self, node: NodeId) -> list[NodeId]:
        """The children of a node in the order in which they are shown."""
        tree = self._session.loom_tree
        if self._session.show_model_names:
            return list(tree.children(node))
        # They grew model by model: where nobody is to know who wrote what, the order must not tell.
        found = tree.orders.of(node, tree.tree)
        shuffled = sorted(found, key=lambda each: (each[1], _hash(each[2])))
        return [child for child, _, _ in shuffled]

    def _branches(
        self, node: NodeId, growth: BranchGrowth | None
    ) -> list[BranchRow | NodeId] | list[NodeId]:
        """The children, and what grows to be one."""
        stored = self.ordered(node)
        if growth is None or growth.source != node:
            return stored
        growing = growth.rows(set(stored))
        if not self._session.show_model_names:
            growing.sort(key=lambda each: _hash(_slot_of(each, growth)))
        ids = {each for each in growing if isinstance(each, str)}
        # Where the first of them stands: what came since is behind them.
        first = next((at for at, each in enumerate(stored) if each in ids), len(stored))
        others = [each for each in stored[first:] if each not in ids]
        return [*stored[:first], *growing, *others]

    def _row(
        self, branch: BranchRow | NodeId, marked: NodeId | None, growth: BranchGrowth | None
    ) -> BranchRow:
        if isinstance(branch, BranchRow):
            return branch
        node = self._session.loom_tree.node(branch)
        name = node.metadata.get("label")
        return BranchRow(
            node=node.id,
            text=node.text[:ROW_TEXT],
            state="partial" if node.partial else "whole",
            why=growth.why(node.id) if node.partial and growth is not None else "",
            model=node.model or "",
            below=self._session.loom_tree.descendant_count(node.id),
            cost_usd=node.cost_usd,
            is_bookmarked=node.bookmarked,
            rating=node.rating,
            name=clean_line(name) if isinstance(name, str) else "",
            is_marked=node.id == marked,
        )

    def _below(self, node: NodeId) -> str:
        """The text below a node along the branches that were selected last, its beginning."""
        session, found, length = self._session, list[str](), 0
        at = session.selected_child(node)
        while at is not None and length < BELOW_TEXT:
            found.append(session.loom_tree.text(at))
            length += len(found[-1])
            at = session.selected_child(at)
        return "".join(found)[:BELOW_TEXT]

    def _path(self, node: NodeId) -> tuple[str, ...]:
        tree, found = self._session.loom_tree, list[str]()
        at: NodeId | None = node
        for _ in range(PATH_NODES):
            if at is None:
                break
            name = tree.marks(at).get("label")
            if isinstance(name, str):
                found.append(clean_line(name))
            at = tree.parent(at)
        return tuple(reversed(found))


def _line_end(
    segments: Sequence[TextSegment], length: int, start: int, hoist: NodeId | None
) -> tuple[tuple[LinePart, ...], bool]:
    """A line of this length from a place on, or from a hoisted node; and whether some is left
    out.
    """
    found: list[LinePart] = []
    at = length
    for number in range(len(segments) - 1, -1, -1):
        each = segments[number]
        at -= len(each.text)
        found.append(LinePart(each.text[max(0, start - at) :], each.role or ""))
        if each.node_id == hoist or at <= start:
            return tuple(reversed(found)), number > 0 or at < start
    return tuple(reversed(found)), False


def _unnamed(row: BranchRow) -> BranchRow:
    """A branch that does not tell who wrote it; a price would."""
    return replace(row, model="", cost_usd=None)


def _slot_of(branch: BranchRow | NodeId, growth: BranchGrowth) -> int:
    if isinstance(branch, BranchRow):
        return branch.slot
    return next(n for n, each in enumerate(growth.branches) if each.node == branch)


def _hash(slot: int) -> bytes:
    return sha256(str(slot).encode()).digest()
