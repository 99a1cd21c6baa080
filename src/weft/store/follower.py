"""Following a stream: a pull iterator that reads pages, then sleeps until the store says that there
is more.

It owns no task and no scope, so that it can be dropped at any `await` and anywhere in a loop.  The
order of steps is what rules out a missed record: it first asks to be woken, then reads, then
sleeps.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol, Self

from weft.store.base import Record

PAGE = 500
"""Records read at once by a follower."""


class ReadPage(Protocol):
    """How a follower reads: `Store.read`."""

    def __call__(self, stream: str, *, after: int, limit: int) -> Awaitable[list[Record]]: ...


class FollowerBell:
    """The sleeping followers, by stream; used from the event loop only.

    `on_sleepers` is called when the first sleeper comes and when the last one goes.
    """

    def __init__(self, on_sleepers: Callable[[bool], None] | None = None) -> None:
        self._sleepers: dict[str, set[asyncio.Future[None]]] = {}
        self._on_sleepers = on_sleepers

    def streams(self) -> tuple[str, ...]:
        """The streams that have followers."""
        return tuple(self._sleepers)

    def listen(self, stream: str) -> asyncio.Future[None]:
        """A future that is done when `stream` may have grown; give it back with `forget`."""
        is_first = not self._sleepers
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.setdefault(stream, set()).add(sleeper)
        if is_first and self._on_sleepers is not None:
            self._on_sleepers(True)
        return sleeper

    def forget(self, stream: str, sleeper: asyncio.Future[None]) -> None:
        """Stop waiting."""
        sleeper.cancel()
        beside = self._sleepers.get(stream)
        if beside is None:
            return
        beside.discard(sleeper)
        if not beside:
            del self._sleepers[stream]
            if not self._sleepers and self._on_sleepers is not None:
                self._on_sleepers(False)

    def ring(self, streams: Iterable[str]) -> None:
        """Wake the followers of `streams`."""
        for stream in streams:
            for sleeper in self._sleepers.get(stream, ()):
                if not sleeper.done():
                    sleeper.set_result(None)

    def ring_all(self) -> None:
        """Wake all followers."""
        self.ring(self.streams())


class RecordFollower:
    """The `RecordStream` of every store.  One task at a time may wait on it."""

    def __init__(self, read: ReadPage, bell: FollowerBell, stream: str, after: int) -> None:
        self._read = read
        self._bell = bell
        self._stream = stream
        self._after = after
        self._page: deque[Record] = deque()
        self._is_closed = False
        self._sleeper: asyncio.Future[None] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        """The next record; a cancelled wait loses nothing."""
        while not self._page and not self._is_closed:
            await self._refill()
        if self._is_closed:
            raise StopAsyncIteration
        record = self._page.popleft()
        self._after = record.seq
        return record

    async def aclose(self) -> None:
        """End it, also for a task that waits on it."""
        self._is_closed = True
        if self._sleeper is not None:
            self._bell.forget(self._stream, self._sleeper)

    async def _refill(self) -> None:
        # Listen first, read second.  The other way round, an append between the two would ring
        # before we listen, and the follower would sleep although there is more.
        self._sleeper = self._bell.listen(self._stream)
        try:
            page = await self._read(self._stream, after=self._after, limit=PAGE)
            if page:
                self._page.extend(page)
            elif not self._sleeper.cancelled():
                # `wait` and not a plain `await`: `aclose` cancels the sleeper, which must end this
                # wait quietly and not look like a cancellation of the task.
                await asyncio.wait([self._sleeper])
        finally:
            self._bell.forget(self._stream, self._sleeper)
            self._sleeper = None
