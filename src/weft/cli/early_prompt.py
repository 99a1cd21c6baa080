"""The prompt before the program: greeting, rule, `›` and status, written with the standard library.

The libraries of the chat take a few hundred milliseconds to load.  Until then the terminal stays
in non-canonical mode with echo: what is typed is shown by the kernel and kept by it, and the screen
reads it when it takes over.  Nothing here may import more than the interpreter has loaded anyway.
"""

from __future__ import annotations

import os
import select
import sys
import termios

from weft import __version__
from weft.cli.git_branch import branch_of

# By hand: `typing` takes as long to load as the interpreter itself.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_QUIET, _PROMPT, _END = "\x1b[2m", "\x1b[1;36m", "\x1b[0m"
_BOLD_PROMPT = "\x1b[1m"


class EarlyPrompt:
    """What stands on the terminal before the screen does."""

    def __init__(self, greeting: str, columns: int) -> None:
        self.columns = columns
        self.kept: list[Any] = termios.tcgetattr(0)
        """The terminal's mode as it was."""
        prompt = _BOLD_PROMPT if os.environ.get("NO_COLOR") else _PROMPT
        self.rows = [
            f"{_QUIET}{greeting[:columns]}{_END}",
            f"{_QUIET}{'─' * columns}{_END}",
            f"{prompt}› {_END}",
            f"{_QUIET} starting…{_END}",
        ]
        self.is_there = True
        self._typed = b""
        self._shown = ""
        """What had been typed even before, as far as it is shown again."""

    def begin(self) -> None:
        """Write it, and let keys be typed."""
        mode = [*self.kept[:6], list(self.kept[6])]
        # Enter stays a carriage return, which Ctrl+J is not; echoed it is seen as `^M`.
        mode[0] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR)
        mode[3] = mode[3] & ~termios.ICANON | termios.ECHO | termios.ECHOCTL
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        termios.tcsetattr(0, termios.TCSANOW, mode)
        # What was typed before was echoed where the greeting goes: it is shown again in its place.
        self._typed = _pending()
        line = self._typed.decode("utf-8", "replace").partition("\n")[0]
        self._shown = line if line.isascii() and line.isprintable() else ""
        self._shown = self._shown[: max(0, self.columns - 4)]
        above, status = "\r\n".join(self.rows[:-1]), self.rows[-1]
        back = f"\x1b[1A\r\x1b[{2 + len(self._shown)}C"
        # Bracketed paste too: a paste of many lines must not be sent line by line.
        text = f"\r\x1b[2K{above}{self._shown}\r\n{status}{back}\x1b[?2004h"
        os.write(1, text.encode())

    def close(self) -> None:
        """Take it away and put the terminal back, unless the screen has taken over."""
        if not self.is_there:
            return
        self.is_there = False
        try:
            os.write(1, b"\r\x1b[2A\x1b[2K\x1b[C\x1b[J\r\x1b[?2004l")
            termios.tcsetattr(0, termios.TCSADRAIN, self.kept)
        except (OSError, termios.error):
            return

    def take_over(self) -> tuple[bytes, int]:
        """What was typed, and the row that the cursor is in; from now on the rows are the screen's.

        The terminal no longer echoes when this is called.
        """
        self.is_there = False
        typed = _pending()
        echoed = self._shown + typed.decode("utf-8", "replace")
        at = len(self.rows) - 2 + rows_below(echoed, self.columns)
        # Before this prompt the kernel turned Enter into a line feed, as for every program that
        # reads lines.
        return self._typed.replace(b"\n", b"\r") + typed, at


def _pending() -> bytes:
    """What has been typed and not read."""
    typed = b""
    try:
        while select.select([0], [], [], 0)[0] and (more := os.read(0, 1 << 16)):
            typed += more
    except OSError:
        return typed  # the terminal is gone: the next read says so
    return typed


def begin_prompt(folder: str) -> EarlyPrompt | None:
    """The early prompt, where the terminal can have one."""
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        return None
    if not (sys.stdout.encoding or "").lower().startswith("utf"):
        return None
    try:
        columns = os.get_terminal_size(1).columns
        prompt = EarlyPrompt(greeting(folder, __version__), columns or 80)
        prompt.begin()
    except (OSError, termios.error):
        return None
    return prompt


def greeting(folder: str, version: str, model: str = "") -> str:
    """`Weft 0.1.0 · calc (main) · claude-sonnet-5-5`"""
    folder = os.path.abspath(folder)
    name = os.path.basename(folder) or folder
    branch = branch_of(folder)
    where = f"{name} ({branch})" if branch else name
    parts = [f"Weft {version}", where if where.isprintable() else "", model]
    return " · ".join(part for part in parts if part)


def rows_below(typed: str, columns: int, start: int = 2) -> int:
    """How many rows the echo of what was typed has moved the cursor down."""
    from weft.cli.chat.paint.text_cells import cells, graphemes  # with the libraries

    row, column = 0, start
    for each in graphemes(typed):
        if each == "\n":
            row, column = row + 1, 0
            continue
        if each == "\t":
            column = min(columns - 1, column // 8 * 8 + 8)
            continue
        # The kernel echoes a control character as `^X`.
        wide = 2 if each < " " or each == "\x7f" else cells(each)
        if column + wide > columns:
            row, column = row + 1, 0
        column += wide
    return row
