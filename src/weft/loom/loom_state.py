"""What a view of a text tree shows: frozen, and made anew with every change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from weft.ids import NodeId
from weft.loom.continuation import PromptEntry
from weft.loom.model_plan import ModelPlanEntry
from weft.loom.node import LoomNode, TextSegment
from weft.messages import NOTHING_USED, Usage

ViewMode = Literal["branch", "tree"]


class LoomState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a screen needs to draw one view."""

    current_node_id: NodeId
    current_node: LoomNode
    full_text: str
    """From the root down to the current node."""
    children: tuple[LoomNode, ...]
    selected_child_idx: int
    descendant_counts: Mapping[NodeId, int]
    """How many nodes are below the current one and each of its children."""
    continuation_text: str
    """The text below the selected child."""
    model: str
    max_tokens: int
    temperature: float
    n_branches: int
    """Of all enabled models together."""
    context: str
    root_id: NodeId
    view_mode: ViewMode = "branch"
    hoisted_node_id: NodeId | None = None
    tree_nodes: tuple[LoomNode, ...] | None = None
    """All nodes, in tree view alone."""
    show_model_names: bool = True
    model_plan: tuple[ModelPlanEntry, ...] = ()
    usage: Usage = NOTHING_USED
    """Of the whole tree."""
    cost: float | None = None
    """None: a price is not known."""
    pricing_complete: bool = True
    name: str = ""
    lineage_segments: tuple[TextSegment, ...] = ()
    continuation_segments: tuple[TextSegment, ...] = ()
    render_chat_headers: bool = False
    """The tree has messages of several roles, and they are to be told apart."""
    can_undo: bool = False
    is_generating: bool = False
    is_blind: bool = False
    """Who wrote what is not shown."""


class ModelPrompt(msgspec.Struct, frozen=True):
    """What one model is sent."""

    model: str
    strategy: str
    parts: tuple[PromptEntry, ...]


class TreeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a tree, which all its views share."""

    name: str = ""
    model_plan: tuple[ModelPlanEntry, ...] = ()
    show_model_names: bool = True
    logprobs: int = 0
    archived: bool = False
    metadata: Mapping[str, object] = {}
