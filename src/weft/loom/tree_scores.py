"""Scores of a tree: which nodes were worth something, and whose they were.

What a user does with a node is the evidence: it was gone on from, marked, rated, or hidden.  Pure,
over what is known of the nodes, so that trees of stores and of files are scored alike.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from math import log2
from operator import add, mul
from typing import Final

import msgspec

from weft.loom.node_record import TreeRecord

FARTHEST: Final = 64
"""Levels below a node that count for its discounted score: past that the work would grow with the
depth of the tree, for a weight of less than a sixth.
"""


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a node."""

    id: str
    parent_id: str | None = None
    model: str = ""
    generation_id: str = ""
    """Nodes of one parent with the same id were made at once, and compete."""
    bookmarked: bool = False
    hidden: bool = False
    rating: float | None = None
    cost_usd: float | None = None


class NodeScore(msgspec.Struct, frozen=True, kw_only=True):
    """What a node was worth."""

    id: str
    model: str
    depth: int
    children: int
    utility: float
    """By itself: 1 where it was gone on from, 1 where it is marked, and its rating."""
    total: float
    """With all nodes below it."""
    discounted: float
    """The same, each divided by log2(distance + 2)."""
    peer: float | None = None
    """`total` against the mean of its competitors, 1 for the mean; None without any, or where none
    was worth anything.
    """
    win: float | None = None
    """1 for the best of its competitors, shared where several are; None without any."""


class ScoreSummary(msgspec.Struct, frozen=True):
    """A few numbers in short."""

    count: int
    mean: float
    deviation: float


