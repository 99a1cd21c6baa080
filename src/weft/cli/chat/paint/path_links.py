"""Hyperlinks to files: paths on cards, and those that an answer names.

A model's text may name any file.  Only what exists in the project becomes a link, so that a word
never leads anywhere else; the file is opened by the terminal, when the user clicks.
"""

from __future__ import annotations

import os
import re
from urllib.parse import quote

from weft.cli.chat.paint.styled_text import StyledSpan

_WORD = re.compile(
    r"(?<![\w/.@:~-])(?P<path>\.?/?(?:[\w.+-]+/)*[\w+-][\w.+-]*\.[A-Za-z]\w{0,9})"
    r"(?P<lines>:\d+(?:[-:]\d+)?)?(?![\w/@])"
)
_LINES = re.compile(r":\d+(?:[-:]\d+)?$")
_LONGEST = 300


def file_link(path: str, folder: str) -> str:
    """A hyperlink to a file of the project; empty where its place is not known."""
    whole = path if path.startswith("/") else f"{folder.rstrip('/')}/{path}"
    return f"file://{quote(whole)}" if whole.startswith("/") and folder else ""


def linked_paths(spans: list[StyledSpan], folder: str) -> list[StyledSpan]:
    """The same spans, with links where they name a file of the project."""
    linked: list[StyledSpan] = []
    for span in spans:
        if span.link:
            linked.append(span)
        elif "code" in span.style.split():
            # A path in code may have spaces, or no suffix.
            linked.append(span._replace(link=_link(_LINES.sub("", span.text), folder)))
        else:
            linked += _words(span, folder)
    return linked


def _words(span: StyledSpan, folder: str) -> list[StyledSpan]:
    pieces: list[StyledSpan] = []
    place = 0
    # Most spans have no dot between letters: nothing is made for those.
    for found in _WORD.finditer(span.text):
        link = _link(found["path"], folder)
        if link:
            pieces.append(span._replace(text=span.text[place : found.start()], at=span.at + place))
            pieces.append(span._replace(text=found.group(), at=span.at + found.start(), link=link))
            place = found.end()
    if not pieces:
        return [span]
    pieces.append(span._replace(text=span.text[place:], at=span.at + place))
    return [piece for piece in pieces if piece.text]


def _link(path: str, folder: str) -> str:
    if not 0 < len(path) <= _LONGEST or "\n" in path:
        return ""
    try:
        # Resolved: neither `..` nor a symbolic link may lead out of the project.
        real = os.path.realpath(os.path.join(folder, path))
        root = os.path.realpath(folder)
        if not real.startswith(f"{root}/") or not os.path.exists(real):
            return ""
    except (OSError, ValueError):
        return ""
    return file_link(real, folder)
