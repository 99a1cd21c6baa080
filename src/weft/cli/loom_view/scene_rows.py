"""The main screen: the line, the branches below it, and the frame around both.

One below the other; in a wide window the line is at the left and the branches at the right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from weft.cli.chat.paint.styled_text import StyledLine, StyledSpan
from weft.cli.chat.paint.text_cells import cells, fit, fit_row, joined_rows, word_wrap
from weft.cli.chat.screens.terminal.region_painter import ScreenSize
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.loom_view.branch_rows import BranchList, marked_line
from weft.cli.loom_view.focus import cursor_row
from weft.cli.loom_view.scene import LoomScene
from weft.cli.loom_view.text_rows import (
    CURSOR,
    TINY,
    ViewFrame,
    edge,
    framed,
    padded,
    painted,
    span,
    text_lines,
)
from weft.cli.sanitize import clean_line

WIDE: Final = 120
"""Columns from which on the branches stand beside the line."""
LOW: Final = 6
"""Rows up to which there is no frame."""
HINT_ROWS: Final = 12
MOST_NOTICE: Final = 4


class SceneStatus(NamedTuple):
    """What the frame says besides the scene."""

    notice: str = ""
    activity: str = ""
    """What grows, and how to stop it."""
    tokens: str = ""
    """The token that is looked at, and its alternatives."""
    hints: tuple[str, ...] = ()
    is_animated: bool = True


class ScenePainter:
    """Draws scenes for one kind of terminal."""

    def __init__(self, styles: RowStyles) -> None:
        self._styles = styles
        self.most_scroll = 0
        """How far the text that was drawn last can be scrolled up."""

    def frame(
        self,
        scene: LoomScene,
        size: ScreenSize,
        status: SceneStatus,
        *,
        focus: Sequence[StyledSpan] = (),
        scroll: int = 0,
    ) -> ViewFrame:
        """All rows of the window."""
        branches = BranchList(
            scene,
            self._styles,
            focus=() if scene.is_leaf else focus,
            is_animated=status.is_animated,
        )
        spans = _line_spans(scene, focus if scene.is_leaf else ())
        if size.rows < LOW:
            low = self._low(spans, scene, size, status, scroll)
            return ViewFrame([fit_row(row, size.columns) for row in low])
        width = size.columns
        below = self._below(scene, status, width) if size.rows >= 8 else []
        if size.rows >= 8 and cells(status.notice) > width - 6:
            # A sentence that the last row has no room for.
            rows = word_wrap(status.notice, max(8, width - 4))[:MOST_NOTICE]
            below = framed([self._styles("bold", row) for row in rows], width, self._styles)
            status = status._replace(notice="")
        hints = [self._hint(status.hints, width)] if size.rows >= HINT_ROWS else []
        room = size.rows - 2 - len(below) - len(hints)
        body = (self._beside if width >= WIDE else self._stacked)(
            spans, branches, width - 4, room, scroll
        )
        rows = [
            self._header(scene, width),
            *framed([*body, *[""] * (room - len(body))], width, self._styles),
            *below,
            self._footer(scene, status, width),
            *hints,
        ]
        return ViewFrame([fit_row(row, width) for row in rows] if width < TINY else rows)

    # -- the middle

    def _stacked(
        self,
        spans: Sequence[StyledSpan],
        branches: BranchList,
        width: int,
        room: int,
        scroll: int,
    ) -> list[str]:
        count = len(branches.scene.rows)
        text = text_lines(spans, width)
        if not count:
            return self._line(text, room, scroll)
        # The line keeps a third, but needs no more than it has; the branches a row each, up to a
        # half.
        least = min(len(text), max(1, room // 3))
        most = max(room - 1 - least, min(count, room // 2), 1)
        height = min(branches.need(width), most)
        above = max(0, room - height - 1)
        shown = self._line(text, above, scroll)
        gap = [""] if above and room > height + len(shown) else []
        return [*shown, *gap, *branches.rows(width, height)]

    def _beside(
        self,
        spans: Sequence[StyledSpan],
        branches: BranchList,
        width: int,
        room: int,
        scroll: int,
    ) -> list[str]:
        left = (width - 3) * 11 // 20
        right = width - 3 - left
        text = self._line(text_lines(spans, left), room, scroll)
        rows = branches.rows(right, room)
        bar = self._styles("quiet", "│")
        return [
            f"{padded(text[n] if n < len(text) else '', left)} {bar} "
            f"{rows[n] if n < len(rows) else ''}"
            for n in range(max(len(text), len(rows), room))
        ]

    def _line(self, lines: Sequence[StyledLine], room: int, scroll: int) -> list[str]:
        """The end of the line; with a cursor in it, the part around it."""
        at = cursor_row([line.spans for line in lines])
        self.most_scroll = max(0, len(lines) - room)
        last = max(min(room, len(lines)), len(lines) - scroll)
        if at is not None:
            last = max(min(room, len(lines)), min(last, at + 1 + room // 2))
        return [
            painted(marked_line(line), self._styles) for line in lines[max(0, last - room) : last]
        ]

    def _low(
        self,
        spans: Sequence[StyledSpan],
        scene: LoomScene,
        size: ScreenSize,
        status: SceneStatus,
        scroll: int,
    ) -> list[str]:
        """A window of a few rows: the end of the line, and ▸."""
        branches = BranchList(scene, self._styles, is_animated=status.is_animated)
        room = max(0, size.rows - 1)
        chosen = branches.rows(size.columns, 1) if room > 1 and scene.rows else []
        lines = text_lines(spans, size.columns)
        rows = self._line(lines, room - len(chosen), scroll)
        words = status.notice or status.activity or status.tokens or _place(scene)
        shown = [*rows, *chosen, self._styles("quiet", fit(words, size.columns))]
        return [*[""] * (size.rows - len(shown)), *shown][: size.rows]

    # -- the frame

    def _header(self, scene: LoomScene, width: int) -> str:
        count = "1 node" if scene.nodes == 1 else f"{scene.nodes:,} nodes"
        models = "1 model" if scene.models == 1 else f"{scene.models} models"
        cost = "price unknown" if scene.cost_usd is None else f"${scene.cost_usd:.3f}"
        parts = [count, cost, models]
        while len(parts) > 1 and cells(" · ".join(parts)) > width // 2:
            parts.pop()
        return edge("┌┐", clean_line(scene.title), " · ".join(parts), width, self._styles, bold=1)

    def _below(self, scene: LoomScene, status: SceneStatus, width: int) -> list[str]:
        if status.tokens:
            return [edge("├┤", status.tokens, "", width, self._styles, bold=1)]
        if scene.selected < 0 or not scene.below:
            return []
        words = clean_line(scene.below)
        return [edge("├┤", f"below ▸{scene.selected + 1}: {words}", "", width, self._styles)]

    def _footer(self, scene: LoomScene, status: SceneStatus, width: int) -> str:
        plan = f"n {scene.n_branches} · {scene.max_tokens} tok · {scene.temperature:g}"
        plan += f" · ctx {'on' if scene.has_context else 'off'}"
        if width < 50:
            plan = f"n {scene.n_branches} · {scene.max_tokens} tok"
        words = status.notice or status.activity
        if words and cells(words) + cells(plan) + 10 > width:
            plan = ""
        return edge("└┘", words or _place(scene), plan, width, self._styles, bold=bool(words))

    def _hint(self, hints: tuple[str, ...], width: int) -> str:
        rows = joined_rows(list(hints), width - 2)
        return padded(self._styles("quiet", f" {rows[0] if rows else ''}"), width)


def _place(scene: LoomScene) -> str:
    """Where the view stands."""
    names = [clean_line(name) for name in scene.path[-3:]]
    here = "root" if scene.depth == 0 else f"depth {scene.depth}"
    signs = [
        *(["⚑"] if scene.is_bookmarked else []),
        *([f"★{scene.rating}"] if scene.rating is not None else []),
        *(["hoisted"] if scene.is_hoisted else []),
        *(["blind"] if scene.is_blind else []),
        *(["read only"] if scene.is_read_only else []),
    ]
    return " · ".join([" ▸ ".join([*names, here]), *signs])


def _line_spans(scene: LoomScene, focus: Sequence[StyledSpan]) -> list[StyledSpan]:
    """The text of the line; the current node's own part is bold, if others are before it."""
    found: list[StyledSpan] = [StyledSpan("… ", "quiet")] if scene.is_cut else []
    role = ""
    for number, part in enumerate(scene.line):
        is_last = number == len(scene.line) - 1
        if part.role and part.role != role:
            gap = "\n\n" if number else ""
            found.append(StyledSpan(f"{gap}{clean_line(part.role)}\n", "bold quiet"))
            role = part.role
        if is_last and focus:
            found += focus
        else:
            found.append(span(part.text, "bold" if is_last and number else ""))
    return found if focus else [*found, StyledSpan(CURSOR, "bold you")]
