"""Two branches: compared word by word, and woven into one paragraph by paragraph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.cli.chat.paint.styled_text import StyledSpan
from weft.cli.chat.paint.text_cells import fit
from weft.cli.chat.screens.terminal.region_painter import ScreenSize
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.loom_view.panels.view_panel import CLOSES, NOTHING, ViewPanel
from weft.cli.loom_view.text_rows import (
    LongText,
    ViewFrame,
    padded,
    painted,
    panel_frame,
    plain,
    span,
    text_lines,
)
from weft.cli.loom_view.view_command import ViewCommand
from weft.loom import BranchComparison, DiffPart

BESIDE: Final = 70
"""Columns from which on two texts stand beside each other."""
SHARED: Final = 160
"""Characters of the shared text before it that are shown."""


class ComparePanel(ViewPanel):
    """Two branches from where they part."""

    def __init__(self, compared: BranchComparison, names: tuple[str, str]) -> None:
        self._compared = compared
        self._names = names
        shared = " ".join(plain(compared.shared[-SHARED:]).split())
        self._shared = [StyledSpan(f"…{shared}\n" if shared else "", "quiet")]
        self._sides = tuple(LongText(_side(compared.parts, side)) for side in (0, 1))
        self._whole = LongText([*self._shared, *_inline(compared.parts)])
        self._top = 0
        self._height = 20
        self.is_over = False

    def press(self, key: str) -> Sequence[ViewCommand]:
        page = max(1, self._height - 1)
        moves = {
            "j": 1,
            "down": 1,
            "k": -1,
            "up": -1,
            "space": page,
            "pagedown": page,
            "b": -page,
            "pageup": -page,
        }
        first, second = self._compared.first, self._compared.second
        if key in (*CLOSES, "="):
            self.is_over = True
        elif key == "w":
            self.is_over = True
            return (ViewCommand("open_weave", node=first, other=second),)
        elif key in ("1", "2"):
            self.is_over = True
            return (ViewCommand("go", node=first if key == "1" else second),)
        elif key in moves:
            self._top = max(0, self._top + moves[key])
        return NOTHING

    def paste(self, text: str) -> Sequence[ViewCommand]:
        return NOTHING

    def frame(self, size: ScreenSize, styles: RowStyles) -> ViewFrame:
        width = size.columns - 4
        self._height = max(1, size.rows - 2)
        if width >= BESIDE:
            rows = self._beside(width, styles)
        else:
            rows, self._top, _ = self._whole.window(self._top, self._height, width, styles)
        changes = sum(part.kind == "changed" for part in self._compared.parts)
        right = f"{changes} changes" if changes != 1 else "1 change"
        title = f"Compare {self._names[0]} with {self._names[1]}"
        hint = "q returns · j k scroll · w weaves them · 1 2 goes there"
        return ViewFrame(panel_frame(title, right, rows, hint, size, styles))

    def _beside(self, width: int, styles: RowStyles) -> list[str]:
        half = (width - 3) // 2
        shared = text_lines(self._shared, width)[:2] if self._shared[0].text else []
        head = [painted(line, styles) for line in shared if line.text]
        names = [padded(styles("bold", fit(name, half)), half) for name in self._names]
        bar = styles("quiet", " │ ")
        height = max(1, self._height - len(head) - 1)
        tops, columns = [], []
        for side in self._sides:
            rows, top, _ = side.window(self._top, height, half, styles)
            columns.append(rows)
            tops.append(top)
        # The longer one says how far it goes; the shorter is scrolled as far as it has text.
        self._top = max(tops)
        count = max(map(len, columns))
        one, two = ([*rows, *[""] * (count - len(rows))] for rows in columns)
        return [
            *head,
            bar.join(names),
            *(f"{padded(left, half)}{bar}{right}" for left, right in zip(one, two, strict=True)),
        ]


def _side(parts: Sequence[DiffPart], side: int) -> list[StyledSpan]:
    colour = "bold bad" if side == 0 else "bold good"
    return [
        span(part.second if side else part.first, colour if part.kind == "changed" else "")
        for part in parts
    ]


def _inline(parts: Sequence[DiffPart]) -> list[StyledSpan]:
    """Both texts in one, with marks around what differs."""
    found: list[StyledSpan] = []
    for part in parts:
        if part.kind == "same":
            found.append(span(part.first))
            continue
        if part.first:
            found.append(StyledSpan(f"[-{plain(part.first)}-]", "bad"))
        if part.second:
            found.append(StyledSpan(f"{{+{plain(part.second)}+}}", "good"))
    return found


class WeavePanel(ViewPanel):
    """Paragraphs of two branches, of which some become one."""

    def __init__(
        self,
        compared: BranchComparison,
        names: tuple[str, str],
        sides: tuple[Sequence[str], Sequence[str]],
    ) -> None:
        self._compared = compared
        self._names = names
        self._rows = [
            (side, number, text)
            for side, texts in enumerate(sides)
            for number, text in enumerate(texts)
        ]
        self._at = 0
        self._picks: list[tuple[int, int]] = []
        self.is_over = False

    def press(self, key: str) -> Sequence[ViewCommand]:
        if key in CLOSES:
            self.is_over = True
        elif key in ("j", "down"):
            self._at = min(self._at + 1, len(self._rows) - 1)
        elif key in ("k", "up"):
            self._at = max(0, self._at - 1)
        elif key == "space" and self._rows:
            pick = self._rows[self._at][:2]
            if pick in self._picks:
                self._picks.remove(pick)
            else:
                self._picks.append(pick)
            self._at = min(self._at + 1, len(self._rows) - 1)
        elif key == "enter":
            self.is_over = True
            picks = tuple(self._picks) if self._picks else None
            found = self._compared
            return (ViewCommand("weave", node=found.first, other=found.second, picks=picks),)
        return NOTHING

    def paste(self, text: str) -> Sequence[ViewCommand]:
        return NOTHING

    def frame(self, size: ScreenSize, styles: RowStyles) -> ViewFrame:
        width, height = size.columns - 4, max(1, size.rows - 2)
        rows: list[str] = []
        starts: list[int] = []
        for number in range(len(self._rows)):
            starts.append(len(rows))
            rows += self._paragraph(number, width, styles)
        top = max(0, min(starts[self._at] - height // 3, len(rows) - height)) if starts else 0
        hint = "Space takes a paragraph · Enter weaves · Esc"
        chosen = f"{len(self._picks)} chosen" if self._picks else "nothing chosen: all"
        title = f"Weave {self._names[0]} and {self._names[1]}"
        return ViewFrame(panel_frame(title, chosen, rows[top:], hint, size, styles))

    def _paragraph(self, number: int, width: int, styles: RowStyles) -> list[str]:
        side, place, text = self._rows[number]
        is_at = number == self._at
        pick = (side, place)
        order = f"{self._picks.index(pick) + 1:>2}" if pick in self._picks else "  "
        lead = f"{'❯' if is_at else ' '} {order} {side + 1} "
        style = "bold" if is_at else "" if pick in self._picks else "quiet"
        lines = text_lines([span(text.strip("\n"), style)], width - len(lead))
        shown = lines if is_at else lines[:3]
        rows = [
            (styles("bold you" if side == 0 else "bold mode", lead) if not n else " " * len(lead))
            + painted(line, styles)
            for n, line in enumerate(shown)
        ]
        more = len(lines) - len(shown)
        return [*rows, *([styles("quiet", f"      … {more} more lines")] if more else [])]
