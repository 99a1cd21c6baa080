"""The tokens that the requests of one model may hold at once.

llama.cpp's slots share their memory for the context.  When it is full, every request that runs then
fails, so a request waits here until what it may need is free.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio


class TokenPool:
    """Room for `total` tokens, given out in the order of asking.  Used by one event loop."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._free = total
        self._waiting: deque[tuple[int, anyio.Event]] = deque()

    @asynccontextmanager
    async def reserved(self, tokens: int) -> AsyncGenerator[None]:
        """Hold room for so many tokens; a request larger than all of it has it all to itself."""
        size = min(tokens, self._total)
        await self._take(size)
        try:
            yield
        finally:
            self._free += size
            self._hand_out()

    async def _take(self, size: int) -> None:
        entry = (size, anyio.Event())
        self._waiting.append(entry)
        self._hand_out()
        try:
            await entry[1].wait()
        except BaseException:
            # A cancel may come after the room was given and before the task saw it.
            if entry[1].is_set():
                self._free += size
            else:
                self._waiting.remove(entry)
            self._hand_out()
            raise

    def _hand_out(self) -> None:
        # In order, although a later one may fit: a large request would otherwise wait for ever.
        while self._waiting and self._waiting[0][0] <= self._free:
            size, given = self._waiting.popleft()
            self._free -= size
            given.set()
