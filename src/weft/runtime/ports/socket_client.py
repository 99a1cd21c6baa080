"""A connection to the process that owns a session, through its command socket."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import anyio
import msgspec
from anyio.abc import ByteStream

from weft.errors import OwnerLost, UsageError
from weft.ids import SessionId
from weft.runtime.ports.socket_protocol import (
    GREETING,
    UNREADABLE,
    FrameWriter,
    OwnerStatus,
    SocketReply,
    SocketRequest,
    SummaryRequest,
    read_frames,
    shut_down,
)
from weft.runtime.relay.wire_codec import raised_error
from weft.session import Command, answer_of

T = TypeVar("T")

logger = logging.getLogger(__name__)

HANG_UP_SECONDS = 1.0
"""How long the end of the reader is waited for."""
ASK_EVERY_SECONDS = 5.0
"""How often the owner is asked whether it is still there."""
SILENCE_SECONDS = 15.0
"""How long it may take to answer that; a busy machine must not pass for a suspended process."""
_GONE = "the process that owned the session is gone"


class SocketClient:
    """A connection to another process's `CommandSocket`."""

    def __init__(
        self,
        stream: ByteStream,
        on_event: Callable[[bytes], None],
        on_condition: Callable[[OwnerStatus], None],
    ) -> None:
        """`on_event` is handed each event of the wire, in order."""
        self._stream = stream
        self._writer = FrameWriter(stream, first=GREETING)
        self._on_event = on_event
        self._on_condition = on_condition
        self._waiting: dict[int, tuple[anyio.Event, list[SocketReply]]] = {}
        self._next = 0
        self.lost = anyio.Event()
        self.is_other_version = False
        """True once the owner has answered as an older Weft does, which takes no frames."""

    async def read(self) -> None:
        """Take answers and events, and send what waits, until the connection ends."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._writer.run)
                self.is_other_version = not await read_frames(self._stream, self._take)
                group.cancel_scope.cancel()
        except* (anyio.BrokenResourceError, anyio.ClosedResourceError, TimeoutError):
            pass
        except* UNREADABLE:
            logger.exception("the owner of a session sent a frame that cannot be read")
        finally:
            self.lost.set()
            # Callers find no answer then, and raise `OwnerLost`.
            for arrived, _ in self._waiting.values():
                arrived.set()

    def _take(self, raw: bytes) -> bool:
        """Take one frame in; False when it is the last one."""
        frame = msgspec.json.decode(raw, type=SocketReply)
        if frame.owner is not None:
            self._on_condition(frame.owner)
        for event in frame.e:
            self._on_event(bytes(event))
        if frame.id in self._waiting:
            arrived, answers = self._waiting[frame.id]
            answers.append(frame)
            arrived.set()
        return frame.closed is None

    async def send(self, session: SessionId, command: Command[T]) -> T:
        """Have the owner carry a command out, and wait for its answer.

        Raises:
            OwnerLost: the connection ended first; the log tells whether it was carried out.
            WeftError: whatever the owner answered with.
        """
        call = SocketRequest(id=self._new_id(), session=session, call=command)
        return answer_of(command, await self._exchange(call))

    async def summarize(self, session: SessionId, wanted: SummaryRequest) -> tuple[str, str]:
        """Have the owner make a summary; its text, and where it is kept.

        Raises:
            OwnerLost, WeftError: as `send`.
        """
        call = SocketRequest[Any](id=self._new_id(), session=session, summary=wanted)
        return msgspec.convert(await self._exchange(call), tuple[str, str])

    async def follow(self, session: SessionId) -> None:
        """Have the owner send events from now on; they come through `on_event`.

        Raises:
            OwnerLost, WeftError: as `send`.
        """
        await self._exchange(SocketRequest[Any](id=self._new_id(), follow=session))

    async def keep_asking(self, session: SessionId) -> None:
        """Ask now and then whether the owner is still there; returns when it does not answer.

        A process that is suspended keeps its connections, and no error tells of it.

        Raises:
            OwnerLost: the connection has ended.
        """
        while True:
            await anyio.sleep(ASK_EVERY_SECONDS)
            with anyio.move_on_after(SILENCE_SECONDS) as waiting:
                # It asks for nothing; the refusal of that is the sign of life.
                with suppress(UsageError):
                    await self._exchange(SocketRequest(id=self._new_id(), session=session))
            if waiting.cancelled_caught:
                return

    def _new_id(self) -> int:
        self._next += 1
        return self._next

    async def _exchange(self, call: SocketRequest[Any]) -> Any:
        """Send one frame and wait for the one that answers it, as plain data."""
        if self.lost.is_set():
            raise OwnerLost(_GONE)
        arrived, answers = anyio.Event(), list[SocketReply]()
        self._waiting[call.id] = (arrived, answers)
        try:
            try:
                await self._writer.put(msgspec.json.encode(call))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                raise OwnerLost(_GONE) from error
            await arrived.wait()
        finally:
            self._waiting.pop(call.id, None)
        if not answers:
            lost = OwnerLost(_GONE)
            lost.was_sent = True
            raise lost
        return _unwrapped(answers[0])

    async def aclose(self) -> None:
        """Hang up, and wait until `read` has noticed."""
        shut_down(self._stream)
        with anyio.move_on_after(HANG_UP_SECONDS):
            await self.lost.wait()
        await self._stream.aclose()


def _unwrapped(frame: SocketReply) -> Any:
    if frame.error is not None:
        raise raised_error(frame.error)
    return frame.answer
