"""One turn: ask the model, get leave, run tools, again, until it answers without calls.

The turn has no memory that matters: where it stands is in the log.  An open model call is made again, calls without a result are run
or settled, and otherwise the model is asked.  So a turn that starts fresh, goes on after a crash, or is continued by a person
enters the same loop at the place that the state names.

Each step ends in one append.  The answer waits in the notebook until an intent, a request for leave, the next model call or the end of
the turn takes it along; so a round with pure tools costs one append, and one with an effect two.

Here the steps are joined: `asking` asks the model, `spending` counts and limits, `batch` gets leave and runs, `handing_in` takes a
structured result, `progress` notices circles, and `standing` is the place that all of them share, with its end.
"""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from weft.errors import AuthFailed, WeftError
from weft.events import Fact, FinishReason
from weft.faults import FailPointPair
from weft.ids import BlobId, TurnId
from weft.loop.answer import ModelAnswer
from weft.loop.base import Commit, TurnEnvironment
from weft.loop.loop_detection import ProgressWatch
from weft.loop.model_call import ModelCaller
from weft.loop.structured_output import StructuredOutput
from weft.loop.tool_calls import ToolCallBatch
from weft.loop.tool_results import touched_facts
from weft.loop.turn_facts import answer_at_tip, settle_open_calls
from weft.loop.turn_state import answers_given
from weft.messages import Node, ToolCall
from weft.state import SessionState

_ABORT = FailPointPair("loop.abort")

EMPTY_ANSWER = (
    "Your last answer was empty. Answer with text, or call a tool; say so if the task is done."
)
NO_PROGRESS = (
    "You have made the same calls with the same results several times. "
    "Do something else, or say what keeps you from going on."
)


class Turn(ModelCaller, StructuredOutput):
    """A turn on its way."""

    def __init__(self, environment: TurnEnvironment, turn_id: TurnId) -> None:
        super().__init__(environment, turn_id)
        self.scope = anyio.CancelScope()
        """Cancelling it aborts the turn."""
        self.abort_reason = ""
        self._mistakes = 0
        self._watch = ProgressWatch(environment.limits.repeats)

    async def run(self) -> None:
        """Work until the turn is finished; the end is always a `TurnFinished` in the log.

        A cancel from outside `scope` (the process is closing) leaves the turn open: it is interrupted, and can go on.
        """
        try:
            with self.scope:
                await self._work()
            if self.scope.cancelled_caught:
                await self._abort()
        finally:
            if self._env.purse is not None:
                self._env.purse.release(self.turn_id)

    # -- the loop

    async def _work(self) -> None:
        await self._load_line()
        if await self._settle_last_answer():
            return
        while True:
            try:
                self._renew()
            except WeftError as error:
                is_refused = isinstance(error, AuthFailed)
                await self._finish("auth_error" if is_refused else "provider_error", str(error))
                return
            if (stop := self._limit_reached()) is not None:
                await self._finish(*stop)
                return
            answer = await self._ask_model()
            if answer is None:
                return
            if answer.calls:
                node = self._line[-1].node
                await self._run_calls(node)
                if await self._was_handed_in(node):
                    return
            elif await self._is_done(answer):
                return

    async def _settle_last_answer(self) -> bool:
        """Run what the last answer asked for and what has no result yet; there is such only after an interruption.

        True when that was the end of the turn.
        """
        node = answer_at_tip(self._env.journal.state)
        if node is None:
            return False
        entry = next((entry for entry in self._line if entry.node.id == node), None)
        if entry is None:
            return False
        waiting = set(self._env.journal.state.tree.unsettled(node))
        if waiting:
            calls = tuple(call for call in entry.node.calls if call.call_uid in waiting)
            await self._run_calls(entry.node, calls)
        elif entry is not self._line[-1]:
            return False
        return await self._was_handed_in(entry.node)

    # -- acting

    async def _run_calls(self, node: Node, calls: tuple[ToolCall, ...] | None = None) -> None:
        """Settle the calls of an answer; the results are noted, and in the line."""
        calls = node.calls if calls is None else calls
        batch = ToolCallBatch(self._env.calls, self._notebook, node.id)
        await batch.run(calls)
        self._take_results_into_line(node, batch.results)
        self._mistakes = 0 if batch.ran else self._mistakes + 1
        self._halted = self._halted or batch.halted
        if self._watch.should_nudge(calls, batch.results):
            self._nudge(NO_PROGRESS)

    async def _is_done(self, answer: ModelAnswer) -> bool:
        """End the turn, unless the answer was empty or somebody steered meanwhile."""
        if not answer.says_something and answer.stop != "refusal":
            self._mistakes += 1
            self._nudge(EMPTY_ANSWER)
            return False
        if self._env.submit is not None:
            return await self._is_handed_in_as_text(answer, self._env.submit)
        return await self._finish_unless_steered("stop", answer.detail)

    # -- ending

    def _limit_reached(self) -> tuple[FinishReason, str] | None:
        limits, state = self._env.limits, self._env.journal.state
        if self._halted:
            return "halted", self._halted
        if self._mistakes >= limits.mistakes:
            return "mistakes", f"{self._mistakes} answers in a row could not be acted on"
        if self._watch.is_stuck:
            return "no_progress", "the same calls with the same results, again and again"
        if answers_given(state, self._notebook.facts) >= limits.max_turns:
            return "max_turns", f"the limit of {limits.max_turns} answers in one turn is reached"
        return self._budget_reached(state)

    async def _abort(self) -> None:
        """Settle everything that was cut short."""
        _ABORT.before.hit()
        await self._env.journal.commit(self.settled)
        _ABORT.after.hit()

    def settled(self, state: SessionState) -> Commit:
        """The facts that end the turn where it stands; partial text is kept, in the model's context too.

        Does not wait, so that an actor can end a turn whose tool does not let go.
        """
        request, node = self._request, self._in_flight
        self._request = self._in_flight = None
        if request is not None and node is not None:
            composed = self._compose()
            self._note_discarded(node, request, composed)
            self._note_partial(node, request, composed)
        self._note_unclaimed(state)

        def more(state: SessionState, noted: Sequence[Fact]) -> list[Fact]:
            settled = settle_open_calls(
                state, noted, by="abort", reason=self.abort_reason or "the turn was stopped"
            )
            return [*settled, self._finished(state, noted, "aborted", self.abort_reason)]

        return self._notebook.take(state, more, drop_draft=True)

    def _note_unclaimed(self, state: SessionState) -> None:
        """What a command changed before it was stopped can be taken back like anything else."""
        blobs: dict[BlobId, bytes] = {}
        call_uid = next(reversed(state.turn.intents), None)
        facts = touched_facts(self._env.calls.unreported_changes(), call_uid, blobs)
        self._notebook.note(*facts, blobs=blobs)
