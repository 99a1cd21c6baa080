"""The shape of a tree, and how useful each model's branches were: the scores of `tree_scores` for a
tree that is open.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.ids import NodeId
from weft.loom.node import BOOKMARK
from weft.loom.tree_scores import ModelScore, NodeFacts, model_scores
from weft.loom.trees.loom_tree import LoomTree
from weft.messages import Usage


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
    branching: float
    """Children of a node that has any, on average: 1 for a line."""
    branchiness: float
    """0 for a line, 1 where every node below the first is a leaf."""


class ModelStats(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one model's nodes."""

    model: str
    nodes: int
    expanded: int
    """Those that were gone on from."""
    bookmarked: int
    hidden: int
    win_rate: float | None
    """Of its nodes that were made at once with others, the share that did best; what several share
    counts in parts.  None where none was."""
    peer_score: float | None
    """What its nodes and those below them were worth against those made at once with them: 1 is the
    mean.  None where none can be compared."""
    kept_rate: float
    """The share of its nodes that were gone on from, marked or rated well."""
    utility: float
    """Of a node with those below it, the nearest counting most, on average."""
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
    """Those that did best against others first."""


def shape_of(tree: LoomTree, *tops: NodeId) -> TreeShape:
    """How the subtree of a node, or of several of the same depth, has grown."""
    levels: dict[int, int] = {}
    leaves = forks = inner = 0
    base = tree.tree.nodes[tops[0]].depth
    for node in (node for top in tops for node in tree.subtree(top)):
        level = tree.tree.nodes[node].depth - base
        levels[level] = levels.get(level, 0) + 1
        below = len(tree.tree.children(node))
        leaves += not below
        forks += below > 1
        inner += below > 0
    size, first = sum(levels.values()), len(tops)
    return TreeShape(
        size=size,
        depth=len(levels),
        width=max(levels.values()),
        leaves=leaves,
        forks=forks,
        branching=(size - first) / inner if inner else 0.0,
        branchiness=(leaves - first) / (size - 2 * first) if size > 2 * first else 0.0,
    )


def stats_of(tree: LoomTree) -> TreeStats:
    """A tree in numbers."""
    nodes = tree.all_nodes()
    used: dict[str, list[Usage]] = {}
    for node in nodes:
        head = tree.words.head(node, tree.tree.nodes[node])
        if head.usage is not None:
            used.setdefault(head.model, []).append(head.usage)
    scores = model_scores(facts_in(tree))
    return TreeStats(
        root_id=tree.tree_id,
        nodes=len(nodes),
        bookmarked=sum(bool(tree.marks(node).get(BOOKMARK)) for node in nodes),
        partial=sum(tree.tree.nodes[node].partial for node in nodes),
        characters=sum(len(tree.text(node)) for node in nodes),
        shape=shape_of(tree, *(tree.tree.children(None) or (tree.root_id,))),
        models=tuple(_model_stats(score, used.get(score.model, ())) for score in scores),
    )


def facts_in(tree: LoomTree) -> list[NodeFacts]:
    """What is known of the nodes of a tree, each behind its parent."""
    found: list[NodeFacts] = []
    for top in tree.tree.children(None):
        for node in tree.subtree(top):
            marks, head = tree.marks(node), tree.words.head(node, tree.tree.nodes[node])
            rating = marks.get("rating")
            found.append(
                NodeFacts(
                    id=node,
                    parent_id=tree.parent(node),
                    model=head.model,
                    generation_id=str(marks.get("gen_id") or marks.get("generation_id") or ""),
                    bookmarked=bool(marks.get(BOOKMARK)),
                    hidden=bool(marks.get("hidden")),
                    rating=float(rating) if isinstance(rating, int | float) else None,
                )
            )
    return found


def _model_stats(score: ModelScore, used: Sequence[Usage]) -> ModelStats:
    priced = [usage.cost_usd for usage in used if usage.cost_usd is not None]
    return ModelStats(
        model=score.model,
        nodes=score.nodes,
        expanded=score.expanded,
        bookmarked=score.bookmarked,
        hidden=score.hidden,
        win_rate=score.win_rate.mean if score.win_rate.count else None,
        peer_score=score.peer.mean if score.peer.count else None,
        kept_rate=score.kept,
        utility=score.discounted.mean,
        cost_usd=sum(priced) if len(priced) == len(used) else None,
        output_tokens=sum(usage.output_tokens for usage in used),
    )
