"""How many small reads a command gets: one that sends a byte at a time, over many connections, must
not take the loop from the user's other sessions."""

from __future__ import annotations

from typing import Final

import anyio

SMALL: Final = 512
"""Bytes; a smaller read costs as much of the loop as one of 64 KB."""
MOST: Final = 200
"""Small reads in one span of time.  At some 30 µs each they take an eighth of the loop."""
SPAN_SECONDS: Final = 0.05


class ReadPace:
    """The pace of one command, over all of its connections."""

    def __init__(self) -> None:
        self._ends = 0.0
        self._left = MOST

    async def read(self, size: int) -> None:
        """Wait where too many small pieces were read; what comes meanwhile is read as one."""
        if size >= SMALL or not size:
            return
        while not self._left:
            now = anyio.current_time()
            if now >= self._ends:
                self._left, self._ends = MOST, now + SPAN_SECONDS
                break
            await anyio.sleep(self._ends - now)
        self._left -= 1
