"""Markdown as styled lines: one painter for answers that are finished and for those in flight.

The law that scrollback rests on: a line that is `is_final` is the same however the text goes on,
and painting from the `end` of a line on gives exactly the lines behind it.  So what was printed is
never printed again, and nothing is left out, also when the width changes in between.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from weft.cli.chat.paint.code_colours import code_spans
from weft.cli.chat.paint.markdown_inline import inline_text
from weft.cli.chat.paint.markdown_parts import (
    MarkdownPart,
    SourceLine,
    cells_of,
    markdown_parts,
    source_lines,
)
from weft.cli.chat.paint.path_links import PathLinks, linked_paths
from weft.cli.chat.paint.styled_text import NO_CUT, StyledLine, StyledSpan, wrapped
from weft.cli.chat.paint.text_cells import cells

MOST_WORD = 24
"""Cells of a word that are kept together in a table's column."""
ColumnSide: TypeAlias = Literal["left", "centre", "right"]
_BREAKS = re.compile(r"\s+|(?<=[\u2e80-\ud7ff\uf900-\uffef])")
"""Where a cell's text may be broken: between words, and behind each letter of scripts that have
none."""
LONGEST_RULE = 40


class _Place(NamedTuple):
    """Where in the source and on the screen a part is painted."""

    is_open: bool
    """The source behind it is still written."""
    start: int
    """What stands before this place in the source is painted already."""
    first: tuple[StyledSpan, ...] = ()
    """Stands before the first line of the part."""
    rest: tuple[StyledSpan, ...] = ()
    """Stands before its other lines."""

    def behind(self, first: StyledSpan, rest: StyledSpan) -> _Place:
        """The same place, one level further in."""
        return self._replace(first=(*self.first, first), rest=(*self.rest, rest))


