"""A terminal in memory: what a screen writes is interpreted by pyte, what is typed comes from the
test.
"""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pyte
from anyio.streams.memory import MemoryObjectReceiveStream

from tests.support.idle_loop import all_tasks_blocked
from weft.cli.chat.paint.theme import PaintTheme
from weft.cli.chat.screens.screen import Input
from weft.cli.chat.screens.terminal.region_painter import ScreenSize
from weft.cli.chat.screens.terminal.terminal_device import TerminalPort
from weft.cli.chat.screens.terminal_screen import TerminalScreen
from weft.clock import Clock, ManualClock


class MemoryWindow:
    """A window that cuts rows when it gets narrower, as xterm does."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self._screen = pyte.HistoryScreen(columns, rows, history=10_000, ratio=0.5)
        self._stream = pyte.Stream(self._screen)
        self._main: pyte.HistoryScreen | None = None
        self.written = ""

    def write(self, text: str) -> None:
        """Draw."""
        self.written += text
        # pyte has no words for these and would print what is behind the first letters.
        for sequence in ("\x1b[6n", "\x1b[22;0t", "\x1b[23;0t"):
            text = text.replace(sequence, "")
        text = re.sub(r"\x1b\[=\d;1u", "", text)
        for piece in re.split(r"(\x1b\[\?1049[hl])", text):
            if piece.startswith("\x1b[?1049"):
                self._alternate(is_on=piece.endswith("h"))
            else:
                self._stream.feed(piece)

    def _alternate(self, *, is_on: bool) -> None:
        """The alternate screen, which pyte has not; as large as the window is then."""
        columns, rows = self._screen.columns, self._screen.lines
        if is_on:
            self._main = self._screen
            self._screen = pyte.HistoryScreen(columns, rows, history=0, ratio=0.5)
        else:
            assert self._main is not None, "it left an alternate screen that it was not on"
            self._screen, self._main = self._main, None
            # pyte takes rows away at the top and leaves the cursor where it is.
            self._screen.cursor.y = max(0, self._screen.cursor.y - self._gone(rows))
            self._screen.resize(rows, columns)
        self._stream = pyte.Stream(self._screen)

    def _gone(self, rows: int) -> int:
        return max(0, self._screen.lines - rows)

    def is_alternate(self) -> bool:
        """The alternate screen is shown."""
        return self._main is not None

    @property
    def rows(self) -> list[str]:
        """What is on the screen."""
        return [row.rstrip() for row in self._screen.display]

    @property
    def text(self) -> str:
        """What is on the screen, without the empty rows below."""
        return "\n".join(self.rows).rstrip("\n")

    @property
    def history(self) -> list[str]:
        """What has scrolled off, and the screen."""
        top: Any = self._screen.history.top
        columns = range(self._screen.columns)
        return ["".join(row[n].data for n in columns).rstrip() for row in top] + self.rows

    @property
    def cursor(self) -> tuple[int, int]:
        """Row and column."""
        return self._screen.cursor.y, self._screen.cursor.x

    @property
    def has_cursor(self) -> bool:
        """The cursor is shown."""
        return not self._screen.cursor.hidden

    def style_of(self, text: str) -> Any:
        """The attributes of the first character of this text on the screen."""
        for number, row in enumerate(self._screen.display):
            if (column := row.find(text)) >= 0:
                return self._screen.buffer[number][column]
        raise AssertionError(f"{text!r} is not on the screen:\n{self.text}")


class MemoryTerminal(MemoryWindow, TerminalPort):
    """A terminal with a window in memory."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        super().__init__(columns, rows)
        self._typed, self._keys = anyio.create_memory_object_stream[bytes](math.inf)
        self._resized, self._resizes = anyio.create_memory_object_stream[object](math.inf)
        self._changed = anyio.Event()
        self.is_entered = False

    def enter(self) -> None:
        self.is_entered = True

    def leave(self, owed: int = 0) -> None:
        self.is_entered = False

    def early_rows(self) -> tuple[int, int] | None:
        return None

    def size(self) -> ScreenSize:
        return ScreenSize(self._screen.columns, self._screen.lines)

    def write(self, text: str) -> None:
        *asked, last = text.split("\x1b[6n")
        for piece in asked:
            super().write(f"{piece}\x1b[6n")
            row, column = self.cursor
            self.type(f"\x1b[{row + 1};{column + 1}R")
        super().write(last)
        self._changed.set()
        self._changed = anyio.Event()

    async def read(self) -> bytes:
        try:
            return await self._keys.receive()
        except anyio.EndOfStream:
            return b""

    def resizes(self) -> AbstractContextManager[AsyncIterator[object]]:
        return _opened(self._resizes)

    # -- the user

    def type(self, keys: str) -> None:
        """Type, in the bytes that a terminal sends."""
        if not keys:
            return  # no bytes would be the end
        self._typed.send_nowait(keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Another size."""
        self._screen.resize(rows, columns)
        self._resized.send_nowait(None)

    def hang_up(self) -> None:
        """The terminal goes away."""
        self._typed.close()

    def close(self) -> None:
        """Nothing more is typed or read."""
        for stream in (self._typed, self._keys, self._resized, self._resizes):
            stream.close()

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until something is drawn for which this holds."""
        try:
            with anyio.fail_after(10):
                while not holds():
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"that did not come up:\n{self.text}") from None

    async def shows(self, *texts: str) -> str:
        """Wait until these texts are on the screen; returns it."""
        await self.until(lambda: all(text in self.text for text in texts))
        return self.text


@contextmanager
def _opened(stream: MemoryObjectReceiveStream[object]) -> Any:
    yield stream


class DrivenScreen:
    """A terminal screen on a terminal in memory."""

    def __init__(self, screen: TerminalScreen, terminal: MemoryTerminal, clock: Clock) -> None:
        self.screen = screen
        self.terminal = terminal
        self.clock = clock

    def sent(self) -> list[Input]:
        """What the chat has been told since the last call."""
        found = []
        while self.screen._receiving.statistics().current_buffer_used:
            found.append(self.screen._receiving.receive_nowait())
        return found

    async def type(self, keys: str) -> None:
        """Type, and wait until it was dealt with."""
        self.terminal.type(keys)
        await all_tasks_blocked()

    def redraw(self) -> None:
        """Draw everything that waits to be drawn, now."""
        self.screen._draw_stream()


@asynccontextmanager
async def driven_screen(
    folder: Path, *, columns: int = 80, rows: int = 24, coloured: bool = False, **options: Any
) -> AsyncIterator[DrivenScreen]:
    """A screen that runs; its clock stands still."""
    terminal, clock = MemoryTerminal(columns, rows), ManualClock()
    screen = TerminalScreen(
        terminal,
        folder=str(folder),
        history=str(folder / "history" / "lines"),
        theme=PaintTheme(is_coloured=coloured),
        clock=clock,
        rewraps=False,
        **options,
    )
    try:
        async with anyio.create_task_group() as group:
            await group.start(screen.run)
            yield DrivenScreen(screen, terminal, clock)
            screen.close()
            group.cancel_scope.cancel()
    finally:
        terminal.close()
        screen._sending.close()
        screen._receiving.close()
