"""What goes over the command socket: frames of JSON, each behind its length, and the one writer of
a connection.

Up: `{"id", "session", "call": command}`, answered by `{"id", "answer"}` or `{"id", "error"}`;
`{"id", "follow": session}` has the session's events sent, as the frames that every wire has
(`runtime/relay/wire_codec.py`), and beside them `{"s", "owner"}` whenever status, mode or error has
changed.  `{"id", "session", "summary"}` has the owner make a summary, and is answered by its text
and its place.

A client begins with a line of JSON, `GREETING`.  A Weft from before there were frames spoke JSON
lines: each side knows the other by its first byte, which in a frame is never a brace.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Generic, TypeVar

import anyio
import msgspec
from anyio.abc import ByteStream, SocketAttribute
from anyio.streams.buffered import BufferedByteReceiveStream

from weft.events import Status
from weft.ids import NodeId, SessionId
from weft.permissions import Mode, PermissionRule
from weft.runtime.relay.wire_codec import ErrorBody
from weft.session import Command

CommandT = TypeVar("CommandT", bound=Command[Any])

VERSION: Final = 2
"""Of what goes over the socket; 1 was JSON lines."""
GREETING: Final = b'{"weft_socket":%d}\n' % VERSION
"""The first bytes of a client.  A JSON line, so that an owner of version 1 answers it."""
OF_VERSION_1: Final = b"{"
"""The first byte of whatever version 1 sends; that of a frame is the highest of its length."""
FRAME_LIMIT: Final = 64 * 1024 * 1024
"""The longest frame; a larger one ends the connection."""
STALL_SECONDS = 30.0
"""How long the other side may leave a frame unread before it is hung up on."""
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding a foreign frame raises: msgspec reports neither bad UTF-8 nor deep nesting as its
own error.
"""
_LENGTH_BYTES: Final = 4
_GREETING_LIMIT: Final = 64 * 1024
"""The longest first line: an owner says no to whatever an older client begins with."""
_FRAMES_WAITING = 64
"""Frames that may wait for the writer; the next sender waits itself."""
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
    """One frame to the owner: a command that the sender knows, or for the owner any of them.

    One with none of the three only asks whether the owner is still there.
    """

    id: int
    session: SessionId = SessionId("")
    call: CommandT | None = None
    summary: SummaryRequest | None = None
    follow: SessionId = SessionId("")


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
    """One frame from the owner: an answer, some events, or the end of them."""

    id: int = 0
    answer: Any = None
    error: ErrorBody | None = None
    owner: OwnerStatus | None = None
    """With every answer, and whenever it has changed."""
    s: SessionId = SessionId("")
    """The session that the rest is about."""
    e: tuple[msgspec.Raw, ...] = ()
    """Its events: facts, signals and drafts, the answers in flight."""
    closed: str | None = None
    """Why the session has stopped here; the next process that opens it may take it."""


class FrameWriter:
    """The one writer of a connection: frames of many tasks, one after the other."""

    # Tasks do not write to the stream themselves: two at once are refused by anyio, and one that
    # is cancelled in the middle of a frame would leave half of it on the wire.
    def __init__(
        self, stream: ByteStream, stall_seconds: float = STALL_SECONDS, first: bytes = b""
    ) -> None:
        """`first` is sent as it is, before any frame."""
        self._stream = stream
        self._stall_seconds = stall_seconds
        self._first = first
        self._frames: deque[bytes] = deque()
        self._room = anyio.Semaphore(_FRAMES_WAITING)
        self._arrived = anyio.Event()
        self._has_ended = False

    async def put(self, body: bytes) -> None:
        """Have a frame sent; waits while too many wait.

        Raises:
            ClosedResourceError: the connection has ended.
        """
        await self._room.acquire()
        if self._has_ended:
            self._room.release()
            raise anyio.ClosedResourceError
        self._frames.append(len(body).to_bytes(_LENGTH_BYTES, "big") + body)
        self._arrived.set()

    async def run(self) -> None:
        """Write until cancelled.

        Raises:
            TimeoutError: the other side does not read.
        """
        try:
            if self._first:
                await self._stream.send(self._first)
            while True:
                while not self._frames:
                    self._arrived = anyio.Event()
                    await self._arrived.wait()
                with anyio.fail_after(self._stall_seconds):
                    await self._stream.send(self._frames.popleft())
                self._room.release()
        finally:
            # Senders that wait for room wake one another, and find that no one writes.
            self._has_ended = True
            self._room.release()


async def read_frames(
    stream: ByteStream,
    take: Callable[[bytes], bool],
    greet: Callable[[bytes], bool] | None = None,
) -> bool:
    """Hand each frame to `take` until it says no, or the connection ends; with `greet`, the line
    before the first one to that.

    A cancel shuts the connection down, and the reader ends by itself.  Returns False when the other
    side does not send frames.
    """
    # A reader that is cancelled in the very instant in which something arrives leaves a callback of
    # anyio's behind, which fails on its cancelled future. So it is shielded, and woken by the end
    # of the stream.
    buffer = BufferedByteReceiveStream(stream)
    async with anyio.create_task_group() as group:
        group.start_soon(_shut_down_at_the_end, stream)
        try:
            with anyio.CancelScope(shield=True):
                if greet and not greet(await buffer.receive_until(b"\n", _GREETING_LIMIT)):
                    return False
                return await _take_frames(buffer, take)
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.DelimiterNotFound):
            return True
        finally:
            group.cancel_scope.cancel()
    return True


async def _take_frames(buffer: BufferedByteReceiveStream, take: Callable[[bytes], bool]) -> bool:
    """Hand frames out until `take` says no, or one is too long; False when they are none."""
    while True:
        head = await buffer.receive_exactly(_LENGTH_BYTES)
        if head.startswith(OF_VERSION_1):
            return False
        length = int.from_bytes(head, "big")
        if length > FRAME_LIMIT or not take(await buffer.receive_exactly(length)):
            return True


def shut_down(stream: ByteStream) -> None:
    """Hang up: both sides read the end of the stream."""
    with suppress(OSError, anyio.ClosedResourceError):
        stream.extra(SocketAttribute.raw_socket).shutdown(socket.SHUT_RDWR)


async def _shut_down_at_the_end(stream: ByteStream) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        shut_down(stream)