class ModelScore(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one model's nodes."""

    model: str
    nodes: int
    expanded: int
    bookmarked: int
    hidden: int
    kept: float
    """The share of its nodes that were worth something."""
    total: ScoreSummary
    discounted: ScoreSummary
    peer: ScoreSummary
    win_rate: ScoreSummary
    cost_usd: float | None
    """None where a cost is not known."""


class SubtreeShape(msgspec.Struct, frozen=True, kw_only=True):
    """How the part of a tree below a node has grown, that node included."""

    size: int
    depth: int
    width: int
    leaves: int
    children: int
    branching: float
    """Children of a node that has any, on average: 1 for a line."""
    branchiness: float
    """0 for a line, 1 where every node below is a leaf."""


def facts_of(tree: TreeRecord) -> list[NodeFacts]:
    """What is known of the nodes of a tree in a file."""
    return [
        NodeFacts(
            id=node.id,
            parent_id=node.parent_id,
            model=node.model,
            # Our own nodes have the one name, those of basemode the other.
            generation_id=str(
                node.metadata.get("gen_id") or node.metadata.get("generation_id") or ""
            ),
            bookmarked=node.bookmarked,
            hidden=node.hidden,
            rating=node.rating,
            cost_usd=node.cost_usd,
        )
        for node in tree.nodes
    ]


def node_scores(nodes: Sequence[NodeFacts]) -> dict[str, NodeScore]:
    """The score of each node; `nodes` stand behind their parents."""
    below = _children(nodes)
    depth: dict[str | None, int] = {None: -1}
    for node in nodes:
        depth[node.id] = depth[node.parent_id] + 1
    totals, discounted = _sums(nodes, below)
    peers, wins = _contests(below, totals)
    return {
        node.id: NodeScore(
            id=node.id,
            model=node.model,
            depth=depth[node.id],
            children=len(below.get(node.id, ())),
            utility=utility(node, is_expanded=node.id in below),
            total=totals[node.id],
            discounted=discounted[node.id],
            peer=peers.get(node.id),
            win=wins.get(node.id),
        )
        for node in nodes
    }


def utility(node: NodeFacts, *, is_expanded: bool) -> float:
    """What speaks for a node by itself; nothing for one that is hidden."""
    if node.hidden:
        return 0.0
    return float(is_expanded) + float(node.bookmarked) + max(node.rating or 0.0, 0.0)


def model_scores(nodes: Sequence[NodeFacts]) -> tuple[ModelScore, ...]:
    """What became of each model's nodes, the best model first."""
    scores = node_scores(nodes)
    own: dict[str, list[NodeFacts]] = {}
    for node in nodes:
        if node.model:
            own.setdefault(node.model, []).append(node)
    found = [_model_score(model, facts, scores) for model, facts in own.items()]
    return tuple(sorted(found, key=lambda each: (-each.peer.mean, -each.total.mean, each.model)))


def subtree_shape(nodes: Sequence[NodeFacts], top: str) -> SubtreeShape:
    """How the tree has grown below a node; `nodes` stand behind their parents."""
    below = _children(nodes)
    levels: list[int] = []
    level = [top]
    size = leaves = 0
    while level:
        levels.append(len(level))
        size += len(level)
        leaves += sum(node not in below for node in level)
        level = [child.id for node in level for child in below.get(node, ())]
    inner = size - leaves
    return SubtreeShape(
        size=size,
        depth=len(levels) - 1,
        width=max(levels),
        leaves=leaves,
        children=len(below.get(top, ())),
        branching=(size - 1) / inner if inner else 0.0,
        branchiness=(leaves - 1) / (size - 2) if size > 2 else 0.0,
    )


def _children(nodes: Iterable[NodeFacts]) -> dict[str, list[NodeFacts]]:
    below: dict[str, list[NodeFacts]] = {}
    for node in nodes:
        if node.parent_id is not None:
            below.setdefault(node.parent_id, []).append(node)
    return below


def _sums(
    nodes: Sequence[NodeFacts], below: dict[str, list[NodeFacts]]
) -> tuple[dict[str, float], dict[str, float]]:
    """The plain and the discounted sums of what each node and those below it are worth."""
    totals: dict[str, float] = {}
    discounted: dict[str, float] = {}
    by_distance: dict[str, list[float]] = {}
    weights = [1 / log2(distance + 2) for distance in range(FARTHEST)]
    # Leaves first: each node hands its sums on to its parent once.
    for node in reversed(nodes):
        own = utility(node, is_expanded=node.id in below)
        levels = [own, *by_distance.pop(node.id, ())]
        totals[node.id] = totals.get(node.id, 0.0) + own
        discounted[node.id] = sum(map(mul, levels, weights))
        if node.parent_id is None:
            continue
        totals[node.parent_id] = totals.get(node.parent_id, 0.0) + totals[node.id]
        del levels[FARTHEST - 1 :]
        above = by_distance.get(node.parent_id)
        if above is None:
            by_distance[node.parent_id] = levels
        else:
            # The longer one is kept and the shorter added to it: a line below a fork costs nothing.
            shorter, longer = sorted((above, levels), key=len)
            longer[: len(shorter)] = map(add, shorter, longer)
            by_distance[node.parent_id] = longer
    return totals, discounted


def _contests(
    below: dict[str, list[NodeFacts]], totals: dict[str, float]
) -> tuple[dict[str, float], dict[str, float]]:
    """How each node did against those that were made with it."""
    peers: dict[str, float] = {}
    wins: dict[str, float] = {}
    for children in below.values():
        groups: dict[str, list[str]] = {}
        for child in children:
            groups.setdefault(child.generation_id, []).append(child.id)
        for group in groups.values():
            if len(group) < 2:
                continue
            best = max(totals[each] for each in group)
            winners = sum(totals[each] == best for each in group)
            mean = sum(totals[each] for each in group) / len(group)
            for each in group:
                is_winner = best > 0 and totals[each] == best
                wins[each] = 1 / winners if is_winner else 0.0
                if mean > 0:
                    peers[each] = totals[each] / mean
    return peers, wins


def _model_score(model: str, nodes: list[NodeFacts], scores: dict[str, NodeScore]) -> ModelScore:
    own = [scores[node.id] for node in nodes]
    costs = [node.cost_usd for node in nodes]
    known = [cost for cost in costs if cost is not None]
    return ModelScore(
        model=model,
        nodes=len(nodes),
        expanded=sum(score.children > 0 for score in own),
        bookmarked=sum(node.bookmarked for node in nodes),
        hidden=sum(node.hidden for node in nodes),
        kept=sum(score.utility > 0 for score in own) / len(own),
        total=_summary([score.total for score in own]),
        discounted=_summary([score.discounted for score in own]),
        peer=_summary([score.peer for score in own if score.peer is not None]),
        win_rate=_summary([score.win for score in own if score.win is not None]),
        cost_usd=sum(known) if len(known) == len(costs) else None,
    )


def _summary(values: list[float]) -> ScoreSummary:
    if not values:
        return ScoreSummary(0, 0.0, 0.0)
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return ScoreSummary(len(values), statistics.fmean(values), deviation)
