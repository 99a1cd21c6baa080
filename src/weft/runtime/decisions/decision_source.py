"""The decision graph of a session's project, once there is something to be read or noted.

Loaded where a project has decisions, a tool asks for them, or a commit may come to one.  What
follows in size, the graph itself and the writers, waits until it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from weft.errors import StoreError
from weft.events import (
    ArchitectPlan,
    ArchitectStep,
    Fact,
    GoalEnded,
    NewMessage,
    PlanDecided,
    PlanEdited,
    RefDeleted,
    Rewound,
    ToolComplete,
)
from weft.loop import Commit
from weft.messages import typed_text
from weft.runtime.decisions.proposal import proposal_above
from weft.runtime.services import Services
from weft.session import LineReader
from weft.state import SessionState
from weft.store import Store
from weft.workspace import Workspace

if TYPE_CHECKING:  # loaded with the first use
    from weft.runtime.decisions.decision_writers import DecisionWriters
    from weft.runtime.decisions.session_decisions import SessionDecisions

LONGEST_CORRECTION: Final = 2_500
"""Characters of an answer that may be a correction, as `weft.decisions.corrections` has it."""
_UNQUOTED: Final = dict.fromkeys(map(ord, "\"'\\"))
"""Leaves out what a shell takes out of words."""
SHORTEST_TURN: Final = 12
"""Bytes of what a model says that it plans or has done: a greeting is shorter."""
_CUES: Final = (
    *(" no ", " no,", " no.", " no!", " no;", " no:", " no-", " nope", " nah", " not", "n't"),
    *("dont", "never", "stop", "instead", "rather", "wrong", "undo", "revert", "prefer", " out"),
    *("break", "remove", "drop", "too ", "why", "avoid", "overkill"),
)
"""What corrects less than that has one of these in it."""
_ALWAYS: Final = (
    *(ArchitectPlan, ArchitectStep, GoalEnded, PlanDecided, PlanEdited, RefDeleted, Rewound),
)


class DecisionSource:
    """What one session reads of its project's graph, and notes in it."""

    def __init__(
        self,
        services: Services,
        store: Store,
        workspace: Workspace,
        forbids: Callable[[str], str],
        since: float = 0.0,
    ) -> None:
        """`since` is when the session was opened."""
        self._services = services
        self._store = store
        self._workspace = workspace
        self._forbids = forbids
        self._since = since
        self.found: SessionDecisions | None = None
        """The graph, once it was asked for."""
        self._writers: DecisionWriters | None = None

    async def begin_turn(self, state: SessionState) -> None:
        """Read on."""
        await self.of(state).begin_turn(state)

    def of(self, state: SessionState) -> SessionDecisions:
        """The graph, be it empty."""
        if self.found is None:
            from weft.runtime.decisions.project_books import project_book
            from weft.runtime.decisions.session_decisions import SessionDecisions

            services = self._services
            self.found = SessionDecisions(
                project_book(
                    services, self._store, state.about.project_key, state.about.project_path
                ),
                state,
                self._workspace,
                self._forbids,
                clock=services.clock,
                redact=services.redact,
                more_kinds=services.decisions.kinds,
            )
        return self.found

    # -- what is noted by itself

    def wants(self, facts: Sequence[Fact], state: SessionState) -> bool:
        """Whether a commit may come to a decision, as far as that can be told without loading what
        decides it.
        """
        return any(self._may_note(fact, state) for fact in facts)

    def _may_note(self, fact: Fact, state: SessionState) -> bool:
        match fact:
            case NewMessage(node=node):
                is_reply = node.role == "user" and node.parent is not None
                return is_reply and 0 < len(typed_text(node.parts)) <= LONGEST_CORRECTION
            case ToolComplete(call_uid=call_uid, result=result) if "exit_code" in result.data:
                intent = state.turn.intents.get(call_uid)
                command = str(intent.args.get("command", "")) if intent is not None else ""
                has_failed = self._writers is not None and bool(self._writers.failed)
                return has_failed or self._is_noted(command, failed=bool(result.data["exit_code"]))
            case ToolComplete():
                return False
            case _:
                return isinstance(fact, _ALWAYS)

    @staticmethod
    def _is_noted(command: str, *, failed: bool) -> bool:
        # Most commands do neither, and what reads them is not loaded for those.
        if not failed and "commit" not in command.translate(_UNQUOTED):
            return False
        from weft.evidence.command_kinds import is_commit, is_test  # see the module

        return is_test(command) if failed else is_commit(command)

    async def enriched(self, commit: Commit, state: SessionState, line: LineReader) -> Commit:
        """The commit, with what it comes to as decisions."""
        if self._writers is None and not await self._is_worth_it(commit, state, line):
            return commit
        if self._writers is None:
            from weft.runtime.decisions.decision_writers import DecisionWriters

            self._writers = DecisionWriters(self.of(state), self._since)
        return await self._writers.enriched(commit, state, line)

    async def _is_worth_it(self, commit: Commit, state: SessionState, line: LineReader) -> bool:
        """Whether to load the writers: not for a message that answers nothing, or a greeting,
        and has no word of a correction in it.
        """
        for fact in commit.facts:
            if not isinstance(fact, NewMessage):
                if self._may_note(fact, state):
                    return True
            elif self._may_note(fact, state):
                try:
                    above = await proposal_above(fact.node.parent, state, line)
                except StoreError:  # an entry is never worth the commit
                    return False
                if may_correct(above, typed_text(fact.node.parts)):
                    return True
        return False


def may_correct(proposal: str, reply: str) -> bool:
    """Whether an answer may be a correction: a first look, which lets too many through."""
    said = f" {reply.lower()} "
    return bool(proposal) and (
        len(proposal.strip().encode()) >= SHORTEST_TURN or any(cue in said for cue in _CUES)
    )
