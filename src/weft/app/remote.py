"""A session that lives in another process: read from the store, driven through its owner's socket."""

from __future__ import annotations

from typing import Any, Literal

import anyio
import msgspec

from weft.actors import Hub, Inbox, Supervisor
from weft.app.port import Port
from weft.app.socket import OwnerLost, SocketClient
from weft.errors import Owned, StoreUnavailable
from weft.events import Event, SessionStatus, Signal, Status, TextDelta, decode
from weft.ids import NodeId, SessionId
from weft.loop import Entry
from weft.permissions import Mode
from weft.session import Abort, AbortReceipt, Command, Subscription, load_line, load_state
from weft.state import SessionState
from weft.store import Store

_signals: msgspec.json.Decoder[Signal] = msgspec.json.Decoder(Signal)


class RemotePort(Port):
    """The way to a session of another process."""

    def __init__(
        self, state: SessionState, store: Store, client: SocketClient, supervisor: Supervisor
    ) -> None:
        self.session_id = state.session_id
        self._state = state
        self._store = store
        self._client = client
        self._supervisor = supervisor
        self._facts: Hub[Event] = Hub()
        self._signals: Hub[Event] = Hub()
        self._status: Status = "idle"
        self._draft: tuple[NodeId, list[str]] | None = None
        self._closed = False
        client.on_signal = self._take_signal

    @property
    def state(self) -> SessionState:
        return self._state

    @property
    def status(self) -> Status:
        return self._status

    @property
    def error(self) -> str:
        return ""

    @property
    def draft(self) -> tuple[NodeId, str] | None:
        return None if self._draft is None else (self._draft[0], "".join(self._draft[1]))

    @property
    def permission_mode(self) -> Mode:
        return self._state.settings.permission_mode

    @property
    def is_open(self) -> bool:
        return not self._closed

    async def start(self) -> None:
        """Follow the log and the owner's live events."""
        self._supervisor.start(self._read, f"owner of {self.session_id}")
        self._supervisor.start(self._follow, f"follow {self.session_id}")
        self._status = await self._client.send(self.session_id, None, watch=True)

    async def call(self, command: Command) -> Any:
        answer = await self._client.send(self.session_id, command)
        await self._catch_up()
        return answer

    async def abort(self, reason: str) -> AbortReceipt:
        answer = await self._client.send(self.session_id, Abort(reason=reason))
        return msgspec.convert(answer, AbortReceipt)

    async def line(self, tip: NodeId | None = None) -> list[Entry]:
        await self._catch_up()
        tree = self._state.tree
        return await load_line(tree, tip or tree.head, self._store)

    def subscribe(
        self, *, after: int | None = None, live: bool | Literal["status"] = True
    ) -> Subscription:
        inbox = self._facts.open_inbox()
        if live is True:
            self._signals.add(inbox)
        start = self._state.seq if after is None else after
        return Subscription(
            inbox,
            self._store,
            self.session_id,
            after=start,
            close=self._drop_inbox,
            live=live,
        )

    async def ended(self) -> str:
        await self._client.lost.wait()
        return "the process that owned it is gone"

    async def aclose(self) -> None:
        """Hang up."""
        self._closed = True
        await self._client.aclose()

    def _drop_inbox(self, inbox: Inbox[Event]) -> None:
        self._facts.drop(inbox)
        self._signals.drop(inbox)

    async def _read(self) -> None:
        try:
            await self._client.read()
        finally:
            self._closed = True
            self._facts.close()
            self._signals.close()

    async def _follow(self) -> None:
        records = self._store.follow(self.session_id, after=self._state.seq)
        async with anyio.create_task_group() as group:
            group.start_soon(self._end_with_owner, group.cancel_scope)
            async for record in records:
                self._take_record(record.body)
        await records.aclose()

    async def _end_with_owner(self, scope: anyio.CancelScope) -> None:
        await self._client.lost.wait()
        scope.cancel()

    def _take_record(self, body: bytes) -> None:
        fact = decode(body)
        if fact.seq == self._state.seq + 1:
            self._state.apply(fact)
            self._facts.publish(fact)

    async def _catch_up(self) -> None:
        """Read what has been committed since, so that a reader sees its own writes."""
        for record in await self._store.read(self.session_id, after=self._state.seq):
            self._take_record(record.body)

    def _take_signal(self, raw: bytes) -> None:
        signal = _signals.decode(raw)
        if isinstance(signal, SessionStatus):
            self._status = signal.status
            self._facts.publish(signal)
            return
        if isinstance(signal, TextDelta):
            if self._draft is None or self._draft[0] != signal.node_id or signal.offset == 0:
                self._draft = (signal.node_id, [])
            self._draft[1].append(signal.text)
        self._signals.publish(signal)


async def open_remote(
    session_id: SessionId, owner: Owned, store: Store, supervisor: Supervisor
) -> RemotePort:
    """Reach the process that owns a session.

    Raises:
        StoreUnavailable: it takes no commands, or does not answer; the session can only be read.
    """
    if not owner.socket:
        raise StoreUnavailable(f"{owner} (it takes no commands from other processes)")
    try:
        with anyio.fail_after(5):
            stream = await anyio.connect_unix(owner.socket)
    except (OSError, TimeoutError) as error:
        raise StoreUnavailable(f"{owner}; it does not answer ({error})") from error
    port = RemotePort(await load_state(session_id, store), store, SocketClient(stream), supervisor)
    try:
        with anyio.fail_after(5):
            await port.start()
    except (OwnerLost, TimeoutError) as error:
        await port.aclose()
        raise StoreUnavailable(f"{owner}; it does not answer") from error
    return port
