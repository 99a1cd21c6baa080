"""What goes over the command socket: one JSON object a line, and the one writer of a connection.

A call is `{"id", "session", "call": <command>}` and is answered by `{"id", "answer"}` or `{"id",
"error"}`; with `{"id", "session", "watch": true}` live events follow as `{"signal"}` lines, and
`{"condition"}` whenever status, mode or error has changed.  `{"id", "session", "summary"}` has the
owner make a summary, and is answered by its text and its place.  Durable events are not sent: the
other side reads them from the store.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

import anyio
import msgspec
from anyio.abc import ByteStream, SocketAttribute
from anyio.streams.buffered import BufferedByteReceiveStream

from weft.events import Status
from weft.ids import NodeId, SessionId
from weft.permissions import Mode, PermissionRule
from weft.session import Command
from weft.store import Draft

CommandT = TypeVar("CommandT", bound=Command[Any])

LINE_LIMIT = 64 * 1024 * 1024
"""The longest line; a larger one ends the connection."""
STALL_SECONDS = 30.0
"""How long the other side may leave a line unread before it is hung up on."""
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding a foreign line raises: msgspec reports neither bad UTF-8 nor deep nesting as its
own error.
"""
_LINES_WAITING = 64
"""Lines that may wait for the writer; the next sender waits itself."""
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


class SummaryRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A summary that the owner is asked to make: of the session, or of the line that ends at a
    node.
    """

    node: NodeId | None = None
    input_id: str | None = None


class SocketRequest(msgspec.Struct, Generic[CommandT], kw_only=True, omit_defaults=True):
    """One line to the owner: a command that the sender knows, or for the owner any of them.

    One with none of the three only asks whether the owner is still there.
    """

    id: int
    session: SessionId
    call: CommandT | None = None
    watch: bool = False
    summary: SummaryRequest | None = None


class OwnerStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """What only the owner knows of a session, besides its live events."""

    status: Status
    permission_mode: Mode
    error: str = ""
    seq: int = 0
    """The last fact before it."""
    restrictions: tuple[PermissionRule, ...] = ()
    """What was denied there, or is to be asked about."""


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
    drafts: tuple[Draft, ...] = ()
    """With the first answer to one who watches: what has come of the answers in flight.  The
    signals after it go on from there."""


class LineWriter:
    """The one writer of a connection: lines of many tasks, one after the other."""

    # Tasks do not write to the stream themselves: two at once are refused by anyio, and one that
    # is cancelled in the middle of a line would leave half of it on the wire.
    def __init__(self, stream: ByteStream, stall_seconds: float = STALL_SECONDS) -> None:
        self._stream = stream
        self._stall_seconds = stall_seconds
        self._lines: deque[bytes] = deque()
        self._room = anyio.Semaphore(_LINES_WAITING)
        self._arrived = anyio.Event()
        self._has_ended = False

    async def put(self, line: bytes) -> None:
        """Have a line sent; waits while too many wait.

        Raises:
            ClosedResourceError: the connection has ended.
        """
        await self._room.acquire()
        if self._has_ended:
            self._room.release()
            raise anyio.ClosedResourceError
        self._lines.append(line)
        self._arrived.set()

    async def run(self) -> None:
        """Write until cancelled.

        Raises:
            TimeoutError: the other side does not read.
        """
        try:
            while True:
                while not self._lines:
                    self._arrived = anyio.Event()
                    await self._arrived.wait()
                with anyio.fail_after(self._stall_seconds):
                    await self._stream.send(self._lines.popleft() + b"\n")
                self._room.release()
        finally:
            # Senders that wait for room wake one another, and find that no one writes.
            self._has_ended = True
            self._room.release()


async def read_lines(stream: ByteStream, take: Callable[[bytes], bool]) -> None:
    """Hand each line to `take` until it says no, or the connection ends.

    A cancel shuts the connection down, and the reader ends by itself.
    """
    # A reader that is cancelled in the very instant in which something arrives leaves a callback of
    # anyio's behind, which fails on its cancelled future. So it is shielded, and woken by the end
    # of the stream.
    lines = BufferedByteReceiveStream(stream)
    async with anyio.create_task_group() as group:
        group.start_soon(_shut_down_at_the_end, stream)
        try:
            with anyio.CancelScope(shield=True):
                while take(await lines.receive_until(b"\n", LINE_LIMIT)):
                    pass
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.DelimiterNotFound):
            pass
        finally:
            group.cancel_scope.cancel()


def shut_down(stream: ByteStream) -> None:
    """Hang up: both sides read the end of the stream."""
    with suppress(OSError, anyio.ClosedResourceError):
        stream.extra(SocketAttribute.raw_socket).shutdown(socket.SHUT_RDWR)


async def _shut_down_at_the_end(stream: ByteStream) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        shut_down(stream)
