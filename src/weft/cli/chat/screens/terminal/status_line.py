"""The status line: mode, model, context, cost and sandbox; to the right branch and folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple

from weft.cli.chat.paint.text_cells import cells, fit
from weft.cli.chat.screens.terminal.region_rows import short_model
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.git_branch import branch_of
from weft.cli.options import MODE_WORDS
from weft.cli.sanitize import clean_line
from weft.view import LiveArea

_MODE_STYLES = {"default": "quiet", "auto": "mode", "bypass": "bold bad"}
CONTEXT_HIGH, CONTEXT_FULL = 75, 90
_GAP = 2
FRESH_SECONDS = 2.0


class StatusPlace(NamedTuple):
    """Where the chat is."""

    folder: str = ""
    """The project's name."""
    branch: str = ""
    sandbox: bool = False
    """Commands are known to run in the sandbox."""
    is_changed: bool = False
    """Something is not committed."""


class PlaceReader:
    """Reads where the chat is, now and then: another program may switch the branch."""

    def __init__(self, folder: str, is_sandboxed: Callable[[], bool] = lambda: False) -> None:
        self._folder = folder
        self._is_sandboxed = is_sandboxed
        self._place = StatusPlace()
        self._is_changed = False
        self._read_at = float("-inf")

    def look(self) -> None:
        """Look for uncommitted changes; it looks at every tracked file, so not while drawing."""
        from weft.project.environment import has_uncommitted_changes  # with the first turn

        self._is_changed = has_uncommitted_changes(self._folder)
        self._read_at = float("-inf")

    def read(self) -> StatusPlace:
        """The folder's name and its branch."""
        now = time.monotonic()
        if now - self._read_at > FRESH_SECONDS:
            self._read_at = now
            name = os.path.basename(self._folder) or self._folder
            self._place = StatusPlace(
                folder=name,
                branch=branch_of(self._folder),
                sandbox=self._is_sandboxed(),
                is_changed=self._is_changed,
            )
        return self._place


class _Part(NamedTuple):
    """One piece of the line."""

    name: str
    text: str
    style: str = "quiet"


_LEAVING = ("folder", "branch", "sandbox", "cost", "effort", "context")
"""What goes first when there is little room; mode and model stay."""


def status_row(
    live: LiveArea, place: StatusPlace, *, width: int, styles: RowStyles, notice: str = ""
) -> str:
    """The line; a notice takes the left half."""
    left, right = _left(live, place, notice), _right(place)
    leaving = list(_LEAVING)
    # The mode is never dropped: it says what runs without asking.
    while _length(left, right) > width and leaving:
        name = leaving.pop(0)
        left = [part for part in left if part.name != name]
        right = [part for part in right if part.name != name]
    shown, used = [" "], 1
    for number, part in enumerate(left):
        mark = "" if number == 0 else " " if part.name == "effort" else " · "
        text = fit(f"{mark}{part.text}", width - used)
        shown.append(styles(part.style, text))
        used += cells(text)
    end = "  ".join(part.text for part in right)
    if end:
        shown.append(" " * (width - used - cells(end)) + styles("quiet", end))
    return "".join(shown)


def _left(live: LiveArea, place: StatusPlace, notice: str) -> list[_Part]:
    if notice:
        return [_Part("notice", clean_line(notice), "ask")]
    mode = MODE_WORDS.get(live.mode, clean_line(live.mode))
    mode = f"{mode}, architect" if live.is_architect else mode
    parts = [
        _Part("mode", mode, _MODE_STYLES.get(live.mode, "mode")),
        _Part("model", short_model(live.model)),
        _Part("effort", "" if live.effort == "default" else live.effort),
        _context(live),
        _Part("cost", _cost(live.cost_usd)),
        _Part("sandbox", "sandbox" if place.sandbox else ""),
    ]
    return [part for part in parts if part.text]


def _right(place: StatusPlace) -> list[_Part]:
    branch = clean_line(place.branch)
    parts = [
        _Part("branch", f"{branch}*" if branch and place.is_changed else branch),
        _Part("folder", clean_line(place.folder)),
    ]
    return [part for part in parts if part.text]


def _context(live: LiveArea) -> _Part:
    if not live.context_window:
        used = f"context {live.context_used // 1000}k" if live.context_used else "context 0%"
        return _Part("context", used)
    percent = live.context_used * 100 // live.context_window
    if percent >= CONTEXT_FULL:
        return _Part("context", f"context {percent}% · /compact", "bad")
    return _Part("context", f"context {percent}%", "ask" if percent >= CONTEXT_HIGH else "quiet")


def _cost(cost_usd: float | None) -> str:
    if cost_usd is None:
        return "cost unknown"
    return "under $0.01" if 0 < cost_usd < 0.01 else f"${cost_usd:.2f}"


def _length(left: list[_Part], right: list[_Part]) -> int:
    length = 1
    for number, part in enumerate(left):
        length += cells(part.text) + (0 if number == 0 else 1 if part.name == "effort" else 3)
    if right:
        length += sum(_GAP + cells(part.text) for part in right)
    return length
