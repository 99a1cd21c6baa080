"""Long-lived tasks with an owner: one-for-one restarts, each child with a budget of its own.

The supervisor's task group runs in a task of its own, so that it may be closed by another task than
the one that opened it, and so that no child ever lives in a caller's task (a caller's cancellation
must not reach a commit or a turn).  It is the one place that makes a task without a group around
it, and `aclose` waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from anyio.abc import TaskGroup

from weft.clock import Clock, SystemClock

logger = logging.getLogger(__name__)

T = TypeVar("T")


class RestartBudget:
    """At most `restarts` in `seconds`.

    Each child has its own, so that one in a crash loop takes no other along.
    """

    def __init__(
        self, restarts: int = 3, seconds: float = 60.0, clock: Clock | None = None
    ) -> None:
        self._restarts = restarts
        self._seconds = seconds
        self._clock = clock or SystemClock()
        self._at: deque[float] = deque()

    def spend(self) -> bool:
        """Take one restart; False when there is none left."""
        now = self._clock.monotonic()
        while self._at and now - self._at[0] > self._seconds:
            self._at.popleft()
        if len(self._at) >= self._restarts:
            return False
        self._at.append(now)
        return True

    def refund(self) -> None:
        """Give back the last one: it could not be carried out, for a reason of others."""
        if self._at:
            self._at.pop()


class Supervisor:
    """Owns tasks until it is closed."""

    def __init__(self) -> None:
        self._group: TaskGroup | None = None
        self._task: asyncio.Task[None] | None = None
        self._started = anyio.Event()
        self._stop = anyio.Event()

    async def open(self) -> None:
        """Start; children may be added from now on."""
        # Kept in an attribute: the loop itself holds tasks only weakly.
        self._task = asyncio.get_running_loop().create_task(self._run(), name="weft-supervisor")
        await self._started.wait()

    async def _run(self) -> None:
        async with anyio.create_task_group() as self._group:
            self._started.set()
            await self._stop.wait()
            self._group.cancel_scope.cancel()

    def start(self, run: Callable[[], Awaitable[None]], name: str) -> None:
        """Run a task of ours to its end; an error in it is logged and ends no other task."""
        if self._group is None:
            raise RuntimeError("the supervisor is not open")
        self._group.start_soon(self._contain, run, name, name=name)

    async def _contain(self, run: Callable[[], Awaitable[None]], name: str) -> None:
        try:
            await run()
        except Exception:
            logger.exception("a supervised task failed", extra={"task": name})
        except anyio.get_cancelled_exc_class():
            # A task group takes any cancelled child for the end of all.  Only the group's own
            # cancellation means that: one that came from elsewhere (a future that was cancelled
            # elsewhere, a native `cancel`) ends this one task.
            if self._group is None or self._group.cancel_scope.cancel_called:
                raise
            logger.exception("a supervised task was cancelled", extra={"task": name})

    def close_soon(self) -> None:
        """Cancel all children without waiting for them, for callers that cannot await.

        Call it in the loop's own thread.
        """
        self._stop.set()

    async def aclose(self) -> None:
        """Cancel all children and wait for them."""
        self._stop.set()
        if self._task is not None:
            # `wait` instead of awaiting the task: a cancelled closer would cancel the task with it,
            # and its error would be raised here in place of the closer's own.
            await asyncio.wait([self._task])
            self._group = None


class ForeignCancellation(RuntimeError):
    """Something that was awaited had been cancelled elsewhere; the task itself was not."""


async def without_foreign_cancel(work: Awaitable[T]) -> T:
    """Await `work`; a cancellation that was not meant for this task becomes a
    `ForeignCancellation`, an error like any other.

    Foreign code (a tool, a hook, a client library) may await a future that it cancelled itself.
    Passed on as a cancellation, that would end the task silently; `except Exception` would not see
    it.
    """
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        # `cancelling` counts the requests to cancel this very task, those of anyio's scopes too. At
        # 0 the exception came out of what was awaited.
        if task is None or task.cancelling():
            raise
        raise ForeignCancellation("it awaited something that was cancelled elsewhere") from error
