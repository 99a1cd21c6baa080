"""The body of a request, sent on to its very end and not a byte further: what stands behind it
would be another request, which was not judged."""

from __future__ import annotations

import re
import socket
from collections.abc import Awaitable, Callable
from typing import Final

from weft.workspace.egress.read_pace import SMALL, ReadPace
from weft.workspace.egress.request_head import BadRequest
from weft.workspace.egress.socket_io import CHUNK, received, sent

_SIZE_LINE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[\x20-\x7e\t]*)?\r\n")
_LONGEST_LINE: Final = 8 * 1024
_CHUNKS_A_READ: Final = 8
"""Small chunks that cost as much as one small read."""


class BufferedSource:
    """A socket, with what was read of it already."""

    def __init__(
        self, source: socket.socket, data: bytes = b"", pace: ReadPace | None = None
    ) -> None:
        self.pace = pace or ReadPace()
        self.before_wait: Callable[[], Awaitable[None]] | None = None
        """What is to be done before more is waited for."""
        self._source = source
        self._data, self._at = bytearray(data), 0

    async def line(self) -> bytes:
        """The next line, with its end."""
        looked = self._at
        while (end := self._data.find(b"\r\n", looked)) < 0:
            size = len(self._data) - self._at
            if size > _LONGEST_LINE:
                raise BadRequest("a line of its body is too long")
            await self._more()
            looked = max(0, size - 1)
        return self._taken(end + 2 - self._at)

    async def part(self, most: int) -> bytes:
        """The next bytes, as many as are there."""
        if self._at == len(self._data):
            await self._more()
        return self._taken(min(most, len(self._data) - self._at))

    async def _more(self) -> None:
        if self.before_wait is not None:
            await self.before_wait()
        found = await received(self._source, pace=self.pace)
        if not found:
            raise BadRequest("it ends before its body does")
        # Once a read, and not once a line: a read may hold ten thousand of those.
        del self._data[: self._at]
        self._at = 0
        self._data += found

    def _taken(self, size: int) -> bytes:
        self._at += size
        return bytes(self._data[self._at - size : self._at])


async def send_body(source: BufferedSource, target: socket.socket, size: int | None) -> None:
    """Send the body of a request on; a `size` of None is one in chunks.

    Raises:
        BadRequest: it is not one.
    """
    if size is None:
        await _ChunkedBody(source, target).send()
        return
    while size:
        part = await source.part(min(size, CHUNK))
        size -= len(part)
        await sent(target, part)


class _ChunkedBody:
    """A body in chunks.  They are cut anew: a chunk of one byte would cost the server, and us, as
    much as a large one, and what else stands beside its size a server may read otherwise."""

    def __init__(self, source: BufferedSource, target: socket.socket) -> None:
        self._source, self._target = source, target
        self._gathered = bytearray()
        # A client may wait for the answer to what it has sent so far.
        source.before_wait = self._send_gathered

    async def send(self) -> None:
        small = 0
        while size := await self._next_size():
            await self._gather(size)
            if await self._source.line() != b"\r\n":
                raise BadRequest("a chunk of its body has no end")
            small += size < SMALL
            if small == _CHUNKS_A_READ:
                small = 0
                await self._source.pace.read(1)
        while await self._source.line() != b"\r\n":
            pass  # trailers mean nothing to a proxy, and a server need not have them
        await self._send_gathered()
        await sent(self._target, b"0\r\n\r\n")

    async def _next_size(self) -> int:
        found = _SIZE_LINE.fullmatch(await self._source.line())
        if found is None:
            raise BadRequest("a chunk of its body cannot be read")
        return int(found[1], 16)

    async def _gather(self, size: int) -> None:
        while size:
            part = await self._source.part(size)
            size -= len(part)
            self._gathered += part
            if len(self._gathered) >= CHUNK:
                await self._send_gathered()

    async def _send_gathered(self) -> None:
        if not self._gathered:
            return
        data, self._gathered = bytes(self._gathered), bytearray()
        await sent(self._target, b"%x\r\n%b\r\n" % (len(data), data))
