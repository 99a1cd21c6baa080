"""Retrieval: which decisions matter for a request, or for a file.

A decision is looked for together with its options, so that a request that would lead to a rejected
one finds it.  The score is BM25 over titles and reasons, and what the scope, the distance to active
goals and the age say.  A score tells which of two is nearer, not whether either is near at all: so
a node is taken only if its scope is in play, or enough of the request's own words are in it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Mapping
from typing import Final

import msgspec

from weft.decisions.facts import DecisionNode, TurnEvidence
from weft.decisions.graph import DecisionGraph
from weft.decisions.graph_index import GraphIndex, IndexedNode, index_of, is_told
from weft.decisions.words import concepts_of, is_generic, root_of, words_of, words_of_concepts
from weft.ids import DecisionId

K1: Final = 1.2
B: Final = 0.4
ENOUGH: Final = 1.0
"""How much of a request must be in a decision."""
BODY_WEIGHT: Final = 0.5
"""What a word counts that is not in a title but in a reason."""
CONCEPT_WEIGHT: Final = 0.6
GENERIC_WEIGHT: Final = 0.35
SCOPE_BONUS: Final = 4.0
GOAL_BONUS: Final = 1.0
AGE_LOSS: Final = 1.0
"""What a year costs."""
LONGEST_REQUEST: Final = 20_000
"""Characters of a request that are looked at."""
MOST_WORDS: Final = 64
"""Words of a request that are looked for: the first ones."""
MOST_CANDIDATES: Final = 300
"""Nodes that are looked at closely."""
YEAR: Final = 365 * 86_400.0

__all__ = [
    "RelevantNode",
    "is_told",
    "nodes_for_path",
    "of_turn",
    "rejects",
    "relevant_nodes",
    "search",
    "standing_orders",
]


class RelevantNode(msgspec.Struct, frozen=True):
    """A node that matters, and how much."""

    node: DecisionNode
    score: float
    in_scope: bool


def relevant_nodes(
    graph: DecisionGraph,
    request: str,
    *,
    paths: Collection[str] = (),
    now: float,
    most: int = 12,
    standing: bool = True,
    accepts: Callable[[DecisionNode], bool] = lambda node: True,
) -> list[RelevantNode]:
    """What matters for a request and the files in play, nearest first.

    `standing`: the user's standing orders too, which matter for every request.  `accepts` leaves
    nodes out.
    """
    index = index_of(graph)
    in_scope = {name for path in paths for name in index.scopes.find(path)}
    in_scope |= index.scopes.mentioned(request[:LONGEST_REQUEST]).keys()
    asked = _AskedWords(request, index, index.told)
    about = (index.told[name] for name in in_scope if accepts(index.told[name].node))
    # A scope may be the whole project: of those the newest are weighed, and what has the words.
    newest = heapq.nlargest(MOST_CANDIDATES, about, key=lambda each: (each.node.at, each.node.id))
    anyway = [*newest, *(index.told[name] for name in (index.standing if standing else ()))]
    near_goals = index.goal_distances()
    found: list[RelevantNode] = []
    for each in {id(one): one for one in (*anyway, *asked.candidates())}.values():
        node, is_near = each.node, each.node.id in in_scope
        counts_anyway = is_near or (standing and node.id in index.standing)
        if not accepts(node) or (not counts_anyway and asked.overlap(each) < ENOUGH):
            continue
        score = asked.score(each)
        score += SCOPE_BONUS * is_near + GOAL_BONUS / (1 + near_goals.get(node.id, 99))
        score -= AGE_LOSS * min(2.0, max(0.0, now - node.at) / YEAR)
        found.append(RelevantNode(node, score, is_near))
    found.sort(key=lambda each: (-each.score, each.node.id))
    return found[:most]


def standing_orders(graph: DecisionGraph) -> list[DecisionNode]:
    """The user's orders for the whole project, the newest first."""
    index = index_of(graph)
    found = [index.told[name].node for name in index.standing]
    return sorted(found, key=lambda node: (-node.at, node.id))


def nodes_for_path(
    graph: DecisionGraph,
    path: str,
    *,
    most: int | None = None,
    accepts: Callable[[DecisionNode], bool] = lambda node: True,
) -> list[DecisionNode]:
    """The decisions that are about a file, the newest first; what rejects something comes first.

    `accepts` leaves nodes out.
    """
    index = index_of(graph)
    found = (index.told[name].node for name in index.scopes.find(path))

    def order(node: DecisionNode) -> tuple[bool, float, str]:
        return not rejects(graph, node), -node.at, node.id

    near = filter(accepts, found)
    return sorted(near, key=order) if most is None else heapq.nsmallest(most, near, key=order)


