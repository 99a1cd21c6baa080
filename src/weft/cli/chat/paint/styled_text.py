"""Styled text: spans, lines of them, and word wrap by the cells that a terminal gives a character.

No line ever begins inside a grapheme; `text_cells` measures them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from weft.cli.chat.paint.text_cells import cells, graphemes

NO_CUT = -1
"""The end of a line behind which a text cannot be taken up again: a row inside a table, an empty
line between two blocks.
"""
_RUN = re.compile(" +|[^ ]+")
_NARROW = re.compile(
    "[\x20-\x7e\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2015\u2018-\u201f\u2026\u2190-\u2199\u2500-\u259f]*"
)
"""Text in which every character takes one column and can be parted from the next."""
_NOT_FIRST = frozenset(")]},.;:!?%»”’、。，．：；？！）］｝」』】〉》・ー…")
"""What must not begin a line: closing marks, as Chinese and Japanese are set."""


class StyledSpan(NamedTuple):
    """A piece of text in one style."""

    text: str
    style: str = ""
    """Words of the theme, such as `bold you`."""
    at: int = 0
    """Where it stands in its source, in characters."""
    link: str = ""
    """Where it leads; only where the terminal has hyperlinks."""
    is_verbatim: bool = True
    """Each character of it is one of the source."""

    def piece(self, start: int, end: int) -> StyledSpan:
        """A part of it, by places in its text."""
        if start == 0 and end >= len(self.text):
            return self
        at = self.at + start if self.is_verbatim else self.at
        return self._replace(text=self.text[start:end], at=at)


class StyledLine(NamedTuple):
    """One line of painted text."""

    spans: tuple[StyledSpan, ...]
    end: int = 0
    """How far in the source this line has come: the next one begins there or behind it.  Or
    `NO_CUT`."""
    is_final: bool = True
    """More source behind it cannot change this line."""
    is_code: bool = False
    """Written as it is: the terminal breaks it where it is too long, so that a copy is the code."""

    @property
    def text(self) -> str:
        """What stands there, without styles."""
        return "".join(span.text for span in self.spans)


def line_of(*spans: StyledSpan | tuple[str, str], end: int = 0) -> StyledLine:
    """A line of spans, or of pairs of text and style."""
    return StyledLine(
        tuple(each if isinstance(each, StyledSpan) else StyledSpan(*each) for each in spans), end
    )


class _Word(NamedTuple):
    spans: list[StyledSpan]
    cells: int
    is_space: bool


def wrapped(
    spans: Sequence[StyledSpan],
    width: int,
    *,
    first: Sequence[StyledSpan] = (),
    rest: Sequence[StyledSpan] = (),
) -> list[StyledLine]:
    """Spans as lines that fit, broken between words; `first` stands before the first line and
    `rest` before the others.  A newline in a span ends a line.
    """
    lines: list[StyledLine] = []
    paragraph: list[StyledSpan] = []
    for span in spans:
        start = 0
        while (cut := span.text.find("\n", start)) >= 0:
            paragraph.append(span.piece(start, cut))
            lines += _filled(paragraph, width, rest if lines else first, rest)
            paragraph, start = [], cut + 1
        if start < len(span.text) or not span.text:
            paragraph.append(span.piece(start, len(span.text)))
    if paragraph or not lines:
        lines += _filled(paragraph, width, rest if lines else first, rest)
    return lines


def _filled(
    spans: Sequence[StyledSpan],
    width: int,
    first: Sequence[StyledSpan],
    rest: Sequence[StyledSpan],
) -> list[StyledLine]:
    text = "".join(span.text for span in spans)
    if _NARROW.fullmatch(text):
        return _filled_narrow(spans, text, width, first, rest)
    return _filled_by_words(spans, width, first, rest)


def _filled_narrow(
    spans: Sequence[StyledSpan],
    text: str,
    width: int,
    first: Sequence[StyledSpan],
    rest: Sequence[StyledSpan],
) -> list[StyledLine]:
    """The same for text in which every character takes one column: most text, at a tenth of the
    cost, because lines are cut by places and not put together from words.
    """
    lines: list[StyledLine] = []
    cutter = _SpanCutter(spans)
    start, prefix = 0, first
    room = max(width - _width_of(first), 4)
    while True:
        end = _line_end(text, start, room)
        pieces = cutter.piece(start, end)
        stop = _end_of(pieces[-1]) if pieces else 0
        lines.append(StyledLine((*prefix, *pieces), stop))
        start = end
        while start < len(text) and text[start] == " ":
            start += 1
        if start >= len(text):
            break
        prefix, room = rest, max(width - _width_of(rest), 4)
    last = lines[-1]
    lines[-1] = last._replace(end=max([last.end, *(_end_of(each) for each in spans[-1:])]))
    return lines


def _line_end(text: str, start: int, room: int) -> int:
    """Where a line that begins at `start` ends: behind its last whole word, if it has one."""
    if len(text) - start <= room:
        return len(text)
    # One more than fits: a space right behind a full line is where it ends.
    space = text.rfind(" ", start, start + room + 1)
    if space <= start or not text[start:space].strip(" "):
        return start + room
    while text[space - 1] == " ":
        space -= 1
    return space


class _SpanCutter:
    """Gives out spans by places in their joined text, from the beginning on."""

    def __init__(self, spans: Sequence[StyledSpan]) -> None:
        self._spans = spans
        self._number = self._offset = 0

    def piece(self, start: int, end: int) -> list[StyledSpan]:
        pieces: list[StyledSpan] = []
        while self._number < len(self._spans):
            span = self._spans[self._number]
            size = len(span.text)
            if self._offset + size > start:
                cut = span.piece(max(0, start - self._offset), end - self._offset)
                if cut.text:
                    pieces.append(cut)
            # The span may go on in the next line.
            if self._offset + size > end or self._offset + size == end == start:
                break
            self._offset += size
            self._number += 1
        return pieces


def _filled_by_words(
    spans: Sequence[StyledSpan],
    width: int,
    first: Sequence[StyledSpan],
    rest: Sequence[StyledSpan],
) -> list[StyledLine]:
    lines: list[StyledLine] = []
    prefix = first
    line: list[StyledSpan] = []
    room = max(width - _width_of(first), 4)
    used = end = 0
    space: _Word | None = None
    for word in _words(spans):
        if word.is_space:
            # Kept back: at the end of a line it is dropped, and a copy has no trailing spaces.
            space = word
            continue
        gap = space.cells if space is not None else 0
        if used and used + gap + word.cells > room:
            lines.append(StyledLine((*prefix, *line), end))
            prefix, line, used = rest, [], 0
            room = max(width - _width_of(rest), 4)
        elif space is not None and (used or not lines):
            line += space.spans
            used += gap
        space = None
        for piece in _broken(word, room - used, room):
            if piece is None:
                lines.append(StyledLine((*prefix, *line), end))
                prefix, line, used = rest, [], 0
                continue
            line.append(piece)
            used += cells(piece.text)
            end = piece.at + (len(piece.text) if piece.is_verbatim else 1)
    lines.append(StyledLine((*prefix, *line), max([end, *(_end_of(each) for each in spans[-1:])])))
    return lines


def _end_of(span: StyledSpan) -> int:
    return span.at + (len(span.text) if span.is_verbatim else 1)


def _width_of(spans: Sequence[StyledSpan]) -> int:
    return sum(cells(span.text) for span in spans)


def _broken(word: _Word, left: int, room: int) -> Iterator[StyledSpan | None]:
    """A word that is longer than a line, cut where the line is full; None is the line's end."""
    if word.cells <= left:
        yield from word.spans
        return
    for span in word.spans:
        start = place = 0
        for each in graphemes(span.text):
            size = cells(each)
            if size > left:
                if place > start:
                    yield span.piece(start, place)
                yield None
                start, left = place, room
            place += len(each)
            left -= size
        if place > start:
            yield span.piece(start, place)


