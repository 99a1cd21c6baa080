"""The command socket: a unix socket by which other processes of the same user drive our sessions.

One JSON object a line.  A call is `{"id", "session", "call": <command>}` and is answered by `{"id",
"answer"}` or `{"id", "error"}`; with `{"id", "session", "watch": true}` live events follow as
`{"signal"}` lines, and `{"condition"}` whenever status, mode or error has changed.  Durable events
are not sent: the other side reads them from the store.  The folder is 0700, so only the user's own
processes can connect.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import anyio
import msgspec
from anyio.abc import ByteStream, SocketListener, TaskGroup
from anyio.streams.buffered import BufferedByteReceiveStream

from weft import errors
from weft.errors import UsageError, WeftError
from weft.events import FactBase, Status, UnknownFact
from weft.ids import SessionId
from weft.permissions import Mode
from weft.session import AbortTurn, AnyCommand, Command, SessionPort, answer_of

T = TypeVar("T")
CommandT = TypeVar("CommandT", bound=Command[Any])

logger = logging.getLogger(__name__)

HANG_UP_SECONDS = 1.0
"""How long we wait for others to hang up before we do."""
LINE_LIMIT = 64 * 1024 * 1024
"""The longest line; a larger one ends the connection."""
_PATH_LIMIT = 100
"""A little less than what the kernel takes as the path of a socket."""


@contextmanager
def short_path(path: str) -> Iterator[str]:
    """A spelling of `path` that the kernel takes: a long one is reached through an open handle on
    its folder.
    """
    if len(os.fsencode(path)) <= _PATH_LIMIT:
        yield path
        return
    # `sun_path` has 108 bytes on Linux, and data folders below a home or a test's folder are often
    # longer. A symbolic link would do too, but would have to be removed again.
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)


class SocketRequest(msgspec.Struct, Generic[CommandT], kw_only=True, omit_defaults=True):
    """One line to the owner: a command that the sender knows, or for the owner any of them."""

    id: int
    session: SessionId
    call: CommandT | None = None
    watch: bool = False


class OwnerStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """What only the owner knows of a session, besides its live events."""

    status: Status
    permission_mode: Mode
    error: str = ""
    seq: int = 0
    """The last fact before it."""


class SocketReply(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One line from the owner."""

    id: int = 0
    answer: Any = None
    error: str = ""
    kind: str = ""
    """Class name of the error."""
    details: dict[str, Any] = {}
    """The error's attributes."""
    gone: bool = False
    """The session has stopped here; the next process that opens it may take it."""
    signal: msgspec.Raw = msgspec.Raw()
    condition: OwnerStatus | None = None
    """With the first answer to one who watches, and whenever it has changed."""


@cache
def _calls() -> msgspec.json.Decoder[SocketRequest[AnyCommand]]:
    # Made when the first call comes: it knows every command, and takes milliseconds.
    return msgspec.json.Decoder(SocketRequest[AnyCommand])


