"""What the screen asks its driver to do."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from weft.ids import NodeId
from weft.loom import ModelPlanEntry

CommandName: TypeAlias = Literal[
    "add_model",
    "blind",
    "bookmark",
    "branch_at_token",
    "coding",
    "compare",
    "context",
    "delete",
    "edit",
    "editor",
    "first",
    "fork",
    "generate",
    "go",
    "hoist",
    "last",
    "name",
    "next_bookmark",
    "open_context",
    "open_models",
    "open_prompt",
    "open_reading",
    "open_revisions",
    "open_tokens",
    "open_tree",
    "open_trees",
    "open_weave",
    "parent",
    "plan",
    "quit",
    "rate",
    "search",
    "sibling",
    "stop",
    "switch",
    "undo",
    "weave",
    "write",
]


TreeSort: TypeAlias = Literal["updated", "created", "name", "nodes"]


class TreeListQuery(msgspec.Struct, frozen=True):
    """Which trees a list shows, and in which order."""

    is_here: bool = False
    """Those of this folder alone."""
    sort: TreeSort = "updated"
    words: str = ""
    """What was typed to narrow it down."""


class ViewCommand(msgspec.Struct, frozen=True):
    """One thing to do."""

    do: CommandName
    node: NodeId | None = None
    other: NodeId | None = None
    number: int = 0
    """A step, a rating, how many branches of each model (0: as the plan says), a token."""
    cut: int | None = None
    """Where the text is cut before it grows."""
    text: str | None = None
    is_short: bool = False
    is_fork: bool = False
    """A branch of its own, in the place of another text for the same node."""
    is_wide: bool = False
    """In all trees, not only in this one."""
    plan: tuple[ModelPlanEntry, ...] = ()
    logprobs: int = 0
    picks: tuple[tuple[int, int], ...] | None = None
    trees: TreeListQuery = TreeListQuery()
