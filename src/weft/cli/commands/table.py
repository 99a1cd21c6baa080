"""Tables on standard output: aligned where there is room, and never wider than the window."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from weft.cli.sanitize import clean_line
from weft.cli.stdio import write_line


def print_table(rows: Sequence[Sequence[str]], *, head: Sequence[str] = ()) -> None:
    """Print rows in columns; the last column is cut to fit a terminal, and kept whole elsewhere."""
    table = [[clean_line(cell) for cell in row] for row in ([head, *rows] if head else rows)]
    if not table:
        return
    widths = [max(len(row[place]) for row in table) for place in range(len(table[0]))]
    width = _width()
    for row in table:
        line = "  ".join(f"{cell:{widths[place]}}" for place, cell in enumerate(row)).rstrip()
        write_line(line if width is None or len(line) <= width else f"{line[: width - 1]}…")


def when(at: float) -> str:
    """A time of day, for people; empty for one that no calendar has."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) if at else ""
    except (ValueError, OverflowError, OSError):
        return ""


def money(cost: float | None) -> str:
    """A sum, for people."""
    return "unknown" if cost is None else f"${cost:.4f}"


def _width() -> int | None:
    """Of the terminal; None where there is none."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    try:
        return os.get_terminal_size(1).columns
    except OSError:
        return None
