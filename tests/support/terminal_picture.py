"""A picture of a terminal's screen: text with colours, as tmux gives it, drawn as SVG."""

from __future__ import annotations

import os
import re
import unicodedata
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.tmux_terminal import TmuxTerminal

PICTURES = os.environ.get("WEFT_PICTURES", "")
"""The folder that gets a picture of each screen; none are made without it."""

CELL, ROW, EDGE = 8.4, 18, 10
"""Width of a cell, height of a row, and the edge around the screen, in pixels."""
INK, PAPER = "#d7dae0", "#16181d"
COLOURS = (
    *("#3b4048", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d7dae0"),
    *("#5c6370", "#ef8b93", "#b1d89a", "#f0d59a", "#84c3f7", "#d79ae8", "#7fd0da", "#ffffff"),
)
_SGR = re.compile(r"\x1b\[([\d;:]*)m|\x1b\]8;[^\x07\x1b]*(?:\x07|\x1b\\)|\x0e|\x0f")


class CellStyle(NamedTuple):
    """How a cell looks."""

    ink: str = ""
    paper: str = ""
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underlined: bool = False
    reverse: bool = False


class StyledCell(NamedTuple):
    """One character that takes up room, with the marks that combine with it."""

    text: str
    style: CellStyle
    column: int
    width: int


def picture(screen: str, title: str, columns: int) -> str:
    """The screen as an SVG document; `screen` is what `capture-pane -e` prints."""
    rows = screen.rstrip("\n").split("\n")
    width, height = columns * CELL + 2 * EDGE, len(rows) * ROW + 2 * EDGE
    drawn = "\n".join(_row(row, number) for number, row in enumerate(_cells(rows)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'width="{width:.0f}" height="{height}" font-family="DejaVu Sans Mono, Menlo, '
        f'Consolas, monospace" font-size="14" xml:space="preserve" '
        f'style="white-space: pre">\n'
        f"<title>{escape(title)}</title>\n"
        f'<rect width="100%" height="100%" rx="6" fill="{PAPER}"/>\n{drawn}\n</svg>\n'
    )


def _cells(rows: list[str]) -> list[list[StyledCell]]:
    """The rows in cells.  A style goes on over the end of a row."""
    style, found = CellStyle(), []
    for row in rows:
        cells: list[StyledCell] = []
        at = 0
        for match in [*_SGR.finditer(row), None]:
            _add(cells, row[at : match.start() if match else len(row)], style)
            if match is not None:
                at = match.end()
                style = _styled(style, match[1]) if match[1] is not None else style
        found.append(cells)
    return found


def _add(cells: list[StyledCell], text: str, style: CellStyle) -> None:
    for letter in text:
        joins = cells and (
            unicodedata.category(letter) in ("Mn", "Me", "Cf") or cells[-1].text[-1] == "\u200d"
        )
        if joins:
            last = cells.pop()
            cells.append(last._replace(text=last.text + letter))
            continue
        width = 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        column = cells[-1].column + cells[-1].width if cells else 0
        cells.append(StyledCell(letter, style, column, width))


def _styled(style: CellStyle, codes: str) -> CellStyle:
    left = [int(code or 0) for code in re.split("[;:]", codes)]
    while left:
        code = left.pop(0)
        if code == 0:
            style = CellStyle()
        elif code in (38, 48):
            changed: dict[str, Any] = {"ink" if code == 38 else "paper": _colour(left)}
            style = style._replace(**changed)
        else:
            style = style._replace(**_change(code))
    return style


def _change(code: int) -> dict[str, Any]:
    """What a code changes; nothing, for one that draws nothing here."""
    flags = {1: "bold", 2: "dim", 3: "italic", 4: "underlined", 7: "reverse"}
    if code in flags:
        return {flags[code]: True}
    if code == 22:
        return {"bold": False, "dim": False}
    if code in (23, 24, 27):
        return {flags[code - 20]: False}
    for first, field, bright in ((30, "ink", 0), (40, "paper", 0), (90, "ink", 8)):
        if first <= code < first + 8:
            return {field: COLOURS[code - first + bright]}
    over: dict[int, dict[str, Any]] = {39: {"ink": ""}, 49: {"paper": ""}}
    return over.get(code, {})


def _colour(left: list[int]) -> str:
    """The colour at the front of the codes, which it takes away."""
    if left.pop(0) == 2:
        red, green, blue = left[:3]
        del left[:3]
        return f"#{red:02x}{green:02x}{blue:02x}"
    number = left.pop(0)
    if number < 16:
        return COLOURS[number]
    if number >= 232:
        return f"#{8 + 10 * (number - 232):02x}" + f"{8 + 10 * (number - 232):02x}" * 2
    levels = (0, 95, 135, 175, 215, 255)
    parts = ((number - 16) // 36, (number - 16) // 6 % 6, (number - 16) % 6)
    return "#" + "".join(f"{levels[part]:02x}" for part in parts)


def _row(cells: list[StyledCell], number: int) -> str:
    groups = (list(group) for _, group in groupby(cells, key=lambda each: (each.style, each.width)))
    return "".join(_run(group, EDGE + number * ROW) for group in groups)


def _run(cells: list[StyledCell], top: float) -> str:
    """Neighbours of one style."""
    style = cells[0].style
    ink, paper = style.ink or INK, style.paper or PAPER
    if style.reverse:
        ink, paper = paper, ink
    left = EDGE + cells[0].column * CELL
    width = sum(cell.width for cell in cells) * CELL
    box = f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{ROW}" fill="{paper}"/>'
    words = "".join(cell.text for cell in cells)
    looks = "".join(
        mark
        for mark, on in (
            (' font-weight="bold"', style.bold),
            (' opacity="0.6"', style.dim),
            (' font-style="italic"', style.italic),
            (' text-decoration="underline"', style.underlined),
        )
        if on
    )
    at = f'y="{top + 13}" fill="{ink}"{looks}'
    if all(len(cell.text) == cell.width == 1 for cell in cells):
        # Browsers drop spaces at the ends, and stretch what is left over the whole length.
        kept = escape(words).replace(" ", "\N{NO-BREAK SPACE}")
        runs = [f'<text x="{left:.1f}" {at} textLength="{width:.1f}">{kept}</text>']
    else:
        # Each in its own place: fonts differ in the width of wide and joined characters.
        runs = [
            f'<text x="{EDGE + cell.column * CELL:.1f}" {at}>{escape(cell.text)}</text>'
            for cell in cells
        ]
    drawn = "".join(runs)
    return (box if paper != PAPER else "") + (drawn if words.strip() else "") + "\n"


def keep_picture(window: TmuxTerminal, name: str, title: str, columns: int = 80) -> None:
    """Keep what is on the screen, where pictures are wanted."""
    if PICTURES:
        screen = window.screen(styles=True)
        (Path(PICTURES) / f"{name}.svg").write_text(picture(screen, title, columns))
