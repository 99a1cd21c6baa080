"""The branches of the current node as rows: each in one line, and in more where there is room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.cli.chat.paint.styled_text import StyledLine, StyledSpan
from weft.cli.chat.paint.text_cells import cells, fit
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.loom_view.focus import MARK, cursor_row
from weft.cli.loom_view.scene import BranchRow, LoomScene, shown_places
from weft.cli.loom_view.text_rows import (
    money,
    padded,
    painted,
    plain,
    short_model,
    span,
    stable_start,
    text_lines,
)

MOST_LINES: Final = 6
"""Lines of a branch that ▸ is not on."""
NARROW: Final = 60
TINY: Final = 36
_MODEL: Final = 14
_MARKS: Final = {
    "whole": ("●", "good"),
    "growing": ("○", "you"),
    "waiting": ("○", "quiet"),
    "partial": ("◐", "ask"),
    "failed": ("✗", "bad"),
}
_PACE: Final = ("▁▂▅", "▂▅▁", "▅▁▂")


class BranchList:
    """The branches of one scene, to be drawn."""

    def __init__(
        self,
        scene: LoomScene,
        styles: RowStyles,
        *,
        focus: Sequence[StyledSpan] = (),
        is_animated: bool = True,
    ) -> None:
        """`focus` is the selected branch in other styles, with a cursor in it."""
        self.scene = scene
        self._styles = styles
        self._focus = focus
        self._is_animated = is_animated
        self._widths: dict[int, tuple[int, int, int]] = {}
        """Of the columns at the right, by the width of the list."""

    def need(self, width: int) -> int:
        """The rows that they would take with all the room there is."""
        return sum(self._needs(width))

    def rows(self, width: int, room: int) -> list[str]:
        """The branches in at most so many rows; ▸ is always among them."""
        shown = self._window(room)
        if not shown:
            return []
        heights = self._heights(shown, width, room)
        found: list[str] = []
        for place, height in zip(shown, heights, strict=True):
            found += self._branch(place, width, height)
        return found

    def _window(self, room: int) -> list[int]:
        """The numbers of the rows that are shown, among those of the scene."""
        rows = self.scene.rows
        is_growing = any(row.state in ("growing", "waiting") for row in rows)
        selected = next((n for n in range(len(rows)) if self._is_selected(n)), -1)
        return shown_places(len(rows), selected, room, is_growing=is_growing)

    # -- heights

    def _needs(self, width: int) -> list[int]:
        return [self._need(place, width) for place in range(len(self.scene.rows))]

    def _need(self, place: int, width: int) -> int:
        most = 40 if self._is_selected(place) else MOST_LINES
        room = self._text_width(width)
        return max(1, min(len(self._lines(place, room, most)), most))

    def _heights(self, shown: Sequence[int], width: int, room: int) -> list[int]:
        """A line each; what is left goes round, to the selected one first."""
        needs = [self._need(place, width) for place in shown]
        heights = [1] * len(shown)
        left = room - len(shown)
        order = sorted(range(len(shown)), key=lambda n: not self._is_selected(shown[n]))
        while left > 0 and any(heights[n] < needs[n] for n in order):
            for number in order:
                if left > 0 and heights[number] < needs[number]:
                    heights[number] += 1
                    left -= 1
        return heights

    # -- one branch

    def _is_selected(self, place: int) -> bool:
        return self.scene.rows[place].place == self.scene.selected

    def _branch(self, place: int, width: int, height: int) -> list[str]:
        row, styles = self.scene.rows[place], self._styles
        is_selected = self._is_selected(place)
        digits = len(str(self.scene.count))
        number = str(row.place + 1).rjust(digits)
        mark, colour = _MARKS[row.state]
        pointer = styles("bold you", "▸") if is_selected else " "
        named = styles("bold", number) if is_selected else styles("quiet", number)
        lead = f"{pointer}{named} {styles(colour, mark)} "
        room = self._text_width(width)
        lines = [padded(each, room) for each in self._painted(place, room, height)]
        indent = " " * (digits + 4)
        meta = self._meta(row, width)
        rows = [f"{lead}{lines[0]}{meta}"]
        return rows + [f"{indent}{line}" for line in lines[1:]]

    def _painted(self, place: int, room: int, height: int) -> list[str]:
        lines = self._lines(place, room, max(height, 1))
        at = cursor_row([line.spans for line in lines]) if self._is_selected(place) else None
        row = self.scene.rows[place]
        first = 0
        if at is not None:
            first = max(0, min(at - height // 2, len(lines) - height))
        elif row.state == "growing":
            first = max(0, len(lines) - height)
        shown = lines[first : first + height] or [StyledLine(())]
        rows = [painted(marked_line(line), self._styles) for line in shown]
        if first and at is None:
            # What grows shows its end.
            rows[0] = self._styles("quiet", "…") + painted(
                _shorter(shown[0], room - 1), self._styles
            )
        if first + height < len(lines):
            rows[-1] = painted(_cut(shown[-1], room), self._styles)
        return rows

    def _lines(self, place: int, room: int, height: int) -> list[StyledLine]:
        row = self.scene.rows[place]
        if self._focus and self._is_selected(place):
            return text_lines(self._focus, room)
        # A little more than fits, so that it is known whether something is cut.
        most = (height + 2) * max(4, room)
        if row.state == "growing":
            text = row.text[stable_start(row.text, most) :]
        else:
            text = row.text[:most]
        words = plain(text).strip()
        if height == 1:
            words = " ".join(words.split("\n"))
        return text_lines([*self._signs(row), StyledSpan(words, _text_style(row))], room)

    def _signs(self, row: BranchRow) -> list[StyledSpan]:
        found: list[StyledSpan] = []
        if row.is_marked:
            found.append(StyledSpan("= ", "bold mode"))
        if row.is_bookmarked:
            found.append(StyledSpan("⚑ ", "ask"))
        if row.rating is not None:
            found.append(StyledSpan(f"★{row.rating} ", "ask"))
        if row.name:
            found.append(span(f"{row.name}: ", "bold"))
        if row.state == "partial":
            why = f": {plain(row.why)}" if row.why else ""
            found.append(StyledSpan(f"(partial{why}) ", "quiet"))
        if row.state == "waiting":
            found.append(StyledSpan("waiting…", "quiet"))
        return found

    # -- columns

    def _text_width(self, width: int) -> int:
        digits = len(str(self.scene.count))
        return max(8, width - (digits + 4) - self._meta_width(width))

    def _meta_width(self, width: int) -> int:
        model, below, cost = self._columns(width)
        return sum(each + 2 for each in (model, below, cost) if each)

    def _columns(self, width: int) -> tuple[int, int, int]:
        """The widths of the columns at the right."""
        if width not in self._widths:
            self._widths[width] = self._measured(width)
        return self._widths[width]

    def _measured(self, width: int) -> tuple[int, int, int]:
        rows = self.scene.rows
        if width < TINY:
            return 0, 0, 0
        if width < NARROW:
            # One detail: who writes, or how much has come.
            details = (min(cells(_detail(row)), 8) for row in rows)
            return max(details, default=0), 0, 0
        model = max((min(cells(short_model(row.model)), _MODEL) for row in rows), default=0)
        below = max((len(_below(row, is_animated=False)) for row in rows), default=0)
        cost = max((len(money(row.cost_usd)) for row in rows), default=0)
        return model, below, cost

    def _meta(self, row: BranchRow, width: int) -> str:
        model, below, cost = self._columns(width)
        found = ""
        if model:
            name = fit(_detail(row) if width < NARROW else short_model(row.model), model)
            found += "  " + name + " " * (model - cells(name))
        if below:
            found += "  " + _below(row, is_animated=self._is_animated).rjust(below)
        if cost:
            found += "  " + money(row.cost_usd).rjust(cost)
        return self._styles("quiet", found)


def _detail(row: BranchRow) -> str:
    return f"{row.tokens} tok" if row.state == "growing" else short_model(row.model)


def _below(row: BranchRow, *, is_animated: bool) -> str:
    """How many nodes are below; of one that grows, how much has come."""
    if row.state == "growing":
        pace = _PACE[row.tokens % len(_PACE)] if is_animated else "▁▂▅"
        return f"{pace} {row.tokens} tok"
    if row.state in ("waiting", "failed"):
        return ""
    return f"+{row.below}" if row.below else ""


def _text_style(row: BranchRow) -> str:
    return {"failed": "bad", "waiting": "quiet"}.get(row.state, "")


def marked_line(line: StyledLine) -> StyledLine:
    """A line with the place that must be seen in reverse."""
    return line._replace(
        spans=tuple(
            each._replace(style="picked") if each.style == MARK else each for each in line.spans
        )
    )


def _cut(line: StyledLine, room: int) -> StyledLine:
    """A line that ends with `…`, because there is more."""
    shorter = _shorter(line, room - 1)
    return shorter._replace(spans=(*shorter.spans, StyledSpan("…", "quiet")))


def _shorter(line: StyledLine, room: int) -> StyledLine:
    spans: list[StyledSpan] = []
    left = room
    for each in marked_line(line).spans:
        text = each.text if cells(each.text) <= left else fit(each.text, left, ellipsis="")
        spans.append(each._replace(text=text))
        left -= cells(text)
    return line._replace(spans=tuple(spans))
