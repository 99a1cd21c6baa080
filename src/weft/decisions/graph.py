"""The decision graph: a fold of the facts on a project's stream.

It owns one mutable state and changes it in place.  Facts of several machines may come together in
any order, so nothing here fails: a node that is there is not added twice, an edge may come before
its ends, and what changes an unknown node changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, assert_never

import msgspec

from weft.decisions.facts import (
    DecisionAdded,
    DecisionChanged,
    DecisionEdge,
    DecisionFact,
    DecisionLinked,
    DecisionNode,
    DecisionPurged,
    DecisionSuperseded,
    TurnEvidence,
)
from weft.decisions.sound_values import is_id, sound_change, sound_edge, sound_evidence, sound_node
from weft.errors import UsageError
from weft.ids import DecisionId, SessionId

KINDS: Final[dict[str, str]] = {
    "goal": "what is to be reached",
    "decision": "what was chosen, and why",
    "option": "what could be chosen",
    "action": "what is done for a goal",
    "outcome": "what came of it",
    "observation": "what was found out",
    "revisit": "what has to be looked at again",
    "constraint": "a standing order of the user: always, never",
}
"""The kinds of nodes that come with Weft, and what each is."""
EDGE_KINDS: Final = (
    *("leads_to", "chosen", "rejected", "requires", "blocks", "enables"),
    *("supersedes", "supports", "revises", "summarizes"),
)
STATUSES: Final = ("proposed", "active", "superseded", "abandoned", "done")
OPEN: Final = frozenset({"proposed", "active"})
"""The states of a node that counts."""
IN_FORCE: Final = frozenset({"active", "done"})
ATTEMPT: Final = "attempt"
"""The tag of what the user went back on."""
CORRECTION: Final = "correction"
"""The tag of a decision that was made of a user's correction."""


