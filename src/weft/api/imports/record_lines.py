"""Records of a file with a JSON object on each line, read in bounds.

The file is another program's, or anybody's: a line may be of any length, may be damaged, and the
last one may be half a line because its program was killed.  What is whole is handed on; what is
not is counted, and said in a sentence.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from weft.errors import UsageError
from weft.sha256 import sha256

MOST_BYTES: Final = 512 * 1024 * 1024
"""Of one file; what is behind them is not read."""
LONGEST_LINE: Final = 16 * 1024 * 1024
_CHUNK: Final = 1024 * 1024
_DAMAGE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class RecordLines:
    """The records of a file, one after the other.  Blocks."""

    def __init__(self, path: Path) -> None:
        """Open nothing yet."""
        self.path = path
        self._digest = sha256(b"")
        self._damaged = 0
        self._first_damaged = 0
        self._too_long = 0
        self._ends_open = False
        self._is_cut = False
        self._skipping = False

    @property
    def digest(self) -> str:
        """SHA-256 of what was read."""
        return self._digest.hexdigest()

    @property
    def problems(self) -> tuple[str, ...]:
        """What was not whole, a sentence each."""
        said: list[str] = []
        if self._is_cut:
            said.append(f"only its first {MOST_BYTES // 1024 // 1024} MiB were read")
        if self._damaged:
            lines = "line is" if self._damaged == 1 else "lines are"
            first = f"line {self._first_damaged} first"
            said.append(f"{self._damaged} {lines} damaged and left out, {first}")
        if self._too_long:
            lines = "line is" if self._too_long == 1 else "lines are"
            most = LONGEST_LINE // 1024 // 1024
            said.append(f"{self._too_long} {lines} longer than {most} MiB and left out")
        if self._ends_open:
            said.append("it ends in the middle of a line; what was whole before it is there")
        return tuple(said)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The records.

        Raises:
            UsageError: the file cannot be read.
        """
        for number, line in enumerate(self._lines(), 1):
            if line is None or not line.strip():
                continue
            try:
                yield msgspec.json.decode(line, type=dict[str, Any])
            except _DAMAGE:
                # Counted only: a file may be nothing but damaged lines, a quarter of a billion.
                self._damaged += 1
                self._first_damaged = self._first_damaged or number

    def _lines(self) -> Iterator[bytes | None]:
        """Whole lines; None for each that is too long."""
        rest = bytearray()
        for chunk in self._chunks():
            rest += chunk
            *whole, last = bytes(rest).split(b"\n") if b"\n" in chunk else (bytes(rest),)
            for line in whole:
                yield self._checked(line)
            rest = bytearray(last)
            if len(rest) > LONGEST_LINE:
                # Only that it goes on is remembered, whatever its length.
                self._skipping = True
                rest.clear()
        if rest or self._skipping:
            yield self._last(bytes(rest))

    def _checked(self, line: bytes) -> bytes | None:
        if self._skipping or len(line) > LONGEST_LINE:
            self._skipping = False
            self._too_long += 1
            return None
        return line

    def _last(self, line: bytes) -> bytes | None:
        """The last line, which no line break ends: whole, or cut off by whatever ended it."""
        checked = None if self._is_cut else self._checked(line)
        try:
            if checked is not None:
                msgspec.json.decode(checked)
        except _DAMAGE:
            self._ends_open = True
            return None
        return checked

    def _chunks(self) -> Iterator[bytes]:
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
        try:
            with open(os.open(self.path, flags), "rb", buffering=0) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise UsageError(f"{str(self.path)!r} is not a file")
                left = MOST_BYTES
                while left > 0 and (chunk := file.read(min(_CHUNK, left))):
                    self._digest.update(chunk)
                    left -= len(chunk)
                    yield chunk
                self._is_cut = left <= 0 and bool(file.read(1))
        except OSError as error:
            raise UsageError(f"cannot read {str(self.path)!r}: {error.strerror}") from error
