"""The session's actor: one mailbox, one writer, one turn at a time.

Everything that changes a session goes through the mailbox and is handled by one task, so its state
needs no locks.  Reads take the state as it is and never wait.  The turn runs in a task of its own
and writes through the same mailbox; the actor never waits for it.

Beside it stand those that it directs: `SessionLog` (append, apply, publish), `TurnScheduler` (what
is at work, and what comes next), `SessionRecovery` (what a dead process left open), `RewindWork`
and `AttachedClients`.  What a command means is `decide`'s.

When something unforeseen breaks (here or in the turn), the session is rebuilt from its log and goes
on, a few times; then it stays down with status `error` until it is used again.  Other sessions
never notice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import anyio
import msgspec

from weft.actors import Envelope, Mailbox, RestartBudget, Supervisor
from weft.errors import (
    Conflict,
    Corrupt,
    Fenced,
    SessionBusy,
    SessionError,
    SessionStopped,
    StoreError,
    UsageError,
    WeftError,
)
from weft.events import (
    CommandCause,
    Fact,
    PermissionResolved,
    QuestionAnswered,
    SessionHosted,
    Status,
    SystemNote,
)
from weft.faults import FailPointPair
from weft.ids import BlobId, RequestId, TurnId
from weft.loop import Build, Commit, SessionWork, tip_after
from weft.session.answers import AbortReceipt, QueuedMessages, RewindPlan
from weft.session.clients import AttachedClients
from weft.session.commands import (
    AbortTurn,
    AttachClient,
    BeginWait,
    BranchAt,
    ChangeSetting,
    ClearBoundary,
    Command,
    CompactNow,
    ContinueTurn,
    CycleModel,
    DetachClient,
    EditGoal,
    EditNode,
    ForwardRequest,
    PauseGoal,
    ReportChild,
    Reserve,
    RespondToPermission,
    ResumeGoal,
    RewindTo,
    ScheduleInput,
    SendPrompt,
    SetBoundary,
    SetGoal,
    Settle,
    StopAfterStep,
    StopBackground,
    StopSession,
    SwitchBranch,
    UndoRewind,
    WakeTurn,
    digest,
)
from weft.session.decide import decide
from weft.session.decide.base import SettingCommand
from weft.session.environment import FoundFile, SessionEnvironment
from weft.session.idempotency import IdempotencyCache
from weft.session.log.session_log import SessionLog
from weft.session.log.snapshot_schedule import (
    FACTS_BETWEEN,
    is_snapshot_due,
    is_snapshot_overdue,
)
from weft.session.permission_gate import SessionPermissionGate
from weft.session.subscriptions.subscription import Subscription
from weft.session.turns.outage import OutageWatch
from weft.session.turns.recovery import SessionRecovery
from weft.session.turns.scheduler import TurnScheduler, remembered
from weft.session.work.mailbox_messages import (
    AbortOverdue,
    ChildAppend,
    Message,
    OfTurns,
    StoreReturned,
    TimeOverdue,
    TurnEnded,
    TurnWrites,
)
from weft.session.work.running_work import RunningWork
from weft.state import GOAL_OPTION, QueueEntry, SessionState
from weft.store import Lease, Store
from weft.thinking_levels import KnownLevels

if TYPE_CHECKING:  # loaded where something is rewound
    from weft.session.rewind.work import RewindWork

logger = logging.getLogger(__name__)

T = TypeVar("T")

_CREATE = FailPointPair("session.create")

SNAPSHOT_PAUSE = 5.0
"""Seconds after which a snapshot is tried again that was put off."""

_OF_THIS_LIFE = (AttachClient, DetachClient, StopAfterStep, StopSession, CompactNow)
"""Commands that later lives of the session need not know."""

_ENDS_WHAT_WAS_LEFT = (SendPrompt, EditNode, BranchAt, SwitchBranch, CompactNow, SetGoal)
"""Commands after which an interrupted turn cannot go on where it stood."""


_BEGINS_TURNS = (SendPrompt, ContinueTurn, WakeTurn, BeginWait, SetGoal, ResumeGoal)


class SessionActor:
    """A living session."""

    def __init__(
        self,
        state: SessionState,
        lease: Lease,
        *,
        store: Store,
        environment: SessionEnvironment,
        supervisor: Supervisor,
        budget: RestartBudget | None = None,
        snapshot_seq: int | None = None,
    ) -> None:
        """`snapshot_seq` says how far the snapshot reaches that the state was loaded from.

        None for a new session.
        """
        self.session_id = state.session_id
        self._lease = lease
        self._store = store
        self._env = environment
        self._supervisor = supervisor
        self._mailbox: Mailbox[Message] = Mailbox(state.session_id)
        self.log = SessionLog(
            state,
            lease,
            store=store,
            clock=environment.clock,
            supervisor=supervisor,
            history_bytes=environment.history_bytes,
            line_budget=environment.line_budget,
            # A lambda, because the scheduler is made after the log that it needs.
            on_fact=lambda fact: self._turns.react(fact),
            on_row=environment.listed,
            enricher=environment.enricher,
            first=self._hosted if environment.host else None,
        )
        permissions = environment.permissions
        self.gate = SessionPermissionGate(
            state,
            rules=permissions.rules,
            asking=permissions.asking,
            granted=permissions.granted,
            ceiling=permissions.ceiling,
            inherited=permissions.inherited,
            protects=permissions.protects,
            seal=permissions.seal,
        )
        self._worker = RunningWork(
            self._mailbox, supervisor, environment.abort_seconds, environment.turn_ended
        )
        self._recovery = SessionRecovery(self.log, store, environment)
        self._turns = TurnScheduler(
            self.log,
            self._worker,
            self._recovery,
            mailbox=self._mailbox,
            gate=self.gate,
            environment=environment,
            budget=budget or RestartBudget(clock=environment.clock),
            outage=OutageWatch(
                state.session_id,
                store,
                mailbox=self._mailbox,
                supervisor=supervisor,
                sleep=environment.sleep,
            ),
        )
        self.clients = AttachedClients(self.log.signal)
        self._answered = IdempotencyCache()
        self._snapshot_seq = state.seq if snapshot_seq is None else snapshot_seq
        self._snapshot_from = 0.0
        """No snapshot is begun before, by the monotonic clock: one was put off."""
        self.stopped_because = ""
        self.stopped = anyio.Event()
        self.last_used = environment.clock.monotonic()

    # -- life

    async def create(
        self,
        facts: Sequence[Fact],
        blobs: Mapping[BlobId, bytes] | None = None,
        cause: CommandCause | None = None,
    ) -> None:
        """Append the first facts of a new session, before it serves.

        A fork begins with the state of the past that it shares.
        """
        _CREATE.before.hit()
        await self.log.commit(Commit(facts=tuple(facts), blobs=blobs or {}), cause)
        _CREATE.after.hit()

    def _hosted(self) -> tuple[Fact, ...]:
        """That a server of several has the session, and what its user granted it so far; with what
        the model has to know of the folder that it is in now.
        """
        granted = self.gate.granted
        hosted = SessionHosted(
            host=self._env.host,
            fence=self._lease.fence,
            moved=bool(self.state.hosting.fence),
            trusted_mode=granted.trusted_mode,
            asks=self._env.permissions.asking != "no",
            grants=granted.grants,
            rules=granted.rules,
            folder=self._env.folder,
        )
        if not self._env.arrival:
            return (hosted,)
        node = tip_after(self.state, ())
        return hosted, SystemNote(text=self._env.arrival, to_model=True, node=node)

    def start(self) -> None:
        """Begin to serve, under the supervisor."""
        self._supervisor.start(self._run, f"session {self.session_id}")

    async def _run(self) -> None:
        try:
            while not self.stopped_because:
                try:
                    await self._serve()
                except Exception as error:
                    logger.exception("a session crashed", extra={"session": self.session_id})
                    await self._restart(error)
        finally:
            # Also when the task is cancelled: callers that wait in the mailbox would otherwise
            # hang.
            self._close(self.stopped_because or "the program is closing")

    async def _serve(self) -> None:
        while not self.stopped_because:
            envelope = await self._mailbox.take()
            try:
                answer = await self._handle(envelope)
            except Fenced as error:
                envelope.fail(error)
                self._lose(str(error))
            # The caller hears of it and may try again: a full disk or a locked database says
            # nothing about the state here. A conflict or damage does: the state no longer matches
            # the log, and is loaded again.
            except StoreError as error:
                envelope.fail(error)
                if isinstance(error, Conflict | Corrupt):
                    raise
            except WeftError as error:
                envelope.fail(error)
            except Exception as error:
                envelope.fail(SessionError(f"the session failed: {error}"))
                raise
            except BaseException:
                # This task is being cancelled.  The caller of the command would wait for ever.
                envelope.fail(SessionStopped(self.session_id, "the program is closing"))
                raise
            else:
                envelope.answer(answer)
                await self._keep_due_snapshot()

    async def _handle(self, envelope: Envelope[Message]) -> Any:
        try:
            await self.log.catch_up()
        except StoreError:
            # An end that is lost would leave the session busy for ever; it needs no new state.
            if not isinstance(envelope.message, (TurnEnded, AbortOverdue, StoreReturned)):
                raise
        match envelope.message:
            case TurnWrites(journal=journal, build=build):
                return await self._turns.commit_for(journal, build)
            case ChildAppend(build=build, wake=wake):
                return await self._turns.append(build, wake=wake)
            case TurnEnded(turn=turn, error=error):
                return await self._turns.ended(turn, error)
            case AbortOverdue(turn=turn):
                return await self._turns.settle_for(turn)
            case TimeOverdue(turn=turn):
                return self._turns.time_overdue(turn)
            case StoreReturned():
                return await self._turns.store_returned()
            case command:
                return await self._carry_out(command)

    async def _restart(self, error: Exception) -> None:
        try:
            await self._turns.restart(error)
        except Fenced as fenced:
            self._lose(str(fenced))

    def _lose(self, why: str) -> None:
        """Another process owns the session now: stop at once, write nothing more."""
        # Not even the end of the turn is written: the log belongs to the other process, which will
        # settle the turn itself.
        self._worker.drop()
        self._worker.settled.set()
        self.stopped_because = why

    def _close(self, why: str) -> None:
        self.stopped_because = why
        self._mailbox.close(SessionStopped(self.session_id, why))
        self.log.close()
        self._worker.settled.set()
        self.stopped.set()

    async def stop(self, why: str, *, suspends: bool = False) -> None:
        """End this life: the turn is aborted, the lease given back; the record stays.

        With `suspends` the turn stays open, as after a crash, and can go on.
        """
        if self.stopped.is_set():
            return
        try:
            await self._mailbox.call(StopSession(reason=why, suspends=suspends))
        # It stopped for another reason while this request waited in the mailbox: it was unloaded.
        except SessionStopped:
            if not self.stopped_because:
                raise
        await self.stopped.wait()

    def suspend_work(self) -> None:
        """Cancel what runs, now: the mailbox may be waiting for a store that does not answer."""
        self._worker.suspend()

    async def finish_turn(self) -> None:
        """Start no further turn, and wait for the end of the one that runs.

        What is said meanwhile is queued, for the process that opens the session next.
        """
        self._turns.is_stopping = True
        while self._worker.turn is not None:
            await self._worker.settled.wait()

    async def stop_if_unused(self, why: str) -> bool:
        """Stop the session if it is still unused when the mailbox gets there.

        Says whether it stopped.
        """
        try:
            ended: bool = await self._mailbox.call(StopSession(reason=why, if_unused=True))
        # It stopped for another reason while this request waited in the mailbox.
        except SessionStopped:
            return False
        if ended:
            await self.stopped.wait()
        return ended

    # -- reading

    @property
    def state(self) -> SessionState:
        """The state as it is now; only to be read."""
        return self.log.state

    @property
    def status(self) -> Status:
        """What the session is doing; computed, never stored."""
        return self._turns.status

    @property
    def error(self) -> str:
        """Why the session is down; empty when it is not."""
        return self._turns.error

    @property
    def is_busy(self) -> bool:
        """True while a turn of this process runs."""
        return self._turns.is_busy

    @property
    def is_aborting(self) -> bool:
        """The work that runs, or ran last, was aborted."""
        return self._worker.is_aborting

    @property
    def is_watched(self) -> bool:
        """True while a subscriber reads its events, or a client is attached."""
        return self.log.events.is_read or bool(len(self.clients))

    def subscribe(
        self,
        *,
        after: int | None = None,
        live: bool | Literal["status"] = True,
        retell: bool = False,
    ) -> Subscription:
        """Read events: those after the cursor, or (None) those from now on.

        Live ones too, only the status, or none; with `retell`, the answers in flight anew after a
        loss.
        """
        closed = self.stopped.is_set()
        return self.log.events.subscribe(after=after, live=live, closed=closed, retell=retell)

    async def call(self, command: Command[T]) -> T:
        """Have a command carried out.

        Cancelling ends the wait; the command is carried out all the same.
        """
        self.last_used = self._env.clock.monotonic()
        answer: T = await self._mailbox.call(command)
        return answer

    async def append(self, build: Build, *, wake: bool = False) -> Sequence[Fact]:
        """Put on record what a session that works for this one has to say, whether a turn runs or
        not.

        With `wake`, steering that then waits starts a turn, if none runs and the last one ended
        well.  A cancel ends the wait only.
        """
        stored: Sequence[Fact] = await self._mailbox.call(ChildAppend(build, wake))
        return stored

    async def until(self, holds: Callable[[SessionState], bool]) -> None:
        """Wait until something is true of the state; looked at with every fact."""
        await self._turns.until(holds)

    async def resolution(self, request_id: RequestId) -> PermissionResolved | QuestionAnswered:
        """Wait until the request is answered."""
        return await self._turns.resolution(request_id)

    # -- commands

    async def _carry_out(self, command: Command[Any]) -> Any:
        self.clients.check(command)
        asked = digest(command) if command.input_id else ""
        # Looked up before anything is decided: a repeat must answer as the first time did, even
        # where the command would be refused now (its request is answered, its entry gone).
        repeated, answer = self._answered.before(command, asked, self.state)
        if not repeated:
            answer = await self._carry_out_once(command, asked)
            await self._remember(command, asked, answer)
        elif isinstance(command, SendPrompt | ContinueTurn) and command.resume:
            self._refuse_new_turns()
            await self._turns.go_on_for(answer)
        return answer

    async def _remember(self, command: Command[Any], asked: str, answer: Any) -> None:
        """Have a repeat of a command answered like this one, by later owners of the session too."""
        if not command.input_id or command.input_id in self.state.inputs.causes:
            return
        self._answered.remember(command, asked, answer, self.state)
        # A stopped session has given its lease back, clients are gone with this life, and the work
        # that a compaction has begun writes the cause with its end.
        if isinstance(command, _OF_THIS_LIFE) or self.stopped_because:
            return
        cause = CommandCause(input_id=command.input_id, digest=asked, answer=answer)
        try:
            await self.log.commit(remembered(cause), cause)
        except Fenced:
            raise
        except StoreError:
            # It was carried out: an abort must work on a full disk, too. This life remembers it.
            logger.warning("a command is not remembered", extra={"session": self.session_id})

    def _refuse_new_turns(self) -> None:
        """No turn is started by a process that is about to end: the next owner does that.

        Raises:
            SessionStopped: it is.
        """
        if self._turns.is_stopping and not self.is_busy:
            raise SessionStopped(self.session_id, "its process is about to end")

    async def _carry_out_once(self, command: Command[Any], asked: str) -> Any:
        match command:
            case AbortTurn(reason=reason, turn_id=turn_id):
                return await self._abort(reason, only=turn_id)
            case StopAfterStep(is_wanted=is_wanted):
                return self._worker.stop_after_step(is_wanted) is not None
            case AttachClient():
                return self.clients.attach(command)
            case DetachClient():
                return self.clients.detach(command)
            case ReportChild() | ForwardRequest():
                return await self._take_from_child(command)
            case StopSession():
                try:
                    return await self._stop(command)
                except StoreError:
                    # It lives on, and must be able to work.
                    self._turns.is_stopping = False
                    raise
            case RewindTo() | UndoRewind():
                return await self._rewind(command, asked)
            case _:
                if self._worker.turn is None:
                    # In this order: a rewind that was cut short still owns the files, and what
                    # calls left is judged by the files as they are.
                    if self.state.files.unsettled is not None:
                        await self._rewinds.finish()
                    await self._recovery.settle_branches()
                    await self._recovery.count_lost()
                    await self._recovery.settle_lost_calls()
                    await self._recovery.end_lost_commands()
                answer = await self._decide_and_commit(command, asked)
                if isinstance(command, PauseGoal) and self.state.goal.turn_id is not None:
                    self._worker.stop_after_step(True)
                if isinstance(command, StopBackground):
                    self._env.stop_command(command.child)
                if isinstance(command, RespondToPermission) and command.interrupt:
                    # Here and not by a second command: what the turn would do next has to pass this
                    # mailbox first.
                    await self._abort(command.reason or "a call was denied")
                return answer

    async def _take_from_child(self, command: ReportChild | ForwardRequest) -> bool | None:
        """Put on record what a session that works for this one has to say, whether a turn runs or
        not.
        """
        from weft.session.decide.children import decide_forward, decide_report  # few have children

        if isinstance(command, ForwardRequest):
            await self._turns.append(lambda state: decide_forward(state, command), wake=False)
            return None
        now = self._env.clock.now()
        facts = await self._turns.append(
            lambda state: decide_report(state, command, now), wake=command.wake
        )
        return bool(facts)

    async def share_budget(self, command: Reserve | Settle) -> str | None:
        """What the session answers to one that works for it about the budget that they share.

        Past the mailbox: nothing of it goes on record, and a call of a model waits for it.
        """
        why = await self._env.share_budget(command)
        return why if isinstance(command, Reserve) else None

    async def _decide_and_commit(self, command: Command[Any], asked: str) -> Any:
        self._check_options(command)
        if isinstance(command, _BEGINS_TURNS):
            self._refuse_new_turns()
        moment = self._turns.moment(await self._file_of(command))
        if isinstance(command, SettingCommand):
            moment = msgspec.structs.replace(moment, levels=self._levels_after(command))
        if isinstance(command, BeginWait) and self.state.turn.open is None:
            waited = await self._turns.waited_for(command.on, command.until)
            moment = msgspec.structs.replace(moment, waited=waited)
        if isinstance(command, SetGoal | EditGoal | ResumeGoal):
            is_sandboxed = await self._env.turns.is_sandboxed()
            moment = msgspec.structs.replace(moment, is_sandboxed=is_sandboxed)
        plan = decide(command, self.state, moment)
        left_open = self._worker.turn is None and self.state.turn.open is not None
        # Decided twice: ending what was left changes the tree and the queue that the first decision
        # was made from.
        if left_open and isinstance(command, SendPrompt) and await self._goes_on_first():
            await self._turns.go_on_with_open()
            moment = msgspec.structs.replace(moment, running=True)
            plan = decide(command, self.state, moment)
        elif left_open and isinstance(command, _ENDS_WHAT_WAS_LEFT):
            await self._recovery.end("something else came first")
            plan = decide(command, self.state, moment)
        # The rule is saved before the answer is on record: an answer that says `always` and was not
        # saved would ask again in the next session without a word.
        if plan.rule:
            await self._keep_rule(plan.rule)
        cause = None
        if command.input_id:
            cause = CommandCause(input_id=command.input_id, digest=asked, answer=plan.answer)
        await self._turns.carry_out(plan, cause)
        if isinstance(command, SendPrompt) and command.waits and plan.answer.entry_id is not None:
            self._turns.follow_ups.awaits(plan.answer.entry_id)
        return await self._whole_answer(plan.answer)

    async def _goes_on_first(self) -> bool:
        """Whether a turn that was left open goes on when a message comes: it waits, and the message
        wakes it; or its sender lives, was promised an answer, and the message waits behind it.
        """
        if self.state.turn.wait is not None:
            return True
        return await anyio.to_thread.run_sync(self._env.is_awaited)

    async def _keep_rule(self, rule: str) -> None:
        keep = self._env.permissions.keep_rule
        if keep is None:
            raise UsageError("a rule cannot be saved here; allow it for this session")
        await keep(rule)

    async def _whole_answer(self, answer: Any) -> Any:
        """An answer as the caller gets it: what comes out of the queue has all its words."""
        match answer:
            case [QueueEntry(), *_]:
                return await self.log.in_full(answer)
            case QueuedMessages(steering=steering, follow_up=follow_up):
                return QueuedMessages(
                    steering=await self.log.in_full(steering),
                    follow_up=await self.log.in_full(follow_up),
                )
            case _:
                return answer

    def _check_options(self, command: Command[Any]) -> None:
        """Refuse now what could not be carried out later, when the caller would not hear of it."""
        match command:
            case (
                SendPrompt(options=options)
                | ContinueTurn(options=options)
                | ScheduleInput(options=options)
            ):
                if GOAL_OPTION in options:
                    # It lends a turn what the goal may do: only the session itself begins rounds.
                    raise UsageError("a message is no round of a goal")
                self._env.turns.check(self.state, options)
            case ChangeSetting(name=name, value=value) if value is not None:
                self._env.turns.check(self.state, value if name == "budget" else {name: value})
            case CycleModel(rotation=rotation):
                from weft.session.decide.settings import next_model  # as below

                following = next_model(rotation, self.state.settings)
                self._env.turns.check(self.state, {"model": following.name})
            case _:
                pass

    def _levels_after(self, command: SettingCommand) -> KnownLevels:
        """The thinking levels that a command is about; None for one that is not about them."""
        from weft.session.decide.settings import model_after  # few commands are about settings

        model = model_after(command, self.state)
        return None if model is None else self._env.turns.levels(self.state, model)

    async def _file_of(self, command: Command[Any]) -> FoundFile | None:
        """The file that a command names, looked at before it is decided."""
        match command:
            case SetBoundary(path=path) | ClearBoundary(path=str(path)):
                return await self._env.finder.find_file(path)
            case _:
                return None

    async def _stop(self, command: StopSession) -> bool:
        """Stop the session; False when only an unused one was to stop, and it is used by now."""
        if command.if_unused and (self.is_busy or self.is_watched or len(self._mailbox)):
            return False
        self._turns.is_stopping = True
        if command.suspends:
            await self._suspend()
        else:
            why = f"the session was stopped: {command.reason}"
            await self._abort(why, wait_here=True)
            # One that is only unloaded waits on: it is opened again when it is due.
            if not command.if_unused:
                await self._abort_wait(why, None)
        if self.state.seq - self._snapshot_seq >= FACTS_BETWEEN:
            await self._keep_snapshot()
        # One that was suspended goes on where a host looks for such.
        goes_on = command.suspends and self.state.turn.open is not None
        store = self._store
        await (store.leave_lease if goes_on else store.release_lease)(self._lease)
        self.stopped_because = command.reason
        return True

    async def _keep_due_snapshot(self) -> None:
        """Keep the state every now and then: after a crash only what came since is read."""
        # Here, between two messages, because the state must stand still while it is written.
        seq, kept = self.state.seq, self._snapshot_seq
        if self.stopped_because or not is_snapshot_due(seq, kept):
            return
        if is_snapshot_overdue(seq, kept):
            await self._keep_snapshot()
        elif self._env.clock.monotonic() >= self._snapshot_from:
            await self._keep_snapshot(gives_way=lambda: bool(len(self._mailbox)))

    async def _keep_snapshot(self, gives_way: Callable[[], bool] = lambda: False) -> None:
        """Keep the state for the next opening; without it that only takes longer.

        That of a very long session takes most of a second: a message that comes meanwhile goes
        first, and the snapshot is made later, unless it is overdue.
        """
        from weft.session.log.load import SnapshotPutOff, keep_snapshot  # not for a short one

        before, self._snapshot_seq = self._snapshot_seq, self.state.seq
        try:
            await keep_snapshot(self.state, self._store, gives_way=gives_way)
        except SnapshotPutOff:
            self._snapshot_seq = before
            self._snapshot_from = self._env.clock.monotonic() + SNAPSHOT_PAUSE
        except StoreError:
            # What has failed is not tried again after every fact: the disk may be full.
            logger.exception("no snapshot was kept", extra={"session": self.session_id})

    @cached_property
    def _rewinds(self) -> RewindWork:
        from weft.session.rewind.work import RewindWork  # few sessions are ever rewound

        return RewindWork(self.log, self._store, self._env.files)

    async def _rewind(self, command: RewindTo | UndoRewind, asked: str) -> RewindPlan:
        if self._worker.turn is not None:
            raise SessionBusy(self.session_id, "rewind it")
        if command.preview:
            return await self._rewinds.preview(command)
        await self._rewinds.finish()
        await self._recovery.settle_lost_calls()
        await self._recovery.end_lost_commands()
        if self.state.turn.open is not None:
            await self._recovery.end("something else came first")
        return await self._rewinds.carry_out(command, asked)

    # -- aborting

    def trip(self, command: AbortTurn) -> TurnId | None:
        """Stop what the turn is doing now, before the abort itself has its turn in the mailbox: the
        disk may be slow.

        Returns the turn that was stopped.
        """
        # A viewer must not stop the turn either, and this path does not go through the mailbox.
        self.clients.check(command)
        is_repeated, _ = self._answered.before(command, digest(command), self.state)
        if is_repeated or not self._worker.is_at(command.turn_id):
            return None
        return self._worker.trip(command.reason)

    async def _abort(
        self, reason: str, *, only: TurnId | None = None, wait_here: bool = False
    ) -> AbortReceipt:
        """Trip the turn's scope; another turn than `only`, where that is given, goes on.

        Its own clean-up settles everything.  The actor does not wait for it.
        """
        # The turn that was meant may have ended while the abort waited in the mailbox, and the next
        # message have begun another.
        turn = self._worker.turn if self._worker.is_at(only) else None
        turn_id = self._worker.trip(reason) if turn is not None else None
        if turn is None and not wait_here:
            turn_id = await self._abort_wait(reason, only)
        if turn is not None:
            self._worker.watch_abort()
            if wait_here:
                await self._serve_until_settled(turn)
        return AbortReceipt(
            turn_id=turn_id,
            surviving=await self.log.in_full(self.state.queue.entries.values()),
        )

    async def _abort_wait(self, reason: str, only: TurnId | None) -> TurnId | None:
        """End a turn that waits and that no process has at work; returns which one."""
        open_turn, is_waiting = self.state.turn.open, self.state.turn.wait is not None
        if self._worker.turn is not None or open_turn is None or not is_waiting:
            return None
        if only not in (None, open_turn.turn_id):
            return None
        await self._recovery.end(reason, "aborted")
        return open_turn.turn_id

    async def _suspend(self) -> None:
        """Stop the turn without ending it, and wait for its task, whose tools must not outlive the
        lease.
        """
        turn = self._worker.turn
        self._worker.suspend()
        if turn is not None:
            self._worker.watch_abort()
            await self._serve_until_settled(turn)

    async def wait_settled(self, turn_id: TurnId | None) -> None:
        """Wait until this turn has come to its end."""
        await self._worker.wait_settled(turn_id)

    async def _serve_until_settled(self, turn: SessionWork) -> None:
        """Go on with the turn's own messages until it is over.

        Everything else fails, for the session is stopping.
        """
        while self._worker.turn is turn:
            envelope = await self._mailbox.take()
            # The turn needs this mailbox to write its end: to wait for it without serving it would
            # be a deadlock.
            # So may the children that it stops, whose ends belong on its record.
            if isinstance(envelope.message, OfTurns | ReportChild | ForwardRequest):
                try:
                    envelope.answer(await self._handle(envelope))
                except WeftError as error:
                    envelope.fail(error)
            else:
                envelope.fail(SessionStopped(self.session_id, "it is being stopped"))
