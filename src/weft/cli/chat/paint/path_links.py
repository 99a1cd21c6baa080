"""Hyperlinks to files: paths on cards, and those that an answer names.

A model's text may name any file.  Only what exists in the project becomes a link, so that a word
never leads anywhere else; the file is opened by the terminal, when the user clicks.
"""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import quote

from weft.cli.chat.paint.styled_text import StyledSpan

_WORD = re.compile(
    r"(?<![\w/.@:~-])(?P<path>\.?/?(?:[\w.+-]+/)*[\w+-][\w.+-]*\.[A-Za-z]\w{0,9})"
    r"(?P<lines>:\d+(?:[-:]\d+)?)?(?![\w/@])"
)
_LINES = re.compile(r":\d+(?:[-:]\d+)?$")
_LONGEST = 300
MOST_LINKS: Final = 1000
"""Paths that are remembered, with a link or without."""


def file_link(path: str, folder: str) -> str:
    """A hyperlink to a file of the project; empty where its place is not known."""
    whole = path if path.startswith("/") else f"{folder.rstrip('/')}/{path}"
    return f"file://{quote(whole)}" if whole.startswith("/") and folder else ""


class PathLinks:
    """The links of one project's paths.

    Each path is looked up once: an answer is painted anew with every piece of it that comes, in the
    thread that also reads the keys, and the disk may be a slow one.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._root: str | None = None
        self._known: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._known)

    def link(self, path: str) -> str:
        """The link to a file of the project that a text names; empty where it names none."""
        if not 0 < len(path) <= _LONGEST or "\n" in path:
            return ""
        if path not in self._known:
            if len(self._known) >= MOST_LINKS:
                del self._known[next(iter(self._known))]
            self._known[path] = self._look(path)
        return self._known[path]

    def _look(self, path: str) -> str:
        try:
            if self._root is None:
                self._root = os.path.realpath(self._folder)
            # Resolved: neither `..` nor a symbolic link may lead out of the project.
            real = os.path.realpath(os.path.join(self._folder, path))
            if not real.startswith(f"{self._root}/") or not os.path.exists(real):
                return ""
        except (OSError, ValueError):
            return ""
        return file_link(real, self._folder)


def linked_paths(spans: list[StyledSpan], links: PathLinks) -> list[StyledSpan]:
    """The same spans, with links where they name a file of the project."""
    linked: list[StyledSpan] = []
    for span in spans:
        if span.link:
            linked.append(span)
        elif "code" in span.style.split():
            # A path in code may have spaces, or no suffix.
            linked.append(span._replace(link=links.link(_LINES.sub("", span.text))))
        else:
            linked += _words(span, links)
    return linked


def _words(span: StyledSpan, links: PathLinks) -> list[StyledSpan]:
    pieces: list[StyledSpan] = []
    place = 0
    # Most spans have no dot between letters: nothing is made for those.
    for found in _WORD.finditer(span.text):
        link = links.link(found["path"])
        if link:
            pieces.append(span._replace(text=span.text[place : found.start()], at=span.at + place))
            pieces.append(span._replace(text=found.group(), at=span.at + found.start(), link=link))
            place = found.end()
    if not pieces:
        return [span]
    pieces.append(span._replace(text=span.text[place:], at=span.at + place))
    return [piece for piece in pieces if piece.text]
