"""The command socket: a unix socket by which other processes of the same user drive our sessions.

`socket_protocol` says what goes over it.  The folder is 0700, so only the user's own processes can
connect; but they may be of another version, broken, or suspended.  So whatever a client does ends
at most its own connection, and what it says of itself counts only as far as we know it from here.
"""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec
from anyio.abc import ByteStream, SocketAttribute, SocketListener, TaskGroup

from weft.errors import SessionError, UsageError, WeftError
from weft.ids import SessionId
from weft.runtime.ports.local import LocalPort
from weft.runtime.ports.socket_protocol import (
    GREETING,
    OF_VERSION_1,
    STALL_SECONDS,
    UNREADABLE,
    FrameWriter,
    OwnerStatus,
    SocketReply,
    SocketRequest,
    SummaryRequest,
    read_frames,
    short_path,
)
from weft.runtime.relay.session_relay import PortEvents, RelayHub
from weft.runtime.relay.wire_codec import error_body
from weft.session import (
    UNNAMED_CLIENT,
    AbortTurn,
    AnyCommand,
    AttachClient,
    BeginCall,
    ChildCommand,
    Command,
    DetachClient,
    ForwardRequest,
    RecordUsage,
    ReportChild,
    Reserve,
    SendPrompt,
    SessionPort,
    Settle,
    StopSession,
)

logger = logging.getLogger(__name__)

HANG_UP_SECONDS = 1.0
"""How long we wait for others to hang up before we do."""
CALLS_AT_ONCE = 256
"""Calls of one client that may be under way; with one more it is hung up on."""
OTHER_VERSION: Final = (
    "the process that has this session runs another version of Weft; end one of the two"
)
"""What a client is told that does not begin as ours do."""
_ACCEPT_AGAIN_SECONDS = 1.0
"""How long to wait when no connection can be taken: the process has no descriptor left."""

_CREDENTIALS: Final = struct.Struct("3i")
"""What the kernel hands over of a peer: process, user and group."""

INTERNAL: Final[tuple[type[Command[Any]], ...]] = (BeginCall, RecordUsage, StopSession)
"""Commands of the session's own process: by the first two a client could write down any cost."""

FROM_CHILDREN: Final = (ReportChild, ForwardRequest, Reserve, Settle)
"""Commands of sessions that work for one of ours, from the process that has them and no other."""

FindPort = Callable[[SessionId], Awaitable[LocalPort]]
OwnsSession = Callable[[int, SessionId], Awaitable[bool]]
"""Whether the process of this id has a session, by the store's own records."""
Summarize = Callable[[SessionId, SummaryRequest], Awaitable[tuple[str, str]]]


class _RequestId(msgspec.Struct):
    """As much of a request as is needed to answer it."""

    id: int


@cache
def _calls() -> msgspec.json.Decoder[SocketRequest[AnyCommand]]:
    # Made when the first call comes: it knows every command, and takes milliseconds.
    return msgspec.json.Decoder(SocketRequest[AnyCommand])


class CommandSocket:
    """Listens, and hands commands to our sessions."""

    def __init__(
        self,
        find: FindPort,
        *,
        summarize: Summarize | None = None,
        owns: OwnsSession | None = None,
        stall_seconds: float = STALL_SECONDS,
    ) -> None:
        """`summarize` makes the summaries that clients ask for, `owns` vouches for those that speak
        for a session.  `stall_seconds`: how long a client may leave a frame unread.
        """
        self._find = find
        self._owns = owns
        self._summarize = summarize
        self._stall_seconds = stall_seconds
        self._listener: SocketListener | None = None
        self._path = ""
        self._is_closed = False
        self._relays = RelayHub()
        self._clients: set[ClientConnection] = set()
        self._hung_up = anyio.Event()

    async def open(self, folder: Path, name: str) -> str:
        """Start listening; returns the path, or "" when no socket can be had there."""
        _make_private(folder)
        path = folder / f"{name}.sock"
        try:
            with short_path(str(path)) as short:
                self._listener = await anyio.create_unix_listener(short, mode=0o600)
        except OSError as error:
            logger.warning("no socket can be had here: %s", error)
            return ""
        self._path = str(path)
        return self._path

    async def serve(self) -> None:
        """Take connections until closed."""
        async with anyio.create_task_group() as group:
            self._relays.open(group)
            await self._accept()
            self._relays.close()

    async def _accept(self) -> None:
        while self._listener is not None and not self._is_closed:
            try:
                await self._listener.serve(self._connection)
            except* anyio.ClosedResourceError:
                self._is_closed = True  # by `aclose`, not by the system
            except* OSError as error:
                # Too many open files, as a rule: it passes, and the socket must outlive it.
                logger.warning("no connection can be taken: %s", error.exceptions[0])
                await anyio.sleep(_ACCEPT_AGAIN_SECONDS)

    async def aclose(self) -> None:
        """Stop listening and remove the socket.

        Our sessions have ended before, so that clients hang up.
        """
        if self._listener is not None:
            with anyio.move_on_after(HANG_UP_SECONDS):
                while self._clients:
                    await self._hung_up.wait()
            await self._listener.aclose()
            _remove(self._path)

    async def _connection(self, stream: ByteStream) -> None:
        client = ClientConnection(
            stream, self._find, self._relays, self._summarize, self._owns, self._stall_seconds
        )
        self._clients.add(client)
        try:
            await client.serve()
        finally:
            self._clients.discard(client)
            # Set and replaced: each hang-up wakes `aclose`, which looks whether it was the last.
            self._hung_up.set()
            self._hung_up = anyio.Event()


