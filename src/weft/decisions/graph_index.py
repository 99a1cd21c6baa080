"""What retrieval keeps of a graph between two searches, so that one costs little in a project of
thousands of decisions.

A text is kept for each node, in small letters, with those of its options.  Whether a word could be
in it is asked of an index; only what may matter is cut into words.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable
from typing import Final
from weakref import WeakKeyDictionary

import msgspec

from weft.decisions.facts import DecisionNode
from weft.decisions.graph import OPEN, DecisionGraph
from weft.decisions.scope_index import ScopeIndex
from weft.decisions.words import concepts_of, small_letters, words_of
from weft.ids import DecisionId

FARTHEST_GOAL: Final = 4
MOST_GONE: Final = 1_000
"""Numbers of nodes that were written anew, before all are numbered again."""
FEW_TOKENS: Final = 16
"""Tokens that are looked up one by one: for more, a look at each of them is quicker."""
# Wider than the words of `words_of`: a token may hold several, but no word may be cut in two.
_TOKENS: Final = re.compile(r"[a-z0-9.\-\u00aa-\U0010ffff]+")
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
    number: int
    """Its place among all that were ever indexed."""
    counts: WordCounts | None = None


class TextIndex:
    """Texts in small letters, by number.

    The letters of a word's stem stand inside one token of a text, so that it is enough to look
    through the tokens that there are: thousands of texts have few.
    """

    def __init__(self) -> None:
        # Arrays, not sets: there are some 20 places for each text.
        self._places: dict[str, array[int]] = {}
        self._all = ""
        """Every token on a line of its own; empty where it has to be made anew."""

    def add(self, number: int, text: str) -> None:
        """Take one more text in."""
        for token in set(_TOKENS.findall(text)):
            places = self._places.get(token)
            if places is None:
                places = self._places[token] = array("I")
                self._all = ""
            places.append(number)

    def having(self, letters: str) -> set[int]:
        """The texts that have these letters in them: small ones, digits, dots and dashes."""
        if not self._all:
            self._all = "\n".join(("", *self._places, ""))
        if self._all.count(letters) > FEW_TOKENS:
            many = [places for token, places in self._places.items() if letters in token]
            return set().union(*many)
        found: set[int] = set()
        at = self._all.find(letters)
        while at >= 0:
            end = self._all.index("\n", at)
            found.update(self._places[self._all[self._all.rindex("\n", 0, at) + 1 : end]])
            at = self._all.find(letters, end)
        return found


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
        self._numbered: list[IndexedNode | None] = []
        """None: what was written anew since, under another number."""
        self._read_to = 0
        """How many of these are in the two indexes."""
        self._texts, self._titles = TextIndex(), TextIndex()

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
        if old is not None:
            self._numbered[old.number] = None
        if old is not None and old.is_told:
            del self.told[name]
            self.standing.pop(name, None)
            self.scopes.remove(name, old.node.scope)

    def _take(self, node: DecisionNode) -> None:
        strong, body = texts_of(self._graph, node)
        new = IndexedNode(
            node=node,
            strong=small_letters(strong),
            text=small_letters(f"{strong}\n{body}"),
            is_told=is_told(self._graph, node),
            number=len(self._numbered),
        )
        self.nodes[node.id] = new
        self._numbered.append(new)
        if new.is_told:
            self.told[node.id] = new
            self.scopes.add(node.id, node.scope)
            if node.kind == "constraint" and node.status == "active" and not node.scope:
                self.standing[node.id] = None

    def having(self, letters: str, *, in_titles: bool = False) -> list[IndexedNode]:
        """The nodes in whose text, or in whose titles and tags, these letters are."""
        self._read_on()
        numbers = (self._titles if in_titles else self._texts).having(letters)
        return [each for number in numbers if (each := self._numbered[number]) is not None]

    def _read_on(self) -> None:
        if len(self._numbered) > 2 * len(self.nodes) + MOST_GONE:
            self._numbered = list(self.nodes.values())
            for number, each in enumerate(self.nodes.values()):
                each.number = number
            self._read_to, self._texts, self._titles = 0, TextIndex(), TextIndex()
            # It keeps a place for each scope that there ever was.
            self.scopes = ScopeIndex()
            for name, told in self.told.items():
                self.scopes.add(name, told.node.scope)
        for new in self._numbered[self._read_to :]:
            if new is not None:
                self._texts.add(new.number, new.text)
                self._titles.add(new.number, new.strong)
        self._read_to = len(self._numbered)

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
