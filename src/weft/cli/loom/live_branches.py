"""Branches while they grow: on a terminal a line for each, drawn over itself."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from weft.cli.chat.paint.text_cells import fit
from weft.cli.loom.branch_text import tail
from weft.cli.stdio import tell
from weft.events import TokenReceived

DRAW_SECONDS: Final = 0.08
"""Between two drawings; a redraw for each token would be most of the work."""
_KEPT: Final = 400
"""Characters of the end of a branch that can be seen."""


class LiveBranches:
    """What has come of each branch so far.

    It is drawn on standard error: the output gets each branch once, when it is whole.
    """

    def __init__(self, models: Sequence[str], *, is_quiet: bool) -> None:
        self._models = list(models)
        self._texts = [""] * len(models)
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._is_drawn = not is_quiet and is_terminal and os.environ.get("TERM", "") != "dumb"
        self._is_told = not is_quiet and is_terminal
        self._lines = 0
        self._drawn_at = float("-inf")

    def __enter__(self) -> Self:
        if self._is_told:
            count = len(self._models)
            named = ", ".join(dict.fromkeys(self._models))
            branches = "1 branch" if count == 1 else f"{count} branches"
            tell(f"{branches} by {named}; Ctrl-C stops and keeps what has come")
        self._draw()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._clear()

    def take(self, event: TokenReceived) -> None:
        """A piece of a branch has come."""
        if not self._is_drawn or event.branch_idx >= len(self._texts):
            return
        grown = self._texts[event.branch_idx] + event.token
        self._texts[event.branch_idx] = grown[-2 * _KEPT :] if len(grown) > 4 * _KEPT else grown
        if time.monotonic() - self._drawn_at >= DRAW_SECONDS:
            self._draw()

    def lines(self, width: int, height: int) -> list[str]:
        """A line for each branch, as many as there is room for."""
        room = max(1, height - 2)
        shown = min(len(self._texts), room)
        if shown < len(self._texts):
            shown = max(1, room - 1)
        models = max((len(each) for each in self._models), default=0) if width >= 60 else 0
        models = min(models, width // 4) if len(set(self._models)) > 1 else 0
        found = []
        for number in range(shown):
            name = f"{fit(self._models[number], models):{models}}  " if models else ""
            # No number: a branch gets one when it has ended, in the order of the ends.
            start = f"· {name}"
            text = tail(self._texts[number][-_KEPT:], max(8, width - len(start) - 1))
            found.append(f"{start}{text}".rstrip() if text else f"{start}…")
        if shown < len(self._texts):
            found.append(f"  and {len(self._texts) - shown} more")
        return found

    def _draw(self) -> None:
        if not self._is_drawn:
            return
        try:
            size = os.get_terminal_size(2)
            columns, rows = size.columns or 80, size.lines or 24
        except OSError:
            columns, rows = 80, 24
        lines = self.lines(columns, rows)
        # One write: a terminal that shows half of it would flicker.
        up = f"\x1b[{self._lines}A\r\x1b[J" if self._lines else ""
        sys.stderr.write(up + "".join(f"{line}\n" for line in lines))
        sys.stderr.flush()
        self._lines = len(lines)
        self._drawn_at = time.monotonic()

    def _clear(self) -> None:
        if self._lines:
            sys.stderr.write(f"\x1b[{self._lines}A\r\x1b[J")
            sys.stderr.flush()
            self._lines = 0
