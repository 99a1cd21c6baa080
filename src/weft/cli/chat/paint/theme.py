"""The theme: names of styles, and the escape sequences that a terminal gets for them.

Sixteen colours by their names, so that the user's own palette is used; backgrounds only where there
are 256 colours or more.  Without colours the attributes stay, without styles nothing does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from weft.cli.chat.paint.styled_text import StyledLine, StyledSpan
from weft.cli.chat.paint.text_cells import graphemes

ThemeName: TypeAlias = Literal["auto", "dark", "light", "none"]
ColourDepth: TypeAlias = Literal["16", "256", "true"]

_ATTRIBUTES = {"bold": "1", "quiet": "2", "italic": "3", "underline": "4", "picked": "7"}
_ATTRIBUTES["strike"] = "9"
_COLOURS = {"you": "36", "good": "32", "ask": "33", "bad": "31", "mode": "35", "code": "36"}
_COLOURS |= {"keyword": "35", "string": "32", "number": "33"}
_ROWS = {
    ("dark", "true"): {
        "removed": "48;2;58;29;29",
        "removed_word": "48;2;107;43;43",
        "added": "48;2;22;48;28",
        "added_word": "48;2;42;92;53",
    },
    ("light", "true"): {
        "removed": "48;2;255;227;224",
        "removed_word": "48;2;255;184;176",
        "added": "48;2;223;245;225",
        "added_word": "48;2;166;224;173",
    },
    # The nearest of the 256 by distance would be greys: these keep their colour.
    ("dark", "256"): {
        "removed": "48;5;52",
        "removed_word": "48;5;88",
        "added": "48;5;22",
        "added_word": "48;5;28",
    },
    ("light", "256"): {
        "removed": "48;5;224",
        "removed_word": "48;5;217",
        "added": "48;5;194",
        "added_word": "48;5;157",
    },
}
"""Backgrounds of the rows of a diff, by background and depth."""
_ROW_COLOURS = {"removed": "31", "removed_word": "31;1", "added": "32", "added_word": "32;1"}
"""The same with 16 colours."""

_ASCII = {
    "●": "*",
    "›": ">",
    "∴": "~",
    "·": "-",
    "✗": "x",
    "…": "...",
    "▌": "|",
    "•": "*",
    "⤷": ">",
    "❯": ">",
    "■": "#",
    "☐": "[ ]",
    "☑": "[x]",
    "─": "-",
    "│": "|",
    "├": "|",
    "└": "`",
    "→": "->",
    "−": "-",
    "█": "#",
    "░": ".",
    "↑": "in",
    "↓": "out",
    "–": "-",
    "—": "-",
    "’": "'",
    "“": '"',
    "”": '"',
}


class PaintTheme(msgspec.Struct, frozen=True, kw_only=True):
    """How one terminal is painted on."""

    is_styled: bool = True
    is_coloured: bool = True
    is_unicode: bool = True
    has_links: bool = False
    """The terminal has hyperlinks (OSC 8)."""
    depth: ColourDepth = "16"
    background: Literal["dark", "light"] = "dark"
    folder: str = ""
    """The project, for links to its files."""

    @property
    def has_rows(self) -> bool:
        """Rows of a diff have a background."""
        return self.is_styled and self.is_coloured and self.depth != "16"

    def line(self, line: StyledLine) -> str:
        """A line as it may be written to the terminal; every style ends with the line."""
        return "".join(self._span(span) for span in _merged(line.spans))

    def _span(self, span: StyledSpan) -> str:
        text = span.text if self.is_unicode else ascii_text(span.text)
        if not self.is_styled or not text:
            return text
        if span.link and self.has_links:
            text = f"\x1b]8;;{span.link}\x1b\\{text}\x1b]8;;\x1b\\"
        codes = self._codes(span.style)
        return f"\x1b[{codes}m{text}\x1b[0m" if codes else text

    def _codes(self, style: str) -> str:
        codes = []
        for word in style.split():
            if word in _ATTRIBUTES:
                codes.append(_ATTRIBUTES[word])
            elif not self.is_coloured:
                continue
            elif word in _COLOURS:
                codes.append(_COLOURS[word])
            elif self.depth != "16" and word in _ROW_COLOURS:
                codes.append(_ROWS[self.background, self.depth][word])
            elif word in _ROW_COLOURS:
                codes.append(_ROW_COLOURS[word])
        return ";".join(codes)


def _merged(spans: tuple[StyledSpan, ...]) -> list[StyledSpan]:
    """Neighbours of one style as one span, without spaces at the line's end."""
    merged: list[StyledSpan] = []
    for span in spans:
        if merged and (merged[-1].style, merged[-1].link) == (span.style, span.link):
            merged[-1] = span._replace(text=merged[-1].text + span.text)
        elif span.text:
            merged.append(span)
    # A row of a diff has a background: there the spaces are seen.
    while merged and not merged[-1].style.startswith(("added", "removed")):
        text = merged[-1].text.rstrip(" ")
        if text:
            merged[-1] = merged[-1]._replace(text=text)
            break
        merged.pop()
    return merged


def theme_of(
    environment: Mapping[str, str],
    *,
    name: str = "auto",
    background: str = "",
    is_unicode: bool = True,
    folder: str = "",
) -> PaintTheme:
    """The theme for a terminal, by what its environment says of it.

    `name` is the user's setting and wins; `background` is what the terminal answered, if it did.
    """
    term = environment.get("TERM", "dumb")
    is_dumb = term in ("dumb", "unknown", "")
    known = name if name in ("dark", "light") else background
    return PaintTheme(
        is_styled=not is_dumb,
        is_coloured=not is_dumb and name != "none" and not environment.get("NO_COLOR"),
        is_unicode=is_unicode,
        has_links=not is_dumb and _has_links(environment, term),
        depth=_depth(environment, term),
        background="light" if known == "light" else "dark",
        folder=folder,
    )


def _depth(environment: Mapping[str, str], term: str) -> ColourDepth:
    if environment.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "true"
    if "256color" in term or "direct" in term or term in ("xterm-kitty", "xterm-ghostty", "foot"):
        return "256"
    return "16"


def _has_links(environment: Mapping[str, str], term: str) -> bool:
    """Terminals that are known to have hyperlinks; others would print the sequence's rest."""
    if term in ("xterm-kitty", "xterm-ghostty", "foot", "alacritty", "wezterm"):
        return True
    if "TMUX" in environment or term.startswith(("screen", "tmux")):
        # tmux passes hyperlinks on from 3.4 only, and swallows the text of none.
        major, _, minor = environment.get("TERM_PROGRAM_VERSION", "0").partition(".")
        number = (int(major) if major.isdecimal() else 0, int(minor[:1] or 0))
        return environment.get("TERM_PROGRAM") == "tmux" and number >= (3, 4)
    vte = environment.get("VTE_VERSION", "")
    programs = ("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio")
    return (
        environment.get("TERM_PROGRAM") in programs
        or "WT_SESSION" in environment
        or "KONSOLE_VERSION" in environment
        or (vte.isdecimal() and int(vte) >= 5000)
    )


def ascii_text(text: str) -> str:
    """A text for terminals that cannot show more than ASCII."""
    if text.isascii():
        return text
    return "".join(each if each.isascii() else _ASCII.get(each, "?") for each in graphemes(text))
