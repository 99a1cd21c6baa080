"""The decision graph for one session: what its model is told, and the way of its tools to it.

Loaded when the project has decisions, or a tool asks for them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from weft.clock import Clock
from weft.context import DECISION_SUBJECT
from weft.decisions import (
    KINDS,
    DecisionAccess,
    DecisionEvidence,
    DecisionFact,
    DecisionGraph,
    DecisionNode,
    TurnEvidence,
)
from weft.decisions.masked_facts import masked_facts
from weft.decisions.note import TOKEN, note_line, path_note, without_tags
from weft.decisions.relevance import is_told, nodes_for_path, relevant_nodes, standing_orders
from weft.errors import StoreError
from weft.ids import DecisionId
from weft.runtime.decisions.decision_book import DecisionBook, with_file_evidence
from weft.state import SessionState
from weft.workspace import Workspace

logger = logging.getLogger(__name__)

TOKENS: Final = 1_024
"""Of all decisions that a model is told between two compactions."""
ORDER_TOKENS: Final = 256
"""Of these, what the user's standing orders have to themselves: one that is given late must not
find the room taken."""
MOST_ORDERS: Final = 50
RESULT_TOKENS: Final = 120
"""Of those inside one tool result."""
MOST_IN_RESULT: Final = 20
"""Decisions of a file that are tried: more never fit."""
MOST_AT_ONCE: Final = 6
FILES_IN_PLAY: Final = 10


class SessionDecisions(DecisionAccess):
    """What one session does with its project's graph."""

    def __init__(
        self,
        book: DecisionBook,
        state: SessionState,
        workspace: Workspace,
        forbids: Callable[[str], str] = lambda path: "",
        *,
        clock: Clock,
        redact: Callable[[str], str],
        more_kinds: Mapping[str, str] | None = None,
    ) -> None:
        """`forbids` says why a file may not be read; empty where it may be."""
        self._more_kinds = more_kinds or {}
        self._forbids = forbids
        self.book = book
        self._state = state
        self._workspace = workspace
        self._clock = clock
        self.redact = redact
        """Masks secrets."""
        self._request = ""
        self._told_in_turn: set[DecisionId] = set()

    async def begin_turn(self, state: SessionState) -> None:
        """Read what was added since.  What cannot be read is not told; the turn goes on."""
        self._state, self._told_in_turn = state, set()
        try:
            await self.book.refresh()
        except StoreError:
            logger.warning("the project's decisions cannot be read", exc_info=True)

    # -- what the model is told

    def environment(self, request: str | None, told: Mapping[str, str]) -> dict[str, str]:
        """What the model knows of decisions from here on, by subject: what it was told, as it is
        now, and what matters for a request (None: for the last one), within the tokens.
        """
        if request is not None:
            self._request = request
        graph = self.book.graph
        known = {
            subject: self._line_now(graph, DecisionId(subject.removeprefix(DECISION_SUBJECT)), text)
            for subject, text in told.items()
            if subject.startswith(DECISION_SUBJECT)
        }
        orders = standing_orders(graph)
        room, kept = _rooms(graph, known, {node.id for node in orders})
        self._tell(graph, orders[:MOST_ORDERS], known, kept)
        self._tell(graph, (*self._relevant(graph), *self._told_before(graph, told)), known, room)
        return known

    def _tell(
        self,
        graph: DecisionGraph,
        nodes: Iterable[DecisionNode],
        known: dict[str, str],
        room: int,
    ) -> None:
        """Add what fits into so many characters and is not known."""
        for node in nodes:
            subject = f"{DECISION_SUBJECT}{node.id}"
            if subject in known:
                continue
            line = self.redact(note_line(graph, node))
            if len(line) > room:
                continue
            room -= len(line)
            known[subject] = line
            self._told_in_turn.add(node.id)

    def _told_before(self, graph: DecisionGraph, told: Mapping[str, str]) -> list[DecisionNode]:
        """What the model was told before a compaction took it: carried by structure, not by the
        summary.
        """
        tree = self._state.tree
        if not tree.compactions or any(name.startswith(DECISION_SUBJECT) for name in told):
            return []
        names = {
            DecisionId(subject.removeprefix(DECISION_SUBJECT)): None
            for note in reversed(tree.environments)
            for subject in note.environment
            if subject.startswith(DECISION_SUBJECT)
        }
        found = [graph.nodes[name] for name in names if name in graph.nodes]
        return [node for node in found if is_told(graph, node)]

    def _relevant(self, graph: DecisionGraph) -> Iterable[DecisionNode]:
        found = relevant_nodes(
            graph,
            self._request,
            paths=self._files_in_play(),
            now=self._clock.now(),
            most=MOST_AT_ONCE,
            accepts=self._is_for_us,
        )
        return (each.node for each in found if not self._is_own_attempt(graph, each.node))

    def _is_own_attempt(self, graph: DecisionGraph, node: DecisionNode) -> bool:
        """Whether this session went back on it: the user wants it to be as if it had not been."""
        return "attempt" in node.tags and graph.sessions.get(node.id) == self._state.session_id

    def _is_for_us(self, node: DecisionNode) -> bool:
        """Whether a node may be told here: what only a model says, where it said it."""
        graph = self.book.graph
        is_ours = graph.sessions.get(node.id) == self._state.session_id
        return is_ours or not graph.is_unconfirmed(node)

    def _files_in_play(self) -> Collection[str]:
        state = self._state
        return [
            *islice(reversed(state.reads.seen), FILES_IN_PLAY),
            *islice(reversed(state.files.touched), FILES_IN_PLAY),
        ]

    def _line_now(self, graph: DecisionGraph, name: DecisionId, told: str) -> str:
        node = graph.nodes.get(name)
        if node is None:
            return told
        if node.status == "superseded":
            new = graph.successor(name)
            by = f" by {new.id}: {new.title}" if new is not None else ""
            gone = without_tags(f"No longer counts: {node.title} [{name}], superseded{by}.")
            return self.redact(gone)
        return self.redact(note_line(graph, node))

    def result_note(self, paths: Iterable[str]) -> str:
        """What was decided about files that a tool has read or changed, for the end of its result;
        each decision once a turn.
        """
        graph, told = self.book.graph, self._told_in_turn

        def is_new(node: DecisionNode) -> bool:
            # A result is no place for what is not decided yet.
            counts = node.status != "proposed" and self._is_for_us(node)
            return counts and node.id not in told and not self._is_own_attempt(graph, node)

        found: dict[DecisionId, DecisionNode] = {}
        for path in paths:
            near = nodes_for_path(graph, path, most=MOST_IN_RESULT, accepts=is_new)
            found.update((node.id, node) for node in near)
        if not found:
            return ""
        text, taken = path_note(graph, found.values(), RESULT_TOKENS)
        told.update(node.id for node in taken)
        return self.redact(text)

    # -- for tools

    @property
    def project_id(self) -> str:
        return self.book.project_id

    @property
    def kinds(self) -> Collection[str]:
        return {**KINDS, **self._more_kinds}

    @property
    def now(self) -> float:
        return self._clock.now()

    async def graph(self) -> DecisionGraph:
        return await self.book.refresh()

    def turn(self) -> DecisionEvidence:
        running = self._state.turn.open
        return TurnEvidence(
            session_id=self._state.session_id,
            turn_id=running.turn_id if running is not None else None,
            node=running.tip if running is not None else None,
        )

    async def noted(self, facts: Sequence[DecisionFact]) -> tuple[DecisionFact, ...]:
        found = await with_file_evidence(facts, self._workspace, self._forbids)
        return masked_facts(found, self.redact)


def _rooms(
    graph: DecisionGraph, known: Mapping[str, str], orders: Collection[DecisionId]
) -> tuple[int, int]:
    """The characters that are left for any decision, and for standing orders; what was superseded
    takes no room.
    """
    used = {True: 0, False: 0}
    for subject, line in known.items():
        name = DecisionId(subject.removeprefix(DECISION_SUBJECT))
        if name not in graph.nodes or graph.nodes[name].status != "superseded":
            used[name in orders] += len(line)
    kept = ORDER_TOKENS * TOKEN - used[True]
    room = (TOKENS - ORDER_TOKENS) * TOKEN - used[False]
    return room + min(kept, 0), max(kept, 0)