class DecisionGraph:
    """All nodes and edges of a project, as they are after `seq`."""

    def __init__(self, most_noted: int | None = None, kept: Collection[DecisionId] = ()) -> None:
        """With `most_noted`, only the newest so many of the attempts and of the corrections stay
        that were noted by themselves and that nothing was said of since, and those that are to be
        `kept`: they come with every rewind and with messages of the user, so that a graph that
        lives long would grow without end.
        """
        self._most_noted = most_noted
        self._kept = kept
        self._noted: dict[str, dict[DecisionId, None]] = {ATTEMPT: {}, CORRECTION: {}}
        """Those that may go, oldest first, by their tags."""
        self.is_whole = True
        """Nothing that was noted has gone."""
        self.missed: set[DecisionId] = set()
        """What facts were about that is not here, in a graph that is not whole."""
        self.nodes: dict[DecisionId, DecisionNode] = {}
        self.edges: dict[tuple[DecisionId, DecisionId, str], DecisionEdge] = {}
        self.sessions: dict[DecisionId, SessionId] = {}
        """The session that wrote each node; empty for one that no session wrote."""
        self.changed: dict[DecisionId, float] = {}
        """When each node was last written to."""
        self.reasons: dict[DecisionId, str] = {}
        """Why nodes are in the state that they are in, where that was said."""
        self.of_user: set[DecisionId] = set()
        """What the user decided, or accepted: no model changes it."""
        self.purged: set[DecisionId] = set()
        """What was taken out for good."""
        self.seq = 0
        self.unindexed: set[DecisionId] = set()
        """What was written to since the last search, which takes it from here."""
        self._outgoing: dict[DecisionId, dict[tuple[DecisionId, DecisionId, str], None]] = {}
        self._incoming: dict[DecisionId, dict[tuple[DecisionId, DecisionId, str], None]] = {}

    # -- the fold

    def apply(self, fact: DecisionFact) -> None:
        """Take one more fact in."""
        self.seq = max(self.seq, fact.seq)
        match fact:
            case DecisionAdded(node=node):
                self._add(node, fact)
            case DecisionChanged(id=name):
                self._change(name, fact)
            case DecisionLinked(edge=edge):
                self._link(edge)
                if edge.kind == "supersedes":
                    self._take_over(edge.source)
            case DecisionSuperseded(old=old, new=new, rationale=rationale):
                self._link(
                    DecisionEdge(source=new, target=old, kind="supersedes", rationale=rationale)
                )
                self._take_over(new)
            case DecisionPurged(id=name):
                self._purge(name)
            case _:
                assert_never(fact)

    def _add(self, node: DecisionNode, fact: DecisionAdded) -> None:
        if node.id in self.nodes or node.id in self.purged or not is_id(node.id):
            return
        node = sound_node(node, fact.at)
        self._put(node)
        self.sessions[node.id] = fact.session_id
        self.changed[node.id] = fact.at or node.at
        if node.by == "user" and node.status != "proposed":
            self.of_user.add(node.id)
        self._take_over(node.id)
        if node.by == "auto" and node.id not in self._kept:
            for tag in self._noted.keys() & set(node.tags):
                self._noted[tag][node.id] = None
                self._limit_noted(self._noted[tag])

    def _limit_noted(self, noted: dict[DecisionId, None]) -> None:
        while self._most_noted is not None and len(noted) > self._most_noted:
            oldest = next(iter(noted))
            options = [edge for edge in self.outgoing(oldest) if self._is_own_option(edge)]
            self._remove(oldest)
            for edge in options:
                self._remove(edge.target)
            self.is_whole = False

    def _is_own_option(self, edge: DecisionEdge) -> bool:
        """Whether an edge leads from what was noted to an option that was noted with it."""
        option = self.nodes.get(edge.target)
        is_noted = any(edge.source in noted for noted in self._noted.values())
        is_free = option is not None and option.by == "auto" and option.id not in self._kept
        return is_noted and is_free and edge.kind in ("chosen", "rejected")

    def _forget_noted(self, name: DecisionId) -> None:
        for noted in self._noted.values():
            noted.pop(name, None)

    def _mention(self, name: DecisionId) -> None:
        """Something was said of a node: it stays, or has gone too early."""
        self._forget_noted(name)
        # With what it is an option of.
        for edge in self.incoming(name, "chosen", "rejected"):
            self._forget_noted(edge.source)
        is_missed = not self.is_whole and name not in self.nodes and name not in self.purged
        if is_missed and name not in self._kept:
            self.missed.add(name)

    def _change(self, name: DecisionId, fact: DecisionChanged) -> None:
        if fact.by != "auto":
            self._mention(name)
        node = self.nodes.get(name)
        if node is None:
            return
        fact = sound_change(fact)
        if fact.by == "user" and fact.status is not None:
            self.of_user.add(name)
        if fact.status is not None:
            self.reasons.pop(name, None)
            if fact.reason:
                self.reasons[name] = fact.reason
        fields = ("status", "title", "why", "confidence", "scope", "tags", "review_after")
        given = {field: getattr(fact, field) for field in fields}
        new = {field: value for field, value in given.items() if value is not None}
        if new.get("review_after") == 0.0:
            new["review_after"] = None
        evidence = sound_evidence(tuple(dict.fromkeys((*node.evidence, *fact.evidence))))
        self._put(msgspec.structs.replace(node, **new, evidence=evidence))
        self.changed[name] = max(self.changed[name], fact.at)
        # A model finishes its own proposals, and ends nothing of the user's with that; nor does a
        # commit that is noted on such a one afterwards.
        if fact.status is not None and fact.by != "model":
            self._take_over(name)

    def _put(self, node: DecisionNode) -> None:
        self.nodes[node.id] = node
        # A decision is searched for by the words of its options, too.
        self.unindexed.update((node.id, *(edge.source for edge in self.incoming(node.id))))

    def _link(self, edge: DecisionEdge) -> None:
        if not is_id(edge.source) or not is_id(edge.target):
            return
        if edge.source in self.purged or edge.target in self.purged:
            return
        edge = sound_edge(edge)
        if not self._is_own_option(edge):
            self._mention(edge.source)
            self._mention(edge.target)
        key = (edge.source, edge.target, edge.kind)
        self.unindexed.add(edge.source)
        if not edge.weight:
            self.edges.pop(key, None)
            self._outgoing.get(edge.source, {}).pop(key, None)
            self._incoming.get(edge.target, {}).pop(key, None)
            return
        self.edges[key] = edge
        self._outgoing.setdefault(edge.source, {})[key] = None
        self._incoming.setdefault(edge.target, {})[key] = None

    def _purge(self, name: DecisionId) -> None:
        # For good: facts about it that come from another machine later find it gone, too.
        self.purged.add(name)
        self.missed.discard(name)
        self._remove(name)

    def _remove(self, name: DecisionId) -> None:
        self._forget_noted(name)
        for key in (*self._outgoing.pop(name, ()), *self._incoming.pop(name, ())):
            edge = self.edges.pop(key, None)
            self._outgoing.get(key[0], {}).pop(key, None)
            self._incoming.get(key[1], {}).pop(key, None)
            if edge is not None:
                self.unindexed.add(edge.source)
        for known in (self.nodes, self.sessions, self.changed, self.reasons):
            known.pop(name, None)
        self.of_user.discard(name)
        self.unindexed.add(name)

    def _take_over(self, name: DecisionId) -> None:
        """Retire what a node stands in the place of.

        Not while it is only proposed: a model's proposal ends no decision of the user's.
        """
        new = self.nodes.get(name)
        if new is None or new.status not in IN_FORCE:
            return
        for edge in self.outgoing(name, "supersedes"):
            old = self.nodes.get(edge.target)
            if old is not None and old.status in (*OPEN, "done"):
                self._put(msgspec.structs.replace(old, status="superseded"))
                self.changed[old.id] = max(self.changed[old.id], self.changed[name])

    # -- looking

    def outgoing(self, name: DecisionId, *kinds: str) -> Iterator[DecisionEdge]:
        """The edges that begin at a node; of these kinds, where some are named."""
        for key in self._outgoing.get(name, ()):
            if not kinds or key[2] in kinds:
                yield self.edges[key]

    def incoming(self, name: DecisionId, *kinds: str) -> Iterator[DecisionEdge]:
        """The edges that end at a node."""
        for key in self._incoming.get(name, ()):
            if not kinds or key[2] in kinds:
                yield self.edges[key]

    def neighbours(self, name: DecisionId) -> Iterator[DecisionId]:
        """The nodes that edges join with a node, in both directions."""
        for edge in self.outgoing(name):
            yield edge.target
        for edge in self.incoming(name):
            yield edge.source

    def options(self, name: DecisionId, verdict: str) -> list[tuple[DecisionNode, DecisionEdge]]:
        """The options of a decision that were `chosen` or `rejected`, with why."""
        return [
            (self.nodes[edge.target], edge)
            for edge in self.outgoing(name, verdict)
            if edge.target in self.nodes
        ]

    def successor(self, name: DecisionId) -> DecisionNode | None:
        """The node that stands in the place of a node now; None where none does."""
        seen = {name}
        found: DecisionNode | None = None
        while True:
            following = [
                self.nodes[edge.source]
                for edge in self.incoming(name, "supersedes")
                if edge.source in self.nodes and edge.source not in seen
            ]
            in_force = [node for node in following if node.status != "proposed"]
            if not in_force:
                return found
            found = in_force[-1]
            name = found.id
            seen.add(name)  # edges are data: two nodes may supersede each other

    def is_unconfirmed(self, node: DecisionNode) -> bool:
        """Whether a node is a model's word alone: what it read may have put it there, so that no
        other session is told it by itself.
        """
        # `done` is a state that the model sets itself.
        is_own_word = node.by == "model" and node.status in ("proposed", "done")
        return is_own_word and node.id not in self.of_user

    def find(self, given: str) -> DecisionNode:
        """A node by its id or the beginning of its id.

        Raises:
            UsageError: none has it, or several do.
        """
        exact = self.nodes.get(DecisionId(given))
        if exact is not None:
            return exact
        wanted = given if given.startswith("dec_") else f"dec_{given}"
        matches = [name for name in self.nodes if given and name.startswith(wanted)]
        if not matches:
            raise UsageError(f"no decision {given!r}; `weft decisions list` shows them")
        if len(matches) > 1:
            shown = ", ".join(sorted(matches)[:5])
            raise UsageError(f"{given!r} is the beginning of several ids: {shown}")
        return self.nodes[matches[0]]

    def of_session(self, session_id: str) -> list[DecisionNode]:
        """The nodes that a session wrote, or that came of one of its turns."""
        return [
            node
            for name, node in self.nodes.items()
            if self.sessions[name] == session_id
            or any(
                isinstance(each, TurnEvidence) and each.session_id == session_id
                for each in node.evidence
            )
        ]


def fold_decisions(
    facts: Iterable[DecisionFact], start: DecisionGraph | None = None
) -> DecisionGraph:
    """The graph of these facts, which come after those of `start`."""
    graph = start or DecisionGraph()
    for fact in facts:
        graph.apply(fact)
    return graph
