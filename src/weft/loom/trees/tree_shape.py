"""The shape of a tree, and how useful each model's branches were."""

from __future__ import annotations

from math import log2

import msgspec

from weft.ids import NodeId
from weft.loom.node import BOOKMARK
from weft.loom.trees.loom_tree import LoomTree


class TreeShape(msgspec.Struct, frozen=True, kw_only=True):
    """How a subtree has grown."""

    size: int
    depth: int
    """Nodes of its longest line."""
    width: int
    """The most nodes of one level."""
    leaves: int
    forks: int
    """Nodes with several children."""
    branchiness: float
    """Children of a node that has any, on average."""


class ModelStats(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one model's nodes."""

    model: str
    nodes: int
    expanded: int
    """Those that were gone on from."""
    bookmarked: int
    win_rate: float | None
    """Of its nodes that had siblings, the share with the best score among them."""
    kept_rate: float
    """The share of its nodes that were gone on from, marked or rated well."""
    utility: float
    cost_usd: float | None
    """None: a price is not known."""
    output_tokens: int


class TreeStats(msgspec.Struct, frozen=True, kw_only=True):
    """A tree in numbers."""

    root_id: NodeId
    nodes: int
    bookmarked: int
    partial: int
    characters: int
    shape: TreeShape
    models: tuple[ModelStats, ...]
    """The most useful first."""


def shape_of(tree: LoomTree, *tops: NodeId) -> TreeShape:
    """How the subtree of a node, or of several of the same depth, has grown."""
    levels: dict[int, int] = {}
    leaves = forks = edges = inner = 0
    base = tree.tree.nodes[tops[0]].depth
    for node in (node for top in tops for node in tree.subtree(top)):
        level = tree.tree.nodes[node].depth - base
        levels[level] = levels.get(level, 0) + 1
        below = len(tree.children(node))
        leaves += not below
        forks += below > 1
        inner += below > 0
        edges += below
    return TreeShape(
        size=sum(levels.values()),
        depth=len(levels),
        width=max(levels.values()),
        leaves=leaves,
        forks=forks,
        branchiness=edges / inner if inner else 0.0,
    )


def stats_of(tree: LoomTree) -> TreeStats:
    """A tree in numbers."""
    nodes = tree.all_nodes()
    scores = _scores(tree, nodes)
    by_model: dict[str, list[NodeId]] = {}
    for node in nodes:
        head = tree.words.head(node, tree.tree.nodes[node])
        if head.model:
            by_model.setdefault(head.model, []).append(node)
    models = [_model_stats(tree, model, own, scores) for model, own in by_model.items()]
    models.sort(key=lambda each: each.utility, reverse=True)
    return TreeStats(
        root_id=tree.tree_id,
        nodes=len(nodes),
        bookmarked=sum(bool(tree.marks(node).get(BOOKMARK)) for node in nodes),
        partial=sum(tree.tree.nodes[node].partial for node in nodes),
        characters=sum(len(tree.text(node)) for node in nodes),
        shape=shape_of(tree, *(tree.tree.children(None) or (tree.root_id,))),
        models=tuple(models),
    )


def own_utility(tree: LoomTree, node: NodeId) -> float:
    """What speaks for a node by itself: it was gone on from, marked, rated; nothing if hidden."""
    marks = tree.marks(node)
    if marks.get("hidden"):
        return 0.0
    rating = marks.get("rating")
    return (
        float(bool(tree.children(node)))
        + float(bool(marks.get(BOOKMARK)))
        + (float(rating) if isinstance(rating, int | float) else 0.0)
    )


def _scores(tree: LoomTree, nodes: list[NodeId]) -> dict[NodeId, float]:
    """The utility of each node with that of its descendants, the nearest counting most."""
    # From the leaves up: each level hands its sums by distance to the one above, once.
    sums: dict[NodeId, list[float]] = {}
    scores: dict[NodeId, float] = {}
    for node in sorted(nodes, key=lambda each: tree.tree.nodes[each].depth, reverse=True):
        by_distance = [own_utility(tree, node), *sums.pop(node, [])][:64]
        scores[node] = sum(value / log2(at + 2) for at, value in enumerate(by_distance))
        parent = tree.parent(node)
        if parent is not None:
            above = sums.setdefault(parent, [])
            above.extend([0.0] * (len(by_distance) - len(above)))
            for at, value in enumerate(by_distance):
                above[at] += value
    return scores


def _model_stats(
    tree: LoomTree, model: str, nodes: list[NodeId], scores: dict[NodeId, float]
) -> ModelStats:
    used = [tree.words.head(node, tree.tree.nodes[node]).usage for node in nodes]
    known = [each for each in used if each is not None]
    costs = [each.cost_usd for each in known]
    contests = wins = 0
    for node in nodes:
        siblings = _siblings(tree, node)
        if len(siblings) > 1:
            contests += 1
            best = max(scores[each] for each in siblings)
            wins += best > 0 and scores[node] == best
    kept = sum(own_utility(tree, node) > 0 for node in nodes)
    priced = [cost for cost in costs if cost is not None]
    return ModelStats(
        model=model,
        nodes=len(nodes),
        expanded=sum(bool(tree.children(node)) for node in nodes),
        bookmarked=sum(bool(tree.marks(node).get(BOOKMARK)) for node in nodes),
        win_rate=wins / contests if contests else None,
        kept_rate=kept / len(nodes),
        utility=sum(scores[node] for node in nodes) / len(nodes),
        cost_usd=sum(priced) if len(priced) == len(costs) else None,
        output_tokens=sum(each.output_tokens for each in known),
    )


def _siblings(tree: LoomTree, node: NodeId) -> tuple[NodeId, ...]:
    parent = tree.parent(node)
    return (node,) if parent is None else tree.children(parent)
