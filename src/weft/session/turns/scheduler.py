"""The turns of a session: started, written for, followed by the next, settled when they do not let
go, gone on with after a crash.

A turn runs in a task of its own and is never waited for here.  Everything in this file is called in
the mailbox's order, but for what says otherwise.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec

from weft.actors import Mailbox, RestartBudget
from weft.errors import (
    Fenced,
    OutcomeUnknown,
    SessionError,
    SessionStopped,
    StoreError,
    StoreUnavailable,
    WeftError,
)
from weft.events import (
    CommandCause,
    ErrorRaised,
    Fact,
    GoalPaused,
    GoalSet,
    PermissionRequest,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    SessionRestarted,
    SessionStatus,
    SettingChanged,
    Signal,
    Status,
    TurnFinished,
    TurnStarted,
    TurnWaiting,
    WaitSubject,
)
from weft.faults import FailPointPair
from weft.ids import NodeId, RequestId
from weft.loop import Build, Commit, ContextLine, SessionWork, TurnJournal, with_wake
from weft.messages import DraftPart
from weft.session.answers import Accepted
from weft.session.decide import DecidedCommand, DecisionContext, start_follow_up
from weft.session.environment import FoundFile, SessionEnvironment
from weft.session.log.session_log import SessionLog
from weft.session.permission_gate import SessionPermissionGate
from weft.session.turns.follow_ups import ENDED_WELL, FollowUps, NextTurn
from weft.session.turns.outage import OutageWatch, is_outage, store_error_in
from weft.session.turns.recovery import SessionRecovery
from weft.session.turns.waiters import FactWaiters
from weft.session.work.mailbox_messages import Message, TurnWrites
from weft.session.work.running_work import RunningWork
from weft.state import SessionState

logger = logging.getLogger(__name__)

REMEMBERED_SETTING = "remembered"
"""The name under which commands without facts are remembered; never the name of a setting."""

TIME_TICK_SECONDS: Final = 0.05
HELD_TICK_SECONDS: Final = 0.5
"""How often the time of a turn is looked at while it does not pass."""

_COMMAND = FailPointPair("session.command")
_RESTART = FailPointPair("session.restart")
_OVERDUE = FailPointPair("session.overdue")
_REACTED_TO = frozenset(
    {
        GoalPaused,
        GoalSet,
        PermissionRequest,
        PermissionResolved,
        QuestionAnswered,
        QuestionAsked,
        SettingChanged,
        TurnFinished,
    }
)
"""The facts that mean something for the process of a session."""


class TurnScheduler:
    """What a session is doing, and what it does next."""

    def __init__(
        self,
        log: SessionLog,
        worker: RunningWork,
        recovery: SessionRecovery,
        *,
        mailbox: Mailbox[Message],
        gate: SessionPermissionGate,
        environment: SessionEnvironment,
        budget: RestartBudget,
        outage: OutageWatch,
    ) -> None:
        self._log = log
        self._worker = worker
        self._recovery = recovery
        self._mailbox = mailbox
        self._gate = gate
        self._env = environment
        self._budget = budget
        self._outage = outage
        self._waiting = FactWaiters()
        self.follow_ups = FollowUps()
        self._turn_status: Status = "thinking"
        self._shown: Status | None = None
        """The status that was published last.

        None when it has changed since and was not published.
        """
        self._is_between_turns = False
        """A turn has ended and the next follow-up is about to start another."""
        self._is_restarting = False
        """A turn has crashed and is about to go on: nobody may take the session for interrupted."""
        self._owed: CommandCause | None = None
        """What asked for the work that runs, to be written with what comes of it."""
        self.error = ""
        """Why the session is down; empty when it is not."""
        self.is_stopping = False
        """No turn is started any more."""

    # -- what it is doing

    @property
    def status(self) -> Status:
        """What the session is doing; computed, never stored."""
        if self.error:
            return "error"
        if self.is_busy or self._is_restarting:
            return self._turn_status
        turn = self._log.state.turn
        if turn.wait is not None:
            return "waiting"
        return "interrupted" if turn.open is not None else "idle"

    @property
    def is_busy(self) -> bool:
        """True while a turn of this process runs."""
        return self._worker.turn is not None or self._is_between_turns

    def _set_status(self, status: Status) -> None:
        self._turn_status = status
        if self._shown != self.status:
            self._shown = self.status
            self._log.signal(SessionStatus(status=self.status))

    def status_of(self, journal: TurnJournal, status: Status) -> None:
        """A turn does something else now."""
        if self._worker.is_written_by(journal) and status != self._turn_status:
            self._set_status(status)

    def react(self, fact: Fact) -> None:
        """What a fact that was just applied means for this process."""
        if self.error:
            self.error, self._shown = "", None
        state = self._log.state
        if type(fact) in _REACTED_TO:  # a look at the kind: of a round there is none
            self._react(fact, state)
        self.follow_ups.take(fact)
        self._waiting.take(fact, state)

    def _react(self, fact: Fact, state: SessionState) -> None:
        match fact:
            case PermissionResolved() | QuestionAnswered():
                if isinstance(fact, PermissionResolved):
                    self._gate.take_answer(fact)
                if self._turn_status == "awaiting_permission" and not state.turn.requests:
                    self._set_status("executing_tool")
            case PermissionRequest(child=child) | QuestionAsked(child=child) if (
                child is not None and self._worker.turn is not None
            ):
                self._set_status("awaiting_permission")
            case SettingChanged(name="permission_mode"):
                self._gate.mode_was_set()
            case TurnFinished():
                self._gate.turn_ended()
                self._outage.turn_ended()
            case GoalSet() | GoalPaused() if self._worker.turn is not None:
                # It has another limit, or its time counts again.
                self._watch_time(self._worker.turn)
            case _:
                pass

    async def until(self, holds: Callable[[SessionState], bool]) -> None:
        """Wait until something is true of the state.

        Looked at with every fact.  May be called by any task at any time.
        """
        await self._waiting.until(holds, lambda: self._log.state)

    async def resolution(self, request_id: RequestId) -> PermissionResolved | QuestionAnswered:
        """Wait until the request is answered.  May be called by any task at any time."""

        def asks() -> None:
            if self._worker.turn is not None and request_id in self._log.state.turn.requests:
                self._set_status("awaiting_permission")

        return await self._waiting.resolution(request_id, self._log.state, asks)

    # -- starting

    def moment(self, file: FoundFile | None = None) -> DecisionContext:
        """What a decision may know besides the state."""
        return DecisionContext(
            now=self._env.clock.now(),
            running=self._worker.turn is not None,
            file=file,
            sealed=self._gate.sealed,
            sealed_plainly=partial(self._gate.sealed, is_plain=True),
            is_sealed=self._gate.is_sealed,
        )

    async def waited_for(self, on: WaitSubject, until: float | None) -> TurnWaiting:
        """What a program waits for, looked at and judged."""
        journal = SessionTurnJournal(self._log, self)
        return await self._env.turns.waited_for(on, until, journal, self._gate)

    async def carry_out(self, plan: DecidedCommand, cause: CommandCause | None) -> None:
        """Append what was decided, and do what is to be done then."""
        commit = Commit(facts=plan.facts, blobs=plan.blobs)
        if plan.then == "start_turn" and plan.facts:
            await self._env.turns.prepare(self._log.state, plan.facts)
            commit = await self._with_opening(plan.facts)
        elif plan.then == "start_asleep":
            await self._env.turns.prepare(self._log.state, plan.facts)
        # No facts of its own: an interrupted turn goes on. What it left in doubt is settled first,
        # in an append of its own.
        elif plan.then == "start_turn":
            await self._recovery.settle()
            commit = remembered(cause)
        _COMMAND.before.hit()
        await self._log.commit(with_wake(self._log.state, commit), cause)
        _COMMAND.after.hit()
        if plan.then in ("start_turn", "start_asleep"):
            self._start_turn()
        if plan.then == "go_on":
            await self.go_on_with_open()
        if plan.then == "compact":
            self._start_compaction(plan.focus, cause)
        if plan.then == "check":
            self._start_check()
        if plan.then == "goal":
            await self._take_goal_steps()

    async def go_on_for(self, accepted: Accepted) -> None:
        """Go on with what a sender was promised by an earlier owner of the session, if no process
        works on it.

        A turn that was left open goes on first, whoever began it; then what waits has its turns.
        """
        state = self._log.state
        is_queued = accepted.entry_id in state.queue.entries
        if is_queued and accepted.entry_id is not None:
            self.follow_ups.awaits(accepted.entry_id)
        if self.is_busy:
            return
        # Not only the turn that was named: a message that was queued may have been sent since, in a
        # turn that its answer could not name yet.
        if state.turn.open is not None:
            await self.go_on_with_open()
        elif is_queued:
            await self._start_next(self.follow_ups.next(state))

    async def go_on_with_open(self) -> None:
        """Set the turn that a dead process left open to work again."""
        await self._recovery.settle()
        self._start_turn()

    async def _with_opening(self, facts: tuple[Fact, ...]) -> Commit:
        """The facts that start a turn, and in the same append those of its first model call."""
        started = next(fact for fact in facts if isinstance(fact, TurnStarted))
        # One append for the prompt and the start of its model call: between two of them a crash
        # would leave a turn that has never asked and an answer to nothing.
        line = await self._log.line_before(facts, started.node)
        opening = self._env.turns.opening(self._log.state, started, facts, line)
        return msgspec.structs.replace(opening, facts=(*facts, *opening.facts))

    def _start_turn(self) -> None:
        """Set the open turn to work, in a task of its own."""
        state = self._log.state
        open_turn = state.turn.open
        if open_turn is None:
            return
        journal = SessionTurnJournal(self._log, self)
        turn = self._env.turns.turn(state, open_turn.turn_id, journal, self._gate)
        self._set_to_work(turn, journal)

    def _start_compaction(self, focus: str, cause: CommandCause | None) -> None:
        journal = SessionTurnJournal(self._log, self)
        work = self._env.turns.compaction(self._log.state, focus, journal, self._gate)
        # The command itself may have left no fact to remember its `input_id` by: the compaction's
        # last append does.
        self._owed = cause
        self._set_to_work(work, journal)

    def _start_check(self) -> None:
        journal = SessionTurnJournal(self._log, self)
        work = self._env.turns.goal_check(self._log.state, journal, self._gate)
        self._set_to_work(work, journal)

    def _set_to_work(self, work: SessionWork, journal: SessionTurnJournal) -> None:
        self._worker.start(work, journal, self._log.state)
        self._watch_time(work)
        self._set_status("thinking")

    # -- the goal

    async def _take_goal_steps(self) -> None:
        """Do what comes next for the goal, until something is at work for it, or nothing comes."""
        if not self._log.state.goal.is_active:
            return
        from weft.session.decide.goals import next_step  # few sessions have a goal

        while self._worker.turn is None and not (self.is_stopping or self.error):
            plan = next_step(self._log.state, self.moment())
            if plan is None:
                return
            await self._take_goal_step(plan)

    async def _take_goal_step(self, plan: DecidedCommand) -> None:
        self._is_between_turns = True
        try:
            await self.carry_out(plan, None)
        except Fenced:
            raise
        except StoreError as error:
            self.error = f"the goal could not go on: {error}"
            self._outage.begin(error)
        except WeftError as error:
            # No such model, or no key for it: the user is to see to that first.
            await self._log.commit(Commit(facts=self._goal_failed(str(error))))
        finally:
            self._is_between_turns = False

    def _goal_failed(self, why: str) -> tuple[Fact, ...]:
        from weft.session.decide.goals import paused_fact  # as above

        goal = self._log.state.goal.goal
        return () if goal is None else (paused_fact(goal, "failed", why),)

    # -- time

    def _watch_time(self, work: SessionWork) -> None:
        """Have the actor look again when the time of the turn, or of the goal, may be over."""
        left = [each for each in (self._goal_time_left(), self._turn_time_left(work)) if each]
        if left:
            self._worker.watch_time(work, min(left), self._env.sleep)

    def _goal_time_left(self) -> float | None:
        stands = self._log.state.goal
        if not stands.is_active or stands.goal is None or stands.goal.max_seconds is None:
            return None
        left = stands.goal.max_seconds - stands.elapsed(self._env.clock.now())
        return max(TIME_TICK_SECONDS, left)

    def _turn_time_left(self, work: SessionWork) -> float | None:
        state = self._log.state
        most = None if state.turn.open is None else self._env.turns.max_seconds(state)
        if work.is_compaction or most is None:
            return None
        left = most - state.turn.worked(self._env.clock.now())
        return max(HELD_TICK_SECONDS if state.turn.is_held else TIME_TICK_SECONDS, left)

    def time_overdue(self, work: SessionWork) -> None:
        """The time of the turn, or of the goal, may be over: what works is stopped then."""
        if work is not self._worker.turn or self._worker.is_aborting:
            return
        state, now = self._log.state, self._env.clock.now()
        goal = state.goal.goal if state.goal.is_active else None
        most = None if state.turn.open is None else self._env.turns.max_seconds(state)
        if goal and goal.max_seconds is not None and state.goal.elapsed(now) >= goal.max_seconds:
            self._worker.trip("the goal's time is over")
        elif not work.is_compaction and most is not None and state.turn.worked(now) >= most:
            self._worker.trip(f"the limit of {_shown(most)} for one turn is reached", "max_time")
        else:
            # A question, or a wait, was open meanwhile.
            self._watch_time(work)
            return
        self._worker.watch_abort()

    # -- writing

    async def write_for(self, journal: TurnJournal, build: Build) -> Sequence[Fact]:
        """Commit what a turn writes, through the mailbox.  A cancel ends only the wait."""
        stored: Sequence[Fact] = await self._mailbox.call(TurnWrites(journal, build))
        return stored

    async def commit_for(self, journal: TurnJournal, build: Build) -> Sequence[Fact]:
        """Commit what a turn writes.

        Raises:
            SessionStopped: that turn is over.
        """
        # A turn that was given up may still write: a tool that ignored the abort, or a task that
        # was not scheduled in time. Its facts would come after the settled end.
        turn = self._worker.turn
        if turn is None or not self._worker.is_written_by(journal):
            raise SessionStopped(self._log.session_id, "this turn was ended")
        commit = self._titled(build(self._log.state))
        # Work without a turn has nothing open that would tell its last append from the others.
        owed, is_last = None, commit.ends_work or not turn.is_compaction
        if is_last:
            owed, self._owed = self._owed, None
        try:
            stored = await self._log.commit(commit, owed)
        except StoreError:
            self._recovery.keep_results(commit)
            raise
        if is_last and self._log.state.turn.open is None:
            # The turn is over with this append, not when its task has wound up: the next message
            # starts a new one.
            await self._release()
        return stored

    async def append(self, build: Build, *, wake: bool) -> Sequence[Fact]:
        """Commit what a session that works for this one has to say.

        With `wake`, steering that then waits may start a turn.
        """
        _COMMAND.before.hit()
        commit = with_wake(self._log.state, build(self._log.state))
        try:
            stored = await self._log.commit(commit)
        except StoreError:
            self._recovery.keep_results(commit)
            raise
        _COMMAND.after.hit()
        state = self._log.state
        # Neither during a turn, which takes steering along by itself, nor after an abort or an
        # error: then the user is to decide what happens next.
        is_at_rest = self._worker.turn is None and state.turn.open is None
        ended_well = state.turn.last_reason in ENDED_WELL
        if wake and is_at_rest and ended_well and state.queue.waiting("steering"):
            await self._start_next(NextTurn(self.follow_ups.next(state).entry, also_steering=True))
        return stored

    def _titled(self, commit: Commit) -> Commit:
        """At the end of its first turn a session gets a real title."""
        state = self._log.state
        ends = any(isinstance(fact, TurnFinished) for fact in commit.facts)
        if not ends or not state.settings.get("auto_title"):
            return commit
        # In one append with the end of the turn: a crash in between would leave the flag set, and a
        # later turn would rename the session.
        title = self._env.title(state)
        named = SettingChanged(name="title", value=title or state.settings.title)
        done = SettingChanged(name="auto_title", value=None)
        return msgspec.structs.replace(commit, facts=(*commit.facts, named, done))

    # -- ending

    async def _release(self) -> None:
        """No turn runs any more; the next one starts, where a follow-up waits.

        Between the two no subscriber sees an idle session.
        """
        work = self._worker.release()
        is_suspended = work is not None and work.is_suspended
        if not (self.error or is_suspended):
            await self._start_next(self.follow_ups.after(work, self._log.state, self._worker))
        if self._worker.turn is None:
            self._set_status(self.status)

    async def _start_next(self, following: NextTurn) -> None:
        """Start the turn of what waits, if there is something."""
        if self.is_stopping:
            return
        if not following:
            await self._take_goal_steps()
            return
        plan = start_follow_up(self._log.state, self.moment(), following.entry)
        self._is_between_turns = True
        try:
            await self.carry_out(plan, None)
        except Fenced:
            raise
        except WeftError as error:
            # The turn before has ended well and is not to blame.  The message stays queued, and the
            # status says why.
            self.error = f"a queued message could not be sent: {error}"
            self._outage.begin(error)
            logger.error("a follow-up could not be sent", extra={"session": self._log.session_id})
        finally:
            self._is_between_turns = False

    async def ended(self, turn: SessionWork, error: BaseException | None) -> None:
        """The turn's task is over without having finished the turn: it crashed, or could not be
        stored.
        """
        # The turn's task ends after its last append; by then the next turn may be at work.
        if turn is not self._worker.turn:
            return
        if self._is_suspended(turn):
            self._let_go(error)
            return
        error = store_error_in(error)
        # Its end was stored after all; only the answer to that append was lost.
        if isinstance(error, OutcomeUnknown) and self._log.state.turn.open is None:
            await self._release()
            return
        # Held on to: a restart begins a turn with an event of its own, and those who wait for this
        # one must be woken too.
        settled = self._worker.settled
        self._worker.turn = None
        try:
            if isinstance(error, StoreError):
                self._stay_down_for(error)
                logger.error("a turn could not be stored", extra={"session": self._log.session_id})
            else:
                failure = error or SessionError("the turn ended without an end")
                about = {"session": self._log.session_id}
                logger.error("a turn crashed", exc_info=failure, extra=about)
                self._is_restarting = True
                await self.restart(failure)
        finally:
            self._is_restarting = False
            settled.set()
            self._set_status(self.status)

    async def settle_for(self, turn: SessionWork) -> None:
        """A tool does not let go: settle the turn without it; what it still writes is refused."""
        if turn is not self._worker.turn:
            return
        if self._is_suspended(turn):
            self._let_go(None)
            return
        try:
            _OVERDUE.before.hit()
            await self._log.commit(self._titled(turn.settled(self._log.state)))
            _OVERDUE.after.hit()
        except StoreError as error:
            self._stay_down_for(error)
            raise
        finally:
            await self._release()

    def _stay_down_for(self, error: StoreError) -> None:
        """Nothing can be stored: down until the store is back, or the session is used again."""
        self.error = str(error)
        self._recovery.mark_outage()
        self._outage.begin(error)

    def _is_suspended(self, work: SessionWork) -> bool:
        """True for a turn that the program's end has stopped before its own."""
        return work.is_suspended and self._log.state.turn.open is not None

    def _let_go(self, error: BaseException | None) -> None:
        """A suspended turn is not at work any more; what it still writes is refused."""
        if error is not None:
            # Nothing is lost that a crash would not lose; the turn is open in any case.
            about = {"session": self._log.session_id}
            logger.error(
                "a suspended turn could not store its last facts", exc_info=error, extra=about
            )
        self._worker.release()
        self._set_status(self.status)

    # -- coming back

    async def restart(self, error: BaseException) -> None:
        """Rebuild the session from its log and go on; past the budget, stay down until spoken to.

        Raises:
            Fenced: another process owns the session now.
        """
        # First of all: whatever still runs must not write while the state is being loaded.
        self._worker.drop()
        self._recovery.mark_work_lost()
        reason = f"{type(error).__name__}: {error}"
        try:
            # From the log and not from memory: the fault may be in the state itself.
            await self.reload()
            raised = ErrorRaised(message=reason, where="session", error=type(error).__name__)
            if self._budget.spend():
                await self._record_restart(raised, reason)
                await self._go_on()
            else:
                await self._stay_down(raised, reason)
        except WeftError as failure:
            self.error = f"{reason}; and it could not be restarted: {failure}"
            self._outage.begin(failure)
            self._worker.settled.set()
            if isinstance(failure, Fenced):
                raise

    async def _record_restart(self, raised: ErrorRaised, reason: str) -> None:
        try:
            _RESTART.before.hit()
            await self._log.commit(Commit(facts=(raised, SessionRestarted(reason=reason))))
            _RESTART.after.hit()
        except (StoreUnavailable, OutcomeUnknown):
            # Not restarted, and not because of the session: an outage must leave it what it has
            # for crashes of its own.
            self._budget.refund()
            raise

    async def store_returned(self) -> None:
        """Go on where an outage of the store has stopped the session; no restart is spent."""
        self._outage.take_return()
        # An append whose answer was lost may have been taken in by now, which clears the error: the
        # turn is still open, and no task works on it.
        is_stopped = bool(self.error) or self._log.state.turn.open is not None
        if not is_stopped or self.is_busy or self.is_stopping:
            return
        try:
            await self._go_on()
            await self._start_next(self.follow_ups.next(self._log.state))
        except StoreError as error:
            self._stay_down_for(error)
            if not is_outage(error):
                raise
        finally:
            self._set_status(self.status)

    async def reload(self) -> None:
        """Take the state from the log."""
        await self._log.reload()
        # The gate judges by the mode in the state, and a reload makes a new state object.
        self._gate.state = self._log.state

    async def _go_on(self) -> None:
        await self._recovery.count_lost()
        if self._log.state.turn.open is None:
            self._worker.settled.set()
        elif self._worker.is_aborting:
            # It crashed while it was being aborted: what the user has aborted does not go on by
            # itself.
            await self._recovery.end(self._worker.abort_reason, "aborted")
            self._worker.settled.set()
            await self._start_next(self.follow_ups.next(self._log.state))
        else:
            await self.go_on_with_open()

    async def _stay_down(self, raised: ErrorRaised, reason: str) -> None:
        await self._recovery.end_after_crashes(raised, reason)
        self.error = f"it crashed too often; the last time: {reason}"
        self._worker.settled.set()
        self._set_status("error")