class MarkdownPainter:
    """Paints for one width."""

    def __init__(
        self,
        width: int,
        *,
        has_links: bool = False,
        has_syntax: bool = False,
        links: PathLinks | None = None,
    ) -> None:
        self._width = max(width, 12)
        self._has_links = has_links
        self._links = links if has_links else None
        self._has_syntax = has_syntax

    def lines(self, text: str, *, is_open: bool = False, start: int = 0) -> list[StyledLine]:
        """The lines of a cleaned text from a place in it on; `is_open`: it is still written."""
        return self._parts(source_lines(text), _Place(is_open, start))

    def _parts(self, lines: list[SourceLine], place: _Place) -> list[StyledLine]:
        parts = markdown_parts(lines)
        painted: list[StyledLine] = []
        for number, part in enumerate(parts):
            is_open = place.is_open and number == len(parts) - 1
            if part.end <= place.start and not is_open:
                continue
            if part.after_blank and number and place.start < part.at:
                painted.append(StyledLine(_stripped(place.rest), NO_CUT))
            first = place.first if part.at >= place.start and not number else place.rest
            painted += self._part(part, place._replace(is_open=is_open, first=first))
        return painted

    def _part(self, part: MarkdownPart, place: _Place) -> list[StyledLine]:
        match part.kind:
            case "code":
                return self._code(part, is_open=place.is_open, start=place.start)
            case "table":
                return self._table(part, place)
            case "rule":
                line = StyledSpan("─" * min(self._width, LONGEST_RULE), "quiet", part.at)
                return [StyledLine((*place.first, line), part.end, not place.is_open)]
            case "quote":
                bar = StyledSpan("│ ", "quiet", part.at)
                return self._parts(part.lines, place.behind(bar, bar))
            case "item":
                return self._item(part, place)
            case _:
                return self._text(part, place)

    def _text(self, part: MarkdownPart, place: _Place) -> list[StyledLine]:
        joined, source = _joined(part.lines)
        said = inline_text(joined, source, is_open=place.is_open)
        style = ""
        if part.kind == "heading":
            style = "bold underline" if len(part.mark) <= 2 else "bold"
        spans = [
            span._replace(style=f"{style} {span.style}".strip())
            for span in said.spans
            if not (self._has_links and "unless_linked" in span.style)
        ]
        if self._links is not None:
            spans = linked_paths(spans, self._links)
        if place.start > part.at:
            spans = _from(spans, place.start)
            if not spans:
                return []
        lines = wrapped(spans, self._width, first=place.first, rest=place.rest)
        lines[-1] = lines[-1]._replace(end=max(part.end, lines[-1].end))
        if not place.is_open:
            return lines
        # While it is written: the last line grows, and what was begun may turn out to be nothing. A
        # row of a table is one only with the line below it.
        limit = said.open_at if said.open_at is not None else part.end + 1
        if "|" in part.lines[-1].text:
            limit = min(limit, part.lines[-1].at)
        return [
            line._replace(is_final=line.end <= limit and number < len(lines) - 1)
            for number, line in enumerate(lines)
        ]

    def _item(self, part: MarkdownPart, place: _Place) -> list[StyledLine]:
        mark, inside = _bullet(part)
        bullet = StyledSpan(mark, "quiet" if mark[0] in "•☐☑" else "", part.at)
        blank = StyledSpan(" " * cells(mark), "", part.at)
        if not any(line.text.strip() for line in inside):
            return [StyledLine((*place.first, bullet), part.end, not place.is_open)]
        return self._parts(inside, place.behind(bullet, blank))

    def _code(self, part: MarkdownPart, *, is_open: bool, start: int) -> list[StyledLine]:
        lines: list[StyledLine] = []
        language = part.mark.split()[0] if part.mark.split() else ""
        if language and start <= part.at:
            at = part.lines[0].at if part.lines else part.end
            is_known = not is_open or bool(part.lines)
            lines.append(StyledLine((StyledSpan(language, "quiet", part.at),), at - 1, is_known))
        for line in part.lines:
            end = line.at + len(line.text)
            if end < start or (end == start and start > part.at and line.text):
                continue
            spans = code_spans(line.text, language if self._has_syntax else "")
            placed = tuple(StyledSpan(text, style, line.at) for text, style in spans)
            is_final = not is_open or part.is_closed or line.is_whole
            lines.append(StyledLine(placed, end + 1 if line.is_whole else end, is_final, True))
        if part.is_closed and lines:
            lines[-1] = lines[-1]._replace(end=part.end)
        return lines

    def _table(self, part: MarkdownPart, place: _Place) -> list[StyledLine]:
        rows = [cells_of(line.text) for line in part.lines]
        head, marks, body = rows[0], rows[1], rows[2:]
        body = [(row + [""] * len(head))[: len(head)] for row in body]
        room = self._width - sum(cells(span.text) for span in place.rest)
        painted = table_lines(
            [_cell(each) for each in head],
            [[_cell(each) for each in row] for row in body],
            room,
            sides=[_side(mark) for mark in marks],
        )
        lines = [
            StyledLine((*(place.rest if number else place.first), *line), NO_CUT, not place.is_open)
            for number, line in enumerate(painted)
        ]
        lines[-1] = lines[-1]._replace(end=part.end)
        return lines


def _cell(text: str) -> list[StyledSpan]:
    return inline_text(text).spans


def _side(mark: str) -> ColumnSide:
    """Where the text of a column stands, by the row of dashes."""
    mark = mark.strip()
    if not mark.endswith(":"):
        return "left"
    return "centre" if mark.startswith(":") else "right"


def table_lines(
    head: list[list[StyledSpan]],
    body: list[list[list[StyledSpan]]],
    width: int,
    sides: Sequence[ColumnSide] = (),
) -> list[tuple[StyledSpan, ...]]:
    """A table: columns side by side where their words fit, else each row with its headings."""
    widths = _widths([head, *body], width)
    if min(widths, default=0) < 1:
        return _records(head, body, width)
    # A row of dashes may be shorter than its table.
    left: list[ColumnSide] = ["left"] * len(head)
    sides = [*sides, *left][: len(head)]
    lines = _row(_styled(head, "bold"), widths, sides)
    lines.append((StyledSpan("  ".join("─" * each for each in widths), "quiet"),))
    for row in body:
        lines += _row(row, widths, sides)
    return lines


def _styled(row: list[list[StyledSpan]], style: str) -> list[list[StyledSpan]]:
    return [[span._replace(style=f"{style} {span.style}".strip()) for span in cell] for cell in row]


