"""A session that lives in another process: read from the store, driven through its owner's socket.

When the owner takes no commands, or does not answer, the session can still be read and followed;
whatever would change it raises `Owned`, with the sentence that says who has it.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Literal, TypeVar

import anyio
import msgspec

from weft.actors import Supervisor
from weft.errors import (
    NoPendingRequest,
    Owned,
    OwnerLost,
    SessionNotFound,
    SessionStopped,
    StoreError,
    WeftError,
)
from weft.events import (
    AnswerRestarted,
    AnyFact,
    FactBase,
    NewMessage,
    PermissionResolved,
    QuestionAnswered,
    SessionStatus,
    Signal,
    Status,
    TextDelta,
    ThinkingDelta,
    ToolArgsDelta,
    UnknownFact,
    decode,
)
from weft.ids import CallUid, NodeId, RequestId, SessionId
from weft.loop import LineEntry
from weft.messages import Node, Part, Thinking
from weft.permissions import CLOSED_RULES, Mode, PermissionRule
from weft.runtime.ports.socket_client import SocketClient
from weft.runtime.ports.socket_protocol import OwnerStatus, SummaryRequest, short_path
from weft.runtime.relay.wire_codec import DraftEvent, decode_wire_event
from weft.session import (
    AbortReceipt,
    AbortTurn,
    CallRecord,
    Command,
    EventHub,
    SessionPort,
    Subscription,
    checked,
    load_beginnings,
    load_call_records,
    load_line,
    load_nodes,
    load_revisions,
    load_state,
    unspill_entries,
)
from weft.session.log.answer_in_flight import AnswersInFlight
from weft.state import QueueEntry, SessionState
from weft.store import Draft, Owner, Store
from weft.store.address import unix_path
from weft.store.liveness import is_suspended

T = TypeVar("T")

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 5.0
"""How long the owner may take to open its socket, and to answer the first time.