class SessionTurnJournal(TurnJournal):
    """The journal of one turn: how the loop, which knows no session, reaches the log.

    It stands for its turn in the mailbox: what it writes after another turn has begun is refused.
    """

    def __init__(self, log: SessionLog, turns: TurnScheduler) -> None:
        self._log = log
        self._turns = turns

    @property
    def state(self) -> SessionState:
        return self._log.state

    async def commit(self, build: Build) -> Sequence[Fact]:
        return await self._turns.write_for(self, build)

    def signal(self, signal: Signal) -> None:
        self._log.signal(signal)

    def status(self, status: Status) -> None:
        self._turns.status_of(self, status)

    def draft(
        self,
        node: NodeId,
        part: DraftPart,
        chunk: str,
        *,
        index: int = 0,
        tool: str = "",
        restart: bool = False,
    ) -> None:
        self._log.save_draft(node, part, chunk, index=index, tool=tool, restart=restart)

    async def line(self) -> ContextLine:
        turn = self._log.state.turn.open
        return await self._log.context_line(turn.tip if turn is not None else None)

    async def resolution(self, request_id: RequestId) -> PermissionResolved | QuestionAnswered:
        return await self._turns.resolution(request_id)

    async def until(self, holds: Callable[[SessionState], bool]) -> None:
        await self._turns.until(holds)


def _shown(seconds: float) -> str:
    """A length of time, as short as can be."""
    return f"{seconds / 60:g} min" if seconds >= 60 and seconds % 6 == 0 else f"{seconds:g} s"


def remembered(cause: CommandCause | None) -> Commit:
    """What a command leaves that changes nothing itself, so that a repeat is known in later lives:
    a setting that no session has is taken away, which every reader of the log understands.
    """
    if cause is None:
        return Commit(facts=())
    return Commit(facts=(SettingChanged(name=REMEMBERED_SETTING, value=None),))
