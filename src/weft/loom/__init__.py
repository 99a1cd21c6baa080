"""Trees of text: continuations of a text, several at a time, on the same log as coding sessions.

`GenerationStore` is all trees, `LoomSession` one view of one tree; `LoomTree` between them holds a
tree in memory and writes through its session's actor.

The parts that touch no store: how models are made to continue (`continuation`), how what they write
is joined to the text (`boundary_repair`, `token_cap`), trees in files (`formats`).
"""

from weft.loom.branches.generation_events import (
    BranchFailure,
    GenerationCancelled,
    GenerationComplete,
    GenerationError,
    GenerationEvent,
)
from weft.loom.generation_store import GenerationStore
from weft.loom.host import LoomHost
from weft.loom.loom_session import LoomSession
from weft.loom.loom_state import LoomState, TreeSettings
from weft.loom.model_plan import ModelPlanEntry
from weft.loom.node import LoomNode, TextSegment
from weft.loom.search_rank import RankedTree
from weft.loom.tree_search import LoomHit
from weft.loom.tree_transfer import TreeImport, export_tree, import_trees
from weft.loom.trees.branch_comparison import BranchComparison
from weft.loom.trees.text_diff import DiffPart
from weft.loom.trees.tree_catalogue import CatalogueEntry, TreeCatalogue
from weft.loom.trees.tree_shape import TreeShape, TreeStats

__all__ = [
    "BranchComparison",
    "BranchFailure",
    "CatalogueEntry",
    "DiffPart",
    "GenerationCancelled",
    "GenerationComplete",
    "GenerationError",
    "GenerationEvent",
    "GenerationStore",
    "LoomHit",
    "LoomHost",
    "LoomNode",
    "LoomSession",
    "LoomState",
    "ModelPlanEntry",
    "RankedTree",
    "TextSegment",
    "TreeCatalogue",
    "TreeImport",
    "TreeSettings",
    "TreeShape",
    "TreeStats",
    "export_tree",
    "import_trees",
]
