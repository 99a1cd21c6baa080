"""The tasks of a Postgres store: they begin with it and end with it.

A store stands below the supervisor of sessions: what drives a connection must go on while sessions
are being closed, and ends last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class StoreTasks:
    """Tasks that one store owns."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Begin; a cancelled caller does not end it."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def cancel_all(self) -> None:
        """End them all, and wait until they have ended."""
        ending = list(self._running)
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)
