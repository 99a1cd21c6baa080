"""The user's terminal: its modes, its size, bytes in and text out.

Raw input: every key comes as bytes at once, Ctrl-C included.
"""

from __future__ import annotations

import os
import re
import select
import signal
import termios
import time
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

import anyio

from weft.cli.chat.screens.terminal.region_painter import ScreenSize
from weft.cli.early_prompt import EarlyPrompt
from weft.file_io import write_all

ON = "\x1b[?2004h\x1b[?1004h\x1b[=1;1u"
"""Bracketed paste, focus reports, and keys that say which they are (Shift+Enter)."""
OFF = "\x1b[0m\x1b[?25h\x1b[?7h\x1b[?2026l\x1b[?2004l\x1b[?1004l\x1b[=0;1u"
"""All of it off; the program writes the same once more when it ends.  So the codes of keys are set
and not pushed: a second pop would take what the user's shell has pushed.
"""
_READ = 1 << 16
_ANSWER = re.compile(rb"\x1b\[\d+;\d+R")
_ANSWER_SECONDS = 0.1


class TerminalPort(Protocol):
    """What a screen needs of a terminal."""

    def enter(self) -> None:
        """Take it: raw keys from now on."""
        ...

    def leave(self, owed: int = 0) -> None:
        """Give it back as it was; `owed` is how many answers it has still to give."""
        ...

    def early_rows(self) -> tuple[int, int] | None:
        """Rows that stand there when it is taken first, and the one that the cursor is in; None
        for none.
        """
        ...

    def size(self) -> ScreenSize:
        """Its size now."""
        ...

    def write(self, text: str) -> None:
        """Write now.

        Raises:
            OSError: the terminal is gone.
        """
        ...

    async def read(self) -> bytes:
        """Wait for input; empty when the terminal is gone."""
        ...

    def resizes(self) -> AbstractContextManager[AsyncIterator[object]]:
        """One item for each change of the size."""
        ...


class TerminalDevice(TerminalPort):
    """The terminal on standard input and output."""

    def __init__(self, early: EarlyPrompt | None = None) -> None:
        """`early` is the prompt that stands there already."""
        self._early = early
        self._typed = b""
        self._kept: list[Any] | None = early.kept if early is not None else None
        self._ours = anyio.Event()
        """Set while the terminal is ours; another program may have it in between."""

    def enter(self) -> None:
        self._ours.set()
        try:
            # A program that had the terminal before may have left it non-blocking; half of a frame
            # would be lost then.
            os.set_blocking(1, True)
            mode: list[Any] = termios.tcgetattr(0)
        except (OSError, termios.error):
            return
        if self._kept is None:
            self._kept = [*mode[:6], list(mode[6])]
        mode[0] &= ~(termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR)
        mode[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        # NOW and not FLUSH: what was typed in advance stays.
        termios.tcsetattr(0, termios.TCSANOW, mode)
        self.write(ON)

    def leave(self, owed: int = 0) -> None:
        self._ours = anyio.Event()
        try:
            self.write(OFF)
            self._typed += _without_answers(owed)
            if self._kept is not None:
                termios.tcsetattr(0, termios.TCSADRAIN, self._kept)
        except (OSError, termios.error):
            return

    def early_rows(self) -> tuple[int, int] | None:
        early, self._early = self._early, None
        if early is None:
            return None
        self._typed, at = early.take_over()
        return len(early.rows), at

    def size(self) -> ScreenSize:
        try:
            columns, rows = os.get_terminal_size(1)
        except OSError:
            columns, rows = 80, 24
        return ScreenSize(columns or 80, rows or 24)

    def write(self, text: str) -> None:
        write_all(1, text.encode("utf-8", "replace"))

    async def read(self) -> bytes:
        if self._typed:
            typed, self._typed = self._typed, b""
            return typed
        while True:
            await self._ours.wait()
            await anyio.wait_readable(0)
            # What was typed may be for the program that has the terminal now.
            if not self._ours.is_set():
                continue
            try:
                return os.read(0, _READ)
            except BlockingIOError:
                continue
            except OSError:
                return b""

    def resizes(self) -> AbstractContextManager[AsyncIterator[object]]:
        return anyio.open_signal_receiver(signal.SIGWINCH)


def _without_answers(count: int) -> bytes:
    """Read so many answers about the cursor's place; returns what was typed between them.

    The next program would take them for keys.  A terminal that gives none is not waited for.
    """
    typed, until = b"", time.monotonic() + _ANSWER_SECONDS
    while count > 0 and (left := until - time.monotonic()) > 0:
        if select.select([0], [], [], left)[0]:
            data = os.read(0, _READ)
            if not data:
                break
            typed, found = _ANSWER.subn(b"", typed + data)
            count -= found
    return typed
