"""Where a turn stands: its line, what it has noted, and how it ends.

The base that the steps of a turn share; each of them is a file of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.context import (
    ComposedMessages,
    ContextTarget,
    LineEntry,
    MessageComposer,
    notes_for_model,
)
from weft.events import Fact, FinishReason, InputPromoted, NewMessage, SystemNote, TurnFinished
from weft.faults import FailPointPair
from weft.ids import CallUid, TurnId
from weft.loop.base import ContextLine, TurnEnvironment
from weft.loop.pending_facts import PendingFacts
from weft.loop.turn_facts import call_started, promote, settle_open_calls, tip_after
from weft.messages import Node, ToolResult
from weft.state import SessionState

_FINISH = FailPointPair("loop.finish")

HOLDS = 3
"""How often hooks may keep one turn from ending."""


class TurnState:
    """A turn's place, its notes and its end."""

    def __init__(self, environment: TurnEnvironment, turn_id: TurnId) -> None:
        self._env = environment
        self.turn_id = turn_id
        self._notebook = PendingFacts(environment.journal)
        self._line: list[LineEntry] = []
        self._context = ContextLine(entries=())
        """As it was read last; what it held then, `_line` has grown beyond."""
        info = environment.model.info
        self._composer = MessageComposer(ContextTarget(info.provider, info.name))
        self._told: tuple[MessageComposer, int, ComposedMessages] | None = None
        """What was composed last, by whom and with how many notes; None when the line is another by now."""
        self._retries = 0
        self._held_back = 0
        self._halted = ""

    # -- the line

    async def _load_line(self) -> None:
        self._context = await self._env.journal.line()
        self._line = list(self._context.entries)
        self._told = None

    def _add_to_line(self, entry: LineEntry) -> None:
        self._line.append(entry)
        self._told = None

    async def _take_into_line(self, stored: Sequence[Fact]) -> None:
        """Promoted inputs became part of the line.  It is read anew, for the queue holds only the beginning of a long one."""
        if any(isinstance(fact, InputPromoted) for fact in stored):
            await self._load_line()

    def _take_results_into_line(self, node: Node, results: Mapping[CallUid, ToolResult]) -> None:
        place = next(i for i, entry in enumerate(self._line) if entry.node.id == node.id)
        merged = {**self._line[place].results, **results}
        self._line[place] = LineEntry(node=node, results=merged)
        self._told = None

    def _compose(self) -> ComposedMessages:
        """What the model is told, as the line stands; composed anew only when something came to it."""
        tree = self._env.journal.state.tree
        told = self._told
        if told is None or told[:2] != (self._composer, len(tree.notes)):
            composed = self._composer.compose(
                self._line,
                summary=self._context.summary,
                upto=self._context.upto,
                notes=notes_for_model(tree),
            )
            told = self._told = (self._composer, len(tree.notes), composed)
        return told[2]

    def _nudge(self, text: str) -> None:
        state = self._env.journal.state
        node = tip_after(state, self._notebook.facts)
        self._notebook.note(SystemNote(text=text, to_model=True, node=node))

    # -- ending

    async def _finish(self, reason: FinishReason, detail: str = "") -> None:
        """End the turn with everything noted; open calls are settled, so that the history is whole."""

        def more(state: SessionState, noted: Sequence[Fact]) -> list[Fact]:
            settled = settle_open_calls(state, noted, by="weft", reason=detail or reason)
            return [*settled, self._finished(state, noted, reason, detail)]

        await self._notebook.commit(_FINISH, more, drop_draft=True)

    async def _finish_unless_steered(
        self, reason: FinishReason, detail: str = "", deliverable: Any = None
    ) -> bool:
        if await self._is_held_back():
            return False
        is_over = False

        def more(state: SessionState, noted: Sequence[Fact]) -> list[Fact]:
            nonlocal is_over
            steering = promote(state, noted, self._env.clock.now())
            is_over = not steering
            if is_over and reason == "submitted" and self._env.handed_in is not None:
                return [*self._env.handed_in(state, deliverable)]
            if is_over:
                return [self._finished(state, noted, reason, detail, deliverable)]
            now = self._env.clock.now()
            started = call_started(self.turn_id, self._env.model_name, self._env.prefix.id, now)
            return [*steering, started]

        stored = await self._notebook.commit(_FINISH, more, drop_draft=True)
        await self._take_into_line(stored)
        return is_over

    async def _is_held_back(self) -> bool:
        """Ask the hooks whether the turn may end.  The answer is on record before they run; steering that waits comes first."""
        hooks, state = self._env.hooks, self._env.journal.state
        if hooks is None or not hooks.wants_stop or self._halted or self._held_back >= HOLDS:
            return False
        if state.queue.waiting("steering"):
            return False
        await self._notebook.commit(_FINISH, drop_draft=True)
        ruling = await hooks.before_stop(self._line[-1].node.text, held_back=self._held_back)
        self._notebook.note(*ruling.facts)
        if ruling.halts or (ruling.verdict != "deny" and not ruling.context):
            return False
        self._held_back += 1
        if ruling.context:
            self._nudge(ruling.context)
        if ruling.verdict == "deny":
            self._nudge(f"A hook does not let you stop here: {ruling.reason}")
        return True

    def _finished(
        self,
        state: SessionState,
        noted: Sequence[Fact],
        reason: FinishReason,
        detail: str,
        deliverable: Any = None,
    ) -> TurnFinished:
        return TurnFinished(
            turn_id=self.turn_id,
            reason=reason,
            detail=detail,
            retries=self._retries,
            iterations=answers_given(state, noted),
            deliverable=deliverable,
        )


def answers_given(state: SessionState, noted: Sequence[Fact]) -> int:
    """Answers of the model in this turn, those included that are only noted."""
    done = state.turn.open.iterations if state.turn.open is not None else 0
    return done + sum(
        isinstance(fact, NewMessage) and fact.node.role == "assistant" and not fact.node.is_partial
        for fact in noted
    )
