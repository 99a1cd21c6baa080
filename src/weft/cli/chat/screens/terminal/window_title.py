"""What is shown outside of the window: its title, and a call for the user who looks elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.cli.chat.paint.text_cells import fit
from weft.cli.sanitize import clean_line
from weft.view import LiveArea

PUSH, POP = "\x1b[22;0t", "\x1b[23;0t"
"""The terminal keeps the title that it had, and takes it again."""
LONG_TURN_SECONDS = 20
_LONGEST = 80
_NOTIFYING = ("iTerm.app", "WezTerm", "ghostty", "kitty", "rio")
"""Terminals that show OSC 9; others would swallow it, so they get a bell."""


class WindowTitle:
    """Writes the title when it changes: `calc: fix the failing test`."""

    def __init__(self, write: Callable[[str], None], folder: str) -> None:
        self._write = write
        self._folder = folder
        self._said = ""
        self._shown = ""

    def said(self, text: str) -> None:
        """The user's message: the title until the session has one."""
        self._said = self._said or text

    def show(self, live: LiveArea, *, asks: bool) -> None:
        """A dot while it works, a question mark while it waits for the user."""
        about = clean_line(live.title or self._said)
        mark = "? " if asks else "⠂ " if live.is_busy else ""
        title = fit(f"{mark}{self._folder}{': ' if about else ''}{about}", _LONGEST)
        if title != self._shown:
            self._shown = title
            self._write(f"\x1b]0;{title}\x07")


class AttentionBell:
    """Calls the user back, once for each thing, and only when the window has lost the focus."""

    def __init__(
        self, write: Callable[[str], None], environment: Mapping[str, str], *, is_on: bool = True
    ) -> None:
        self._write = write
        self._is_on = is_on
        self._is_told = (
            environment.get("TERM_PROGRAM") in _NOTIFYING
            or environment.get("TERM") == "xterm-kitty"
        )
        # Terminals that never report the focus never lose it.
        self.has_focus = True
        self._was_busy = False
        self._was_asked = False

    def look(self, live: LiveArea, *, seconds: int, asks: bool) -> None:
        """Something may have changed; `seconds` is how long the turn took."""
        ended = self._was_busy and not live.is_busy and seconds >= LONG_TURN_SECONDS
        if asks and not self._was_asked:
            self._ring("Weft asks")
        elif ended:
            self._ring(f"Weft is done after {seconds} s")
        self._was_busy, self._was_asked = live.is_busy, asks

    def _ring(self, text: str) -> None:
        if self._is_on and not self.has_focus:
            self._write(f"\x1b]9;{text}\x07" if self._is_told else "\x07")


def background_of(reply: str) -> str:
    """`dark` or `light`, by what a terminal answers about its background: `rgb:1e1e/1e1e/2e2e`."""
    kind, _, values = reply.partition(":")
    parts = values.split("/")
    if kind not in ("rgb", "rgba") or len(parts) < 3:
        return ""
    try:
        red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in parts[:3])
    except (ValueError, ZeroDivisionError):
        return ""
    # As an eye weighs them.
    return "light" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "dark"
