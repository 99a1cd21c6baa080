"""Text measured in cells of a terminal: graphemes, widths, wrapping and cutting.

A grapheme is what a reader takes for one character: a family emoji, a Devanagari syllable, a letter
with its accents.  Cursor and line breaks never stand inside of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
"""The escape sequences that a row of ours may hold: attributes and links."""
LOOK_AHEAD = 64
"""Code points that one grapheme may have; a longer one is cut, it was made to be a nuisance."""

# The library is imported where it is used: for plain English, which most text is, it is not needed.


def graphemes(text: str) -> Iterable[str]:
    """The characters of a text as people see them."""
    if text.isascii():
        return text
    from wcwidth import iter_graphemes

    return iter_graphemes(text)


def cells(text: str) -> int:
    """The columns that a text takes."""
    if text.isascii():
        return len(text)
    return sum(_cells_of(each) for each in graphemes(text))


@lru_cache(maxsize=4096)
def _cells_of(grapheme: str) -> int:
    from wcwidth import wcswidth

    # Negative for control characters, which were removed before.
    return max(0, wcswidth(grapheme))


def row_cells(row: str) -> int:
    """The width of a row, whatever attributes it sets."""
    return cells(without_attributes(row))


def without_attributes(row: str) -> str:
    """The text of a row."""
    return _SEQUENCE.sub("", row) if "\x1b" in row else row


def grapheme_cells(grapheme: str) -> int:
    """The width of one; what has none of its own stands in one cell, so that it can be seen and
    deleted.
    """
    if len(grapheme) == 1 and grapheme.isascii():
        return 1
    return max(1, _cells_of(grapheme))


def next_grapheme(text: str, at: int) -> int:
    """The end of the grapheme that begins here."""
    if at >= len(text):
        return len(text)
    return at + len(next(iter(graphemes(text[at : at + LOOK_AHEAD]))))


def previous_grapheme(text: str, at: int) -> int:
    """The beginning of the grapheme that ends here."""
    if at <= 0:
        return 0
    if text[at - 1].isascii():
        return at - 1
    from wcwidth import grapheme_boundary_before

    return grapheme_boundary_before(text, at)


def fit(text: str, width: int, *, ellipsis: str = "…") -> str:
    """The beginning of plain text, as much as fits; what is cut off is marked."""
    if width <= 0:
        return ""
    if cells(text) <= width:
        return text
    return f"{cut(text, width - cells(ellipsis))}{ellipsis}" if width > cells(ellipsis) else ""


def cut(text: str, width: int) -> str:
    """The beginning of plain text, as much as fits, unmarked."""
    if text.isascii():
        return text[: max(0, width)]
    used, kept = 0, []
    for each in graphemes(text):
        used += grapheme_cells(each)
        if used > width:
            break
        kept.append(each)
    return "".join(kept)


def fit_row(row: str, width: int) -> str:
    """The beginning of a row with its attributes, as much as fits."""
    if row_cells(row) <= width:
        return row
    left, kept, at = width, [], 0
    for found in [*_SEQUENCE.finditer(row), None]:
        piece = row[at : found.start() if found else len(row)]
        shown = cut(piece, left)
        kept.append(shown)
        left -= cells(shown)
        if found is not None:
            # Attributes behind the cut are kept too: the last of them is the one that resets.
            kept.append(found.group())
            at = found.end()
    return "".join(kept)


def row_behind(row: str, width: int) -> str:
    """The end of a row with its attributes: what `fit_row` leaves out."""
    left, kept, at = width, [], 0
    for found in [*_SEQUENCE.finditer(row), None]:
        piece = row[at : found.start() if found else len(row)]
        gone = cut(piece, left)
        kept.append(piece[len(gone) :])
        # Behind the first piece that is not gone nothing is, however narrow it may be.
        left = left - cells(gone) if gone == piece else 0
        if found is not None:
            kept.append(found.group())
            at = found.end()
    return "".join(kept)


def word_wrap(text: str, width: int) -> list[str]:
    """Plain text cut into rows between its words; a word that is too long is cut anywhere."""
    width = max(1, width)
    rows: list[str] = []
    for line in text.split("\n"):
        rows += _wrapped_line(line, width)
    return rows


def _wrapped_line(line: str, width: int) -> list[str]:
    rows, row, used = [], "", 0
    for word in re.findall(r"\S+\s*|\s+", line):
        bare = word.rstrip()
        if used and used + cells(bare) > width:
            rows.append(row.rstrip())
            row, used = "", 0
        while cells(bare) > width:
            piece = cut(bare, width) or next(iter(graphemes(bare)))
            rows.append(piece)
            word, bare = word[len(piece) :], bare[len(piece) :]
        row += word
        used += cells(word)
    return [*rows, row.rstrip()]


def joined_rows(parts: list[str], width: int) -> list[str]:
    """Parts with dots between them, in as many rows as they need; none is broken."""
    rows: list[str] = []
    for part in parts:
        longer = f"{rows[-1]} · {part}" if rows else part
        if rows and cells(longer) <= width:
            rows[-1] = longer
        else:
            rows.append(fit(part, width))
    return rows


def tail_rows(text: str, width: int, rows: int) -> list[str]:
    """The last rows of plain text, wrapped between words."""
    if not text.strip():
        return []
    wrapped: list[str] = []
    # Only the last lines are wrapped: a line is measured letter by letter, for every drawing.
    for line in text.expandtabs(4).strip("\n").split("\n")[-rows:]:
        wrapped += word_wrap(line, max(width, 8))
    return wrapped[-rows:]
