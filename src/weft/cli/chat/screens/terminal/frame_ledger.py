"""The frames that were written, and how wide the terminal says it was when it drew each of them.

A window changes its size whenever it likes: a frame that was measured for the old width may be
drawn at the new one, because it was on its way, or because the program has not been told yet.  No
look at the size before writing closes that gap.  So a frame asks the terminal for its width in
front of its first row, and the answer tells the true one.  A frame that met a narrower window is
*torn*: the terminal had broken the rows that stood there over more rows than were counted, so the
frame began too far down, with leftovers above it, and its own rows were cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from weft.cli.chat.paint.text_cells import (
    cells,
    fit_row,
    row_behind,
    row_cells,
    without_attributes,
)

ASK_WIDTH = "\x1b[9999C\x1b[6n"
"""The cursor goes as far right as it can, and says where it is: the column is the width."""
MOST_UNANSWERED = 48
"""A terminal that owes so many answers gives none; it is not asked any more."""
_F3_MODIFIERS = 8


class RecordLine(NamedTuple):
    """A line above the region."""

    text: str
    is_stale: bool = False
    """A row of the region that scrolled off in a window which became too low for it."""


class SentFrame(NamedTuple):
    """A frame on its way to the terminal."""

    rows: tuple[str, ...]
    """The rows that it found, as far as we knew."""
    at: int
    """The one of them that the cursor was in, and the column."""
    column: int
    up: int
    """The rows of the window that it takes to be above the cursor."""
    above: tuple[str, ...] = ()
    """Finished lines that it brought."""
    columns: int = 0
    """The width that it was measured for."""
    record: tuple[RecordLine, ...] = ()
    """For one that erases first: the lines above what it erases."""
    true: int | None = None
    """How many of the rows, from the first on, are true text; None for all of them."""


class FrameLedger:
    """Frames without an answer, and what the torn ones have left on the screen."""

    def __init__(self, *, rewraps: bool = True) -> None:
        """`rewraps` says that the terminal breaks rows again when it gets narrower."""
        self._rewraps = rewraps
        self._sent: deque[SentFrame | None] = deque()
        """In the order of their answers; None for one that no longer matters."""
        self._is_asking = True
        self.width = 0
        """The width at which the last torn frame was drawn; 0 for none."""
        self.leftovers: list[str] = []
        """Rows above the region that have to go, from the top down."""
        self._stale = 0
        """How many of them, from the first on, are rows of the region as it was: true text."""
        self.lost: list[str] = []
        """Finished lines that were cut, to be printed once more."""

    @property
    def is_asking(self) -> bool:
        """Whether the terminal answers, as far as is known."""
        return self._is_asking

    @property
    def unanswered(self) -> int:
        """Answers that the terminal owes."""
        return len(self._sent)

    def sent(self, frame: SentFrame | None) -> None:
        """A frame was written with a question for the width; None for a question without one."""
        self._sent.append(frame)
        if len(self._sent) > MOST_UNANSWERED:
            self._is_asking = False
            self._sent.clear()

    def forget(self) -> None:
        """What was drawn is gone, so it does not matter how; the answers still come."""
        self._sent = deque(None for _ in self._sent)
        self.settle()

    def forgive(self) -> int:
        """The answers that are owed will be taken by others; returns how many these are."""
        owed = len(self._sent)
        self._sent.clear()
        return owed

    def settle(self) -> None:
        """The leftovers are gone."""
        self.leftovers, self.lost, self.width = [], [], 0
        self._stale = 0

    def left(self, height: int, columns: int) -> list[str]:
        """The first leftovers have scrolled off, as many as stand in so many rows of the window;
        returns those of them that are true text.
        """
        count = rows_within(self.leftovers, height, columns)
        true = self.leftovers[: min(count, self._stale)]
        # Behind the stale rows stands what a torn frame wrote, which was cut.
        self._stale -= len(true)
        del self.leftovers[:count]
        return true

    def is_answer(self, values: tuple[int, ...], columns: int) -> bool:
        """Whether a report of the cursor answers a question; F3 with Shift or Ctrl looks alike."""
        is_key = values[0] == 1 and values[1] <= _F3_MODIFIERS < columns
        return bool(self._sent) and not is_key

    def answered(self, row: int, width: int) -> bool:
        """The next frame found the cursor in this row, from 1 on, and was drawn at this width; True
        when it was torn.
        """
        frame = self._sent.popleft() if self._sent else None
        if frame is None:
            return False
        # The cursor does not go above the first row of the window.
        frame = frame._replace(up=min(frame.up, row - 1))
        if width >= frame.columns and not self.width:
            self.lost += self._erased(frame, width)
            return bool(self.lost)
        self._tear(frame, width)
        return True

    def _erased(self, frame: SentFrame, width: int) -> list[str]:
        """Lines of the record that went with a region which was lower than it was thought: the
        window had grown, and broken rows were whole again.
        """
        if not frame.record or not self._rewraps:
            return []
        excess = frame.up - self._height(list(frame.rows), frame, width)
        lines: list[str] = []
        for line in reversed(frame.record):
            if excess <= 0:
                break
            if not line.is_stale:
                lines.insert(0, line.text)
            excess -= height_of(line.text, width)
        return lines

    def _height(self, rows: list[str], frame: SentFrame, width: int) -> int:
        """The rows of the window above the cursor when a frame came."""
        return sum(height_of(row, width) for row in rows[: frame.at]) + frame.column // width

    @property
    def true_rows(self) -> int | None:
        """How many of the leftovers, and of the rows behind them, are true text; None for all."""
        return self._stale if self.leftovers else None

    def as_drawn(self, row: str) -> str:
        """What stands there of a row of the region: that of a torn frame was cut."""
        return fit_row(row, self.width) if self.width else row

    def _tear(self, frame: SentFrame, width: int) -> None:
        # What an earlier torn frame wrote was cut at its width.
        found = [self.as_drawn(row) for row in frame.rows]
        stale = self._above(found, frame, width) if self._rewraps else []
        if not self.leftovers:
            self._stale = len(stale) if frame.true is None else min(len(stale), frame.true)
        self.leftovers += stale
        for line in frame.above:
            # Wider than the window that it was meant for: the terminal was to break it anyhow.
            is_wide = row_cells(line) > frame.columns
            self.leftovers.append(line if is_wide else fit_row(line, width))
        self.lost += frame.above
        self.width = width

    def _above(self, rows: list[str], frame: SentFrame, width: int) -> list[str]:
        """The rows that stay above a frame which began too far down; of the last of them what the
        frame has not covered.
        """
        excess = self._height(rows, frame, width) - frame.up
        stale: list[str] = []
        for row in rows:
            if excess <= 0:
                break
            stale.append(fit_row(row, excess * width))
            excess -= height_of(row, width)
        return stale


def height_of(row: str, columns: int) -> int:
    """The rows of the window that a row takes when the terminal breaks it."""
    return max(1, -(-row_cells(row) // columns))


def rows_within(rows: Sequence[str], height: int, columns: int) -> int:
    """How many rows it takes to fill so many rows of the window."""
    count = 0
    while height > 0 and count < len(rows):
        height -= height_of(rows[count], columns)
        count += 1
    return count


def lines_behind(lines: Sequence[str], printed: Sequence[str]) -> tuple[int, str]:
    """How many of these lines are printed already, when `printed` is; and the end of the last of
    them, where a part of it is not.

    Compared by their letters: the same text may have been broken for another width.
    """
    left = "".join(map(_letters, printed))
    for number, line in enumerate(lines):
        text = _letters(line)
        if not left or not (left.startswith(text) or text.startswith(left)):
            return number, ""
        if len(left) < len(text):
            return number + 1, _behind(line, len(left))
        left = left[len(text) :]
    return len(lines), ""


def _letters(row: str) -> str:
    return "".join(without_attributes(row).split())


def _behind(line: str, count: int) -> str:
    """The end of a line behind so many letters."""
    text = without_attributes(line)
    at = next(n for n in range(len(text) + 1) if len(_letters(text[:n])) == count)
    return row_behind(line, cells(text[:at])).lstrip()
