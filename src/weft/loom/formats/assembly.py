"""Nodes put together to trees: each behind its parent, no id twice, no node its own ancestor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from weft.errors import UsageError
from weft.loom.node_record import NodeRecord, TreeRecord

MOST_NODES: Final = 1_000_000
DEEPEST: Final = 100_000
"""Nodes of the longest line."""


def assembled(nodes: Iterable[NodeRecord], source: str) -> tuple[TreeRecord, ...]:
    """The trees of these nodes, in the order of their roots; children keep the order they have.

    Raises:
        UsageError: an id comes twice, a parent is missing, or the nodes go round in a circle.
    """
    by_id: dict[str, NodeRecord] = {}
    below: dict[str | None, list[NodeRecord]] = {}
    for node in nodes:
        if node.id in by_id:
            raise UsageError(f"the file has two nodes of the id {node.id!r}")
        by_id[node.id] = node
        below.setdefault(node.parent_id, []).append(node)
        if len(by_id) > MOST_NODES:
            raise UsageError(f"the file has more than {MOST_NODES} nodes")
    for parent, children in below.items():
        if parent is not None and parent not in by_id:
            raise UsageError(
                f"node {children[0].id!r} names a parent, {parent!r}, that is not in the file"
            )
    trees = tuple(_tree(root, below, source) for root in below.get(None, ()))
    # What no root leads to hangs below itself.
    if sum(len(tree.nodes) for tree in trees) < len(by_id):
        reached = {node.id for tree in trees for node in tree.nodes}
        lost = next(node for node in by_id if node not in reached)
        raise UsageError(f"node {lost!r} is its own ancestor")
    if not trees:
        raise UsageError("the file has no nodes")
    return trees


def _tree(root: NodeRecord, below: dict[str | None, list[NodeRecord]], source: str) -> TreeRecord:
    found: list[NodeRecord] = []
    # Not by recursion: a line of text may have more nodes than Python has frames.
    waiting = [(root, 1)]
    while waiting:
        node, depth = waiting.pop()
        if depth > DEEPEST:
            raise UsageError(f"the tree of {root.id!r} is deeper than {DEEPEST} nodes")
        found.append(node)
        waiting += [(child, depth + 1) for child in reversed(below.get(node.id, ()))]
    found[0] = msgspec.structs.replace(root, kind="root" if root.kind == "text" else root.kind)
    return TreeRecord(root_id=root.id, nodes=tuple(found), source=source)


def with_facts(tree: TreeRecord, **facts: Any) -> TreeRecord:
    """The tree with more that is known of it; a place that is not in it is left out."""
    current = facts.get("current_id", "")
    if current and all(node.id != current for node in tree.nodes):
        facts = {**facts, "current_id": ""}
    return msgspec.structs.replace(tree, **facts)
