"""Lines from a descriptor, as they come, without a thread."""

from __future__ import annotations

import os

import anyio

from weft.errors import UsageError

MAX_LINE = 16 * 1024 * 1024
"""A longer line is refused; without a limit one line could fill the memory."""


class LineReader:
    """Reads lines of a pipe, a socket, a terminal or a file.  A cancelled wait loses nothing."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = bytearray()
        self._searched = 0
        self._at_end = False
        self._waits = True

    async def next_line(self) -> bytes | None:
        """The next line without its newline; None at the end.

        Raises:
            UsageError: a line is too long.
        """
        while True:
            place = self._buffer.find(b"\n", self._searched)
            if place >= 0:
                return self._cut(place)
            if self._at_end:
                return self._cut(len(self._buffer)) if self._buffer else None
            # The search goes on where it ended: from the start for each piece, a long line would
            # take quadratic time.
            self._searched = len(self._buffer)
            if self._searched > MAX_LINE:
                raise UsageError(f"a line of the input is longer than {MAX_LINE // 2**20} MB")
            await self._read_more()

    def _cut(self, place: int) -> bytes:
        line = bytes(self._buffer[:place])
        del self._buffer[: place + 1]
        self._searched = 0
        return line

    async def _read_more(self) -> None:
        if self._waits:
            try:
                # No thread: a blocked `read` in a thread cannot be cancelled, and the program would
                # wait for the next line before it ends.
                await anyio.wait_readable(self._fd)
            except PermissionError:  # a file or /dev/null: always ready, and epoll will not have it
                self._waits = False
        try:
            # Nothing is awaited between the read and the buffer, so a cancelled wait never loses
            # what was read.
            data = os.read(self._fd, 1 << 16)
        except BlockingIOError:
            return
        except OSError:  # the terminal is gone
            data = b""
        self._buffer += data
        self._at_end = not data
