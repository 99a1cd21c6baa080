"""The answer in flight as lines: what may be printed for good, and what is left to be redrawn.

The screen asks with every drawing; what was settled is remembered by its place in the source and
not by lines, so a window that changes its size in between neither repeats nor loses a word.
"""

from __future__ import annotations

from weft.cli.chat.paint.markdown_lines import MarkdownPainter
from weft.cli.chat.paint.path_links import PathLinks
from weft.cli.chat.paint.styled_text import NO_CUT, StyledLine, StyledSpan
from weft.cli.chat.paint.text_cells import cells, graphemes
from weft.cli.chat.paint.theme import PaintTheme
from weft.cli.sanitize import clean

MAX_WIDTH = 120
"""Columns of running text: longer lines are hard to read."""


def markdown_painter(
    width: int, theme: PaintTheme, links: PathLinks | None = None
) -> MarkdownPainter:
    """The painter of answers for a window; `links` are those that are known already."""
    if links is None and theme.folder:
        links = PathLinks(theme.folder)
    return MarkdownPainter(
        min(width, MAX_WIDTH),
        has_links=theme.has_links,
        has_syntax=theme.has_rows,
        links=links,
    )


class AnswerFlow:
    """One answer after another, each while it is written."""

    def __init__(self) -> None:
        self._done = ""
        """What was settled of the text in flight."""
        self._painted: tuple[object, list[StyledLine]] = (None, [])
        self._links: dict[str, PathLinks] = {}
        """The links to files, by the folder of the project."""

    @property
    def is_begun(self) -> bool:
        """Lines of the text in flight were settled: what is left goes on right below them."""
        return bool(self._done)

    def settle(self, text: str, room: int, *, width: int, theme: PaintTheme) -> list[str]:
        """Lines to print for good, so that at most `room` are left; none where that cannot be."""
        shown = self._cleaned(text)
        lines = self._lines(shown, width, theme)
        excess = len(_rows(lines, width)) - room
        settled: list[StyledLine] = []
        for line in lines:
            can_cut = not settled or settled[-1].end != NO_CUT
            if not line.is_final or (excess <= 0 and can_cut):
                break
            excess -= len(_rows([line], width))
            settled.append(line)
        while settled and settled[-1].end == NO_CUT:
            settled.pop()
        if not settled:
            return []
        is_first = not self._done
        self._done = shown[: settled[-1].end]
        return [*([""] if is_first else []), *(theme.line(line) for line in settled)]

    def lines(self, text: str, *, width: int, theme: PaintTheme) -> list[str]:
        """What is in flight and not settled, as rows that fit the window."""
        shown = self._cleaned(text)
        return [theme.line(line) for line in _rows(self._lines(shown, width, theme), width)]

    def finish(self, text: str, *, width: int, theme: PaintTheme) -> list[str]:
        """The rest of a piece that is finished, to be printed; the flow goes on behind it."""
        piece = clean(text)
        done, self._done = self._done, ""
        if not piece.startswith(done):
            if done.startswith(piece):
                # What was settled beyond this piece is the beginning of the next one.
                self._done = done[len(piece) :]
                return []
            done = ""
        lines = self._painter(width, theme).lines(piece, start=len(done))
        # What comes between two pieces are tools, which make and remove files.
        self._links.clear()
        painted = [theme.line(line) for line in lines]
        return painted if done else ["", *painted] if painted else []

    def _cleaned(self, text: str) -> str:
        """The text as it may be shown; one that does not go on from what was settled is new."""
        shown = clean(text)
        if not shown.startswith(self._done):
            self._done = ""
        return shown

    def _lines(self, shown: str, width: int, theme: PaintTheme) -> list[StyledLine]:
        # A drawing asks twice, for what to settle and for what is left.
        key = (shown, len(self._done), width, theme)
        if self._painted[0] != key:
            painter = self._painter(width, theme)
            self._painted = (key, painter.lines(shown, is_open=True, start=len(self._done)))
        return self._painted[1]

    def _painter(self, width: int, theme: PaintTheme) -> MarkdownPainter:
        if theme.folder and theme.folder not in self._links:
            self._links = {theme.folder: PathLinks(theme.folder)}
        return markdown_painter(width, theme, self._links.get(theme.folder))


def _rows(lines: list[StyledLine], width: int) -> list[StyledLine]:
    """Lines as rows of a window: code is cut where the terminal would break it."""
    rows: list[StyledLine] = []
    for line in lines:
        if not line.is_code or cells(line.text.expandtabs(8)) <= width:
            rows.append(_without_tabs(line) if line.is_code else line)
            continue
        rows += _cut(_without_tabs(line), width)
    return rows


def _without_tabs(line: StyledLine) -> StyledLine:
    if "\t" not in line.text:
        return line
    text = line.text.expandtabs(8)
    return line._replace(spans=(StyledSpan(text, line.spans[0].style),))


def _cut(line: StyledLine, width: int) -> list[StyledLine]:
    rows: list[StyledLine] = []
    row: list[StyledSpan] = []
    used = 0
    for span in line.spans:
        piece = ""
        for each in graphemes(span.text):
            size = cells(each)
            if used + size > width:
                rows.append(line._replace(spans=(*row, span._replace(text=piece))))
                row, piece, used = [], "", 0
            piece += each
            used += size
        row.append(span._replace(text=piece))
    return [*rows, line._replace(spans=tuple(row))]
