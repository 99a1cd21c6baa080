"""A thread that answers questions one after another, for the event loop that started it.

A store has its own threads: in a shared pool, forty hung reads of one session would make every
other one wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class WorkerThread:
    """One thread and its queue; the thread starts with the first question."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._questions: queue.SimpleQueue[
            tuple[Callable[[], object], asyncio.Future[Any] | None] | None
        ] = queue.SimpleQueue()
        # A daemon: the interpreter would otherwise wait at exit for a thread that hangs on a dead
        # disk.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._has_started = False
        self._ended: asyncio.Future[None] = self._loop.create_future()

    def ask(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run `work` in the thread.  A cancelled wait lets it run and drops the answer."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._put(work, future)
        return future

    def tell(self, work: Callable[[], object]) -> None:
        """Run `work` in the thread; no caller waits for it, and it must not fail."""
        self._put(work, None)

    def end(self) -> None:
        """Answer what was asked, then end; not waited for."""
        if self._has_started:
            self._questions.put(None)

    def join(self) -> None:
        """Wait, in another thread, until this one has ended."""
        if self._has_started:
            self._thread.join()

    async def ended(self) -> None:
        """Wait until the thread has ended, after `end`.  A cancelled wait changes nothing."""
        if self._has_started:
            await asyncio.wait([self._ended])
            # Reporting it was the thread's last act; what is left of it does not hold up the loop.
            self._thread.join()

    def _put(self, work: Callable[[], object], future: asyncio.Future[Any] | None) -> None:
        if not self._has_started:
            self._has_started = True
            self._thread.start()
        self._questions.put((work, future))

    def _run(self) -> None:
        # Unbounded on purpose: each question is awaited by its caller, so callers bound the queue.
        while (question := self._questions.get()) is not None:
            work, future = question
            result: object = None
            failure: Exception | None = None
            try:
                result = work()
            except Exception as error:
                failure = error
            if future is not None:
                call(self._loop, settle, future, result, failure)
        call(self._loop, settle, self._ended, None, None)


def settle(future: asyncio.Future[Any], result: object, error: Exception | None) -> None:
    """Set the outcome of a future, unless its waiter was cancelled."""
    # The caller was cancelled while the thread worked; setting a result would raise.
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


def call(loop: asyncio.AbstractEventLoop, what: Callable[..., object], *values: object) -> None:
    """Have the loop call `what`.  On a loop that is closed no caller waits any more."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(what, *values)
