"""Draws the bottom region: writes what changed of its rows, and leaves finished lines above it.

The region is the last rows of what was written, with the cursor inside.  All moves are relative, so
it does not matter where on the screen it stands.  Finished lines take the place of its first rows,
and the region goes on below them; rows that are there already are not written again, so text that
was drawn while it came settles without a byte.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from weft.cli.chat.paint.text_cells import row_cells
from weft.cli.chat.screens.terminal.frame_ledger import (
    ASK_WIDTH,
    FrameLedger,
    RecordLine,
    SentFrame,
    height_of,
    rows_within,
)

# A terminal that does not know synchronized output ignores both.
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
# A character that is wider than we think must not wrap and push the region down; nor may a row of a
# frame that meets a narrower window, or the rows could not be counted any more.
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"
# This row and all below.  From its second column on, because tmux, asked to clear from the first
# cell of the screen, moves what stands there into its history instead.
_CLEAR_BELOW = "\x1b[2K\x1b[C\x1b[J\r"


_LINE_FEED = "\r\n"
_MOST_INSERTED = 8
_RECORD_LINES = 64


class ScreenSize(NamedTuple):
    """Cells of the window."""

    columns: int
    rows: int


class RegionPainter:
    """One region on one terminal."""

    def __init__(self, write: Callable[[str], None], *, rewraps: bool = True) -> None:
        """`rewraps` says that the terminal breaks rows again when it gets narrower."""
        self._write = write
        self._rewraps = rewraps
        self.frames = FrameLedger(rewraps=rewraps)
        self._rows: list[str] = []
        self._at = 0
        """The row of the region that the cursor is in."""
        self._column = 0
        self._is_shown = True
        self._record: deque[RecordLine] = deque(maxlen=_RECORD_LINES)
        """The last lines above the region: those that were finished, and rows that scrolled off."""
        self._is_resized = False
        """The next frame erases what stands there, in one with it: the screen is never seen empty.
        """

    @property
    def rows(self) -> list[str]:
        """What stands there."""
        return self._rows

    def adopt(self, count: int, at: int) -> None:
        """So many rows were drawn by other means, with the cursor in this one; what is in them is
        not known, so all will be written.
        """
        # No row of ours holds the character, so none will be taken for one that stands there.
        self._rows = ["\0"] * count
        self._at, self._column = at, 0

    def draw(
        self,
        rows: Sequence[str],
        cursor: tuple[int, int] | None,
        *,
        above: Sequence[str] = (),
        columns: int = 0,
        height: int = 0,
        asks: bool = False,
    ) -> None:
        """Make the region these rows, with `above` finished above it.

        `columns` and `height` are the window's; 0 for one without a limit.  A finished line may be
        wider and is wrapped by the terminal, a row of the region may not.  `asks` has the terminal
        say how wide it is then.
        """
        # A region of no rows is an empty one: what comes next begins on a line of its own.
        rows = list(rows) or [""]
        total = [*above, *rows]
        goal = (len(above) + cursor[0], cursor[1]) if cursor is not None else None
        found = SentFrame(tuple(self._rows), self._at, self._column, up=self._at)
        erasure = ""
        if self._is_resized:
            erasure, found = self._erasure(columns)
        # More than the window holds is written from the top down.  To make room for it first would
        # scroll rows off that have to be written yet, and no move goes above the first row.
        moved = "" if 0 < height < len(total) else self._make_room(total, len(above), columns)
        changes = self._changes(total, len(above), columns, moved)
        if changes is not None or goal != self._goal():
            at, text = changes or (self._at, "")
            asks = asks and self.frames.is_asking
            question = f"{ASK_WIDTH}\r" if asks else ""
            place = self._place(at, goal)
            self._write(f"{_BEGIN}{question}{_NO_WRAP}{erasure}{text}{place}{_WRAP}{_END}")
            if asks:
                self.frames.sent(found._replace(above=tuple(above), columns=columns))
        self._record.extend(map(RecordLine, above))
        self._rows = rows
        self._at -= len(above)

    def _goal(self) -> tuple[int, int] | None:
        return (self._at, self._column) if self._is_shown else None

    def _changes(
        self, total: list[str], settled: int, columns: int, moved: str
    ) -> tuple[int, str] | None:
        """What to write behind `moved`, which made room, and the row in which that leaves the
        cursor; None for nothing.
        """
        old = self._rows
        first = next(
            (n for n, row in enumerate(total) if n >= len(old) or row != old[n]), len(total)
        )
        if first == len(total) == len(old):
            return (self._at, moved) if moved else None
        out = [_HIDE if self._is_shown else "", moved]
        # Something has to be written in the last row when rows below it go.
        first = min(first, len(total) - 1)
        out.append(f"{_down(first - self._at)}\r" if first < len(old) else "")
        at = first
        if first >= len(old) and old:
            out.append(f"{_down(len(old) - 1 - self._at)}\r\n")
        is_shifted = False
        for number in range(first, len(total)):
            row = total[number]
            is_last = number == len(total) - 1
            is_same = not is_shifted and number < len(old) and row == old[number]
            if is_same and not is_last:
                continue
            if number > at:
                # Existing rows are passed by moving, new ones are made by line feeds.
                out.append(_next_rows(at, number, len(old)))
            at = number
            is_wide = number < settled and columns > 0 and row_cells(row) > columns
            # Cleared before it is written: behind a full row the cursor stands in its last column,
            # and clearing would take that character.  The last row is cleared with all below it,
            # and so is one that the terminal will break over several.
            out.append(_CLEAR_BELOW if is_last or is_wide else "\x1b[2K")
            is_shifted = is_shifted or is_wide
            out.append(f"{_WRAP}{row}{_NO_WRAP}" if is_wide else row)
        return at, "".join(out)

    def _make_room(self, total: list[str], settled: int, columns: int) -> str:
        """Push the rows down that stay as they are, when rows come in above them.

        An answer that grows by a row would have all below it written again, the rule first.
        """
        old, more = self._rows, len(total) - len(self._rows)
        same = 0
        while same < len(old) and same < len(total) and total[-1 - same] == old[-1 - same]:
            same += 1
        # A line that the terminal breaks takes more rows than one.
        is_wide = columns > 0 and any(row_cells(row) > columns for row in total[:settled])
        if not 0 < more <= _MOST_INSERTED or not 0 < same < len(old) or is_wide:
            return ""
        keep = len(old) - same
        down, back = _down(len(old) - 1 - self._at), _down(-(same - 1 + more))
        # Line feeds in the last row make room below; then the rows that stay are pushed into it.
        text = f"{down}{_LINE_FEED * more}{back}\r\x1b[{more}L"
        self._rows = [*old[:keep], *[""] * more, *old[keep:]]
        self._at = keep
        return text

    def _place(self, at: int, goal: tuple[int, int] | None) -> str:
        """Move the cursor to where it belongs."""
        if goal is None:
            self._at, self._column, self._is_shown = at, 0, False
            return f"\r{_HIDE}"
        row, column = goal
        self._at, self._column, self._is_shown = row, column, True
        right = f"\x1b[{column}C" if column else ""
        return f"{_down(row - at)}\r{right}{_SHOW}"

    def erase(self) -> None:
        """Take the region away; the cursor stays where it began."""
        if self._rows or self._at:
            # Nothing is erased at another width: that has to be counted, and a frame follows then.
            self._is_resized = False
            self._write(f"{_BEGIN}{_down(0 - self._at)}\r{_CLEAR_BELOW}{_SHOW}{_END}")
        self._rows, self._at, self._column, self._is_shown = [], 0, 0, True
        self.frames.forget()
        self._keep_stale_rows()

    def forget(self) -> None:
        """What was drawn is no longer ours: the screen was cleared, or another program had it."""
        self._rows, self._at, self._column, self._is_resized = [], 0, 0, False
        self.frames.forget()
        self._keep_stale_rows()

    def _keep_stale_rows(self) -> None:
        """Others may write below them now: they can't be found by counting any more."""
        self._record = deque((RecordLine(line.text) for line in self._record), _RECORD_LINES)

    # -- resize

    def ask_place(self) -> None:
        """Ask for the row of the cursor and the width, without a frame."""
        self.frames.sent(None)
        # Saved and restored: breaking rows again moves a cursor that stands far right.
        self._write(f"\x1b7{ASK_WIDTH}\x1b8")

    def rows_above_cursor(self, columns: int) -> int:
        """How many rows of the window are ours above the cursor at this width.

        A terminal that rewraps has broken rows that are too wide now; another has cut them.
        """
        frames = self.frames
        rows = [*frames.leftovers, *map(frames.as_drawn, self._rows[: self._at])]
        if not self._rewraps:
            return len(rows)
        column = min(self._column, frames.width - 1) if frames.width else self._column
        return sum(height_of(row, columns) for row in rows) + column // columns

    def leave_rows(self, height: int, columns: int, *, said: int = 0) -> list[str]:
        """After a resize: so many rows of the window have scrolled off and can't be erased.

        The rows that they belong to stay where they are, and the region begins below them; returns
        these rows.  The first `said` rows of the region are text that is printed by that.
        """
        if self.frames.leftovers:
            left = self.frames.left(height, columns)
            said = len(left)
        else:
            count = rows_within(self._rows[: self._at], height, columns)
            left, self._rows = self._rows[:count], self._rows[count:]
            self._at -= count
        # A window that grows again brings them back, and a frame may erase them there.
        self._record.extend(RecordLine(row, at >= said) for at, row in enumerate(left))
        return left

    def bring_back_rows(self, height: int, columns: int) -> list[str]:
        """After a resize: so many rows of the window stand above the region, some of them perhaps
        again.

        Rows of the region that had scrolled off are erased with it by the next frame; returns the
        finished lines below them, which go with them and are to be printed again.
        """
        # What stands below a torn frame's leftovers is not known row by row.
        count = (
            0 if self.frames.width or self.frames.leftovers else self._stale_depth(height, columns)
        )
        back = [self._record.pop() for _ in range(count)][::-1]
        self._rows = [*(line.text for line in back), *self._rows]
        self._at += count
        return [line.text for line in back if not line.is_stale]

    def _stale_depth(self, height: int, columns: int) -> int:
        """How many lines above the region, within so many rows of the window, there are down from
        the first stale one.
        """
        depth = 0
        for count, line in enumerate(reversed(self._record), 1):
            # One that a terminal which does not rewrap broke at another width can't be counted.
            if height <= 0 or (not self._rewraps and row_cells(line.text) > columns):
                break
            height -= height_of(line.text, columns)
            depth = count if line.is_stale else depth
        return depth

    def erase_resized(self) -> list[str]:
        """Have the next frame erase the region by the height that it has at the frame's width;
        returns the finished lines that go with it and are to be printed again.
        """
        self._is_resized = True
        lost, self.frames.lost = self.frames.lost, []
        return lost

    def _erasure(self, columns: int) -> tuple[str, SentFrame]:
        """What erases the region at this width, and what it erases."""
        above, frames = self.rows_above_cursor(columns), self.frames
        rows = (*frames.leftovers, *map(frames.as_drawn, self._rows))
        at, record = len(frames.leftovers) + self._at, tuple(self._record)
        true = frames.true_rows
        found = SentFrame(rows, at, self._column, up=above, record=record, true=true)
        frames.settle()
        self._rows, self._at, self._column, self._is_resized = [], 0, 0, False
        return f"{_down(-above)}\r{_CLEAR_BELOW}", found


def _down(rows: int) -> str:
    if rows == 0:
        return ""
    return f"\x1b[{rows}B" if rows > 0 else f"\x1b[{-rows}A"


def _next_rows(at: int, goal: int, existing: int) -> str:
    """From the end of one row to the beginning of a later one."""
    # A line feed works for both kinds of rows, but each costs two bytes and rows that exist can be
    # passed in one move.
    if goal - at > 1 and goal < existing:
        return f"{_down(goal - at)}\r"
    return "\r\n" * (goal - at)
