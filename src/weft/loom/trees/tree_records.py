"""A tree as a record of data, for files and other programs."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.ids import NodeId
from weft.loom.loom_state import TreeSettings
from weft.loom.node import CONTEXT, LoomNode
from weft.loom.node_record import NodeRecord, TreeRecord
from weft.loom.trees.loom_tree import LoomTree


def tree_record(tree: LoomTree, settings: TreeSettings) -> TreeRecord:
    """All nodes of a tree that are not deleted, each behind its parent."""
    root = tree.root_id
    nodes = tuple(_record(tree, node) for node in tree.subtree(root))
    return TreeRecord(
        root_id=root,
        nodes=nodes,
        name=settings.name,
        current_id=tree.active_node(),
        created_at=nodes[0].created_at,
        settings={
            "model_plan": [msgspec.to_builtins(each) for each in settings.model_plan],
            "show_model_names": settings.show_model_names,
        },
        metadata=dict(settings.metadata),
    )


def _record(tree: LoomTree, node_id: NodeId) -> NodeRecord:
    node = tree.node(node_id)
    marks = tree.marks(node_id)
    parent = node.parent_id
    return NodeRecord(
        id=node.id,
        parent_id=parent,
        text=node.text,
        kind=node.kind,
        role=node.role or "",
        model=node.model or "",
        strategy=node.strategy or "",
        max_tokens=node.max_tokens,
        temperature=node.temperature,
        created_at=node.created_at,
        context=str(marks.get(CONTEXT) or ""),
        partial=node.partial,
        bookmarked=node.bookmarked,
        hidden=node.hidden,
        checked_out=parent is not None and tree.checked_out_child(parent) == node.id,
        rating=node.rating,
        usage=None if node.usage is None else msgspec.to_builtins(node.usage),
        cost_usd=node.cost_usd,
        metadata=_metadata(node),
    )


def _metadata(node: LoomNode) -> dict[str, Any]:
    """What no field of the record has."""
    named = ("bookmarked", "hidden", "rating", "partial", "role")
    return {name: value for name, value in node.metadata.items() if name not in named}
