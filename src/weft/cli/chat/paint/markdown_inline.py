"""Markdown inside a paragraph: code, emphasis, links, as spans that know their place in the source.

With `is_open` the text is still being written: what was begun and not ended is shown as if it were
ended, and `open_at` says from where on that may still turn out to be wrong.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import NamedTuple

from weft.cli.chat.paint.styled_text import StyledSpan
from weft.cli.sanitize import clean

_TOKEN = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<code>(?P<ticks>`+)(?P<inside>(?:[^`]|(?!(?P=ticks)(?!`))`+)*?)(?<!`)(?P=ticks)(?!`))"
    r"|(?P<open_code>`+)"
    r"|(?P<link>!?\[(?P<label>(?:[^\[\]\\]|\\.|\[[^\[\]]*\])*)\]\((?P<target>[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)"
    r"(?:\s+(?:\"[^\"]*\"|'[^']*'))?\))"
    r"|<(?P<auto>(?:https?|ftp|mailto):[^<>\s]+)>"
    r"|(?P<url>https?://[^\s<>`\"]+[^\s<>`\"'.,;:!?)\]*_])"
    r"|(?P<run>\*+|_+|~~)"
    r"|(?P<entity>&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
    r"|(?P<hard>(?: {2,}|\\)\n)"
    r"|(?P<soft> ?\n)"
)
_BEGUN_LINK = re.compile(r"!?\[[^\[\]\n]{0,300}(?:\](?:\([^()\s]{0,300})?)?$")
_WEB = ("http://", "https://", "mailto:")
LONGEST_LINK = 2000
_STYLES = {"*": "italic", "_": "italic", "~": "strike"}


class InlineText(NamedTuple):
    """What a paragraph says."""

    spans: list[StyledSpan]
    open_at: int | None = None
    """Where something was begun that is not ended; None when everything is."""


class _Piece:
    """A span in the making; a run of `*`, `_` or `~` may become a style of what follows it."""

    def __init__(self, text: str, at: int, *, style: str = "", verbatim: bool = True) -> None:
        self.text, self.at, self.verbatim = text, at, verbatim
        self.styles = [style] if style else []
        self.link = ""
        self.opens = self.closes = False
        self.count = 0

    def span(self) -> StyledSpan:
        style = " ".join(dict.fromkeys(self.styles))
        return StyledSpan(self.text, style, self.at, self.link, self.verbatim)


def inline_text(
    text: str, source: Callable[[int], int] = int, *, is_open: bool = False
) -> InlineText:
    """The spans of a paragraph; `source` turns a place in `text` into one in the source."""
    pieces, open_at = _pieces(text, source, is_open=is_open)
    _pair(pieces)
    left = [piece for piece in pieces if piece.opens and piece.count]
    if is_open:
        for piece in left:
            _style_rest(pieces, piece)
        # Half a mark at the very end says nothing yet.
        if pieces and pieces[-1].count and not left:
            pieces[-1].text = ""
        begun = _BEGUN_LINK.search(text)
        starts = [piece.at for piece in left] + ([open_at] if open_at is not None else [])
        starts += [source(begun.start())] if begun is not None else []
        open_at = min(starts, default=None)
    return InlineText([piece.span() for piece in pieces if piece.text], open_at)


def _pieces(
    text: str, source: Callable[[int], int], *, is_open: bool
) -> tuple[list[_Piece], int | None]:
    pieces: list[_Piece] = []
    place = 0
    for found in _TOKEN.finditer(text):
        if found.start() > place:
            pieces.append(_Piece(text[place : found.start()], source(place)))
        place = found.end()
        if found.lastgroup == "open_code" and is_open:
            rest = text[found.end() :]
            pieces.append(_Piece(rest, source(found.end()), style="code"))
            return pieces, source(found.start())
        pieces += _token(text, found, source)
    if place < len(text):
        pieces.append(_Piece(text[place:], source(place)))
    return pieces, None


def _token(text: str, found: re.Match[str], source: Callable[[int], int]) -> list[_Piece]:
    at = source(found.start())
    kind, said = found.lastgroup, found.group()
    match kind:
        case "escape":
            return [_Piece(said[1], at + 1)]
        case "code":
            return [_code(found, source)]
        case "link":
            return _link(found, source)
        case "auto" | "url":
            shown = found["auto"] or said
            piece = _Piece(shown, source(found.start(kind)), style="underline")
            piece.link = safe_link(shown)
            return [piece]
        case "run":
            return [_run(text, found, at)]
        case "entity":
            # Cleaned again: `&#27;` is harmless in the source and an escape sequence behind it.
            return [_Piece(clean(html.unescape(said)), at, verbatim=False)]
        case "hard":
            return [_Piece("\n", at, verbatim=False)]
        case "soft":
            return [_Piece(_soft_break(text, found), at, verbatim=False)]
        case _:
            return [_Piece(said, at)]


def _code(found: re.Match[str], source: Callable[[int], int]) -> _Piece:
    inside = found["inside"].replace("\n", " ")
    # One space on either side is there to part the code from its ticks.
    padded = bool(inside.startswith(" ") and inside.endswith(" ") and inside.strip(" "))
    start = source(found.start("inside") + padded)
    return _Piece(inside[1:-1] if padded else inside, start, style="code")


def _soft_break(text: str, found: re.Match[str]) -> str:
    """A line's end in a paragraph is a space, but for scripts that have none."""
    before, behind = text[: found.start()][-1:], text[found.end() : found.end() + 1]
    is_wide = "\u2e80" <= before <= "\uffef" and "\u2e80" <= behind <= "\uffef"
    return "" if is_wide else " "


