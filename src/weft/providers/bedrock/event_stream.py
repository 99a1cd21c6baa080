"""AWS event streams: binary frames with headers, a payload and two checksums.

    total length · header length · checksum of both · headers · payload · checksum of all

Each number has four bytes, big-endian.  A frame is an event, or an exception that ends the stream.
"""

from __future__ import annotations

import zlib
from typing import Final, NamedTuple

from weft.errors import ProviderUnavailable

MOST_BYTES: Final = 24 * 1024 * 1024
"""Bytes of one frame; AWS sends at most 16 MB of payload."""
_PRELUDE: Final = 12
_SIZES: Final = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header's value by its type; text and bytes (6, 7) say their own length."""


class EventFrame(NamedTuple):
    """One frame."""

    headers: dict[str, str]
    """Those that are text; others are not used by any service that we speak with."""
    payload: bytes


class FrameReader:
    """Cuts bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[EventFrame]:
        """The frames that these bytes complete.

        Raises:
            ProviderUnavailable: a checksum is wrong, or it is no such stream.
        """
        self._buffer += data
        found: list[EventFrame] = []
        while len(self._buffer) >= _PRELUDE:
            size = int.from_bytes(self._buffer[:4], "big")
            # Before its length is believed: a wrong one would have us wait for ever.
            if zlib.crc32(self._buffer[:8]) != int.from_bytes(self._buffer[8:12], "big"):
                raise _broken("the checksum of a frame is wrong")
            if not _PRELUDE + 4 <= size <= MOST_BYTES:
                raise _broken(f"a frame claims {size} bytes")
            if len(self._buffer) < size:
                break
            found.append(_frame(bytes(self._buffer[:size])))
            del self._buffer[:size]
        return found

    @property
    def is_cut(self) -> bool:
        """Whether a frame has begun and not ended."""
        return bool(self._buffer)


def _frame(data: bytes) -> EventFrame:
    if zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "big"):
        raise _broken("the checksum of a frame is wrong")
    end = _PRELUDE + int.from_bytes(data[4:8], "big")
    if end > len(data) - 4:
        raise _broken("the headers of a frame are longer than the frame")
    return EventFrame(_headers(data[_PRELUDE:end]), data[end:-4])


def _headers(data: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    try:
        while at < len(data):
            name = data[at + 1 : at + 1 + data[at]].decode()
            at += 1 + data[at]
            kind = data[at]
            at += 1
            if kind in (6, 7):
                size = int.from_bytes(data[at : at + 2], "big")
                at += 2
            else:
                size = _SIZES[kind]
            if kind == 7:
                found[name] = data[at : at + size].decode()
            at += size
    except (IndexError, KeyError, UnicodeDecodeError) as error:
        raise _broken("the headers of a frame cannot be read") from error
    return found


def _broken(why: str) -> ProviderUnavailable:
    return ProviderUnavailable(f"the event stream of bedrock cannot be read: {why}")