def rejects(graph: DecisionGraph, node: DecisionNode) -> bool:
    """Whether something was rejected with it, or it failed itself."""
    return node.status == "abandoned" or any(True for _ in graph.outgoing(node.id, "rejected"))


def search(graph: DecisionGraph, text: str, *, now: float, most: int = 20) -> list[DecisionNode]:
    """All nodes that words are in, of any state and kind, nearest first."""
    index = index_of(graph)
    asked = _AskedWords(text, index, index.nodes)
    said = text.lower().strip()
    scored = ((asked.score(each), each.node) for each in asked.candidates(0.0))
    near = {node.id: (score, node) for score, node in scored if score > 0}
    for each in index.nodes.values():
        if said and said in each.strong and said in each.node.title.lower():
            near.setdefault(each.node.id, (0.0, each.node))
    ranked = sorted(near.values(), key=lambda each: (-each[0], -each[1].at, each[1].id))
    return [node for _, node in ranked[:most]]


def of_turn(graph: DecisionGraph, session_id: str, turn_id: str) -> list[DecisionNode]:
    """The nodes that came of a turn."""
    return [
        node
        for node in graph.nodes.values()
        if any(
            isinstance(each, TurnEvidence)
            and (each.session_id, each.turn_id) == (session_id, turn_id)
            for each in node.evidence
        )
    ]


class _AskedWords:
    """The words of a request, and how they count in a graph."""

    def __init__(
        self, request: str, index: GraphIndex, nodes: Mapping[DecisionId, IndexedNode]
    ) -> None:
        self._index = index
        self._nodes = nodes
        self.words = list(dict.fromkeys(words_of(request[:LONGEST_REQUEST])))[:MOST_WORDS]
        self._concepts = concepts_of(word for word in self.words if not is_generic(word))
        self._all_concepts = concepts_of(self.words)
        self._hits = {
            word: [each for each in index.having(root_of(word)) if each.node.id in nodes]
            for word in self.words
        }
        self._mean = sum(len(each.text) for each in nodes.values()) / (len(nodes) or 1)

    def candidates(self, least: float = ENOUGH) -> list[IndexedNode]:
        """The nodes that may have enough of it: what has more, and what is newer, first."""
        bounds: dict[DecisionId, float] = {}
        for word, hits in self._hits.items():
            weight = GENERIC_WEIGHT if is_generic(word) else 1.0
            for each in hits:
                bounds[each.node.id] = bounds.get(each.node.id, 0.0) + weight
        for group in self._concepts:
            roots = {root_of(word) for word in words_of_concepts([group])}
            names: set[DecisionId] = set()
            for root in roots:
                names.update([each.node.id for each in self._index.having(root, in_titles=True)])
            for name in names & self._nodes.keys():
                bounds[name] = bounds.get(name, 0.0) + 1.0
        enough = [self._nodes[name] for name, bound in bounds.items() if bound >= least]
        enough.sort(key=lambda each: (-bounds[each.node.id], -each.node.at, each.node.id))
        return enough[:MOST_CANDIDATES]

    def overlap(self, each: IndexedNode) -> float:
        """How much of a request is in a node: its own words, and what it means."""
        counts = self._index.counts(each)
        exact = sum(
            (GENERIC_WEIGHT if is_generic(word) else 1.0)
            * (1.0 if word in counts.strong else BODY_WEIGHT)
            for word in self.words
            if word in counts.words
        )
        return exact + len(self._concepts & counts.concepts)

    def score(self, each: IndexedNode) -> float:
        """BM25, and what it means."""
        counts = self._index.counts(each)
        total, score = len(self._nodes), 0.0
        for word in self.words:
            count = counts.words.get(word, 0)
            if count:
                having = len(self._hits[word])
                rarity = math.log(1 + (total - having + 0.5) / (having + 0.5))
                length = K1 * (1 - B + B * len(each.text) / (self._mean or 1.0))
                weight = GENERIC_WEIGHT if is_generic(word) else 1.0
                score += weight * rarity * count * (K1 + 1) / (count + length)
        return score + CONCEPT_WEIGHT * len(self._all_concepts & counts.concepts)
