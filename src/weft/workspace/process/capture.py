"""Output capture: what a program prints, however much it is.

The head and the tail are kept in memory, the whole up to a cap in an unlinked temporary file; what
comes after is counted and thrown away, so a flood costs no memory and is never a reason to kill the
program.  Watchers get the output as it comes, up to a cap too.

Of a program that has no foreseeable end only head and tail are kept, and its watcher, which has a
bound of its own, gets everything.
"""

from __future__ import annotations

import codecs
import logging
import math
from collections.abc import Callable
from typing import IO

HEAD_BYTES = 64 * 1024
TAIL_BYTES = 64 * 1024
WHOLE_BYTES = 8 * 1024 * 1024
LIVE_CHARACTERS = 256 * 1024

_logger = logging.getLogger(__name__)


class OutputCapture:
    """Takes chunks in; gives text, and the whole, at the end."""

    def __init__(
        self, on_output: Callable[[str], None] | None = None, *, is_endless: bool = False
    ) -> None:
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()
        self._spill: IO[bytes] | None = None
        # "Full" from the start: an endless program would fill the disk up to the cap for nothing.
        self._spilled = WHOLE_BYTES if is_endless else 0
        limit = math.inf if is_endless else LIVE_CHARACTERS
        self._live = None if on_output is None else _Live(on_output, limit)

    @property
    def is_cut(self) -> bool:
        """True when the text will not hold everything."""
        return self.total > HEAD_BYTES + TAIL_BYTES

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes in."""
        was_whole = not self.is_cut
        self.total += len(chunk)
        if self.is_cut:
            # The file begins when the memory is full for the first time, so what is in memory goes
            # first.
            self._keep_whole(bytes(self._head + self._tail) + chunk if was_whole else chunk)
        room = HEAD_BYTES - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > 2 * TAIL_BYTES:  # trimmed now and then, so that each byte moves once
            del self._tail[:-TAIL_BYTES]
        if self._live is not None:
            self._live.feed(chunk)

    def text(self) -> str:
        """Everything as text, or head and tail with a line between them that says what is
        missing.
        """
        if not self.is_cut:
            return (self._head + self._tail).decode(errors="replace")
        tail = self._tail[-TAIL_BYTES:]
        missing = self.total - len(self._head) - len(tail)
        return (
            f"{_without_torn_end(self._head)}\n[… {missing:,} bytes are not shown …]\n"
            f"{_without_torn_start(tail)}"
        )

    def whole(self) -> bytes | None:
        """The output up to the cap, where `text` was cut.

        None where it was not, or there was no disk for it.
        """
        if self._spill is None:
            return None
        self._spill.seek(0)
        return self._spill.read()

    def close(self) -> None:
        """Give the temporary file back."""
        if self._spill is not None:
            self._spill.close()
            self._spill = None

    def _keep_whole(self, data: bytes) -> None:
        room = WHOLE_BYTES - self._spilled
        if room <= 0:
            return
        try:
            if self._spill is None:
                import tempfile  # costs milliseconds, and few programs print so much

                self._spill = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as we do
            self._spill.write(data[:room])
            self._spilled += len(data[:room])
        except OSError:
            # No disk: head and tail are what there is.
            self.close()
            self._spilled = WHOLE_BYTES


class _Live:
    """Output for watchers while the program runs."""

    def __init__(self, on_output: Callable[[str], None], limit: float) -> None:
        self._on_output: Callable[[str], None] | None = on_output
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._left = limit

    def feed(self, chunk: bytes) -> None:
        if self._on_output is None:
            return
        text = self._decoder.decode(chunk)
        if len(text) > self._left:
            text = text[: int(self._left)] + "\n[… further output is not shown while it runs …]\n"
            self._left = 0
        else:
            self._left -= len(text)
        try:
            if text:
                self._on_output(text)
        except Exception:
            _logger.exception("a watcher of a program's output failed; it gets no more")
            self._on_output = None
        if not self._left:
            self._on_output = None


def _without_torn_end(data: bytearray) -> str:
    """Text of a head that may end inside a character."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(data))


def _without_torn_start(data: bytearray) -> str:
    """Text of a tail that may start inside a character: up to three bytes belong to the
    one before.
    """
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:].decode(errors="replace")
