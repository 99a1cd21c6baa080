"""Attributes of rows: the few styles of the chat, by the words that say what they mean.

Of the terminal's sixteen colours only, so that its own theme decides how they look.  Quiet is the
dim attribute: bright black is invisible in some themes.
"""

from __future__ import annotations

_COLOURS = {"you": "36", "good": "32", "ask": "33", "bad": "31", "mode": "35", "code": "36"}
_ATTRIBUTES = {"bold": "1", "quiet": "2", "italic": "3", "picked": "7"}
_PLAIN = {
    "●": "*",
    "›": ">",
    "❯": ">",
    "·": "-",
    "∴": "~",
    "✗": "x",
    "■": "#",
    "…": ".",
    "─": "-",
    "☐": "o",
    "☑": "x",
    "├": "|",
    "└": "`",
    "│": "|",
    **dict.fromkeys("┌┐┘┤", "+"),
    **dict.fromkeys("▁▂", "."),
    "▅": ":",
    "▸": ">",
    "○": "o",
    "◐": "%",
    "▏": "|",
    "★": "*",
    "↓": "v",
    "↑": "^",
    "−": "-",
    "█": "#",
    "░": ".",
    "→": ">",
    "←": "<",
    "“": '"',
    "”": '"',
    "⚑": "*",
    "⤷": ">",
    "▌": "|",
    "•": "*",
    **dict.fromkeys("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏⠂", "*"),
}
_ASCII = str.maketrans(_PLAIN)
"""One character for one: a row must not grow."""


class RowStyles:
    """Puts attributes around text, for one kind of terminal."""

    def __init__(self, *, coloured: bool = True, unicode: bool = True) -> None:
        self._words = {**_ATTRIBUTES, **(_COLOURS if coloured else {})}
        self._unicode = unicode

    def __call__(self, style: str, text: str) -> str:
        """The text in a style, such as `bold you`; it ends with the text."""
        codes = ";".join(self._words[word] for word in style.split() if word in self._words)
        return f"\x1b[{codes}m{text}\x1b[0m" if codes and text else text

    def written(self, row: str) -> str:
        """A row in the characters that the terminal has."""
        if self._unicode or row.isascii():
            return row
        return row.translate(_ASCII).encode("ascii", "replace").decode()
