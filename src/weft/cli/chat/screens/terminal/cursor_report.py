"""Cursor reports: where the cursor is and how wide the window is, as the terminal itself says.

The size that the system gives may be the one before: terminals break rows again on their own.
"""

from __future__ import annotations

import anyio

from weft.cli.chat.screens.terminal.region_painter import RegionPainter, ScreenSize
from weft.cli.chat.screens.terminal.terminal_device import TerminalPort

QUIET_SECONDS = 0.08
"""A window that is dragged sends many sizes; it is drawn once after so long without another."""
REPLY_SECONDS = 0.15
SIZE_TRIES = 5


class CursorReports:
    """Asks the terminal for reports and takes them."""

    def __init__(self, terminal: TerminalPort, painter: RegionPainter) -> None:
        self._terminal = terminal
        self._painter = painter
        self._place: tuple[int, int] | None = None
        """Row of the cursor and width of the window, as the terminal said last."""
        self._answered = anyio.Event()

    def take(self, values: tuple[int, ...], columns: int) -> bool:
        """Take a report; True where it tells that a frame was torn.

        `columns` is the width as we know it.
        """
        frames = self._painter.frames
        if not frames.is_answer(values, columns):
            return False
        self._place = (values[0], values[1])
        is_torn = frames.answered(values[0], values[1])
        if not frames.unanswered:
            self._answered.set()
        return is_torn

    async def ask(self) -> tuple[int, int] | None:
        """Row of the cursor, from 1 on, and width of the window; None where the terminal does not
        say.
        """
        self._place, self._answered = None, anyio.Event()
        self._painter.ask_place()
        with anyio.move_on_after(REPLY_SECONDS):
            await self._answered.wait()
        # The answers come in order: before the last of them, it is that to an earlier question.
        return None if self._painter.frames.unanswered else self._place

    async def settled_size(self) -> tuple[ScreenSize, int | None]:
        """The size, and the row that the cursor is in then."""
        for _ in range(SIZE_TRIES):
            size, place = self._terminal.size(), await self.ask()
            # The window may change again while the terminal answers. And tmux tells of the next
            # size up to 250 ms after it has broken the rows.
            is_same = place is None or place[1] == size.columns
            if is_same and size == self._terminal.size():
                break
            await anyio.sleep(QUIET_SECONDS)
        return size, place[0] if place is not None else None
