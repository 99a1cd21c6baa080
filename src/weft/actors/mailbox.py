"""A bounded queue of messages to one actor, each with a place for its answer."""

from __future__ import annotations

from collections import deque
from typing import Any, Generic, TypeVar

import anyio

from weft.errors import SessionStopped, WeftError

T = TypeVar("T")

CAPACITY = 1024
"""Messages that may wait; a sender beyond that waits itself."""


class Envelope(Generic[T]):
    """One message on its way, and the answer to it.

    The answer outlives a sender that stopped waiting.
    """

    __slots__ = ("_done", "_error", "_value", "message", "takes_room")

    def __init__(self, message: T, *, takes_room: bool = True) -> None:
        self.message = message
        self.takes_room = takes_room
        """It counts against the mailbox's capacity."""
        # An event and two slots instead of a future: cancelling the task that awaits a future
        # cancels the future, and the actor could not answer it any more.
        self._done = anyio.Event()
        self._value: Any = None
        self._error: BaseException | None = None

    def answer(self, value: Any) -> None:
        """Give the answer."""
        self._value = value
        self._done.set()

    def fail(self, error: BaseException) -> None:
        """Give an error as the answer."""
        self._error = error
        self._done.set()

    async def wait(self) -> Any:
        """Wait for the answer.  Cancelling ends the wait and nothing else."""
        await self._done.wait()
        if self._error is not None:
            raise self._error
        return self._value


class Mailbox(Generic[T]):
    """Messages wait here in order; one actor takes them out."""

    def __init__(self, name: str, capacity: int = CAPACITY) -> None:
        self._name = name
        self._waiting: deque[Envelope[T]] = deque()
        # Fast: the sender waits for its answer next, which lets others run; to let them run here
        # too would cost every step of a turn one more pass of the event loop.
        self._room = anyio.Semaphore(capacity, fast_acquire=True)
        self._arrived = anyio.Event()
        self._closed: WeftError | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    async def post(self, message: T) -> Envelope[T]:
        """Put a message in.

        Waits while the mailbox is full.  Raises what `close` was given, once closed.
        """
        self._refuse_if_closed()
        await self._room.acquire()
        try:
            # Again: it may have been closed while this sender waited for room.
            self._refuse_if_closed()
        except WeftError:
            self._room.release()
            raise
        return self._put(Envelope(message))

    def post_now(self, message: T) -> Envelope[T]:
        """Put a message in, however full the mailbox is.

        For what must not get lost and comes at most once for each piece of work, so that it cannot
        fill the mailbox: how a turn has ended.  Raises what `close` was given, once closed.
        """
        self._refuse_if_closed()
        return self._put(Envelope(message, takes_room=False))

    def _put(self, envelope: Envelope[T]) -> Envelope[T]:
        self._waiting.append(envelope)
        self._arrived.set()
        return envelope

    async def call(self, message: T) -> Any:
        """Put a message in and wait for its answer."""
        return await (await self.post(message)).wait()

    async def take(self) -> Envelope[T]:
        """The next message; for the actor alone."""
        while not self._waiting:
            self._arrived = anyio.Event()
            await self._arrived.wait()
        return self._first()

    def _first(self) -> Envelope[T]:
        envelope = self._waiting.popleft()
        if envelope.takes_room:
            self._room.release()
        return envelope

    def close(self, error: WeftError | None = None) -> None:
        """Take no more messages; those that wait, and all later ones, fail with `error`."""
        self._closed = error or SessionStopped(self._name, "it was closed")
        while self._waiting:
            # Senders that wait for room wake up, find the mailbox closed, and fail as well.
            self._first().fail(self._closed)

    def _refuse_if_closed(self) -> None:
        if self._closed is not None:
            # One error for all callers: without this its traceback would grow with every one.
            raise self._closed.with_traceback(None)
