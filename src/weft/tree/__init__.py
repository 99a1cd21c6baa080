"""The conversation as a tree: a fold of facts into nodes, branches and a head.

Pure.  Holds no words, only where they are kept; knows no store.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.tree.fold import (
    EXCLUDED,
    EXCLUDED_READER,
    Branch,
    ConversationTree,
    TreeCompaction,
    TreeNote,
    TreeRef,
    reader_for,
)
from weft.tree.layered_map import LayeredMap
from weft.tree.skeleton import LogPosition, NodeSkeleton

if TYPE_CHECKING:  # loaded when they are first used
    from weft.tree.paged_map import PageBook, PagedMap, PagedNumbers
    from weft.tree.subtree_counts import SubtreeCounts

__all__ = [
    "EXCLUDED",
    "EXCLUDED_READER",
    "Branch",
    "ConversationTree",
    "LayeredMap",
    "LogPosition",
    "NodeSkeleton",
    "PageBook",
    "PagedMap",
    "PagedNumbers",
    "SubtreeCounts",
    "TreeCompaction",
    "TreeNote",
    "TreeRef",
    "reader_for",
]

_HOMES = {
    "PageBook": "paged_map",
    "PagedMap": "paged_map",
    "PagedNumbers": "paged_map",
    "SubtreeCounts": "subtree_counts",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
