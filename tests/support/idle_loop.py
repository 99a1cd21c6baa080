"""Wait until nothing more can happen by itself.

`anyio.wait_all_tasks_blocked` looks ten times a second: a test of the screen, which waits at each
key, would do nothing but sleep.
"""

from __future__ import annotations

import asyncio


async def all_tasks_blocked() -> None:
    """Let the other tasks run until each of them waits for something."""
    await asyncio.sleep(0)
    while not all(_waits(task) for task in asyncio.all_tasks()):  # noqa: ASYNC110 - no one sets it
        await asyncio.sleep(0)


def _waits(task: asyncio.Task[object]) -> bool:
    if task is asyncio.current_task():
        return True
    waiter = getattr(task, "_fut_waiter")  # noqa: B009 - private, so not in the stubs
    return waiter is not None and not waiter.done()