def _words(spans: Sequence[StyledSpan]) -> Iterator[_Word]:
    """Words and the spaces between them; a wide character is a word of its own."""
    held: list[StyledSpan] = []
    used = 0
    before = ""
    for span in spans:
        for start, end, kind in _runs(span.text):
            piece = span.piece(start, end)
            # Beside a wide character a line may be broken, but a closing mark stays with what it
            # closes.
            joins = kind == before == "word" or (kind != "space" and piece.text[0] in _NOT_FIRST)
            before = kind
            if held and not joins:
                yield _Word(held, used, False)
                held, used = [], 0
            if kind == "space":
                yield _Word([piece], cells(piece.text), True)
                continue
            held.append(piece)
            used += cells(piece.text)
    if held:
        yield _Word(held, used, False)


def _runs(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and kind of each run: `word`, `space`, or one `wide` character."""
    if text.isascii():
        for found in _RUN.finditer(text):
            yield found.start(), found.end(), "space" if found.group()[0] == " " else "word"
        return
    start = place = 0
    kind = ""
    for each in graphemes(text):
        now = "space" if each == " " else "wide" if cells(each) == 2 else "word"
        if place > start and (now != kind or now == "wide"):
            yield start, place, kind
            start = place
        kind = now
        place += len(each)
    if place > start:
        yield start, place, kind
