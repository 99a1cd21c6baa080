"""The session's actor: one mailbox, one writer, one turn at a time.

Everything that changes a session goes through the mailbox and is handled by one task, so its state needs no locks.  A change is made
in one order only: facts are stamped, appended, and when they are durable applied and published.  Reads take the state as it is and
never wait for a commit.  The turn runs in a task of its own and writes through the same mailbox; the actor never waits for
it.

When something unforeseen breaks (here or in the turn), the session is rebuilt from its log and goes on, a few times; then it stays down
with status `error` until somebody speaks to it again.  Other sessions never notice.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import anyio
import msgspec

from weft.actors import Budget, Envelope, Hub, Mailbox, Supervisor, no_strays
from weft.errors import (
    Conflict,
    Corrupt,
    Fenced,
    SessionBusy,
    SessionError,
    SessionStopped,
    StoreError,
    ToolError,
    UsageError,
    WeftError,
)
from weft.events import (
    Cause,
    ClientAttached,
    DriverChanged,
    ErrorRaised,
    Event,
    Fact,
    FileTouched,
    InputRemoved,
    NewMessage,
    NodeEdited,
    PermissionRequest,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    QueuesRecalled,
    Rewound,
    SessionRestarted,
    SessionStatus,
    SettingChanged,
    Signal,
    Status,
    TextDelta,
    TurnFinished,
    TurnStarted,
    UsageRecorded,
    encode,
    kind_of,
)
from weft.faults import Boundary
from weft.ids import BlobId, EntryId, NodeId, RequestId, TurnId
from weft.loop import (
    Build,
    Commit,
    Compaction,
    ContextLine,
    Entry,
    Evidence,
    Journal,
    Leftover,
    Turn,
    Work,
    children_wanted,
    end_interrupted,
    hashes_wanted,
    pinned,
    promote,
    settle_interrupted,
)
from weft.messages import Part, Text
from weft.session.commands import (
    Abort,
    AbortReceipt,
    Attach,
    BranchAt,
    ChangeSetting,
    ClearBoundary,
    Command,
    Compact,
    ContinueTurn,
    Detach,
    EditNode,
    Queued,
    Rewind,
    RewindPlan,
    Say,
    SetBoundary,
    Stop,
    SwitchBranch,
    UndoRewind,
    digest,
)
from weft.session.decide import Moment, Plan, decide, start_follow_up
from weft.session.environment import FoundFile, SessionEnvironment
from weft.session.follow import Subscription
from weft.session.gate import SessionGate
from weft.session.keeping import history_blobs
from weft.session.line import (
    LineCache,
    load_revisions,
    load_summary,
    spill,
    unspill_entries,
)
from weft.session.loading import keep_snapshot, load_state
from weft.session.restoring import Rewinder
from weft.state import Entry as QueueEntry
from weft.state import Inputs, SessionState
from weft.store import Append, Blob, DraftChunk, Lease, Record, Said, SessionRow, Store

logger = logging.getLogger(__name__)

UNWRITTEN_REMEMBERED = 1_000
"""How many commands without a fact a session remembers; older ones are forgotten, oldest first."""

_CREATE = Boundary("session.create")
_COMMAND = Boundary("session.command")
_RECOVER = Boundary("session.recover")
_RESTART = Boundary("session.restart")
_END = Boundary("session.end")
_DOWN = Boundary("session.down")
_OVERDUE = Boundary("session.overdue")


HISTORY_SLACK = 16
"""The file history is held to its limit whenever a session has added this part of it."""

_REWIND = Boundary("session.rewind")
_REWOUND = Boundary("session.rewound")

_ENDS_WHAT_WAS_LEFT = (Say, EditNode, BranchAt, SwitchBranch, Compact)
"""Commands after which an interrupted turn cannot go on where it stood."""


class _TurnWrites(msgspec.Struct, frozen=True):
    """The running turn has something to commit."""

    turn: Work
    build: Build


class _Append(msgspec.Struct, frozen=True):
    """A session that works for this one has something to put on record here."""

    build: Build
    wake: bool = False


class _TurnEnded(msgspec.Struct, frozen=True):
    """The turn's task is over."""

    turn: Work
    error: BaseException | None


class _AbortOverdue(msgspec.Struct, frozen=True):
    """A turn did not settle in time after an abort."""

    turn: Work


