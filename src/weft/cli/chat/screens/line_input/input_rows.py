"""The input line as rows: wrapped by cells, with the place of the cursor among them."""

from __future__ import annotations

import re
from typing import NamedTuple

from weft.cli.chat.paint.text_cells import cells, fit, grapheme_cells, graphemes
from weft.cli.chat.screens.line_input.line_editor import LineEditor
from weft.cli.chat.screens.terminal.styles import RowStyles

PLACEHOLDER = "Ask anything · @file · /command · !shell · ? keys"
TAB = 4
_turns = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\x80-\x9f]")
"""Marks that turn the direction of text, and control characters of eight bits."""


class InputRows(NamedTuple):
    """The rows, and where in them the cursor is."""

    rows: list[str]
    row: int
    column: int
    has_cursor: bool = True


class _Cell(NamedTuple):
    """One grapheme as it is shown."""

    shown: str
    width: int
    at: int
    style: str = ""


def input_rows(
    editor: LineEditor,
    *,
    width: int,
    limit: int,
    styles: RowStyles,
    prompt: str = "› ",
    placeholder: str = "",
    dim: bool = False,
) -> InputRows:
    """Every row begins with the prompt or its width in spaces."""
    room = max(4, width - cells(prompt) - 1)
    lead = styles("quiet" if dim else "bold you", prompt)
    if not editor.text:
        hint = styles("quiet", fit(placeholder, room))
        return InputRows([f"{lead}{hint}".rstrip()], 0, cells(prompt))
    lines = _wrapped(editor, room)
    row, column = _cursor(lines, editor)
    first = max(0, min(row - limit + 1, len(lines) - limit)) if len(lines) > limit else 0
    first = min(first, row)
    indent = " " * cells(prompt)
    rows = []
    for number in range(first, min(first + limit, len(lines))):
        text = "".join(
            styles(cell.style or ("quiet" if dim else ""), cell.shown) for cell in lines[number]
        )
        rows.append(f"{lead if number == 0 else indent}{text}")
    return InputRows(rows, row - first, cells(prompt) + column, not dim)


def _wrapped(editor: LineEditor, room: int) -> list[list[_Cell]]:
    """The text as rows of cells; each line ends with an empty cell, where the cursor may be."""
    lines: list[list[_Cell]] = [[]]
    used = at = 0
    for grapheme in _pieces(editor.text):
        cell = _within(_cell(editor, grapheme, at, used), room)
        if grapheme == "\n":
            lines[-1].append(_Cell("", 0, at))
            lines.append([])
            used = 0
        else:
            if used + cell.width > room and used:
                lines.append([])
                used = 0
            lines[-1].append(cell)
            used += cell.width
        at += len(grapheme)
    lines[-1].append(_Cell("", 0, at))
    return lines


def _pieces(text: str) -> list[str]:
    return list(graphemes(text))


def _cell(editor: LineEditor, grapheme: str, at: int, used: int) -> _Cell:
    label = editor.label(grapheme[0])
    if label is not None:
        return _Cell(label, cells(label), at, "you")
    if grapheme == "\t":
        wide = TAB - used % TAB
        return _Cell(" " * wide, wide, at)
    # A control character is shown as `^X`: obeyed by the terminal it would destroy the region.
    if len(grapheme) == 1 and (grapheme < " " or grapheme == "\x7f"):
        return _Cell(f"^{chr(ord(grapheme) ^ 64)}", 2, at, "quiet")
    if found := _turns.search(grapheme):
        shown = f"<U+{ord(found.group()):04X}>"
        return _Cell(shown, len(shown), at, "quiet")
    return _Cell(grapheme, grapheme_cells(grapheme), at)


def _within(cell: _Cell, room: int) -> _Cell:
    """A label or a number wider than the row is cut: the cursor would stand outside of it."""
    if cell.width <= room:
        return cell
    shown = fit(cell.shown, room)
    return cell._replace(shown=shown, width=cells(shown))


def _cursor(lines: list[list[_Cell]], editor: LineEditor) -> tuple[int, int]:
    for number, line in enumerate(lines):
        column = 0
        for cell in line:
            if cell.at >= editor.cursor:
                return number, column
            column += cell.width
    return len(lines) - 1, sum(cell.width for cell in lines[-1])
