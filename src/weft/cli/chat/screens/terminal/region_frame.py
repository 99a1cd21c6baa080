"""The frame of the bottom region: its parts from top to bottom, within the rows that it may take.

At most half the rows of the window; a question all but three; the input a third; the text in flight
a third.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from weft.cli.chat.screens.line_input.input_rows import InputRows
from weft.cli.chat.screens.terminal.region_painter import ScreenSize


class RegionParts(NamedTuple):
    """The rows of each part."""

    answer: list[str]
    tools: list[str]
    question: list[str]
    """A question, or the activity line."""
    todo: list[str]
    queue: list[str]
    rule: str
    input: InputRows | None
    """None while a question has the keyboard and nothing was being typed."""
    below: list[str]
    """Completions or keys."""
    status: str
    is_question: bool = False


class RegionFrame(NamedTuple):
    """The rows, and the cursor among them."""

    rows: list[str]
    cursor: tuple[int, int] | None


def input_limit(size: ScreenSize) -> int:
    """Rows that the input may take."""
    return max(1, size.rows // 3)


def answer_limit(size: ScreenSize) -> int:
    """Rows that the text in flight may take."""
    return max(2, size.rows // 3)


def question_limit(size: ScreenSize, held: InputRows | None, below: Sequence[str]) -> int:
    """Rows that a question may take, with this input and these rows below it."""
    taken = (len(held.rows) + 1 if held is not None else 0) + len(below) + 1
    return max(1, _limit(size, is_question=True) - taken)


def _limit(size: ScreenSize, *, is_question: bool) -> int:
    return max(4, size.rows - 3 if is_question else size.rows // 2)


def frame_of(parts: RegionParts, size: ScreenSize) -> RegionFrame:
    """The frame; what has no room is left out from the top, but nothing of a question."""
    limit = _limit(size, is_question=parts.is_question)
    bottom = [parts.rule, *parts.input.rows] if parts.input is not None else []
    start = len(bottom)
    bottom += [*parts.below, parts.status]
    room = max(0, limit - len(bottom))
    beside = [*parts.todo, *parts.queue]
    if parts.is_question:
        beside = _last(beside, room - len(parts.question))
    fixed = _last([*parts.question, *beside], room)
    # The answer is the last to lose a row: a row of it that is not shown would be lost when others
    # scroll off.
    tools = _last(parts.tools, room - len(fixed) - len(parts.answer))
    top = [*tools, *fixed]
    # The activity stands apart from what was printed last.
    if top and top[0] and len(top) + len(parts.answer) < room:
        top.insert(0, "")
    top = [*parts.answer, *top]
    # A window of a few rows: the input and the status are the last to go.
    rows = [*top, *bottom][-max(1, size.rows - 1) :]
    if parts.input is None or not parts.input.has_cursor:
        return RegionFrame(rows, None)
    row = len(rows) - len(bottom) + start - len(parts.input.rows) + parts.input.row
    return RegionFrame(rows, (max(0, row), min(parts.input.column, size.columns - 1)))


def _last(rows: list[str], room: int) -> list[str]:
    return rows[-room:] if room > 0 else []