_Message: TypeAlias = Command | _TurnWrites | _Append | _TurnEnded | _AbortOverdue


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
        budget: Budget | None = None,
    ) -> None:
        self.state = state
        self.session_id = state.session_id
        self._lease = lease
        self._store = store
        self._env = environment
        self._supervisor = supervisor
        self._budget = budget or Budget(clock=environment.clock)
        self._mailbox: Mailbox[_Message] = Mailbox(state.session_id)
        self._facts: Hub[Event] = Hub()
        self._signals: Hub[Event] = Hub()
        self._line = LineCache(store)
        if not state.tree.nodes:
            self._line.start_empty()
        self.gate = SessionGate(
            state,
            rules=environment.rules,
            asking=environment.asking,
            leave=environment.leave,
            ceiling=environment.ceiling,
        )
        self._turn: Work | None = None
        self.is_aborting = False
        """The work that runs, or ran last, was told to stop."""
        self._turn_status: Status = "thinking"
        self._is_between_turns = False
        """A turn has ended and the next follow-up is about to start another."""
        self._owed: Cause | None = None
        """What asked for the work that runs, to be written with what comes of it."""
        self._unwritten = Inputs()
        """Commands of this life that left no fact."""
        self._settled = anyio.Event()
        self._queued_before: frozenset[EntryId] = frozenset()
        """What was in the queue when the work that runs, or ran last, began."""
        self._waits_for_entry: set[EntryId] = set()
        self._resolutions: dict[RequestId, anyio.Event] = {}
        self._resolved: dict[RequestId, PermissionResolved | QuestionAnswered] = {}
        self._conditions: list[tuple[Callable[[SessionState], bool], anyio.Event]] = []
        self._draft: tuple[NodeId, list[str]] | None = None
        self._snapshot_seq = state.seq
        self._untrimmed = environment.history_bytes
        """Bytes of file history since it was last held to its limit; at first, nobody knows."""
        self._clients: dict[str, Literal["viewer", "driver"]] = {}
        self.driver = ""
        self.error = ""
        """Why the session is down; empty when it is not."""
        self._stopping = False
        self.stopped_because = ""
        self.stopped = anyio.Event()
        self.last_used = environment.clock.monotonic()

    # -- life

    async def create(
        self, facts: Sequence[Fact], blobs: Mapping[BlobId, bytes] | None = None
    ) -> None:
        """Append the first facts of a new session, before it serves; a fork then takes in the past it shares."""
        _CREATE.before.hit()
        await self._commit(Commit(facts=tuple(facts), blobs=blobs or {}))
        _CREATE.after.hit()
        if self.state.about.fork is not None:
            self.state = self.gate.state = await load_state(self.session_id, self._store)
            self._line.drop()

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
            self._close(self.stopped_because or "the program is closing")

    async def _serve(self) -> None:
        while not self.stopped_because:
            envelope = await self._mailbox.take()
            try:
                answer = await self._handle(envelope)
            except Fenced as error:
                envelope.fail(error)
                self._lose(str(error))
            except StoreError as error:
                envelope.fail(error)
                if isinstance(error, Conflict | Corrupt):
                    raise
            except WeftError as error:
                envelope.fail(error)
            except Exception as error:
                envelope.fail(SessionError(f"the session failed: {error}"))
                raise
            else:
                envelope.answer(answer)

    async def _handle(self, envelope: Envelope[_Message]) -> Any:
        match envelope.message:
            case _TurnWrites(turn=turn, build=build):
                return await self._commit_for(turn, build)
            case _Append(build=build, wake=wake):
                return await self._append(build, wake)
            case _TurnEnded(turn=turn, error=error):
                return await self._turn_ended(turn, error)
            case _AbortOverdue(turn=turn):
                return await self._settle_for(turn)
            case command:
                return await self._carry_out(command)

    def _lose(self, why: str) -> None:
        """Another process owns the session now: stop at once, write nothing more."""
        if self._turn is not None:
            self._turn.scope.cancel()
            self._turn = None
        self._settled.set()
        self.stopped_because = why

    def _close(self, why: str) -> None:
        self.stopped_because = why
        self._mailbox.close(SessionStopped(self.session_id, why))
        self._facts.close()
        self._signals.close()
        self._settled.set()
        self.stopped.set()

    async def stop(self, why: str) -> None:
        """End this life: the turn is aborted, the lease given back; the record stays."""
        if self.stopped.is_set():
            return
        await self._mailbox.call(Stop(reason=why))
        await self.stopped.wait()

    # -- reading

    @property
    def status(self) -> Status:
        """What the session is doing; computed, never stored."""
        if self.error:
            return "error"
        if self._turn is not None or self._is_between_turns:
            return self._turn_status
        return "interrupted" if self.state.turn.open is not None else "idle"

    @property
    def is_busy(self) -> bool:
        """True while a turn of this process runs."""
        return self._turn is not None or self._is_between_turns

    @property
    def is_watched(self) -> bool:
        """True while somebody reads its events."""
        return bool(len(self._facts) or self._clients)

    @property
    def draft(self) -> tuple[NodeId, str] | None:
        """The text in flight, and the node it will become."""
        return None if self._draft is None else (self._draft[0], "".join(self._draft[1]))

    async def line(self, tip: NodeId | None = None) -> list[Entry]:
        """The line that ends at `tip` (the head, when left out), with all words."""
        return await self._line.line(self.state.tree, tip or self.state.tree.head)

    async def in_full(self, entries: Iterable[QueueEntry]) -> tuple[QueueEntry, ...]:
        """Queued entries with all their words; the state holds only the beginning of a long one."""
        return await unspill_entries(entries, self._store)

    async def context_line(self, tip: NodeId | None = None) -> ContextLine:
        """The line that ends at `tip` as the model is to see it."""
        tip = tip or self.state.tree.head
        entries = await self._line.line(self.state.tree, tip)
        compaction = self.state.tree.compaction_for(tip)
        if compaction is None:
            return ContextLine(entries=tuple(entries))
        cut = next(i for i, entry in enumerate(entries) if entry.node.id == compaction.upto)
        kept = pinned(self.state, entries[: cut + 1])
        return ContextLine(
            entries=tuple(entries[cut + 1 :]),
            summary=await load_summary(compaction, self._store, kept),
            upto=compaction.upto,
            pinned=kept,
        )

    async def revisions(self, node: NodeId) -> list[tuple[Part, ...]]:
        """What a node said in each revision, oldest first."""
        return await load_revisions(self.state.tree, node, self._store)

    def subscribe(
        self, *, after: int | None = None, live: bool | Literal["status"] = True
    ) -> Subscription:
        """Read events: those after the cursor, or (None) those from now on; live ones too, only the status, or none."""
        inbox = self._facts.open_inbox()
        if live is True:
            self._signals.add(inbox)
        if self.stopped.is_set():
            inbox.close()
        start = self.state.seq if after is None else after
        return Subscription(
            inbox,
            self._store,
            self.session_id,
            after=start,
            close=self._drop_inbox,
            applied=lambda: self.state.seq,
            behind=start < self.state.seq,
            live=live,
        )

    def _drop_inbox(self, inbox: Any) -> None:
        self._facts.drop(inbox)
        self._signals.drop(inbox)

    async def call(self, command: Command) -> Any:
        """Have a command carried out.  Cancelling ends the wait; the command is carried out all the same."""
        self.last_used = self._env.clock.monotonic()
        return await self._mailbox.call(command)

    async def append(self, build: Build, *, wake: bool = False) -> Sequence[Fact]:
        """Put on record what a session that works for this one has to say, whether a turn runs or not.

        With `wake`, steering that then waits starts a turn, if none runs and the last one ended well.  A cancel ends the wait only.
        """
        stored: Sequence[Fact] = await self._mailbox.call(_Append(build, wake))
        return stored

    async def until(self, holds: Callable[[SessionState], bool]) -> None:
        """Wait until something is true of the state; looked at with every fact."""
        while not holds(self.state):
            changed = anyio.Event()
            condition = (holds, changed)
            self._conditions.append(condition)
            try:
                await changed.wait()
            finally:
                self._conditions.remove(condition)

    async def resolution(self, request_id: RequestId) -> PermissionResolved | QuestionAnswered:
        """Wait until somebody answers the request."""
        waiting = self._resolutions.setdefault(request_id, anyio.Event())
        for answered in self.state.turn.answers.values():
            if answered.request.request_id == request_id:
                return answered.answer
        if self._turn is not None and request_id in self.state.turn.requests:
            self._set_status("awaiting_permission")
        try:
            await waiting.wait()
            return self._resolved.pop(request_id)
        finally:
            self._resolutions.pop(request_id, None)

    # -- commands

    async def _carry_out(self, command: Command) -> Any:
        self.check_driver(command)
        asked = digest(command) if command.input_id else ""
        repeated, answer = self._answered_before(command, asked)
        if repeated:
            return answer
        answer = await self._carry_out_once(command, asked)
        if command.input_id and command.input_id not in self.state.inputs.causes:
            # It left no fact to remember it by (an abort of nothing, an empty queue): it is remembered as long as we live.
            self._unwritten.causes[command.input_id] = Cause(
                input_id=command.input_id, digest=asked, answer=answer
            )
            while len(self._unwritten.causes) > UNWRITTEN_REMEMBERED:
                del self._unwritten.causes[next(iter(self._unwritten.causes))]
        return answer

    def _answered_before(self, command: Command, asked: str) -> tuple[bool, Any]:
        for known in (self.state.inputs, self._unwritten):
            repeated, answer = known.earlier_answer(command.input_id, asked)
            if repeated:
                return True, answer
        return False, None

    async def _carry_out_once(self, command: Command, asked: str) -> Any:
        match command:
            case Abort(reason=reason):
                return await self._abort(reason)
            case Attach() | Detach():
                return self._attach(command)
            case Stop(reason=reason):
                return await self._stop(reason)
            case Rewind() | UndoRewind():
                return await self._rewind(command, asked)
            case _:
                if self._turn is None:
                    await self._finish_rewind()
                return await self._decide_and_commit(command, asked)

    async def _decide_and_commit(self, command: Command, asked: str) -> Any:
        self._check_wishes(command)
        moment = self._moment(await self._file_of(command))
        plan = decide(command, self.state, moment)
        left_open = self._turn is None and self.state.turn.open is not None
        if left_open and isinstance(command, _ENDS_WHAT_WAS_LEFT):
            await self._end_interrupted("something else came first")
            plan = decide(command, self.state, moment)
        cause = None
        if command.input_id:
            cause = Cause(input_id=command.input_id, digest=asked, answer=plan.answer)
        await self._carry_out_plan(plan, cause)
        if isinstance(command, Say) and command.waits and plan.answer.entry_id is not None:
            self._waits_for_entry.add(plan.answer.entry_id)
        return await self._whole_answer(plan.answer)

    async def _whole_answer(self, answer: Any) -> Any:
        """An answer as the caller gets it: what comes out of the queue has all its words."""
        match answer:
            case QueueEntry():
                return (await self.in_full([answer]))[0]
            case Queued(steering=steering, follow_up=follow_up):
                return Queued(
                    steering=await self.in_full(steering), follow_up=await self.in_full(follow_up)
                )
            case _:
                return answer

    async def _carry_out_plan(self, plan: Plan, cause: Cause | None) -> None:
        commit = Commit(facts=plan.facts, blobs=plan.blobs)
        if plan.then == "start_turn" and plan.facts:
            commit = self._with_opening(plan.facts)
        elif plan.then == "start_turn":
            await self._settle_interrupted()
        _COMMAND.before.hit()
        await self._commit(commit, cause)
        _COMMAND.after.hit()
        if plan.then == "start_turn":
            self._start_turn()
        if plan.then == "compact":
            self._start_compaction(plan.focus, cause)

    def _with_opening(self, facts: tuple[Fact, ...]) -> Commit:
        """The facts that start a turn, and in the same append those of its first model call."""
        started = next(fact for fact in facts if isinstance(fact, TurnStarted))
        opening = self._env.workshop.opening(self.state, started)
        return msgspec.structs.replace(opening, facts=(*facts, *opening.facts))

    def _check_wishes(self, command: Command) -> None:
        """Refuse what could not be carried out later, when nobody would hear of it."""
        match command:
            case Say(options=options) | ContinueTurn(options=options):
                self._env.workshop.check(self.state, options)
            case ChangeSetting(name=name, value=value) if value is not None:
                self._env.workshop.check(self.state, value if name == "budget" else {name: value})
            case _:
                pass

    def _moment(self, file: FoundFile | None = None) -> Moment:
        return Moment(now=self._env.clock.now(), running=self._turn is not None, file=file)

    async def _file_of(self, command: Command) -> FoundFile | None:
        """The file that a command names, looked at before it is decided."""
        match command:
            case SetBoundary(path=path) | ClearBoundary(path=str(path)):
                return await self._env.workshop.find_file(path)
            case _:
                return None

    def check_driver(self, command: Command) -> None:
        """A client that came to watch cannot drive.

        Raises:
            UsageError: it tries to.
        """
        if isinstance(command, Attach | Detach) or not command.client:
            return
        if self._clients.get(command.client) == "viewer":
            raise UsageError("this client only watches; claim_driver() lets it drive")

    def _attach(self, command: Attach | Detach) -> None:
        client = command.client
        if isinstance(command, Detach):
            role = self._clients.pop(client, None)
            self._signal(ClientAttached(client=client, role=role or "viewer", left=True))
            if self.driver == client:
                self.driver = ""
                self._signal(DriverChanged(client=""))
            return
        self._clients[client] = command.role
        self._signal(ClientAttached(client=client, role=command.role))
        if command.role == "driver" and self.driver != client:
            if self.driver in self._clients:
                self._clients[self.driver] = "viewer"
            self.driver = client
            self._signal(DriverChanged(client=client))

    async def _stop(self, reason: str) -> None:
        self._stopping = True
        await self._abort(f"the session was stopped: {reason}", wait_here=True)
        if self.state.seq - self._snapshot_seq >= self._env.snapshot_after:
            await keep_snapshot(self.state, self._store)
        await self._store.release_lease(self._lease)
        self.stopped_because = reason

    # -- rewinding

    async def _rewind(self, command: Rewind | UndoRewind, asked: str) -> RewindPlan:
        """Say what a rewind does, and unless it is a preview, do it.  Nothing else is carried out meanwhile."""
        if self._turn is not None:
            raise SessionBusy(self.session_id, "rewind it")
        if not command.preview:
            await self._finish_rewind()
            if self.state.turn.open is not None:
                await self._end_interrupted("something else came first")
        rewinder = self._rewinder()
        draft = await rewinder.draft(command, self.state)
        if command.preview:
            return draft.plan
        cause = None
        if command.input_id:
            cause = Cause(input_id=command.input_id, digest=asked, answer=draft.done())
        commit = await rewinder.intent(draft, self.state)
        _REWIND.before.hit()
        stored = await self._commit(commit, cause)
        _REWIND.after.hit()
        intent = next(fact for fact in stored if isinstance(fact, Rewound))
        if not intent.files:
            return draft.done()
        failed = await rewinder.carry_out(draft.steps)
        settled = await rewinder.settled(intent, failed, draft.steps, self.state.tree.head)
        _REWOUND.before.hit()
        await self._commit(settled)
        _REWOUND.after.hit()
        return draft.done(failed)

    async def _finish_rewind(self) -> None:
        """Do what is left of a rewind that was interrupted after its intent was durable."""
        place = self.state.files.unsettled
        if place is None or place.log != self.session_id or self._env.files is None:
            return
        settled = await self._rewinder().finish(place, self.state.tree.head)
        _REWOUND.before.hit()
        await self._commit(settled)
        _REWOUND.after.hit()

    def _rewinder(self) -> Rewinder:
        if self._env.files is None:
            raise UsageError("this session has no files that could be put back")
        return Rewinder(self._store, self._env.files)

    # -- committing

    async def _commit(self, commit: Commit, cause: Cause | None = None) -> Sequence[Fact]:
        """Append, then apply and publish.  Nothing is shown that a crash could take back."""
        if not commit.facts:
            return ()
        stamped, blobs, history = self._stamp(commit, cause)
        await self._store.append(
            Append(
                stream=self.session_id,
                expected_seq=self.state.seq,
                records=tuple(
                    Record(fact.seq, fact.at, kind_of(fact), encode(fact)) for fact in stamped
                ),
                fence=self._lease.fence,
                row=self._row_after(stamped),
                said=tuple(_said(stamped)),
                blobs=tuple(Blob(blob_id, data) for blob_id, data in blobs.items()),
                history=history,
                drop_draft=commit.drop_draft,
            )
        )
        self.error = ""
        for fact in stamped:
            self._apply(fact)
        if history:
            self._hold_to_quota(sum(len(blobs[each]) for each in history))
        return stamped

    def _hold_to_quota(self, added: int) -> None:
        """Let the project's oldest file history go, every now and then; what is gone is named when somebody wants it back."""
        most = self._env.history_bytes
        self._untrimmed += added
        if most and self._untrimmed > most // HISTORY_SLACK:
            self._untrimmed = 0
            self._supervisor.start(self._trim_history, f"history of {self.session_id}")

    async def _trim_history(self) -> None:
        most = self._env.history_bytes
        try:
            await self._store.trim_history(
                self.state.about.project_path, most - most // HISTORY_SLACK
            )
        except StoreError:
            logger.exception("file history was not trimmed", extra={"session": self.session_id})

    def _stamp(
        self, commit: Commit, cause: Cause | None
    ) -> tuple[list[Fact], dict[BlobId, bytes], tuple[BlobId, ...]]:
        """The facts as they are stored, the blobs that they name, and which of those are file history."""
        now = self._env.clock.now()
        blobs = dict(commit.blobs)
        spilled: set[BlobId] = set()
        stamped: list[Fact] = []
        for offset, fact in enumerate(commit.facts):
            slim, more = spill(fact)
            blobs.update(more)
            spilled.update(more)
            stamped.append(
                msgspec.structs.replace(
                    slim,
                    session_id=self.session_id,
                    seq=self.state.seq + offset + 1,
                    at=fact.at or now,  # an imported message keeps its own time
                    cause=cause if offset == 0 else None,
                )
            )
        return stamped, blobs, history_blobs(stamped, blobs, spilled)

    def _apply(self, fact: Fact) -> None:
        self.state.apply(fact)
        self._line.apply(fact)
        match fact:
            case (
                PermissionResolved(request_id=request_id) | QuestionAnswered(request_id=request_id)
            ):
                if isinstance(fact, PermissionResolved):
                    self.gate.take_answer(fact)
                if (waiting := self._resolutions.pop(request_id, None)) is not None:
                    self._resolved[request_id] = fact
                    waiting.set()
                if self._turn_status == "awaiting_permission" and not self.state.turn.requests:
                    self._set_status("executing_tool")
            case PermissionRequest(child=child) | QuestionAsked(child=child) if (
                child is not None and self._turn is not None
            ):
                self._set_status("awaiting_permission")
            case InputRemoved(entry_id=entry_id):
                self._waits_for_entry.discard(entry_id)
            case QueuesRecalled(entries=entries):
                self._waits_for_entry.difference_update(entries)
            case SettingChanged(name="permission_mode"):
                self.gate.mode_was_set()
            case TurnFinished():
                self.gate.turn_ended()
                self._draft = None
            case NewMessage(node=node) if self._draft is not None and node.id == self._draft[0]:
                self._draft = None
            case _:
                pass
        for holds, changed in self._conditions:
            if holds(self.state):
                changed.set()
        self._facts.publish(fact)

    def _row_after(self, facts: Sequence[Fact]) -> SessionRow:
        """What a list will show once these facts are in."""
        about = copy.copy(self.state.about)
        settings = copy.copy(self.state.settings)
        settings.values = dict(settings.values)
        total = self.state.ledger.total
        turn_open = self.state.turn.open is not None
        for fact in facts:
            about.apply(fact)
            settings.apply(fact)
            match fact:
                case UsageRecorded(usage=usage):
                    total = total + usage
                case TurnStarted():
                    turn_open = True
                case TurnFinished():
                    turn_open = False
                case _:
                    pass
        parent = about.parent.session_id if about.parent is not None else None
        fork = about.fork.session_id if about.fork is not None else None
        return SessionRow(
            id=self.session_id,
            title=settings.title,
            project_path=about.project_path,
            project_id=about.project_id,
            model=settings.model,
            mode=settings.mode,
            created=about.created or facts[0].at,
            last_active=facts[-1].at,
            message_count=about.message_count,
            turn_count=about.turn_count,
            first_prompt=about.first_prompt,
            cost_usd=total.cost_usd,
            parent_id=parent or fork,
            is_child=parent is not None,
            archived=bool(settings.get("archived", False)),
            turn_open=turn_open,
            last_seq=facts[-1].seq,
        )

    def _signal(self, signal: Signal) -> None:
        if isinstance(signal, TextDelta):
            if self._draft is None or self._draft[0] != signal.node_id or signal.offset == 0:
                self._draft = (signal.node_id, [])
            self._draft[1].append(signal.text)
        # The status goes to every reader, so that whoever waits for a turn learns when it stops short.
        readers = self._facts if isinstance(signal, SessionStatus) else self._signals
        if len(readers):
            readers.publish(
                msgspec.structs.replace(
                    signal,
                    session_id=self.session_id,
                    after_seq=self.state.seq,
                    at=self._env.clock.now(),
                )
            )

    # -- the turn

    def _start_turn(self) -> None:
        """Set the open turn to work, in a task of its own."""
        open_turn = self.state.turn.open
        if open_turn is None:
            return
        journal = _TurnJournal(self)
        turn = self._env.workshop.turn(self.state, open_turn.turn_id, journal, self.gate)
        self._set_to_work(turn, journal)

    def _start_compaction(self, focus: str, cause: Cause | None) -> None:
        journal = _TurnJournal(self)
        work = self._env.workshop.compaction(self.state, focus, journal, self.gate)
        self._owed = cause
        self._set_to_work(work, journal)

    def _set_to_work(self, work: Work, journal: _TurnJournal) -> None:
        journal.turn = work
        self._turn = work
        self.is_aborting = False
        self._queued_before = frozenset(self.state.queue.entries)
        self._settled = anyio.Event()
        self._set_status("thinking")
        self._supervisor.start(lambda: self._run_turn(work), f"turn {work.turn_id}")

    async def _run_turn(self, turn: Work) -> None:
        error: BaseException | None = None
        try:
            await no_strays(turn.run())
        except Exception as failure:
            error = failure
        with anyio.CancelScope(shield=True), anyio.move_on_after(5):
            try:
                await self._mailbox.post(_TurnEnded(turn, error))
            except WeftError:
                return

    async def _commit_for(self, turn: Work, build: Build) -> Sequence[Fact]:
        if turn is not self._turn:
            raise SessionStopped(self.session_id, "this turn was ended")
        owed, self._owed = self._owed, None
        stored = await self._commit(self._titled(build(self.state)), owed)
        if self.state.turn.open is None:
            # The turn is over with this append, not when its task has wound up: the next message starts a new one.
            await self._release_turn()
        return stored

    async def _append(self, build: Build, wake: bool) -> Sequence[Fact]:
        _COMMAND.before.hit()
        stored = await self._commit(build(self.state))
        _COMMAND.after.hit()
        turn = self.state.turn
        ended_well = turn.open is None and turn.last_reason in ("stop", "submitted")
        if wake and ended_well and self._turn is None and self.state.queue.waiting("steering"):
            await self._start_follow_up(self._next_follow_up(), also_steering=True)
        return stored

    def _titled(self, commit: Commit) -> Commit:
        """At the end of its first turn a session gets a real title."""
        ends = any(isinstance(fact, TurnFinished) for fact in commit.facts)
        if not ends or not self.state.settings.get("auto_title"):
            return commit
        title = self._env.title(self.state)
        named = SettingChanged(name="title", value=title or self.state.settings.title)
        done = SettingChanged(name="auto_title", value=None)
        return msgspec.structs.replace(commit, facts=(*commit.facts, named, done))

    async def _release_turn(self) -> None:
        """No turn runs any more; the next one starts, where a follow-up waits.  Between the two nobody sees an idle session."""
        work, self._turn = self._turn, None
        self._settled.set()
        if isinstance(work, Compaction):
            entry, steered = self._said_during_compaction()
        else:
            entry, steered = self._next_follow_up(), self._leaves_steering(work)
        await self._start_follow_up(entry, also_steering=steered)
        if self._turn is None:
            self._set_status(self.status)

    def _leaves_steering(self, work: Work | None) -> bool:
        """A turn takes steering along until its end; other work has none that could be steered."""
        if isinstance(work, Turn) or not self.state.queue.waiting("steering"):
            return False
        return self.state.turn.last_reason in ("stop", "submitted")

    def _said_during_compaction(self) -> tuple[QueueEntry | None, bool]:
        """The follow-up to send after a compaction, and whether somebody steered: only what was said meanwhile, and not after an abort.

        What waited before that waits on: neither a compaction nor its end is a turn that ended well.
        """
        new = [
            entry
            for entry_id, entry in self.state.queue.entries.items()
            if entry_id in self._waits_for_entry
            or (entry_id not in self._queued_before and not self.is_aborting)
        ]
        if self.error or self._stopping:
            return None, False
        follow_up = next((entry for entry in new if entry.delivery == "follow_up"), None)
        return follow_up, any(entry.delivery == "steering" for entry in new)

    async def _turn_ended(self, turn: Work, error: BaseException | None) -> None:
        """The turn's task is over without having finished the turn: it crashed, or could not be stored."""
        if turn is not self._turn:
            return
        settled = self._settled
        self._turn = None
        try:
            if isinstance(error, StoreError):
                self.error = str(error)
                logger.error("a turn could not be stored", extra={"session": self.session_id})
            else:
                failure = error or SessionError("the turn ended without an end")
                logger.error("a turn crashed", exc_info=failure)
                await self._restart(failure)
        finally:
            settled.set()
            self._set_status(self.status)

    async def _start_follow_up(self, entry: QueueEntry | None, *, also_steering: bool) -> None:
        """Start the turn of a follow-up, if there is one.

        `also_steering`: what was said meanwhile starts a turn too, for there was none that it could steer.
        """
        if entry is None and not (also_steering and not self._stopping):
            return
        plan = start_follow_up(self.state, self._moment(), entry)
        self._is_between_turns = True
        try:
            await self._carry_out_plan(plan, None)
        except Fenced:
            raise
        except WeftError as error:
            # The turn before has ended well and must not hear of it.  The message stays queued, and the session says why.
            self.error = f"a queued message could not be sent: {error}"
            logger.error("a follow-up could not be sent", extra={"session": self.session_id})
        else:
            if entry is not None:
                self._waits_for_entry.discard(entry.entry_id)
        finally:
            self._is_between_turns = False

    def _next_follow_up(self) -> QueueEntry | None:
        """The next follow-up, if the turn ended well; else the first one that somebody waits for."""
        if self.state.turn.open is not None or self.error or self._stopping:
            return None
        waiting = self.state.queue.waiting("follow_up")
        if self.state.turn.last_reason not in ("stop", "submitted"):
            waiting = tuple(each for each in waiting if each.entry_id in self._waits_for_entry)
        return waiting[0] if waiting else None

    def _set_status(self, status: Status) -> None:
        self._turn_status = status
        self._signal(SessionStatus(status=self.status))

    # -- aborting

    def trip(self, command: Abort) -> TurnId | None:
        """Stop what the turn is doing now, before the abort itself has its turn in the mailbox: the disk may be slow.

        Returns the turn that was stopped.
        """
        self.check_driver(command)
        is_repeated, _ = self._answered_before(command, digest(command))
        if self._turn is None or is_repeated:
            return None
        self._turn.abort_reason = command.reason
        self.is_aborting = True
        self._turn.scope.cancel()
        return self._turn.turn_id

    async def _abort(self, reason: str, *, wait_here: bool = False) -> AbortReceipt:
        """Trip the turn's scope; its own clean-up settles everything.  The actor does not wait for it."""
        turn = self._turn
        if turn is not None:
            turn.abort_reason = reason
            self.is_aborting = True
            turn.scope.cancel()
            self._supervisor.start(lambda: self._watch_abort(turn), f"abort {turn.turn_id}")
            if wait_here:
                await self._serve_until_settled(turn)
        return AbortReceipt(
            turn_id=turn.turn_id if turn is not None else None,
            surviving=await self.in_full(self.state.queue.entries.values()),
        )

    async def wait_settled(self, turn_id: TurnId | None) -> None:
        """Wait until this turn has come to its end."""
        if self._turn is not None and self._turn.turn_id == turn_id:
            await self._settled.wait()

    async def _watch_abort(self, turn: Work) -> None:
        with anyio.move_on_after(self._env.abort_seconds):
            await self._settled.wait()
            return
        try:
            await self._mailbox.post(_AbortOverdue(turn))
        except WeftError:
            return

    async def _serve_until_settled(self, turn: Work) -> None:
        """Go on with the turn's own messages until it is over; everything else fails, for the session is stopping."""
        while self._turn is turn:
            envelope = await self._mailbox.take()
            if isinstance(envelope.message, _TurnWrites | _Append | _TurnEnded | _AbortOverdue):
                try:
                    envelope.answer(await self._handle(envelope))
                except WeftError as error:
                    envelope.fail(error)
            else:
                envelope.fail(SessionStopped(self.session_id, "it is being stopped"))

    async def _settle_for(self, turn: Work) -> None:
        """A tool does not let go: settle the turn without it; what it still writes is refused."""
        if turn is not self._turn:
            return
        try:
            _OVERDUE.before.hit()
            await self._commit(self._titled(turn.settled(self.state)))
            _OVERDUE.after.hit()
        except StoreError as error:
            self.error = str(error)
            raise
        finally:
            await self._release_turn()

    # -- coming back

    async def _settle_interrupted(self) -> None:
        """Close what a dead process left in doubt, so that its turn can go on."""
        found = await self._evidence()
        facts = settle_interrupted(self.state, found)
        started = self.state.turn.open
        if started is not None and started.call is not None:
            opening = self._env.workshop.opening(
                self.state, TurnStarted(turn_id=started.turn_id, options=started.options)
            )
            facts += promote(self.state, facts, self._env.clock.now())
            commit = msgspec.structs.replace(
                opening,
                facts=(*facts, *opening.facts),
                blobs={**found.blobs, **opening.blobs},
                drop_draft=True,
            )
        else:
            commit = Commit(facts=tuple(facts), blobs=found.blobs, drop_draft=True)
        _RECOVER.before.hit()
        await self._commit(commit)
        _RECOVER.after.hit()

    async def _end_interrupted(self, why: str) -> None:
        """End the turn that a dead process left open, because something else comes next."""
        found = await self._evidence()
        facts = end_interrupted(self.state, found, why)
        _END.before.hit()
        await self._commit(Commit(facts=tuple(facts), blobs=found.blobs, drop_draft=True))
        _END.after.hit()

    async def _evidence(self) -> Evidence:
        draft = await self._store.load_draft(self.session_id)
        files = self._env.files
        touched = Commit(facts=())
        intents = self.state.turn.intents.values()
        calls = [each.call_uid for each in intents if each.effect == "unknown"]
        if files is not None:
            # Before anything is judged: a command that still runs would go on changing what was looked at.
            await files.end_strays()
            if calls:
                touched = await files.interrupted(calls)
        return Evidence(
            leftover=Leftover(node=draft.node, text=draft.text) if draft is not None else None,
            hashes=await self._env.workshop.file_hashes(hashes_wanted(self.state)),
            cost=self._env.workshop.cost,
            children=await self._env.workshop.children_used(children_wanted(self.state)),
            modes=await self._modes(hashes_wanted(self.state)),
            touched=tuple(fact for fact in touched.facts if isinstance(fact, FileTouched)),
            blobs=touched.blobs,
            remains=await self._env.workshop.remains(calls) if calls else {},
        )

    async def _modes(self, paths: Iterable[str]) -> dict[str, int]:
        """The mode that each file has now, as far as it can be told."""
        found: dict[str, int] = {}
        for path in paths if self._env.files is not None else ():
            try:
                now = await self._env.files.look(path) if self._env.files is not None else None
            except ToolError:
                continue
            found[path] = 0 if now is None else now.mode
        return found

    async def _restart(self, error: BaseException) -> None:
        """Rebuild the session from its log and go on; past the budget, stay down until spoken to."""
        if self._turn is not None:
            self._turn.scope.cancel()
            self._turn = None
        reason = f"{type(error).__name__}: {error}"
        try:
            self.state = self.gate.state = await load_state(self.session_id, self._store)
            self._line.drop()
            raised = ErrorRaised(message=reason, where="session", error=type(error).__name__)
            if self._budget.spend():
                _RESTART.before.hit()
                await self._commit(Commit(facts=(raised, SessionRestarted(reason=reason))))
                _RESTART.after.hit()
                await self._go_on()
            else:
                await self._stay_down(raised, reason)
        except WeftError as failure:
            self.error = f"{reason}; and it could not be restarted: {failure}"
            self._settled.set()
            if isinstance(failure, Fenced):
                self._lose(str(failure))

    async def _go_on(self) -> None:
        if self.state.turn.open is not None:
            await self._settle_interrupted()
            self._start_turn()
        else:
            self._settled.set()

    async def _stay_down(self, raised: ErrorRaised, reason: str) -> None:
        found = await self._evidence()
        ending = end_interrupted(self.state, found, f"it crashed too often: {reason}")
        _DOWN.before.hit()
        await self._commit(Commit(facts=(raised, *ending), blobs=found.blobs, drop_draft=True))
        _DOWN.after.hit()
        self.error = f"it crashed too often; the last time: {reason}"
        self._settled.set()
        self._set_status("error")


