"""Foreign text as rows of the view: cleaned, wrapped by cells, in the styles of the chat."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

from weft.cli.chat.paint.styled_text import StyledLine, StyledSpan, wrapped
from weft.cli.chat.paint.text_cells import cells, fit, fit_row, joined_rows, row_cells
from weft.cli.chat.screens.terminal.region_painter import ScreenSize
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.sanitize import clean, clean_line

CURSOR: Final = "▏"
TAB: Final = "    "
TINY: Final = 30
"""Columns in which not even the frame fits."""
CHUNK: Final = 4_000
"""Characters that are wrapped at a time."""


class ViewFrame(NamedTuple):
    """All rows of the window, and where the cursor is; None hides it."""

    rows: list[str]
    cursor: tuple[int, int] | None = None


def plain(text: str) -> str:
    """Foreign text as it may be shown."""
    return clean(text).replace("\t", TAB)


def span(text: str, style: str = "") -> StyledSpan:
    """Foreign text in one style."""
    return StyledSpan(plain(text), style)


def painted(line: StyledLine, styles: RowStyles) -> str:
    """A wrapped line as it is written."""
    return "".join(styles(each.style, each.text) for each in line.spans)


def text_lines(spans: Sequence[StyledSpan], width: int) -> list[StyledLine]:
    """Spans as lines of at most this width."""
    return wrapped(spans, max(4, width))


def padded(row: str, width: int) -> str:
    """A row that is exactly as wide."""
    size = row_cells(row)
    return fit_row(row, width) if size > width else row + " " * (width - size)


def short_model(name: str) -> str:
    """The name of a model without its provider."""
    return clean_line(name.partition(":")[2].rpartition("/")[2] or name)


def money(usd: float | None) -> str:
    """A small price: `$.001`."""
    if usd is None or usd <= 0:
        return ""
    if usd < 0.0005:
        return "<$.001"
    return f"${usd:.3f}".replace("$0.", "$.") if usd < 1 else f"${usd:.2f}"


# --- frames


def edge(ends: str, left: str, right: str, width: int, styles: RowStyles, *, bold: int = 0) -> str:
    """A row of the frame with words in it; the first `bold` cells of the left ones are bold."""
    room = width - 2
    right = fit(right, max(0, room - 6)) if cells(right) + 6 <= room else ""
    tail = f" {right} " if right else ""
    left = fit(left, max(0, room - cells(tail) - 3))
    head = f" {left} " if left else ""
    line = "─" * max(0, room - cells(head) - cells(tail))
    inner = styles("bold", head) if bold else styles("quiet", head)
    return (
        styles("quiet", ends[0]) + inner + styles("quiet", line + tail) + styles("quiet", ends[1])
    )


def framed(rows: Sequence[str], width: int, styles: RowStyles) -> list[str]:
    """Rows between the two sides of the frame."""
    side = styles("quiet", "│")
    return [f"{side} {padded(row, width - 4)} {side}" for row in rows]


def panel_frame(
    title: str,
    right: str,
    body: Sequence[str],
    hint: str,
    size: ScreenSize,
    styles: RowStyles,
) -> list[str]:
    """A panel over the whole window."""
    room = max(0, size.rows - 2)
    rows = [*body[:room], *[""] * (room - len(body))]
    width = size.columns
    if size.rows < 3:
        return [padded(row, width) for row in [*body, hint][: size.rows]]
    drawn = [
        edge("┌┐", clean_line(title), right, width, styles, bold=1),
        *framed(rows, width, styles),
        edge("└┘", shortened(hint, width - 5), "", width, styles),
    ]
    return [fit_row(row, width) for row in drawn] if width < TINY else drawn


def shortened(hint: str, room: int) -> str:
    """The keys of a hint that fit, each whole; the first one matters most."""
    return joined_rows(hint.split(" · "), max(1, room))[0]


# --- long texts


def stable_start(text: str, room: int) -> int:
    """Where the end of a text begins that is drawn: so much of it, from the beginning of a
    paragraph on.  In a long one from a place that stays the same while the text grows, or its rows
    would be broken anew with every word.
    """
    low = len(text) - room
    if low <= 0:
        return 0
    line = text.rfind("\n", max(0, low - room), low)
    if line >= 0:
        return line + 1
    place = low // room * room
    space = text.find(" ", place, place + 100)
    return place if space < 0 else space + 1


class LongText:
    """A text of any length that is wrapped only where it is looked at."""

    def __init__(self, spans: Sequence[StyledSpan]) -> None:
        self._chunks = _chunks(spans)
        self._rows: dict[int, list[str]] = {}
        self._width = 0

    def _lines(self, number: int, width: int, styles: RowStyles) -> list[str]:
        if width != self._width:
            self._rows.clear()
            self._width = width
        if number not in self._rows:
            lines = text_lines(self._chunks[number], width)
            self._rows[number] = [painted(line, styles) for line in lines]
        return self._rows[number]

    def window(
        self, top: int, height: int, width: int, styles: RowStyles
    ) -> tuple[list[str], int, bool]:
        """The rows from `top` on, `top` itself (no further than the text goes), and whether there
        is more below.
        """
        found: list[str] = []
        number = 0
        wanted = top + height + 1
        while number < len(self._chunks) and len(found) < wanted:
            found += self._lines(number, width, styles)
            number += 1
        if number == len(self._chunks):
            top = max(0, min(top, len(found) - height))
        return list(islice(found, top, top + height)), top, len(found) > top + height


def _chunks(spans: Sequence[StyledSpan]) -> list[list[StyledSpan]]:
    """Spans in pieces that end with a line, or where one is long, at a space."""
    chunks: list[list[StyledSpan]] = [[]]
    used = 0
    for each in spans:
        text = each.text
        while text:
            if used >= CHUNK:
                chunks.append([])
                used = 0
            cut, skips = _cut(text, CHUNK - used)
            chunks[-1].append(StyledSpan(text[:cut], each.style))
            used = CHUNK if skips else used + cut
            text = text[cut + skips :]
    return chunks


def _cut(text: str, room: int) -> tuple[int, int]:
    """Where a piece ends, and how many characters are left out behind it."""
    if len(text) <= room:
        return len(text), 0
    line = text.rfind("\n", 0, room)
    if line > 0:
        return line, 1
    # A new line begins with each piece, so a word is not cut in two.
    space = text.rfind(" ", 0, room)
    return (space, 1) if space > 0 else (room, 0)