def _widths(rows: list[list[list[StyledSpan]]], width: int) -> list[int]:
    """How wide each column is; the widest give way first.  Zeros where there is no room."""
    count = len(rows[0])
    widths = [
        max(1, *(sum(cells(span.text) for span in row[place]) for row in rows))
        for place in range(count)
    ]
    room = width - 2 * (count - 1)
    if sum(widths) <= room:
        return widths
    least = [max(_longest_word(row[place]) for row in rows) for place in range(count)]
    if sum(least) > room:
        return [0]
    while sum(widths) > room:
        wide = [place for place in range(count) if widths[place] > least[place]]
        widths[max(wide, key=lambda place: widths[place])] -= 1
    return widths


def _longest_word(cell: list[StyledSpan]) -> int:
    """Cells below which a column would break words; those of a path or an address may be broken."""
    words = _BREAKS.split("".join(span.text for span in cell))
    return min(MOST_WORD, max(1, *(cells(word) for word in words)))


def _row(
    row: list[list[StyledSpan]], widths: list[int], sides: Sequence[ColumnSide]
) -> list[tuple[StyledSpan, ...]]:
    columns = [wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
    lines: list[tuple[StyledSpan, ...]] = []
    for place in range(max(len(column) for column in columns)):
        spans: list[StyledSpan] = []
        for column, width, side in zip(columns, widths, sides, strict=True):
            line = column[place] if place < len(column) else StyledLine(())
            free = width - cells(line.text)
            before = {"left": 0, "centre": free // 2, "right": free}[side]
            if before:
                spans.append(StyledSpan(" " * before))
            spans += line.spans
            spans.append(StyledSpan(" " * (free - before + 2)))
        lines.append(tuple(spans[:-1]))
    return lines


def _records(
    head: list[list[StyledSpan]], body: list[list[list[StyledSpan]]], width: int
) -> list[tuple[StyledSpan, ...]]:
    lines: list[tuple[StyledSpan, ...]] = []
    for number, row in enumerate(body):
        if number:
            lines.append(())
        for title, cell in zip(_styled(head, "bold"), row, strict=True):
            spans = [*title, StyledSpan(": "), *cell]
            lines += [line.spans for line in wrapped(spans, width, rest=(StyledSpan("  "),))]
    return lines or [tuple(span for cell in head for span in (*cell, StyledSpan("  ")))]


def _bullet(part: MarkdownPart) -> tuple[str, list[SourceLine]]:
    inside = part.lines
    text = inside[0].text
    for box, mark in (("[ ] ", "☐ "), ("[x] ", "☑ "), ("[X] ", "☑ ")):
        if text.startswith(box):
            return mark, [inside[0].cut(4), *inside[1:]]
    return ("• " if part.mark in "-*+" else f"{part.mark} "), inside


def _stripped(spans: Sequence[StyledSpan]) -> tuple[StyledSpan, ...]:
    """What stands before an empty line: a quote's bar, but no spaces."""
    kept = list(spans)
    while kept and not kept[-1].text.strip():
        kept.pop()
    return tuple(kept)


def _joined(lines: list[SourceLine]) -> tuple[str, Callable[[int], int]]:
    """The text of a paragraph, and where each place in it stands in the source."""
    starts, places, at = [], [], 0
    for line in lines:
        starts.append(at)
        places.append(line.at)
        at += len(line.text) + 1

    def source(place: int) -> int:
        number = bisect_right(starts, place) - 1
        return places[number] + place - starts[number]

    # Spaces at a line's end are a hard break, but only where another line follows.
    return "\n".join(line.text for line in lines).rstrip(" \n"), source


def _from(spans: list[StyledSpan], start: int) -> list[StyledSpan]:
    """What stands at or behind a place of the source, without the space it begins with."""
    kept: list[StyledSpan] = []
    for span in spans:
        if span.is_verbatim and span.at < start < span.at + len(span.text):
            kept.append(span.piece(start - span.at, len(span.text)))
        elif span.at >= start:
            kept.append(span)
    while kept and not kept[0].text.strip():
        kept.pop(0)
    if kept:
        text = kept[0].text
        kept[0] = kept[0].piece(len(text) - len(text.lstrip(" \n")), len(text))
    return kept
