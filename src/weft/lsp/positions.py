"""Places in a text, in a server's units: bytes, UTF-16 code units or characters."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, unquote_to_bytes, urlsplit

from weft.errors import FinalToolError
from weft.lsp.wire import TextEdit, TextPosition

# The protocol knows three line ends; `splitlines` knows twelve, and would count other lines.
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
UTF_16: Final = "utf-16"
"""What counts where a server names no encoding."""


def units(text: str, encoding: str) -> int:
    """How long a text is for a server."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    return len(text.encode("utf-8")) if encoding == "utf-8" else len(text.encode("utf-16-le")) // 2


def column(line: str, character: int, encoding: str) -> int:
    """The place in a line, in characters, of a place in a server's units; the line's end where it
    lies beyond."""
    if encoding == "utf-32" or line.isascii():
        return min(character, len(line))
    counted = 0
    for index, each in enumerate(line):
        if counted >= character:
            return index
        counted += units(each, encoding)
    return len(line)


def lines_of_text(text: str) -> list[str]:
    """The lines without their ends."""
    return _LINE_END.split(text)


class TextPlaces:
    """Places in one text as offsets."""

    def __init__(self, text: str, encoding: str) -> None:
        self._text = text
        self._encoding = encoding
        found = list(_LINE_END.finditer(text))
        self._starts = [0, *(match.end() for match in found)]
        self._ends = [*(match.start() for match in found), len(text)]

    def offset(self, place: TextPosition) -> int:
        """The offset of a place; places beyond the end of a line or of the text are at that end."""
        if place.line >= len(self._starts):
            return len(self._text)
        start, end = self._starts[place.line], self._ends[place.line]
        return start + column(self._text[start:end], place.character, self._encoding)


def edited(text: str, edits: Iterable[TextEdit], encoding: str) -> str:
    """A text with edits that are all meant for it as it is.

    Raises:
        FinalToolError: two of them overlap.
    """
    places = TextPlaces(text, encoding)
    found = [
        (places.offset(edit.range.start), places.offset(edit.range.end), edit.new_text)
        for edit in edits
    ]
    pieces: list[str] = []
    at = 0
    # Sorted by place and stable: inserts at one place keep their order, as the protocol wants.
    for start, end, new in sorted(found, key=lambda each: (each[0], each[1])):
        if start < at or end < start:
            raise FinalToolError("the language server sent edits that overlap")
        pieces += (text[at:start], new)
        at = end
    return "".join((*pieces, text[at:]))


def uri_of(path: str) -> str:
    """The URI of an absolute path."""
    # As bytes: a name on disk need not be UTF-8.
    return f"file://{quote(os.fsencode(path))}"


def path_of(uri: str) -> str:
    """The absolute path of a URI; empty for one that is no file on this machine."""
    try:
        parts = urlsplit(uri)
        path = os.fsdecode(unquote_to_bytes(parts.path))
    except ValueError:
        return ""
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return ""
    return path if path.startswith("/") and "\0" not in path else ""
