"""The end of a turn: what is noted and what is open goes on record with it, if hooks and steering
allow it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from weft.events import Fact, FinishReason, NewMessage, TurnFinished, finish_words
from weft.faults import FailPointPair
from weft.ids import TurnId
from weft.loop.base import ModelEnvironment
from weft.loop.pending_facts import PendingFacts
from weft.loop.turn_facts import call_started, promote, settle_open_calls
from weft.loop.turn_line import TurnLine
from weft.state import SessionState

_FINISH = FailPointPair("loop.finish")

HOLDS = 3
"""How often hooks may keep one turn from ending: one that always says no must not run for ever."""


class TurnEnding:
    """Ends a turn, or finds that it goes on."""

    def __init__(
        self,
        turn_id: TurnId,
        models: Callable[[], ModelEnvironment],
        pending: PendingFacts,
        line: TurnLine,
        *,
        retries: Callable[[], int],
        submitted: Callable[[SessionState, Any], Sequence[Fact]] | None = None,
        snapshot: Callable[[], Awaitable[None]],
    ) -> None:
        """`models` gives what the next model call would use, `retries` how many calls of the turn
        were made again; `submitted` is `TurnEnvironment`'s, `snapshot` notes that of the files.
        """
        self._turn_id = turn_id
        self._models = models
        self._pending = pending
        self._line = line
        self._submitted = submitted
        self._retries = retries
        self._snapshot = snapshot
        self._held_back = 0

    async def finish(self, reason: FinishReason, detail: str = "") -> None:
        """End the turn with everything noted.

        Open calls are settled, so that the history is whole.
        """

        def more(state: SessionState, noted: Sequence[Fact]) -> list[Fact]:
            settled = settle_open_calls(state, noted, by="weft", reason=detail or reason)
            return [*settled, self.fact(state, noted, reason, detail)]

        await self._snapshot()
        await self._pending.commit(_FINISH, more, drop_draft=True)

    async def finish_unless_steered(
        self,
        reason: FinishReason,
        detail: str = "",
        deliverable: Any = None,
        *,
        asks_hooks: bool = True,
    ) -> bool:
        """End the turn, unless a hook holds it back or the user has steered.

        True when it is over.
        """
        if asks_hooks and await self._is_held_back():
            return False
        # Where steering waits the turn goes on, and its files are looked at when it ends.
        if not self._models().journal.state.queue.waiting("steering"):
            await self._snapshot()
        is_over = False

        def more(state: SessionState, noted: Sequence[Fact]) -> list[Fact]:
            # Decided inside the commit: steering that is accepted before this append belongs to
            # this turn, and looking for it any earlier would leave it in the queue of a finished
            # one.
            nonlocal is_over
            models = self._models()
            now = models.clock.now()
            steering = promote(state, noted, now)
            is_over = not steering
            if is_over and reason == "submitted" and self._submitted is not None:
                return [*self._submitted(state, deliverable)]
            if is_over:
                return [self.fact(state, noted, reason, detail, deliverable)]
            digest = self._line.digest(models, (*noted, *steering))
            name, prefix = models.model_name, models.prefix.id
            return [*steering, call_started(self._turn_id, name, prefix, now, digest=digest)]

        stored = await self._pending.commit(_FINISH, more, drop_draft=True)
        await self._line.take_promoted(stored)
        return is_over

    async def _is_held_back(self) -> bool:
        """Ask the hooks whether the turn may end; steering that waits comes first."""
        models = self._models()
        hooks = models.hooks
        if hooks is None or not hooks.wants_stop or self._held_back >= HOLDS:
            return False
        if models.journal.state.queue.waiting("steering"):
            return False
        # The answer is on record before the hooks run: they may read the log, and may take long.
        await self._pending.commit(_FINISH, drop_draft=True)
        ruling = await hooks.before_stop(self._line.last.text, held_back=self._held_back)
        self._pending.note(*ruling.facts)
        if ruling.halts or (ruling.verdict != "deny" and not ruling.context):
            return False
        self._held_back += 1
        if ruling.context:
            self._pending.nudge(ruling.context)
        if ruling.verdict == "deny":
            self._pending.nudge(f"A hook does not let you stop here: {ruling.reason}")
        return True

    def fact(
        self,
        state: SessionState,
        noted: Sequence[Fact],
        reason: FinishReason,
        detail: str,
        deliverable: Any = None,
    ) -> TurnFinished:
        """The fact that ends the turn."""
        return TurnFinished(
            turn_id=self._turn_id,
            **finish_words(reason),
            detail=detail,
            retries=self._retries(),
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