class CommandSocket:
    """Listens, and hands commands to our sessions."""

    def __init__(self, find: Callable[[SessionId], Awaitable[SessionPort]]) -> None:
        self._find = find
        self._listener: SocketListener | None = None
        self._path = ""
        self._connections = 0
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
        if self._listener is None:
            return
        try:
            await self._listener.serve(self._connection)
        except* anyio.ClosedResourceError:
            pass  # we closed it

    async def aclose(self) -> None:
        """Stop listening and remove the socket.

        Our sessions have ended before, so that clients hang up.
        """
        if self._listener is not None:
            with anyio.move_on_after(HANG_UP_SECONDS):
                while self._connections:
                    await self._hung_up.wait()
            await self._listener.aclose()
            _remove(self._path)

    async def _connection(self, stream: ByteStream) -> None:
        self._connections += 1
        try:
            await self._serve_one(stream)
        finally:
            self._connections -= 1
            # Set and replaced: each hang-up wakes `aclose`, which looks whether it was the last.
            self._hung_up.set()
            self._hung_up = anyio.Event()

    async def _serve_one(self, stream: ByteStream) -> None:
        lines = BufferedByteReceiveStream(stream)
        try:
            async with stream, anyio.create_task_group() as group:
                try:
                    while True:
                        line = await lines.receive_until(b"\n", LINE_LIMIT)
                        self._take(line, stream, group)
                except (anyio.EndOfStream, anyio.IncompleteRead, anyio.DelimiterNotFound):
                    # The client is gone, and with it the reader of all answers. What the mailbox
                    # has taken is carried out all the same.
                    group.cancel_scope.cancel()
        except* (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass

    def _take(self, line: bytes, stream: ByteStream, group: TaskGroup) -> None:
        try:
            call = _calls().decode(line)
        except msgspec.MsgspecError as error:
            group.start_soon(
                _send, stream, SocketReply(error=f"not a call: {error}", kind="UsageError")
            )
            return
        # Each call in a task of its own: an abort must not wait behind a call that takes its time.
        # The actor's mailbox keeps the order of what it is given.
        group.start_soon(self._watch if call.watch else self._answer, call, stream)

    async def _answer(self, call: SocketRequest[AnyCommand], stream: ByteStream) -> None:
        try:
            port = await self._find(call.session)
            answer = await self._carry_out(call, port)
        except WeftError as error:
            line = _failure(call, error)
        else:
            line = SocketReply(id=call.id, answer=answer, condition=_condition(port))
        await _send(stream, line)

    async def _carry_out(self, call: SocketRequest[AnyCommand], port: SessionPort) -> Any:
        if call.call is None:
            raise UsageError("a call needs a command")
        # An abort has a way of its own past the mailbox (`SessionPort.abort`), also from here.
        if isinstance(call.call, AbortTurn):
            return await port.abort(call.call)
        return await port.call(call.call)

    async def _watch(self, call: SocketRequest[AnyCommand], stream: ByteStream) -> None:
        try:
            port = await self._find(call.session)
            events = port.subscribe(live=True)
        except WeftError as error:
            await _send(stream, _failure(call, error))
            return
        async with events:
            sent = _condition(port)
            await _send(stream, SocketReply(id=call.id, answer=port.status, condition=sent))
            async for event in events:
                now = _condition(port)
                line = SocketReply(id=call.id)
                if _differs(now, sent):
                    line.condition = sent = now
                if not isinstance(event, FactBase | UnknownFact):
                    line.signal = msgspec.Raw(msgspec.json.encode(event))
                if line.condition is not None or bytes(line.signal):
                    await _send(stream, line)
        await _send(stream, SocketReply(id=call.id, gone=True))


def _condition(port: SessionPort) -> OwnerStatus:
    return OwnerStatus(port.status, port.permission_mode, port.error, port.state.seq)


def _differs(one: OwnerStatus, other: OwnerStatus) -> bool:
    # The seq grows with every fact; a line for each would tell the client nothing that its own
    # reading of the log does not.
    return msgspec.structs.replace(one, seq=0) != msgspec.structs.replace(other, seq=0)


def _failure(call: SocketRequest[AnyCommand], error: WeftError) -> SocketReply:
    # Objects stay behind: the client rebuilds the error from its class name and plain attributes.
    details = {name: value for name, value in vars(error).items() if _is_plain(value)}
    return SocketReply(id=call.id, error=str(error), kind=type(error).__name__, details=details)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _make_private(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _remove(path: str) -> None:
    Path(path).unlink(missing_ok=True)


async def _send(stream: ByteStream, line: SocketReply) -> None:
    # One write a line: lines of different tasks never mix.
    await stream.send(msgspec.json.encode(line) + b"\n")


class OwnerLost(WeftError):
    """The process that owned the session is gone."""


class SocketClient:
    """A connection to another process's `CommandSocket`."""

    def __init__(
        self,
        stream: ByteStream,
        on_signal: Callable[[bytes], None],
        on_condition: Callable[[OwnerStatus], None],
    ) -> None:
        self._stream = stream
        self._on_signal = on_signal
        self._on_condition = on_condition
        self._waiting: dict[int, tuple[anyio.Event, list[SocketReply]]] = {}
        self._next = 0
        self.lost = anyio.Event()

    async def read(self) -> None:
        """Take answers and signals until the connection ends."""
        lines = BufferedByteReceiveStream(self._stream)
        try:
            while True:
                raw = await lines.receive_until(b"\n", LINE_LIMIT)
                self._take(msgspec.json.decode(raw, type=SocketReply))
        except (
            anyio.EndOfStream,
            anyio.IncompleteRead,
            anyio.DelimiterNotFound,
            anyio.BrokenResourceError,
            anyio.ClosedResourceError,
        ):
            pass
        finally:
            self.lost.set()
            # Callers find no answer then, and raise `OwnerLost`.
            for arrived, _ in self._waiting.values():
                arrived.set()

    def _take(self, line: SocketReply) -> None:
        if line.condition is not None:
            self._on_condition(line.condition)
        if bytes(line.signal):
            self._on_signal(bytes(line.signal))
            return
        if line.gone:
            raise anyio.EndOfStream
        if line.id in self._waiting:
            arrived, answers = self._waiting[line.id]
            answers.append(line)
            arrived.set()

    async def send(self, session: SessionId, command: Command[T]) -> T:
        """Have the owner carry a command out, and wait for its answer.

        Raises:
            OwnerLost: the connection ended first; the log tells whether it was carried out.
            WeftError: whatever the owner answered with.
        """
        call = SocketRequest(id=self._new_id(), session=session, call=command)
        return answer_of(command, await self._exchange(call))

    async def watch(self, session: SessionId) -> None:
        """Have the owner send live events from now on; they come through `on_signal`.

        Raises:
            OwnerLost, WeftError: as `send`.
        """
        await self._exchange(SocketRequest(id=self._new_id(), session=session, watch=True))

    def _new_id(self) -> int:
        self._next += 1
        return self._next

    async def _exchange(self, call: SocketRequest[Any]) -> Any:
        """Send one line and wait for the one that answers it, as plain data."""
        arrived, answers = anyio.Event(), list[SocketReply]()
        self._waiting[call.id] = (arrived, answers)
        try:
            try:
                await self._stream.send(msgspec.json.encode(call) + b"\n")
            except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                raise OwnerLost("the process that owned the session is gone") from error
            await arrived.wait()
        finally:
            self._waiting.pop(call.id, None)
        if not answers:
            raise OwnerLost("the process that owned the session is gone")
        return _unwrapped(answers[0])

    async def aclose(self) -> None:
        """Hang up."""
        await self._stream.aclose()


def _unwrapped(line: SocketReply) -> Any:
    if not line.error:
        return line.answer
    kind = getattr(errors, line.kind, UsageError)
    # Without its constructor, which takes other arguments than the finished sentence that was sent.
    error = kind.__new__(kind, line.error)
    error.args = (line.error,)
    error.__dict__.update(line.details)
    raise error
