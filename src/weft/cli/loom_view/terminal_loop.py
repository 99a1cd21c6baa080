"""The terminal of the view: keys in, rows out, on the alternate screen.

A key is drawn at once; what streams waits for the next of ten drawings a second.  Of a frame
only the rows are written that have changed.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Protocol

import anyio
import anyio.abc
import anyio.to_thread

from weft.cli.chat.paint.text_cells import row_cells
from weft.cli.chat.screens.external_editor import edited
from weft.cli.chat.screens.terminal.block_viewer import OPEN, SHUT
from weft.cli.chat.screens.terminal.key_decoder import (
    KeyDecoder,
    KeyPress,
    PastedText,
    TerminalEvent,
)
from weft.cli.chat.screens.terminal.region_painter import ScreenSize
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.chat.screens.terminal.terminal_device import TerminalPort
from weft.cli.loom_view.text_rows import ViewFrame
from weft.clock import Clock, SystemClock

REDRAW_SECONDS = 0.1
ESCAPE_SECONDS = 0.05
"""A terminal sends a sequence in one burst: so long after an ESC, it was the key."""
FRAMES_PER_SECOND = 8
DRAWING_SHARE = 10
"""Between two drawings of a stream at least so many times what one takes."""
_RESET = "\x1b[0m"
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"


class LoopClient(Protocol):
    """What has the window."""

    @property
    def is_over(self) -> bool:
        """It has nothing more to show."""
        ...

    @property
    def is_moving(self) -> bool:
        """Something on it changes with time."""
        ...

    def press(self, key: str) -> None:
        """One key; what it changes is shown by the next frame."""
        ...

    def paste(self, text: str) -> None:
        """Pasted text; the same."""
        ...

    def refresh(self) -> None:
        """Look at what has changed."""
        ...

    def frame(self, size: ScreenSize) -> ViewFrame:
        """All rows of the window."""
        ...


class ViewTerminal:
    """A terminal that is the view's while it is taken."""

    def __init__(self, port: TerminalPort, styles: RowStyles, clock: Clock | None = None) -> None:
        self._port = port
        self._styles = styles
        self._clock = clock or SystemClock()
        self._decoder = KeyDecoder()
        self._events: deque[TerminalEvent] = deque()
        """Decoded, and not dealt with yet."""
        self._drawn: list[str] = []
        self._cursor: tuple[int, int] | None = None
        self._work, self._awake = anyio.Event(), anyio.Event()
        self._is_on = False

    @property
    def size(self) -> ScreenSize:
        """Of the window, now."""
        return self._port.size()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Have the alternate screen; it is given back whatever happens."""
        self._enter()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                self._leave()

    def _enter(self) -> None:
        self._port.enter()
        self._port.write(OPEN)
        self._drawn = []
        self._is_on = True

    def _leave(self) -> None:
        self._is_on = False
        self._port.write(SHUT)
        self._port.leave()

    def changed(self) -> None:
        """Something has changed: it is drawn in a moment."""
        self._work.set()
        self._awake.set()

    async def show(self, client: LoopClient) -> bool:
        """Give the window to a client until it is over; False when the terminal is gone."""
        has_terminal = False
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._keep_drawing, client)
                group.start_soon(self._tick, client)
                group.start_soon(self._watch_size)
                self._draw(client)
                has_terminal = await self._read_keys(client)
                group.cancel_scope.cancel()
        except* OSError:
            has_terminal = False
        return has_terminal

    async def edit(self, text: str) -> str | None:
        """Have the user change a text in their own editor.

        Raises:
            UsageError: there is none, or it failed.
        """
        async with self._away():
            return await anyio.to_thread.run_sync(edited, text, ".md")

    @asynccontextmanager
    async def _away(self) -> AsyncIterator[None]:
        """While another program has the terminal."""
        self._leave()
        try:
            yield
        finally:
            self._enter()
            self.changed()

    # -- keys

    async def _read_keys(self, client: LoopClient) -> bool:
        while not client.is_over:
            if not self._events:
                data = await self._port.read()
                if not data:
                    return False
                self._events += await self._decoded(data)
            self._take(client)
        return True

    async def _decoded(self, data: bytes) -> list[TerminalEvent]:
        found = self._decoder.feed(data)
        while self._decoder.pending:
            more = b""
            # What came before a lone ESC must not wait for what may follow it; but these are keys
            # of one moment.
            with anyio.move_on_after(ESCAPE_SECONDS):
                more = await self._port.read()
            found += self._decoder.feed(more) if more else self._decoder.flush()
        return found

    def _take(self, client: LoopClient) -> None:
        while self._events and not client.is_over:
            match self._events.popleft():
                case KeyPress(name="c-z"):
                    self._suspend()
                case KeyPress(name="c-l"):
                    self._drawn = []
                case KeyPress(name=name):
                    client.press(name)
                case PastedText(text=text):
                    client.paste(text)
                case _:
                    continue
        self._awake.set()
        if not client.is_over:
            self._draw(client)

    def _suspend(self) -> None:
        """Ctrl+Z: back to the shell until it brings us forward again."""
        self._leave()
        os.kill(os.getpid(), signal.SIGTSTP)
        self._enter()

    # -- drawing

    async def _keep_drawing(self, client: LoopClient) -> None:
        while True:
            await self._work.wait()
            self._work = anyio.Event()
            began = self._clock.monotonic()
            client.refresh()
            self._draw(client)
            took = self._clock.monotonic() - began
            await anyio.sleep(max(REDRAW_SECONDS, took * DRAWING_SHARE))

    async def _tick(self, client: LoopClient) -> None:
        """What moves by itself; nothing at all while nothing does."""
        while True:
            if client.is_moving:
                await anyio.sleep(1 / FRAMES_PER_SECOND)
                self._work.set()
            else:
                self._awake = anyio.Event()
                await self._awake.wait()

    async def _watch_size(self) -> None:
        with self._port.resizes() as resizes:
            async for _ in resizes:
                self._drawn = []
                self._work.set()

    def _draw(self, client: LoopClient) -> None:
        if not self._is_on:
            return
        size = self.size
        frame = client.frame(size)
        rows = [self._styles.written(row) for row in frame.rows[: size.rows]]
        rows += [""] * (size.rows - len(rows))
        is_new = len(self._drawn) != len(rows)
        before = [""] * len(rows) if is_new else self._drawn
        changed = [
            changed_part(number, old, row, size.columns)
            for number, (old, row) in enumerate(zip(before, rows, strict=True), start=1)
            if is_new or old != row
        ]
        if not changed and frame.cursor == self._cursor:
            return
        clear = "\x1b[2J" if is_new else ""
        place = "\x1b[?25l"
        if frame.cursor is not None:
            row, column = frame.cursor
            place = f"\x1b[{row + 1};{column + 1}H\x1b[?25h"
        # No wrapping: a character that is wider than we think must not push the rows down.
        text = f"{_BEGIN}\x1b[?25l\x1b[?7l{clear}{''.join(changed)}\x1b[?7h{place}{_END}"
        self._port.write(text)
        self._drawn, self._cursor = rows, frame.cursor


def changed_part(number: int, before: str, row: str, columns: int) -> str:
    """What is written to make one row of another: from the first word on that differs."""
    pairs = enumerate(zip(before, row, strict=False))
    same = next((n for n, (one, two) in pairs if one != two), min(len(before), len(row)))
    if row_cells(before) > columns:
        same = 0  # what did not fit has written over its own last cells
    attribute = row.rfind("\x1b", 0, same)
    if attribute >= 0 and not row.startswith(_RESET, attribute):
        # Inside of an attribute: it has to be set again.
        cut = attribute
    else:
        plain = attribute + len(_RESET) if attribute >= 0 else 0
        # Between two words: never inside of a character that takes several.
        cut = max(plain, row.rfind(" ", 0, same) + 1)
        cut = cut if cut <= same else max(0, attribute)
    rest = "\x1b[K" if row_cells(row) < columns else ""
    return f"\x1b[{number};{row_cells(row[:cut]) + 1}H{row[cut:]}{rest}"