After that the session is only read, and a command is refused.
"""
LOOK_AGAIN_SECONDS = (0.02, 0.5)
"""How long to wait before the owner is looked for again: at first, and at most."""
READ_AGAIN_SECONDS = (0.1, 5.0)
"""The same for the log, when the store cannot be read."""

EARLY = 1_000
"""Conditions that may wait for the log."""


class RemotePort(SessionPort):
    """The port of a session of another process.  Without a client, only for reading."""

    def __init__(
        self, state: SessionState, store: Store, owner: Owned, supervisor: Supervisor
    ) -> None:
        self.session_id = state.session_id
        self._state = state
        self._store = store
        self._owner = owner
        self._supervisor = supervisor
        self._client: SocketClient | None = None
        self._tried = anyio.Event()
        """The owner was looked for once; whether it was found says `_client`."""
        self._found = anyio.Event()
        """It takes our commands, or is gone for good."""
        self._is_silent = False
        """The owner has a socket, and did not answer."""
        self._is_other_version = False
        """It answered in the words of another version of Weft."""
        self._answers = AnswersInFlight()
        """As far as they were heard."""
        self._events = EventHub(
            state.session_id,
            store,
            applied=lambda: self._state.seq,
            drafts=lambda: self._answers.drafts,
        )
        self._condition: OwnerStatus | None = None
        """What the owner sent last; None while it takes no commands."""
        self._restrictions: tuple[PermissionRule, ...] | None = None
        """As the owner sent them last; unlike the status they wait for nothing in the log."""
        self._early: deque[tuple[int, Callable[[], None]]] = deque(maxlen=EARLY)
        """What the socket brought before the log was read that far, oldest first.

        The oldest is dropped when there is too much.
        """
        self._incomplete: NodeId | None = None
        """The last message whose text is not known whole; pieces of any other one are late."""
        self._known_owner: Owner | None = None
        self._ended = anyio.Event()

    @property
    def state(self) -> SessionState:
        return self._state

    @property
    def status(self) -> Status:
        if self._condition is not None:
            return self._condition.status
        return "thinking" if self._state.turn.open is not None else "idle"

    @property
    def error(self) -> str:
        return self._condition.error if self._condition is not None else ""

    @property
    def drafts(self) -> tuple[Draft, ...]:
        return self._answers.drafts

    @property
    def permission_mode(self) -> Mode:
        if self._condition is not None:
            return self._condition.permission_mode
        # What was set in the owner's process is unknown: this much holds in any process.
        mode = self._state.settings.permission_mode
        return "default" if mode in ("auto", "bypass") else mode

    @property
    def restrictions(self) -> tuple[PermissionRule, ...]:
        # An owner that takes no commands cannot say what was denied there; then nothing is allowed.
        return CLOSED_RULES if self._restrictions is None else self._restrictions

    @property
    def lives_here(self) -> bool:
        return False

    @property
    def is_open(self) -> bool:
        return not self._ended.is_set()

    # -- life

    async def start(self) -> None:
        """Follow the log, and the owner's live events where it takes commands."""
        self._supervisor.start(self._follow, f"follow {self.session_id}")
        self._supervisor.start(self._find_owner, f"owner of {self.session_id}")
        await self._tried.wait()

    async def _find_owner(self) -> None:
        """Look for the way to the owner until there is one, or the owner is gone.

        A command line opens its socket a moment after it has taken the session, a suspended process
        answers when it is woken up, and one that closes gives the session back.
        """
        seconds, most = LOOK_AGAIN_SECONDS
        holder = ""
        try:
            while self.is_open:
                owner = await self._holder()
                holder = holder or (owner.process_id if owner is not None else "")
                if owner is None or owner.process_id != holder:
                    return
                # One that closes gives the session back soon: to ask it would only hold it up.
                is_there = bool(owner.address) and owner.accepting
                if is_there and await self._drive_through(owner.address):
                    return
                self._tried.set()
                await anyio.sleep(seconds)
                seconds = min(2 * seconds, most)
        finally:
            self._end()
            self._tried.set()

    async def _holder(self) -> Owner | None:
        """The process that has the session; None when it is free."""
        try:
            lease = await self._store.lease_of(self.session_id)
        except StoreError:
            logger.warning("the owner of %s could not be looked up", self.session_id, exc_info=True)
            return self._known_owner
        self._known_owner = lease.owner if lease is not None else None
        return self._known_owner

    async def _drive_through(self, address: str) -> bool:
        """Drive the session through this address until the owner is gone; False when it cannot be
        had so.
        """
        client = await self._connect(address)
        if client is None:
            return False
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(client.read)
                if await self._join(client):
                    self._client, self._is_silent = client, False
                    self._tried.set()
                    self._found.set()
                    group.start_soon(self._hang_up_on_silence, client)
                    await client.lost.wait()
                await client.aclose()
                group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await client.aclose()
        return self._client is not None

    async def _join(self, client: SocketClient) -> bool:
        """Have the owner send its events; False when it does not."""
        try:
            with anyio.fail_after(PATIENCE_SECONDS):
                await client.follow(self.session_id)
        # An owner that is stopped (a debugger, SIGSTOP) takes connections through the kernel and
        # never answers.
        except TimeoutError:
            self._is_silent = True
            return False
        # One that closes has let the session go already, and soon its lease.
        except WeftError:
            self._is_other_version = client.is_other_version
            return False
        return True

    async def _hang_up_on_silence(self, client: SocketClient) -> None:
        with suppress(OwnerLost):
            await client.keep_asking(self.session_id)
            await client.aclose()

    async def _connect(self, address: str) -> SocketClient | None:
        socket = unix_path(address)
        if not socket:
            return None  # of another machine: read here, and driven there
        try:
            with anyio.fail_after(PATIENCE_SECONDS):
                with short_path(socket) as path:
                    stream = await anyio.connect_unix(path)
                    return SocketClient(stream, self._take_event, self._take_condition)
        except (OSError, TimeoutError):
            return None

    async def close(self, why: str, *, suspends: bool = False) -> None:
        """Hang up; the session lives on where it is."""
        self._end()
        if self._client is not None:
            await self._client.aclose()

    def _end(self) -> None:
        self._ended.set()
        self._found.set()
        self._events.close()

    async def ended(self) -> str:
        await self._ended.wait()
        return "the process that owned it is gone"

    # -- the contract

    async def call(self, command: Command[T]) -> T:
        """Have the owner carry a command out.

        Raises:
            OwnerLost: there is no owner any more; the port has ended.
            Owned: the owner takes no commands, or does not answer.
        """
        return await self._exchanged(lambda client: client.send(self.session_id, checked(command)))

    async def summarize(self, wanted: SummaryRequest) -> tuple[str, str]:
        """Have the owner make a summary, with its own model and on its own record: what a guest
        says that it cost would have to be believed.

        Raises:
            OwnerLost, Owned: as `call`.
        """
        return await self._exchanged(lambda client: client.summarize(self.session_id, wanted))

    async def _exchanged(self, ask: Callable[[SocketClient], Awaitable[T]]) -> T:
        client = await self._way()
        try:
            answer = await ask(client)
        except (SessionStopped, SessionNotFound) as error:
            # It is closing: when that is done, it gives the session back.
            await self._ended.wait()
            raise OwnerLost(str(error)) from error
        except OwnerLost:
            await self._ended.wait()
            raise
        # The owner has answered, so that the facts are in the store; the follower may not have read
        # them yet.
        await self._catch_up()
        return answer

    async def _way(self) -> SocketClient:
        """The connection to the owner; waits for a while until there is one."""
        with anyio.move_on_after(PATIENCE_SECONDS):
            await self._found.wait()
        if not self.is_open:
            raise OwnerLost("the process that owned the session is gone")
        if self._client is None:
            raise self._refusal()
        return self._client

    def _refusal(self) -> Owned:
        by = self._owner
        holder = self._known_owner or by
        # One that was suspended before it opened its socket was never asked, and so never silent.
        here = holder.host == os.uname().nodename
        return Owned(
            by.stream,
            pid=holder.pid,
            host=holder.host,
            address=holder.address,
            since=by.since,
            silent=self._is_silent or (here and is_suspended(holder.pid)),
            is_other_version=self._is_other_version,
        )

    async def resolution(self, request_id: RequestId) -> PermissionResolved | QuestionAnswered:
        # One that is answered already is somewhere in the log; few are asked for so late.
        is_open = request_id in self._state.turn.requests
        after, live = (self._state.seq, True) if is_open else (0, False)
        async with self.subscribe(after=after, live="status" if live else False) as events:
            async for event in events:
                match event:
                    case PermissionResolved() | QuestionAnswered():
                        if event.request_id == request_id:
                            return event
                    case _:
                        pass
        if is_open:
            raise OwnerLost("the process that owned the session is gone")
        raise NoPendingRequest(request_id)

    async def abort(self, command: AbortTurn) -> AbortReceipt:
        turn = self._state.turn.open
        if turn is not None and command.turn_id is None:
            # The one that is seen here: when the owner gets it, another's may have begun.
            command = msgspec.structs.replace(command, turn_id=turn.turn_id)
        return await self.call(command)

    async def line(self, tip: NodeId | None = None) -> list[LineEntry]:
        await self._catch_up()
        tree = self._state.tree
        return await load_line(tree, tip or tree.head, self._store)

    async def nodes(self, nodes: Sequence[NodeId]) -> list[LineEntry]:
        return await load_nodes(self._state.tree, nodes, self._store)

    async def call_records(self, nodes: Sequence[NodeId]) -> dict[CallUid, CallRecord]:
        return await load_call_records(self._state.tree, nodes, self._store)

    async def beginnings(self, nodes: Sequence[NodeId]) -> list[LineEntry]:
        return await load_beginnings(self._state.tree, nodes, self._store)

    async def in_full(self, entries: Iterable[QueueEntry]) -> tuple[QueueEntry, ...]:
        return await unspill_entries(entries, self._store)

    async def revisions(self, node: NodeId) -> list[tuple[Part, ...]]:
        return await load_revisions(self._state.tree, node, self._store)

    def subscribe(
        self,
        *,
        after: int | None = None,
        live: bool | Literal["status"] = True,
        retell: bool = False,
    ) -> Subscription:
        return self._events.subscribe(
            after=after, live=live, closed=not self.is_open, retell=retell
        )

    # -- what arrives

    async def _follow(self) -> None:
        """Read the log as it grows, also past errors of the store: those pass."""
        seconds, most = READ_AGAIN_SECONDS
        while self.is_open:
            before = self._state.seq
            try:
                await self._follow_on()
            except StoreError:
                logger.warning("the log of %s cannot be read", self.session_id, exc_info=True)
            seconds = READ_AGAIN_SECONDS[0] if self._state.seq > before else min(2 * seconds, most)
            with anyio.move_on_after(seconds):
                await self._ended.wait()

    async def _follow_on(self) -> None:
        records = self._store.follow(self.session_id, after=self._state.seq)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._cancel_at_end, group.cancel_scope)
                async for record in records:
                    self._take_record(record.body)
        # The group wraps what was raised in it; the store raises one error at a time.
        except* StoreError as errors:
            raise errors.exceptions[0] from None
        finally:
            await records.aclose()

    async def _cancel_at_end(self, scope: anyio.CancelScope) -> None:
        await self._ended.wait()
        scope.cancel()

    def _take_event(self, body: bytes) -> None:
        """What the owner sends: a fact, a signal, or all of an answer in flight."""
        event = decode_wire_event(body)
        if isinstance(event, DraftEvent):
            self._take_draft(event)
        elif isinstance(event, FactBase | UnknownFact):
            # One that is further on than the log was read here comes from there, with those before.
            self._take_fact(event, len(body))
        else:
            self._take_signal(event, len(body))

    def _take_record(self, body: bytes) -> None:
        self._take_fact(decode(body), len(body))

    def _take_fact(self, fact: AnyFact, weight: int) -> None:
        # The follower, `_catch_up` and the socket bring the same facts; each counts once.
        if fact.seq == self._state.seq + 1:
            self._state.apply(fact)
            if isinstance(fact, NewMessage) and fact.node.role == "assistant":
                self._complete_text(fact, fact.node)
            self._answers.take_fact(fact)
            self._events.publish(fact, weight)
            while self._early and self._early[0][0] <= self._state.seq:
                self._early.popleft()[1]()

    def _complete_text(self, fact: NewMessage, node: Node) -> None:
        """Hand out what is still missing of an answer's reasoning and text, before its message.

        The log may be faster than the socket.  A reader that prints text as it comes has printed
        the whole answer when it sees the message, and gets none of it afterwards.
        """
        known = self._answers.get(node.id)
        heard, thought = ("", "") if known is None else (known.text, known.thinking)
        whole = "".join(part.text for part in node.parts if isinstance(part, Thinking))
        # The text of a large message is not in its fact, and then the socket's pieces have to do.
        if not node.text:
            self._incomplete = node.id
        elif not (node.text.startswith(heard) and whole.startswith(thought)):
            # The answer was begun anew, and that was not heard yet.
            self._missed(AnswerRestarted(node_id=node.id), fact)
            heard = thought = ""
        if whole.startswith(thought) and (rest := whole[len(thought) :]):
            self._missed(ThinkingDelta(node_id=node.id, offset=len(thought), text=rest), fact)
        if node.text and (rest := node.text[len(heard) :]):
            self._missed(TextDelta(node_id=node.id, offset=len(heard), text=rest), fact)

    def _missed(self, signal: Signal, fact: NewMessage) -> None:
        """Hand out a signal that the log tells of before the socket does."""
        signal = msgspec.structs.replace(
            signal, session_id=self.session_id, after_seq=fact.seq - 1, at=fact.at
        )
        self._events.publish_signal(signal, signal.weight)

    async def _catch_up(self) -> None:
        """Read what has been committed since, so that a reader sees its own writes."""
        for record in await self._store.read(self.session_id, after=self._state.seq):
            self._take_record(record.body)

    def _take_condition(self, condition: OwnerStatus) -> None:
        self._restrictions = condition.restrictions
        self._when_read(condition.status, condition.seq, lambda: self._set_condition(condition))

    def _set_condition(self, condition: OwnerStatus) -> None:
        self._condition = condition

    def _take_status(self, signal: SessionStatus) -> None:
        if self._condition is not None:
            self._condition = msgspec.structs.replace(self._condition, status=signal.status)
        self._events.publish_signal(signal, 0)

    def _when_read(self, status: Status, seq: int, show: Callable[[], None]) -> None:
        """Show at once that the session works, and that it stands still when the log was read up to
        the fact before that.

        A caller that waits for a turn would otherwise see the session idle before it sees how the
        turn ended.
        """
        is_early = status in ("idle", "interrupted", "error") and seq > self._state.seq
        # While one waits, all wait: status must not overtake status.
        if self._early or is_early:
            self._early.append((seq, show))
        else:
            show()

    def _take_signal(self, signal: Signal, weight: int) -> None:
        if isinstance(signal, SessionStatus):
            self._when_read(signal.status, signal.after_seq, lambda: self._take_status(signal))
            return
        if self._is_late(signal):
            return
        if not isinstance(signal, TextDelta | ThinkingDelta | ToolArgsDelta):
            self._answers.take(signal)
            self._events.publish_signal(signal, weight)
        elif signal.node_id in self._state.tree.nodes:
            self._events.publish_signal(signal, weight)
        else:
            self._show(self._answers.news_of(signal))

    def _show(self, signals: Iterable[Signal]) -> None:
        for signal in signals:
            self._answers.take(signal)
            self._events.publish_signal(signal, signal.weight)

    def _take_draft(self, event: DraftEvent) -> None:
        """What had come of an answer before the owner sent its events to us, or after a loss."""
        # The log may have been faster, and has it whole then.
        if event.node_id in self._state.tree.nodes:
            return
        for signal in event.pieces():
            # Shown, too: who reads here already has heard nothing of it, or only some.
            assert isinstance(signal, TextDelta | ThinkingDelta | ToolArgsDelta)
            self._show(self._answers.news_of(signal))

    def _is_late(self, signal: Signal) -> bool:
        """True for a piece of an answer that has arrived whole, and for its new beginning."""
        if not isinstance(signal, TextDelta | ThinkingDelta | ToolArgsDelta | AnswerRestarted):
            return False
        is_text = isinstance(signal, TextDelta | AnswerRestarted)
        # The log may be several messages ahead of the socket.
        return signal.node_id in self._state.tree.nodes and not (
            is_text and signal.node_id == self._incomplete
        )


async def open_remote(
    session_id: SessionId, owner: Owned, store: Store, supervisor: Supervisor
) -> RemotePort:
    """Reach the process that owns a session; where that cannot be, read it."""
    port = RemotePort(await load_state(session_id, store), store, owner, supervisor)
    await port.start()
    return port
