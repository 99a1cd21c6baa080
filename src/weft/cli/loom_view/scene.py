"""What the view shows of a tree at one place, as data: read once, drawn at any size."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from weft.ids import NodeId

BranchState: TypeAlias = Literal["whole", "growing", "waiting", "partial", "failed"]


class BranchRow(msgspec.Struct, frozen=True, kw_only=True):
    """One branch of the current node: a child, or what is on its way to be one."""

    place: int = 0
    """Its place among all branches."""
    node: NodeId | None = None
    """None for one that is not stored yet, or never will be."""
    text: str
    """Its beginning, of one that grows its end; of a failed one the sentence that says why."""
    state: BranchState = "whole"
    why: str = ""
    """Why it broke off, of one of which only a part has come."""
    model: str = ""
    below: int = 0
    """Nodes below it."""
    cost_usd: float | None = None
    tokens: int = 0
    """Pieces that have come, of one that grows."""
    slot: int = -1
    """Its place in the plan, of one that is not stored."""
    is_bookmarked: bool = False
    rating: int | None = None
    name: str = ""
    is_marked: bool = False
    """Another one is to be compared with it, or woven together."""


class LinePart(msgspec.Struct, frozen=True):
    """A part of the line, and whose words it is; no role where a text is one text."""

    text: str
    role: str = ""


class LoomScene(msgspec.Struct, frozen=True, kw_only=True):
    """The view at one place."""

    title: str = ""
    nodes: int = 1
    cost_usd: float | None = 0.0
    models: int = 1
    """Models that write."""
    node: NodeId
    line: tuple[LinePart, ...] = ()
    """The text down to the current node; of a long one only the end, as much as may be seen."""
    is_cut: bool = False
    """There is more text above."""
    rows: tuple[BranchRow, ...] = ()
    """The branches that may be seen."""
    count: int = 0
    """Branches in all."""
    selected: int = -1
    """The place of ▸ among all; -1 where there is nothing to select."""
    target: NodeId | None = None
    """What keys act on: the selected branch, or at a leaf the current node."""
    target_text: str = ""
    below: str = ""
    """The text below the selected branch, its beginning."""
    path: tuple[str, ...] = ()
    """Names of nodes on the line."""
    depth: int = 0
    """Of the current node; that of the root is 0, as everywhere else."""
    n_branches: int = 1
    max_tokens: int = 200
    temperature: float = 0.9
    has_context: bool = False
    is_blind: bool = False
    is_hoisted: bool = False
    is_read_only: bool = False
    is_bookmarked: bool = False
    rating: int | None = None

    @property
    def is_leaf(self) -> bool:
        """Keys act on the current node itself."""
        return self.selected < 0


def shown_places(count: int, selected: int, room: int, *, is_growing: bool) -> list[int]:
    """Which of so many branches are shown where there is room for fewer: those around the selected
    one; while some grow, which are the last, these and the selected one.
    """
    if count <= room:
        return list(range(count))
    if not is_growing:
        first = max(0, min(selected - room // 2, count - room))
        return list(range(first, first + room))
    last = list(range(count - room, count))
    return last if selected < 0 or selected in last else [selected, *last[1:]]
