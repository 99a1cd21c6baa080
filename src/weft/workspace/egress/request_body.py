"""The body of a request, sent on to its very end and not a byte further: what stands behind it
would be another request, which was not judged."""

from __future__ import annotations

import re
import socket
from typing import Final

from weft.workspace.egress.request_head import BadRequest
from weft.workspace.egress.socket_io import CHUNK, received, sent

_SIZE_LINE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[\x20-\x7e\t]*)?\r\n")
_LONGEST_LINE: Final = 8 * 1024


class BufferedSource:
    """A socket, with what was read of it already."""

    def __init__(self, source: socket.socket, data: bytes = b"") -> None:
        self._source, self.data = source, data

    async def more(self) -> None:
        """Read on.

        Raises:
            BadRequest: it has ended.
        """
        found = await received(self._source)
        if not found:
            raise BadRequest("it ends before its body does")
        self.data += found

    async def line(self) -> bytes:
        """The next line, with its end."""
        while (end := self.data.find(b"\r\n")) < 0:
            if len(self.data) > _LONGEST_LINE:
                raise BadRequest("a line of its body is too long")
            await self.more()
        line, self.data = self.data[: end + 2], self.data[end + 2 :]
        return line

    async def pour(self, target: socket.socket, size: int) -> None:
        """Send so many bytes on."""
        while size:
            if not self.data:
                self.data = await received(self._source, min(size, CHUNK))
                if not self.data:
                    raise BadRequest("it ends before its body does")
            part, self.data = self.data[:size], self.data[size:]
            size -= len(part)
            await sent(target, part)


async def send_body(source: BufferedSource, target: socket.socket, size: int | None) -> None:
    """Send the body of a request on; a `size` of None is one in chunks.

    Raises:
        BadRequest: it is not one.
    """
    if size is not None:
        await source.pour(target, size)
        return
    while True:
        line = await source.line()
        found = _SIZE_LINE.fullmatch(line)
        if found is None:
            raise BadRequest("a chunk of its body cannot be read")
        chunk = int(found[1], 16)
        # Written anew: what else stands in the line may be read otherwise by a server.
        await sent(target, b"%x\r\n" % chunk)
        if not chunk:
            break
        await source.pour(target, chunk)
        if await source.line() != b"\r\n":
            raise BadRequest("a chunk of its body has no end")
        await sent(target, b"\r\n")
    while await source.line() != b"\r\n":
        pass  # trailers mean nothing to a proxy, and a server need not have them
    await sent(target, b"\r\n")