class _TurnJournal(Journal):
    """A turn's way to its session."""

    def __init__(self, actor: SessionActor) -> None:
        self._actor = actor
        self.turn: Work | None = None

    @property
    def state(self) -> SessionState:
        return self._actor.state

    async def commit(self, build: Build) -> Sequence[Fact]:
        assert self.turn is not None
        stored: Sequence[Fact] = await self._actor._mailbox.call(_TurnWrites(self.turn, build))
        return stored

    def signal(self, signal: Signal) -> None:
        self._actor._signal(signal)

    def status(self, status: Status) -> None:
        if self.turn is self._actor._turn and status != self._actor._turn_status:
            self._actor._set_status(status)

    def draft(
        self,
        node: NodeId,
        part: Literal["text", "thinking"],
        chunk: str,
        *,
        restart: bool = False,
    ) -> None:
        actor = self._actor
        actor._store.save_draft(
            DraftChunk(
                stream=actor.session_id,
                fence=actor._lease.fence,
                node=node,
                part=part,
                chunk=chunk,
                restart=restart,
            )
        )

    async def line(self) -> ContextLine:
        turn = self._actor.state.turn.open
        return await self._actor.context_line(turn.tip if turn is not None else None)

    async def resolution(self, request_id: RequestId) -> PermissionResolved | QuestionAnswered:
        return await self._actor.resolution(request_id)

    async def until(self, holds: Callable[[SessionState], bool]) -> None:
        await self._actor.until(holds)


def _said(facts: Sequence[Fact]) -> list[Said]:
    """The words that search should find."""
    said: list[Said] = []
    for fact in facts:
        match fact:
            case NewMessage(node=node):
                node_id, parts = node.id, node.parts
            case NodeEdited(node=node_id, parts=parts):
                pass
            case _:
                continue
        text = "".join(part.text for part in parts if isinstance(part, Text))
        if text:
            said.append(Said(node_id, text))
    return said
