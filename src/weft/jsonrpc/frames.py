"""Framing by `Content-Length` headers: messages out of chunks that are cut anywhere."""

from __future__ import annotations

from typing import Final

from weft.errors import WeftError

MOST_HEADER: Final = 4096
"""Bytes of a header.  What prints plain text where messages belong never ends a header, and would
otherwise be collected for ever."""
MOST_MESSAGE: Final = 64 * 1024 * 1024
_END: Final = b"\r\n\r\n"


class FramingError(WeftError):
    """What came is not a stream of messages; nothing after it can be read."""


def framed(message: bytes) -> bytes:
    """A message with its header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(message), message)


class FrameDecoder:
    """Takes chunks, gives whole messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._length: int | None = None
        """Of the message whose header has been read."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The messages that this chunk completes.

        Raises:
            FramingError: a header is malformed, or too large a message is announced.
        """
        self._buffer += chunk
        found: list[bytes] = []
        while (message := self._next()) is not None:
            found.append(message)
        return found

    def _next(self) -> bytes | None:
        if self._length is None:
            end = self._buffer.find(_END)
            if end < 0 and len(self._buffer) <= MOST_HEADER:
                return None
            if end < 0 or end > MOST_HEADER:
                raise FramingError(f"this is no message: {bytes(self._buffer[:80])!r}")
            self._length = _length_in(bytes(self._buffer[:end]))
            del self._buffer[: end + len(_END)]
        if len(self._buffer) < self._length:
            return None
        message = bytes(self._buffer[: self._length])
        del self._buffer[: self._length]
        self._length = None
        return message


def _length_in(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            digits = value.strip()
            # `int` alone takes signs, blanks and underscores.
            if digits.isdigit() and len(digits) < 12 and int(digits) <= MOST_MESSAGE:
                return int(digits)
            raise FramingError(f"no length of a message: {digits[:40]!r}")
    raise FramingError(f"a header without a length: {header[:80]!r}")
