"""Framing by newlines: one message a line, as MCP has it over pipes.

A line that is too long is not kept: it is counted up to its end, and what was found of its id comes
out as an error answer, so that the request that it answers fails and the others go on.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

MOST_LINE: Final = 8 * 1024 * 1024
"""Bytes of one message."""
TOO_LONG: Final = -32099
"""The code of the error that stands for an answer that was too long."""
_EDGE: Final = 1024
_ID_FIRST: Final = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})')
_ID_LAST: Final = re.compile(rb'"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


def line_framed(message: bytes) -> bytes:
    """A message as a line."""
    return message + b"\n"


class LineDecoder:
    """Takes chunks, gives whole messages; empty lines and lines that are no JSON object are left
    out, because many programs print to the same pipe.
    """

    def __init__(self, most: int = MOST_LINE) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0
        self._is_cut = False
        self._tail = b""
        """The end of a line that is too long to be kept."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The messages that this chunk completes."""
        found: list[bytes] = []
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._add(line)
            if message := self._ended():
                found.append(message)
        if rest:
            self._add(rest)
        return found

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._most:
            self._parts.append(part)
            return
        if not self._is_cut:
            self._is_cut = True
            kept = b"".join((*self._parts, part[:_EDGE]))
            # Only its edges, where the id may stand.
            self._parts, self._tail = [kept[:_EDGE]], kept[-_EDGE:]
        self._tail = (self._tail + part[-_EDGE:])[-_EDGE:]

    def _ended(self) -> bytes:
        line = b"".join(self._parts)
        size, tail = self._size, self._tail
        self._parts, self._size, self._tail, self._is_cut = [], 0, b"", False
        if size > self._most:
            return _too_long(line, tail, size)
        line = line.strip()
        return line if line.startswith(b"{") else b""


def _too_long(head: bytes, tail: bytes, size: int) -> bytes:
    """An error in place of a message of so many bytes; without an id where none was found."""
    found = _ID_FIRST.match(head) or _ID_LAST.search(tail)
    said = f"the answer has {size / 1e6:,.0f} MB, and {MOST_LINE / 1e6:,.0f} MB is the limit"
    error = {"code": TOO_LONG, "message": said}
    return msgspec.json.encode({"id": int(found[1]) if found else None, "error": error})
