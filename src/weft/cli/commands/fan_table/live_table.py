"""The live table of a fan-out: rows that are drawn over themselves, and keys that decide."""

from __future__ import annotations

import os
import sys
import termios
import tty
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import anyio

from weft.cli.commands.fan_table.rows import kept_lines, table_lines, taken_back
from weft.cli.sanitize import clean
from weft.errors import WeftError

if TYPE_CHECKING:
    from weft.api.fan import Fan

LOOK_SECONDS: Final = 0.5
"""How often the table is drawn."""
KEYS: Final = (
    "↑↓ or a number choose · d diff · = compare · k keep · x prune · u undo a prune",
    "r resume · s stop all · o open in the chat · q quit",
)
_ARROWS: Final = {b"\x1b[A": "up", b"\x1b[B": "down", b"\x1bOA": "up", b"\x1bOB": "down"}


class LiveTable:
    """A fan-out on a terminal, until the user quits; with `opens` they chose one to go on with."""

    def __init__(
        self,
        fan: Fan,
        *,
        read_key: Callable[[], Awaitable[str]],
        write: Callable[[str], None],
        width: Callable[[], int] = lambda: 200,
    ) -> None:
        self.opens = 0
        self._fan = fan
        self._read_key = read_key
        self._write = write
        self._width = width
        self._chosen = 0
        self._said: list[str] = []
        self._lines = 0
        self._begun = anyio.current_time()

    async def run(self) -> None:
        """Show it and do what keys say."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._keep_drawn)
            while True:
                key = await self._read_key()
                if key in ("q", "\x04", ""):
                    break
                try:
                    await self._press(key)
                except WeftError as error:
                    self._said = [str(error)]
                if self.opens:
                    break
                self.draw()
            group.cancel_scope.cancel()
        self.clear()

    async def _keep_drawn(self) -> None:
        while True:
            self.draw()
            await anyio.sleep(LOOK_SECONDS)

    def draw(self) -> None:
        """Show the candidates as they are now."""
        candidates = self._fan.candidates()
        numbers = [each.index for each in candidates]
        if numbers and self._chosen not in numbers:
            self._chosen = numbers[0]
        head, *rows = table_lines(candidates, anyio.current_time() - self._begun)
        lines = [f"  {head}"]
        for number, row in zip(numbers, rows, strict=True):
            lines.append(f"{'▸' if number == self._chosen else ' '} {row}")
        lines += [f"  {note}" for note in self._fan.notes]
        lines += [f"  {line}" for line in self._said]
        self.clear()
        width = self._width() - 1
        shown = [clean(line)[:width] for line in (*lines, *KEYS)]
        self._write("".join(f"{line}\n" for line in shown))
        self._lines = len(shown)

    def clear(self) -> None:
        """Take it away."""
        if self._lines:
            self._write(f"\x1b[{self._lines}A\x1b[J")
            self._lines = 0

    def _show(self, text: str) -> None:
        """Text that stays above the table."""
        self.clear()
        self._write(f"{clean(text).rstrip()}\n")

    async def _press(self, key: str) -> None:
        self._said = []
        numbers = [each.index for each in self._fan.candidates()]
        if key in ("up", "down") and numbers:
            place = numbers.index(self._chosen) + (1 if key == "down" else -1)
            self._chosen = numbers[max(0, min(place, len(numbers) - 1))]
        elif key.isdecimal() and int(key) in numbers:
            self._chosen = int(key)
        elif self._chosen and key in self._actions:
            await self._actions[key]()

    @property
    def _actions(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {
            "d": self._diff,
            "=": self._compare,
            "k": self._keep,
            "x": self._prune,
            "u": self._restore,
            "r": self._resume,
            "s": self._fan.stop,
            "o": self._open,
        }

    async def _diff(self) -> None:
        self._show(await self._fan.diff(self._chosen) or "it changed nothing")

    async def _compare(self) -> None:
        self._said = [f"compare {self._chosen} with which? press its number"]
        self.draw()
        key = await self._read_key()
        self._said = []
        if key.isdecimal():
            same = "they are the same"
            self._show(await self._fan.compare(self._chosen, int(key)) or same)

    async def _keep(self) -> None:
        """Show what would happen, ask, and do it."""
        number = self._chosen
        preview = await self._fan.keep(number, preview=True)
        marked = " · m with conflict markers" if preview.plan.paths("conflict") else ""
        self._said = [
            *kept_lines(preview, is_preview=True),
            f"put candidate {number} into the project? y yes{marked} · any other key: no",
        ]
        self.draw()
        key = await self._read_key()
        self._said = ["nothing was done"]
        if key == "y" or (key == "m" and marked):
            self._said = ["it is verified and put into the project…"]
            self.draw()
            outcome = await self._fan.keep(number, conflicts="markers" if key == "m" else "mine")
            said = kept_lines(outcome, is_preview=False)
            end = [taken_back(self._fan.session_id)] if outcome.is_kept else []
            self._said = [*said, *end]

    async def _prune(self) -> None:
        await self._fan.prune(self._chosen)
        self._said = ["its overlay is removed; u brings it back"]

    async def _restore(self) -> None:
        await self._fan.restore(self._chosen)

    async def _resume(self) -> None:
        await self._fan.resume([self._chosen])

    async def _open(self) -> None:
        if not self._fan.is_settled:
            self._said = ["others are at work; wait, or press s to stop them"]
            return
        self.opens = self._chosen


class TerminalKeys:
    """Keys as they are pressed, from standard input."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._waiting: deque[str] = deque()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Have keys handed over one by one, and not shown."""
        before = termios.tcgetattr(self._fd)
        try:
            tty.setcbreak(self._fd)
            yield
        finally:
            with suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSADRAIN, before)

    async def read(self) -> str:
        """The next one: a letter, `up` or `down`; empty at the end of the input."""
        while not self._waiting:
            await anyio.wait_readable(self._fd)
            data = os.read(self._fd, 64)
            if not data:
                return ""
            if data in _ARROWS:
                self._waiting.append(_ARROWS[data])
            elif not data.startswith(b"\x1b"):
                self._waiting.extend(data.decode(errors="replace"))
        return self._waiting.popleft()


def is_interactive() -> bool:
    """Whether there is a terminal to be drawn on, and keys to be read."""
    streams = (sys.stdin, sys.stderr)
    return all(each is not None and each.isatty() for each in streams)


def columns() -> int:
    """How wide the terminal is."""
    try:
        return os.get_terminal_size(2).columns or 80  # some terminals do not know
    except OSError:
        return 80


def to_terminal(text: str) -> None:
    """Write to the terminal: the result is what goes to the output."""
    sys.stderr.write(text)
    sys.stderr.flush()
