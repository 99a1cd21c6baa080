"""One turn: ask the model, get permission, run tools, again, until it answers without calls.

The turn has no memory that matters: where it stands is in the log.  An open model call is made
again, calls without a result are run or settled, and otherwise the model is asked.  So a turn that
starts fresh, goes on after a crash, or is continued by the user enters the same loop at the place
that the state names.

Each step ends in one append.  The answer waits among the pending facts until an intent, a request
for permission, the next model call or the end of the turn takes it along; so a round with pure
tools costs one append, and one with an effect two.

Here the parts are joined (`weft.loop` lists them).  They share two things: the pending facts, whose
order is the order in the log, and the line, which runs ahead of the log by what is noted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import anyio

from weft.errors import AuthFailed, WeftError
from weft.events import Fact, FinishReason, SystemNote
from weft.faults import FailPointPair
from weft.ids import BlobId, TurnId
from weft.loop.answer import (
    CUT_CALL,
    MALFORMED_CALL,
    AnswerEnds,
    EndVerdict,
    ModelAnswer,
    was_cut_in_call,
)
from weft.loop.base import Commit, TurnEnvironment
from weft.loop.model_call import ModelCaller, TurnStop
from weft.loop.pending_facts import PendingFacts
from weft.loop.tool_results import touched_facts
from weft.loop.tool_rounds import ToolRounds
from weft.loop.turn_end import TurnEnding, answers_given
from weft.loop.turn_facts import answer_at_tip, settle_open_calls, tip_after
from weft.loop.turn_line import TurnLine
from weft.messages import Node, ToolCall
from weft.state import SessionState

if TYPE_CHECKING:  # few runs ask for a structured result
    from weft.loop.structured_output import OutputVerdict, StructuredOutput

_ABORT = FailPointPair("loop.abort")

SNAPSHOT_SECONDS = 2.0
"""How long a turn that is stopped waits for the snapshot of its files."""
STOPPED_AFTER_STEP = "stopped after a step, as you asked"
"""The detail of a turn that has ended so."""
EMPTY_ANSWER = (
    "Your last answer was empty. Answer with text, or call a tool; say so if the task is done."
)


class Turn:
    """A turn on its way.

    It joins parts that a driver of another kind can use alone: the line, the model calls with their
    usage, the rounds of tool calls, the structured output and the end.
    """

    def __init__(self, environment: TurnEnvironment, turn_id: TurnId) -> None:
        self._env = environment
        self.turn_id = turn_id
        self.scope = anyio.CancelScope()
        """Cancelling it aborts the turn, or suspends it."""
        self.abort_reason = ""
        self.ends_as: FinishReason = "aborted"
        self.is_suspended = False
        self.is_compaction = False
        self.stops_after_step = False
        self._has_answered = False
        """The model has; the step that the user sees is the answer and its calls."""
        models = environment.models
        self._pending = PendingFacts(models.journal)
        self._line = TurnLine(models.journal, models.model.info)
        self._model = ModelCaller(turn_id, models, self._pending, self._line, self._renew)
        self._calls = ToolRounds(self._pending, self._line, models.limits.repeats)
        self._answer_ends = AnswerEnds()
        self._end = TurnEnding(
            turn_id,
            lambda: self._model.environment,
            self._pending,
            self._line,
            retries=lambda: self._model.retries,
            submitted=environment.submitted,
            snapshot=self._note_snapshot,
        )

    async def run(self) -> None:
        """Work until the turn is finished; the end is a `TurnFinished` in the log.

        One that is suspended, or cancelled from outside `scope`, stays open: it is interrupted, and
        can go on.
        """
        try:
            with self.scope:
                await self._work()
            if self.scope.cancelled_caught:
                await self._cut_short()
        finally:
            self._model.usage.release()

    # -- the loop

    async def _work(self) -> None:
        await self._line.load()
        await self._sleep_first()
        if await self._settle_last_answer():
            return
        while True:
            if (stop := await self._stop_before_call()) is not None:
                await self._end.finish(stop.reason, stop.detail)
                return
            answer = await self._model.ask()
            self._has_answered = True
            if isinstance(answer, TurnStop):
                await self._end.finish(answer.reason, answer.detail)
                return
            # Before the calls: those of an answer that was refused half-way must not run.
            verdict = self._answer_ends.verdict(answer)
            answer = self._answer_ends.whole(answer)
            if verdict is not None:
                if await self._ended_by(verdict, answer):
                    return
            elif answer.calls:
                if await self._ran_calls(answer):
                    return
            elif await self._is_done(answer):
                return

    async def _sleep_first(self) -> None:
        """Sleep where the turn began asleep, and no call of it waits."""
        wait = self._env.journal.state.turn.wait
        if wait is not None and wait.call_uid is None:
            from weft.loop.waits.turn_wait import sleep_out  # few turns begin so

            await sleep_out(self._env, self._pending)

    async def _ran_calls(self, answer: ModelAnswer) -> bool:
        """Run the calls of an answer; True when that was the end of the turn."""
        node, was_cut = self._line.last, was_cut_in_call(answer)
        await self._run_calls(node, node.calls, was_cut=was_cut)
        if was_cut:
            self._pending.nudge(CUT_CALL)
        return await self._was_submitted(node)

    async def _run_calls(
        self, node: Node, calls: tuple[ToolCall, ...], *, was_cut: bool = False
    ) -> None:
        submit = self._env.submit
        # What hands in the result is the turn's answer, and none of the calls that are limited.
        name = submit.name if submit is not None else ""
        await self._calls.run(self._env.calls, node, calls, was_cut=was_cut, submit=name)

    async def _ended_by(self, verdict: EndVerdict, answer: ModelAnswer) -> bool:
        """Act on a stop reason that is no success; True when the turn is over."""
        if verdict.ends is None:
            self._pending.nudge(verdict.nudge)
            if verdict.note:
                self._pending.note(SystemNote(text=verdict.note))
            return False
        if not answer.calls:
            return await self._end.finish_unless_steered(
                verdict.ends, answer.detail, asks_hooks=False
            )
        await self._end.finish(verdict.ends, answer.detail)
        return True

    def _renew(self) -> None:
        """Go on with the model, thinking and limits that the settings name now."""
        self._env = self._env.renewed(self._env)
        self._model.use(self._env.models)
        prefix = self._env.models.prefix.prefix
        self._pending.note(*self._env.notes(self._pending.facts, prefix))

    async def _settle_last_answer(self) -> bool:
        """Run what the last answer asked for and what has no result yet; there is such only after
        an interruption.

        True when that was the end of the turn.
        """
        state = self._env.journal.state
        node = answer_at_tip(state)
        entry = self._line.find(node) if node is not None else None
        if node is None or entry is None:
            return False
        waiting = set(state.tree.unsettled(node))
        if waiting:
            calls = tuple(call for call in entry.node.calls if call.call_uid in waiting)
            await self._run_calls(entry.node, calls)
        elif entry is not self._line.entries[-1]:
            return False
        return await self._was_submitted(entry.node)

    # -- a structured result

    @cached_property
    def _output(self) -> StructuredOutput:
        from weft.loop.structured_output import StructuredOutput  # few runs ask for one

        return StructuredOutput()

    async def _was_submitted(self, node: Node) -> bool:
        """End the turn if one of these calls handed in a result that fits, or too many did not."""
        submit = self._env.submit
        entry = self._line.find(node.id) if submit is not None else None
        if submit is None or entry is None:
            return False
        repairs = self._env.models.limits.repairs
        verdict = self._output.of_calls(submit, node, entry.results, repairs=repairs)
        return verdict is not None and await self._ends_with(verdict)

    async def _ends_with(self, verdict: OutputVerdict, detail: str = "") -> bool:
        if verdict.fits:
            return await self._finish_unless_steered("submitted", detail, verdict.value)
        if not verdict.is_last:
            return False
        await self._end.finish("schema_failed", verdict.problem)
        return True

    # -- ending

    async def _is_done(self, answer: ModelAnswer) -> bool:
        """End the turn, unless the answer was empty or the user has steered meanwhile."""
        if answer.stop == "malformed_call":
            self._calls.count_mistake(MALFORMED_CALL, "malformed_call")
            return False
        if not answer.says_something:
            self._calls.count_mistake(EMPTY_ANSWER)
            return False
        submit = self._env.submit
        if submit is None:
            return await self._finish_unless_steered("stop", answer.detail)
        verdict = self._output.of_text(submit, answer, repairs=self._env.models.limits.repairs)
        if await self._ends_with(verdict, answer.detail):
            return True
        if not verdict.fits:
            self._pending.nudge(verdict.problem)
        return False

    async def _finish_unless_steered(
        self, reason: FinishReason, detail: str = "", deliverable: Any = None
    ) -> bool:
        # A hook that has ended the turn is not asked whether it may end.
        asks_hooks = not self._calls.halted
        return await self._end.finish_unless_steered(
            reason, detail, deliverable, asks_hooks=asks_hooks
        )

    async def _stop_before_call(self) -> TurnStop | None:
        """Why the model must not be asked again; None when it may."""
        try:
            self._renew()
        except WeftError as error:
            is_refused = isinstance(error, AuthFailed)
            return TurnStop("auth_error" if is_refused else "provider_error", str(error))
        if self.stops_after_step and self._has_answered:
            return TurnStop("aborted", STOPPED_AFTER_STEP)
        limits, state, calls = self._env.models.limits, self._env.journal.state, self._calls
        if calls.halted:
            return TurnStop("halted", calls.halted)
        if calls.beyond:
            return TurnStop("max_tool_calls", calls.beyond)
        if calls.mistakes >= limits.mistakes:
            said = f"{calls.mistakes} answers in a row could not be acted on"
            return TurnStop(calls.mistake, said)
        if calls.is_stuck:
            return TurnStop("no_progress", "the same calls with the same results, again and again")
        if answers_given(state, self._pending.facts) >= limits.max_turns:
            most = "1 answer" if limits.max_turns == 1 else f"{limits.max_turns} answers"
            return TurnStop("max_turns", f"the limit of {most} in one turn is reached")
        # Last, because it sets money aside for the call that follows.
        reached_budget = await self._model.usage.budget_reached(state)
        return TurnStop(*reached_budget) if reached_budget is not None else None

    async def _cut_short(self) -> None:
        """Settle everything; suspended, put on record what is known and leave the rest open, as a
        crash would.
        """
        _ABORT.before.hit()
        # What was stopped has changed files too. Bounded: a disk that hangs must not keep a turn
        # from ending.
        with anyio.move_on_after(SNAPSHOT_SECONDS, shield=True):
            await (self._note_saved() if self.is_suspended else self._note_snapshot())
        await self._env.journal.commit(self.suspended if self.is_suspended else self.settled)
        _ABORT.after.hit()

    async def _note_snapshot(self) -> None:
        """Let the snapshot of the files go on record with the end of the turn."""
        snapshots, state = self._env.calls.snapshots, self._env.journal.state
        # Where nothing ever had an effect, nothing is looked at.
        if snapshots is not None and (state.files.had_effect or state.files.snapshots):
            noted = self._pending.facts
            node = tip_after(state, noted)
            self._pending.note_commit(await snapshots.at_end(state, noted, self.turn_id, node))
        await self._note_saved()

    async def _note_saved(self) -> None:
        """Let what another host needs of the files go on record, where one may go on."""
        snapshots = self._env.calls.snapshots
        if snapshots is not None and snapshots.saves:
            state, noted = self._env.journal.state, self._pending.facts
            self._pending.note_commit(await snapshots.saved(state, noted))

    def suspended(self, state: SessionState) -> Commit:
        """What a suspended turn knows and has not committed; it ends nothing."""
        # What has come of an answer, rather than its draft, which lags behind and knows no usage.
        self._model.note_in_flight(stays_open=True)
        self._note_unreported_changes(state)
        return self._pending.take(state, drop_draft=True)

    def settled(self, state: SessionState) -> Commit:
        """The facts that end the turn where it stands; partial text is kept, in the model's context
        too.

        Does not wait, so that an actor can end a turn whose tool does not let go.
        """
        self._model.note_in_flight()
        self._note_unreported_changes(state)

        def more(state: SessionState, noted: Sequence[Fact]) -> list[Fact]:
            settled = settle_open_calls(
                state, noted, by="abort", reason=self.abort_reason or "the turn was stopped"
            )
            return [*settled, self._end.fact(state, noted, self.ends_as, self.abort_reason)]

        return self._pending.take(state, more, drop_draft=True)

    def _note_unreported_changes(self, state: SessionState) -> None:
        """What a command changed before it was stopped can be taken back like anything else."""
        blobs: dict[BlobId, bytes] = {}
        # Effects run one at a time, so the call that was stopped is the one intended last.
        own = [uid for uid, intent in state.turn.intents.items() if intent.node]
        call_uid = own[-1] if own else None
        facts = touched_facts(self._env.calls.unreported_changes(), call_uid, blobs)
        self._pending.note(*facts, blobs=blobs)
