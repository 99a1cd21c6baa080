"""A connection to the process that owns a session, through its command socket."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import anyio
import msgspec
from anyio.abc import ByteStream

from weft import errors
from weft.errors import OwnerLost, UsageError
from weft.ids import SessionId
from weft.runtime.ports.socket_protocol import (
    UNREADABLE,
    LineWriter,
    OwnerStatus,
    SocketReply,
    SocketRequest,
    SummaryRequest,
    read_lines,
    shut_down,
)
from weft.session import Command, answer_of
from weft.store import Draft

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
        on_signal: Callable[[bytes], None],
        on_condition: Callable[[OwnerStatus], None],
        on_drafts: Callable[[Sequence[Draft], int], None],
    ) -> None:
        self._stream = stream
        self._writer = LineWriter(stream)
        self._on_signal = on_signal
        self._on_condition = on_condition
        self._on_drafts = on_drafts
        self._waiting: dict[int, tuple[anyio.Event, list[SocketReply]]] = {}
        self._next = 0
        self.lost = anyio.Event()

    async def read(self) -> None:
        """Take answers and signals, and send what waits, until the connection ends."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._writer.run)
                await read_lines(self._stream, self._take)
                group.cancel_scope.cancel()
        except* (anyio.BrokenResourceError, anyio.ClosedResourceError, TimeoutError):
            pass
        except* UNREADABLE:
            logger.exception("the owner of a session sent a line that cannot be read")
        finally:
            self.lost.set()
            # Callers find no answer then, and raise `OwnerLost`.
            for arrived, _ in self._waiting.values():
                arrived.set()

    def _take(self, raw: bytes) -> bool:
        """Take one line in; False when it is the last one."""
        line = msgspec.json.decode(raw, type=SocketReply)
        if line.condition is not None:
            self._on_condition(line.condition)
        if line.drafts:
            # Here and not by the caller of `watch`: the signals of the next lines go on from them.
            self._on_drafts(line.drafts, line.condition.seq if line.condition else 0)
        if bytes(line.signal):
            self._on_signal(bytes(line.signal))
        elif line.id in self._waiting and not line.gone:
            arrived, answers = self._waiting[line.id]
            answers.append(line)
            arrived.set()
        return not line.gone

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

    async def watch(self, session: SessionId) -> None:
        """Have the owner send live events from now on; they come through `on_signal`.

        Raises:
            OwnerLost, WeftError: as `send`.
        """
        await self._exchange(SocketRequest(id=self._new_id(), session=session, watch=True))

    async def keep_asking(self, session: SessionId) -> None:
        """Ask now and then whether the owner is still there; returns when it does not answer.

        A process that is suspended keeps its connections, and no error tells of it.

        Raises:
            OwnerLost: the connection has ended.
        """
        while True:
            await anyio.sleep(ASK_EVERY_SECONDS)
            with anyio.move_on_after(SILENCE_SECONDS) as waiting:
                # It has neither a command nor a watch; the refusal of that is the sign of life.
                with suppress(UsageError):
                    await self._exchange(SocketRequest(id=self._new_id(), session=session))
            if waiting.cancelled_caught:
                return

    def _new_id(self) -> int:
        self._next += 1
        return self._next

    async def _exchange(self, call: SocketRequest[Any]) -> Any:
        """Send one line and wait for the one that answers it, as plain data."""
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


def _unwrapped(line: SocketReply) -> Any:
    if not line.error:
        return line.answer
    kind = getattr(errors, line.kind, UsageError)
    # Without its constructor, which takes other arguments than the finished sentence that was sent.
    error = kind.__new__(kind, line.error)
    error.args = (line.error,)
    error.__dict__.update(line.details)
    raise error
