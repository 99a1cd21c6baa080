"""Threads for disk work, outside the event loop.

A small pool for each project, shared by its sessions, so that one project's hung disk holds up no
other.  A cancel never leaves work running unseen: the work is asked to stop, and the cancellation
goes on only when it has, or after a bounded wait.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakValueDictionary

import anyio

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")

_WORKERS = 8
_PATIENCE_SECONDS = 2.0
"""How long a cancel waits for disk work that has been asked to stop."""


class DiskThreads:
    """A pool whose threads start when first needed and end with the last of its owners."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    @classmethod
    def of(cls, project: str) -> DiskThreads:
        """The pool of a project; made anew when no session holds it."""
        # Weak: the threads of a project end with the last session that works on it.
        found = _POOLS.get(project)
        if found is None:
            found = _POOLS[project] = cls()
        return found

    async def run(self, work: Callable[[], T], abandon: Callable[[], None] | None = None) -> T:
        """Do `work` in a thread.

        A cancel calls `abandon`, by which the work learns to stop before its point of no return,
        and then waits a bounded time.
        """
        future = self._begin(work)
        try:
            # Shielded, because cancelling a future of an executor does not stop the thread: it
            # would only make us forget that it is still writing.
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if abandon is not None:
                abandon()
            await _settle(future)
            raise

    def start(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Begin `work` in a thread; the caller waits for it later, or not at all."""
        future = self._begin(work)
        future.add_done_callback(_seen)
        return future

    def _begin(self, work: Callable[[], T]) -> asyncio.Future[T]:
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # not needed for the first request

            self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="weft-disk")
        return asyncio.get_running_loop().run_in_executor(self._pool, work)


_POOLS: WeakValueDictionary[str, DiskThreads] = WeakValueDictionary()
# Threads do not live on in a forked child: work that is handed to an inherited pool would wait for
# ever for one that the pool takes to be idle.
os.register_at_fork(after_in_child=_POOLS.clear)


async def _settle(future: asyncio.Future[T]) -> None:
    with anyio.move_on_after(_PATIENCE_SECONDS, shield=True):
        await asyncio.wait([future])
    # No caller is left to read the outcome; unread, it would be reported as a forgotten error.
    future.add_done_callback(_seen)


def _seen(done: asyncio.Future[T]) -> None:
    if not done.cancelled():
        done.exception()
