"""The order of a node's children: as they came, but those of one generation by its plan.

Branches that are written at once end in any order, and a number that a screen shows has to mean
the same branch in every other, while they grow and afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from weft.ids import NodeId
from weft.tree import ConversationTree, NodeSkeleton

MOST_KNOWN: Final = 4_000
"""Nodes whose orders are held."""

PlannedChild: TypeAlias = tuple[NodeId, int, int]
"""A child, the place of its generation among the children, and its own place in that."""


class ChildOrder:
    """The orders of nodes that were asked for last."""

    def __init__(self) -> None:
        self._known: dict[NodeId, tuple[tuple[NodeId, ...], tuple[PlannedChild, ...]]] = {}

    def of(self, node: NodeId, tree: ConversationTree) -> tuple[PlannedChild, ...]:
        """The children of a node that are not deleted, in their order."""
        children = tree.children(node)
        if len(children) < 2:
            return tuple((child, 0, 0) for child in children)
        known = self._known.get(node)
        # Wide nodes are asked for again at every key; what came meanwhile makes others of them.
        if known is None or known[0] != children:
            if len(self._known) > MOST_KNOWN:
                self._known.clear()
            known = self._known[node] = children, planned_children(children, tree.nodes)
        return known[1]

    def first(self, node: NodeId, tree: ConversationTree) -> NodeId:
        """The first of a node's children; it has some."""
        children = tree.children(node)
        # Nodes of a large tree are read when they are looked at: the siblings only if they matter.
        if len(children) < 2 or not (tree.nodes[children[0]].marked or {}).get("gen_id"):
            return children[0]
        return self.of(node, tree)[0][0]


def planned_children(
    children: Sequence[NodeId], nodes: Mapping[NodeId, NodeSkeleton]
) -> tuple[PlannedChild, ...]:
    """Children in their order; a generation stands where the first of it came."""
    # Straight from the nodes: a walk through a tree comes here for each of thousands.
    places: dict[object, int] = {}
    found: list[PlannedChild] = []
    for number, child in enumerate(children):
        marks = nodes[child].marked or {}
        slot = marks.get("slot")
        place = places.setdefault(marks.get("gen_id") or child, number)
        found.append((child, place, slot if isinstance(slot, int) else 0))
    # Without a generation of several, they are in order as they came.
    return tuple(sorted(found, key=_place_of) if len(places) < len(children) else found)


def _place_of(child: PlannedChild) -> tuple[int, int]:
    return child[1:]
