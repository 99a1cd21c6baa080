"""What retrieval keeps of a graph between two searches, so that one costs little in a project of
thousands of decisions.

A text is kept for each node, in small letters, with those of its options.  Whether a word could be
in it is asked of the text; only what may matter is cut into words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final
from weakref import WeakKeyDictionary

import msgspec

from weft.decisions.facts import DecisionNode
from weft.decisions.graph import OPEN, DecisionGraph
from weft.decisions.scope_index import ScopeIndex
from weft.decisions.words import concepts_of, words_of
from weft.ids import DecisionId

FARTHEST_GOAL: Final = 4
_VERDICTS: Final = ("rejected", "chosen", "leads_to")


class WordCounts(msgspec.Struct, frozen=True):
    """The words of a node and of its options."""

    words: Counter[str]
    strong: frozenset[str]
    """Those of titles and tags."""
    concepts: frozenset[str]
    """What the words of titles and tags mean."""


class IndexedNode(msgspec.Struct, kw_only=True):
    """A node as it is searched for."""

    node: DecisionNode
    strong: str
    """Titles and tags, its own and those of its options."""
    text: str
    """All that is said, in small letters."""
    is_told: bool
    counts: WordCounts | None = None


class GraphIndex:
    """The nodes of one graph by their words and scopes."""

    def __init__(self, graph: DecisionGraph) -> None:
        self._graph = graph
        self.nodes: dict[DecisionId, IndexedNode] = {}
        self.told: dict[DecisionId, IndexedNode] = {}
        """Those that are told by themselves."""
        self.standing: dict[DecisionId, None] = {}
        """The user's orders for the whole project: they count whatever a request is about."""
        self.scopes: ScopeIndex[DecisionId] = ScopeIndex()
        """The scopes of those that are told."""
        self._distances: dict[DecisionId, int] | None = None

    def refresh(self) -> None:
        """Take in what was written since."""
        changed = list(self._graph.unindexed)
        self._graph.unindexed.clear()
        for name in changed:
            self._forget(name)
            if name in self._graph.nodes:
                self._take(self._graph.nodes[name])
        if changed:
            self._distances = None

    def _forget(self, name: DecisionId) -> None:
        old = self.nodes.pop(name, None)
        if old is not None and old.is_told:
            del self.told[name]
            self.standing.pop(name, None)
            self.scopes.remove(name, old.node.scope)

    def _take(self, node: DecisionNode) -> None:
        strong, body = texts_of(self._graph, node)
        new = IndexedNode(
            node=node,
            strong=strong.lower(),
            text=f"{strong}\n{body}".lower(),
            is_told=is_told(self._graph, node),
        )
        self.nodes[node.id] = new
        if new.is_told:
            self.told[node.id] = new
            self.scopes.add(node.id, node.scope)
            if node.kind == "constraint" and node.status == "active" and not node.scope:
                self.standing[node.id] = None

    def counts(self, each: IndexedNode) -> WordCounts:
        """The words of a node."""
        if each.counts is None:
            strong, body = texts_of(self._graph, each.node)
            titles = words_of(strong)
            each.counts = WordCounts(
                Counter([*titles, *titles, *words_of(body)]),
                frozenset(titles),
                frozenset(concepts_of(titles)),
            )
        return each.counts

    def goal_distances(self) -> dict[DecisionId, int]:
        """How many edges each node is away from an active goal."""
        if self._distances is None:
            self._distances = _goal_distances(self._graph)
        return self._distances


_indexes: WeakKeyDictionary[DecisionGraph, GraphIndex] = WeakKeyDictionary()


def index_of(graph: DecisionGraph) -> GraphIndex:
    """The index of a graph, as the graph is now."""
    index = _indexes.get(graph)
    if index is None:
        index = _indexes[graph] = GraphIndex(graph)
    index.refresh()
    return index


def is_told(graph: DecisionGraph, node: DecisionNode) -> bool:
    """Whether a node is one that is told by itself: it counts, or it failed and nothing replaced
    it.
    """
    if node.kind in ("option", "outcome"):
        return False
    if node.kind == "observation" and _has_outcome(graph, node):
        return False
    if node.status == "abandoned":
        return node.kind in ("action", "decision", "goal")
    return node.status in OPEN or (node.status == "done" and node.kind != "action")


def _has_outcome(graph: DecisionGraph, node: DecisionNode) -> bool:
    """Whether what was seen came to something, such as a test that failed and passes now."""
    targets = (graph.nodes.get(edge.target) for edge in graph.outgoing(node.id, "leads_to"))
    return any(target is not None and target.kind == "outcome" for target in targets)


def texts_of(graph: DecisionGraph, node: DecisionNode) -> tuple[str, str]:
    """The titles and tags of a node and its options, and all else that is said of them."""
    strong = [node.title, *node.tags]
    body = [node.why, *node.scope]
    for verdict in _VERDICTS:
        for option, edge in graph.options(node.id, verdict):
            if option.kind == "option":
                strong.append(option.title)
                body += (option.why, edge.rationale)
    return "\n".join(strong), "\n".join(body)


def _goal_distances(graph: DecisionGraph) -> dict[DecisionId, int]:
    nodes = graph.nodes
    goals = [name for name, each in nodes.items() if (each.kind, each.status) == ("goal", "active")]
    distance = dict.fromkeys(goals, 0)
    edge: Iterable[DecisionId] = goals
    for steps in range(1, FARTHEST_GOAL + 1):
        around = (other for name in edge for other in graph.neighbours(name))
        edge = dict.fromkeys(each for each in around if each in nodes and each not in distance)
        distance.update((name, steps) for name in edge)
    return distance