class ClientConnection:
    """One client: its calls are carried out side by side, its answers written one by one."""

    def __init__(
        self,
        stream: ByteStream,
        find: FindPort,
        relays: RelayHub,
        summarize: Summarize | None,
        owns: OwnsSession | None,
        stall_seconds: float,
    ) -> None:
        self._relays = relays
        self._owns = owns
        self._stream = stream
        self._find = find
        self._summarize = summarize
        self._writer = FrameWriter(stream, stall_seconds)
        self._under_way = 0
        self._attached: set[tuple[SessionId, str]] = set()
        """The names under which this client has attached, by session."""

    async def serve(self) -> None:
        """Serve until the client hangs up, or must be hung up on; nothing of it gets out."""
        try:
            async with self._stream:
                try:
                    await self._talk()
                finally:
                    await self._detach_all()
        except* (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        except* TimeoutError:
            logger.warning("a client of the command socket does not read; it was hung up on")
        except* Exception:
            # One of the few places that catch everything: the listener and the other clients live
            # in the same task group, which an error would end.
            logger.exception("a client of the command socket was hung up on")

    async def _talk(self) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._writer.run)
            await read_frames(self._stream, lambda body: self._take(body, group), self._greet)
            # The client is gone, and with it the reader of all answers. What the mailbox has taken
            # is carried out all the same.
            group.cancel_scope.cancel()

    def _greet(self, line: bytes) -> bool:
        """Whether the first line of a client is of our version; another one is told so."""
        if line + b"\n" == GREETING:
            return True
        if not line.startswith(OF_VERSION_1):
            logger.warning("a client of the command socket sent what is no greeting")
            return False
        logger.warning("a client of the command socket is of another version of Weft")
        refusal = {"id": _id_of(line), "error": OTHER_VERSION, "kind": "UsageError"}
        # Straight into the socket, which has nothing of ours in it yet: the reader hangs up when
        # this returns, and the client reads it all the same.
        with suppress(OSError):
            raw = self._stream.extra(SocketAttribute.raw_socket)
            raw.send(msgspec.json.encode(refusal) + b"\n", socket.MSG_DONTWAIT)
        return False

    def _take(self, body: bytes, group: TaskGroup) -> bool:
        """Begin to carry out what a frame asks for; False when the client is to be hung up on."""
        if self._under_way >= CALLS_AT_ONCE:
            logger.warning("a client of the command socket asks for too much at once")
            return False
        try:
            call = _calls().decode(body)
        except msgspec.ValidationError as error:
            # Whole JSON, but a command that another version knows: that call alone fails.
            failed = _refused(_id_of(body), UsageError(f"not a call: {error}"))
            self._under_way += 1
            group.start_soon(self._refuse, failed)
            return True
        except UNREADABLE as error:
            # Not even JSON: what follows cannot be trusted to begin where it seems to.
            logger.warning("a client of the command socket sent what is no call: %s", error)
            return False
        # Each call in a task of its own: an abort must not wait behind a call that takes its time.
        # The actor's mailbox keeps the order of what it is given.
        self._under_way += 1
        group.start_soon(self._carry, call)
        return True

    async def _refuse(self, failed: SocketReply) -> None:
        # Counted like a call: a client that reads no answers could have any number of them made.
        try:
            await self._send(failed)
        finally:
            self._under_way -= 1

    async def _carry(self, call: SocketRequest[AnyCommand]) -> None:
        try:
            await (self._follow(call) if call.follow else self._answer(call))
        finally:
            self._under_way -= 1

    async def _answer(self, call: SocketRequest[AnyCommand]) -> None:
        try:
            port = await self._find(call.session)
            answer = await self._carry_out(call, port)
        except WeftError as error:
            reply = _refused(call.id, error)
        except Exception:
            logger.exception("a command of another process failed")
            why = SessionError("the command failed; the owner's log says why")
            reply = _refused(call.id, why)
        else:
            reply = SocketReply(id=call.id, answer=answer, owner=_condition(port))
        await self._send(reply)

    async def _carry_out(self, call: SocketRequest[AnyCommand], port: LocalPort) -> Any:
        if call.summary is not None and self._summarize is not None:
            return await self._summarize(port.session_id, call.summary)
        if call.call is None:
            raise UsageError("a call needs a command")
        if isinstance(call.call, FROM_CHILDREN):
            return await port.call(await self._vouched(call.call))
        command = self._stamped(call.call, port)
        # An abort has a way of its own past the mailbox (`SessionPort.abort`), also from here.
        if isinstance(command, AbortTurn):
            return await port.abort(command)
        if isinstance(command, AttachClient):
            # Before it is carried out: a client that hangs up meanwhile is detached all the same.
            self._attached.add((call.session, command.client))
        answer = await port.call(command)
        if isinstance(command, DetachClient):
            self._attached.discard((call.session, command.client))
        return answer

    async def _vouched(self, command: ChildCommand) -> ChildCommand:
        """A command of a session that works for ours, if the client is the process that has it.

        The kernel says which process the client is, and the store which one has the session: what
        the client says of itself counts for nothing.

        Raises:
            UsageError: it is not.
        """
        pid = _peer_of(self._stream)
        if self._owns is None or not pid or not await self._owns(pid, command.child):
            kind = type(command).__name__
            raise UsageError(f"{kind} is only for the process that has {command.child!r}")
        return msgspec.structs.replace(command, client="", input_id=None)

    def _stamped(self, command: AnyCommand, port: LocalPort) -> AnyCommand:
        """The command as it may come from outside, under the name that this client has here.

        Raises:
            UsageError: it is none for others, or its name is another client's.
        """
        if isinstance(command, INTERNAL):
            kind = type(command).__name__
            raise UsageError(f"{kind} is only for the process that has the session; ask there")
        if isinstance(command, SendPrompt) and command.context:
            # What hooks add is added here, by the hooks of this process.
            command = msgspec.structs.replace(command, context=())
        name = command.client
        if (port.session_id, name) in self._attached:
            return command
        if name in port.actor.clients:
            raise UsageError(f"the name {name!r} is another client's; attach under one of your own")
        if isinstance(command, AttachClient):
            # The log has other names for answers that no client gave (`weft`, `abort`).
            if not name.startswith("cli_"):
                raise UsageError(f"{name!r} is no name of a client; those begin with 'cli_'")
            return command
        # Never empty: to the hooks of an agent that would be the session that it works for.
        return msgspec.structs.replace(command, client=UNNAMED_CLIENT)

    async def _follow(self, call: SocketRequest[AnyCommand]) -> None:
        try:
            port = await self._find(call.follow)
            relay = await self._relays.relay_of(PortEvents(port))
        except WeftError as error:
            await self._send(_refused(call.id, error))
            return
        reader, _, drafts = relay.join(lambda: None)
        try:
            # In one step with the join: what comes later is told as a change.
            sent = _condition(port)
            await self._send(SocketReply(id=call.id, answer=sent.status, owner=sent))
            while True:
                if drafts.events:
                    await self._writer.put(drafts.frame)
                while (tick := await reader.next()) is not None:
                    if _differs(now := _condition(port), sent):
                        sent = now
                        await self._send(SocketReply(s=call.follow, owner=now))
                    await self._writer.put(tick.frame)
                if not reader.is_lost:
                    break
                # It was too slow. The facts are in the log; the answers in flight are told anew.
                slow = reader
                reader, _, drafts = relay.join(lambda: None)
                relay.leave(slow)
        finally:
            relay.leave(reader)
        await self._send(SocketReply(s=call.follow, closed="stopped"))

    async def _send(self, reply: SocketReply) -> None:
        await self._writer.put(msgspec.json.encode(reply))

    async def _detach_all(self) -> None:
        """Detach what this client had attached: one that has hung up neither watches nor drives."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(HANG_UP_SECONDS):
            for session_id, client in self._attached:
                try:
                    await (await self._find(session_id)).call(DetachClient(client=client))
                except WeftError:
                    continue  # the session has stopped, and its clients went with it


def _peer_of(stream: ByteStream) -> int:
    """The process at the other end of a connection, by the kernel's word; 0 where it has none."""
    try:
        raw = stream.extra(SocketAttribute.raw_socket)
        credentials = raw.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except (OSError, AttributeError, anyio.TypedAttributeLookupError):
        return 0
    pid, _, _ = _CREDENTIALS.unpack(credentials)
    return int(pid)


def _id_of(body: bytes) -> int:
    """The number of a request that is no call; 0 when it has none."""
    try:
        return msgspec.json.decode(body, type=_RequestId).id
    except UNREADABLE:
        return 0


def _condition(port: SessionPort) -> OwnerStatus:
    return OwnerStatus(
        port.status, port.permission_mode, port.error, port.state.seq, port.restrictions
    )


def _differs(one: OwnerStatus, other: OwnerStatus) -> bool:
    # The seq grows with every fact; a frame for each would tell the client nothing that its own
    # reading of the log does not.
    return msgspec.structs.replace(one, seq=0) != msgspec.structs.replace(other, seq=0)


def _refused(number: int, error: WeftError) -> SocketReply:
    return SocketReply(id=number, error=error_body(error))


def _make_private(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _remove(path: str) -> None:
    Path(path).unlink(missing_ok=True)