def _link(found: re.Match[str], source: Callable[[int], int]) -> list[_Piece]:
    label, target = found["label"], found["target"]
    at = source(found.start("label"))
    link = safe_link(target)
    inner = inline_text(label, lambda place: source(found.start("label") + place))
    pieces: list[_Piece] = []
    for span in inner.spans:
        piece = _Piece(span.text, span.at, verbatim=span.is_verbatim)
        piece.styles = [*span.style.split(), "underline"]
        piece.link = link
        pieces.append(piece)
    # A label that looks like another address must not hide where the link leads.
    is_hidden = link and "://" not in label and not label.startswith("www.")
    if target and target != label:
        note = _Piece(f" ({target})", at + len(label) + 2, style="quiet", verbatim=False)
        note.styles += ["unless_linked"] if is_hidden else []
        pieces.append(note)
    return pieces


def safe_link(target: str) -> str:
    """A target for a hyperlink of the terminal; empty where it must not be one."""
    # Only printable ASCII: anything else could end the sequence that holds it.
    if not target.startswith(_WEB) or not target.isascii() or not target.isprintable():
        return ""
    return target.replace(";", "%3B") if len(target) < LONGEST_LINK else ""


def _run(text: str, found: re.Match[str], at: int) -> _Piece:
    """A run of `*`, `_` or `~` with what it may do, by the characters beside it."""
    said = found.group()
    before = text[: found.start()][-1:] or " "
    behind = text[found.end() : found.end() + 1] or " "
    piece = _Piece(said, at)
    piece.count = len(said)
    # The rule of CommonMark in short: a mark beside a space does not open or close there, and one
    # between a letter and punctuation belongs to the letter's side.
    is_left = behind.isalnum() or not before.isalnum() or behind in "`*_~[("
    is_right = before.isalnum() or not behind.isalnum() or before in "`*_~])"
    left = is_left and not behind.isspace()
    right = is_right and not before.isspace()
    if said[0] == "_":
        # Inside a word an underscore is a letter: `snake_case`.
        piece.opens = left and not before.isalnum()
        piece.closes = right and not behind.isalnum()
    else:
        piece.opens, piece.closes = left, right
    return piece


def _pair(pieces: list[_Piece]) -> None:
    """Pair what opens with what closes, the innermost first."""
    for place, closer in enumerate(pieces):
        while closer.closes and closer.count:
            opener = _opener(pieces[:place], closer)
            if opener is None:
                break
            taken = 2 if min(opener.count, closer.count) >= 2 else 1
            if closer.text[0] == "~":
                taken = 2
            style = "bold" if taken == 2 and closer.text[0] != "~" else _STYLES[closer.text[0]]
            start = pieces.index(opener)
            for inner in pieces[start + 1 : place]:
                inner.styles.append(style)
                # What was begun between the two and not ended there is no mark.
                inner.opens = False
            for each in (opener, closer):
                each.count -= taken
                each.text = each.text[: each.count]


def _opener(before: list[_Piece], closer: _Piece) -> _Piece | None:
    for piece in reversed(before):
        if piece.opens and piece.count and piece.text[:1] == closer.text[:1]:
            return piece
    return None


def _style_rest(pieces: list[_Piece], opener: _Piece) -> None:
    """Show what was begun and not ended as if it ended with the text."""
    mark = opener.text[0]
    style = "strike" if mark == "~" else "bold" if opener.count >= 2 else "italic"
    for piece in pieces[pieces.index(opener) + 1 :]:
        piece.styles.append(style)
    opener.text = ""
