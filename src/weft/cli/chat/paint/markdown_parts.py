"""The blocks of a Markdown text: which lines belong together, and where each stands in the source.

What models write, not all of CommonMark: headings, paragraphs, lists, quotes, fenced code, tables,
rules.  Anything else is a paragraph, and so stays readable.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

PartKind: TypeAlias = Literal[
    "paragraph", "heading", "code", "table", "rule", "item", "quote", "blank"
]

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`\n]*)$")
_INNER_FENCE = re.compile(r"[ >]*(?:`{3,}|~{3,})[ \t]*$")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_ITEM = re.compile(r"( {0,3})([-*+]|\d{1,9}[.)])(?:([ \t]+)|$)")
_QUOTE = re.compile(r" {0,3}> ?")
_DELIMITER = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")


class SourceLine(NamedTuple):
    """A line without its end, and where it begins in the source."""

    text: str
    at: int
    is_whole: bool = True
    """Its end has come: it cannot grow any more."""

    def cut(self, count: int) -> SourceLine:
        """Without its first characters."""
        return SourceLine(self.text[count:], self.at + min(count, len(self.text)), self.is_whole)


class MarkdownPart(NamedTuple):
    """One block."""

    kind: PartKind
    lines: list[SourceLine]
    """What is inside: without marks of a heading, list or quote, and without fences."""
    at: int
    """Where it begins in the source."""
    end: int
    """Where it ends."""
    mark: str = ""
    """Of a heading its `#`s, of an item its bullet or number, of code its language."""
    after_blank: bool = False
    """An empty line stands before it; around code there always is one."""
    is_closed: bool = True
    """Of code: its fence has ended."""


def source_lines(text: str) -> list[SourceLine]:
    """The lines of a text."""
    lines, at = [], 0
    for line in text.split("\n"):
        lines.append(SourceLine(line, at))
        at += len(line) + 1
    # The last one may still grow; after a newline there is none.
    last = lines.pop()
    return [*lines, last._replace(is_whole=False)] if last.text else lines


def markdown_parts(lines: list[SourceLine]) -> list[MarkdownPart]:
    """The blocks of a text, in their order."""
    parts: list[MarkdownPart] = []
    place, after_blank = 0, False
    while place < len(lines):
        line = lines[place]
        if not line.text.strip():
            after_blank, place = True, place + 1
            continue
        part, place = _part(lines, place)
        # Models often leave it out around code, which has no other border.
        is_apart = part.kind == "code" or (bool(parts) and _ends_in_code(parts[-1]))
        parts.append(part._replace(after_blank=after_blank or is_apart))
        after_blank = False
    return parts


def _ends_in_code(part: MarkdownPart) -> bool:
    """True for code, and for an item or a quote whose last line is a fence, however deep."""
    if part.kind in ("item", "quote"):
        return bool(part.lines) and bool(_INNER_FENCE.match(part.lines[-1].text))
    return part.kind == "code"


def _part(lines: list[SourceLine], place: int) -> tuple[MarkdownPart, int]:
    line = lines[place]
    if fence := _FENCE.match(line.text):
        return _code(lines, place, fence)
    if heading := _HEADING.match(line.text):
        inner = line.cut(heading.start(2) if heading[2] is not None else len(line.text))
        inner = inner._replace(text=heading[2] or "")
        return _whole("heading", [inner], [line], heading[1]), place + 1
    if _RULE.match(line.text):
        return _whole("rule", [], [line]), place + 1
    if _QUOTE.match(line.text):
        return _quote(lines, place)
    if item := _ITEM.match(line.text):
        return _item(lines, place, item)
    if _is_table(lines, place):
        return _table(lines, place)
    return _paragraph(lines, place)


def _whole(
    kind: PartKind, inside: list[SourceLine], lines: list[SourceLine], mark: str = ""
) -> MarkdownPart:
    end = lines[-1].at + len(lines[-1].text)
    return MarkdownPart(kind, inside, lines[0].at, end, mark)


def _code(lines: list[SourceLine], place: int, fence: re.Match[str]) -> tuple[MarkdownPart, int]:
    first = lines[place]
    indent = len(first.text) - len(first.text.lstrip(" "))
    inside: list[SourceLine] = []
    last, is_closed = place, False
    for last in range(place + 1, len(lines)):
        line = lines[last]
        closing = _FENCE.match(line.text)
        if closing and closing[1].startswith(fence[1]) and not closing[2].strip():
            is_closed = True
            break
        spaces = len(line.text) - len(line.text.lstrip(" "))
        inside.append(line.cut(min(indent, spaces)))
    part = _whole("code", inside, lines[place : last + 1], fence[2].strip())
    return part._replace(is_closed=is_closed), last + 1


def _quote(lines: list[SourceLine], place: int) -> tuple[MarkdownPart, int]:
    inside: list[SourceLine] = []
    start = place
    while place < len(lines) and (mark := _QUOTE.match(lines[place].text)):
        inside.append(lines[place].cut(mark.end()))
        place += 1
    return _whole("quote", inside, lines[start:place]), place


def _item(lines: list[SourceLine], place: int, item: re.Match[str]) -> tuple[MarkdownPart, int]:
    """An item of a list, with everything that is indented below it."""
    start = place
    # Code that is indented behind the bullet by five and more keeps its spaces; what models write
    # has one to four.
    width = item.end() if len(item[3] or " ") <= 4 else item.end(2) + 1
    inside = [lines[place].cut(width)]
    fence = _FENCE.match(inside[0].text)
    closing = fence[1] if fence else ""
    place += 1
    last = place
    while place < len(lines):
        line = lines[place]
        spaces = len(line.text) - len(line.text.lstrip(" "))
        is_empty = not line.text.strip()
        is_deeper = spaces >= min(width, item.end(1) + 2)
        if not (is_empty or is_deeper or closing) and (
            _begins_block(lines, place) or not lines[place - 1].text.strip()
        ):
            break
        inside.append(line.cut(min(spaces, width)))
        closing = _fence_after(inside[-1].text, closing)
        place += 1
        if not is_empty:
            last = place
    del inside[last - start :]
    return _whole("item", inside, lines[start:last], item[2])._replace(at=lines[start].at), last


def _fence_after(text: str, closing: str) -> str:
    """The fence that is open behind a line."""
    fence = _FENCE.match(text)
    if fence is None:
        return closing
    if not closing:
        return fence[1]
    return "" if fence[1].startswith(closing) and not fence[2].strip() else closing


def _begins_block(lines: list[SourceLine], place: int) -> bool:
    """True for a line that ends a paragraph by being something else."""
    text = lines[place].text
    return bool(
        _FENCE.match(text)
        or _HEADING.match(text)
        or _RULE.match(text)
        or _QUOTE.match(text)
        or _ITEM.match(text)
        or _is_table(lines, place)
    )


def _is_table(lines: list[SourceLine], place: int) -> bool:
    """A row, and below it the row of dashes."""
    if "|" not in lines[place].text or place + 1 >= len(lines):
        return False
    below = lines[place + 1].text
    if not ("-" in below and _DELIMITER.match(below)):
        return False
    return len(cells_of(below)) == len(cells_of(lines[place].text))


def _table(lines: list[SourceLine], place: int) -> tuple[MarkdownPart, int]:
    start = place
    while place < len(lines) and "|" in lines[place].text:
        place += 1
    return _whole("table", lines[start:place], lines[start:place]), place


def cells_of(row: str) -> list[str]:
    """The cells of a row of a table."""
    inner = row.strip()
    inner = inner.removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]


def _paragraph(lines: list[SourceLine], place: int) -> tuple[MarkdownPart, int]:
    start = place
    place += 1
    while place < len(lines) and lines[place].text.strip() and not _begins_block(lines, place):
        place += 1
    inside = [_stripped(line) for line in lines[start:place]]
    return _whole("paragraph", inside, lines[start:place]), place


def _stripped(line: SourceLine) -> SourceLine:
    spaces = len(line.text) - len(line.text.lstrip(" \t"))
    return line.cut(spaces)
