"""The conversation as a tree: a fold of facts into nodes, branches and a head.

Pure.  Holds no words, only where they are kept; knows no store.
"""

from weft.tree.fold import (
    Branch,
    ConversationTree,
    TreeCompaction,
    TreeNote,
    TreeRef,
    reader_for,
)
from weft.tree.layered_map import LayeredMap
from weft.tree.skeleton import LogPosition, NodeSkeleton

__all__ = [
    "Branch",
    "ConversationTree",
    "LayeredMap",
    "LogPosition",
    "NodeSkeleton",
    "TreeCompaction",
    "TreeNote",
    "TreeRef",
    "reader_for",
]
