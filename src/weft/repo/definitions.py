"""What the index keeps of a source file: its definitions and its words.

Plain values: a session's process reads them from the cache and never loads a parser.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

READER_VERSION: Final = 6
"""Raised when our own readers give something else for the same bytes: what is cached under an older
one is read anew.
"""
MOST_BYTES: Final = 512 * 1024
"""A larger file is generated or data: it would cost more to read than it tells."""


class Definition(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Something with a name that a file defines; lines count from 1."""

    name: str
    kind: str
    first: int
    last: int
    signature: str


class FileReading(msgspec.Struct, frozen=True):
    """What the index keeps of a file's content."""

    definitions: list[Definition]
    pieces: bytes
    """What identifiers stand in, each once, with a blank between them."""
    counts: list[int]
    """How often each of them occurs."""


_BETWEEN_WORDS: Final = re.compile(r"[\s\"'`()\[\]{},;<>]")

EMPTY: Final = FileReading([], b"", [])
"""Of a file that is no source: too large, binary, or written by a program on one line."""


class ReferenceOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What the finder of references is asked."""

    project: str
    name: str
    paths: list[str]
    """The files to look into; others cannot hold the name."""
    most: int = 200


class FoundReference(msgspec.Struct, frozen=True, array_like=True):
    """A line where a name is used."""

    path: str
    line: int
    text: str
    is_definition: bool


# A project need not be trusted: a file's name may hold a line break and the row of another file,
# and a heading may hold what a terminal obeys.


def plain_line(text: str) -> str:
    """Text of a project on one line, in which everything that is not seen is written out."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def cut_text(text: str, most: int) -> str:
    """At most so many characters of a line of code, with a mark where something is left out.

    Up to the end of a word and never into a string: the rest of a secret that was cut is not known
    as one any more, and would be shown.
    """
    if len(text) <= most:
        return text
    kept = text[: most - 1]
    if not _BETWEEN_WORDS.match(text, most - 1):
        kept = kept[: max((match.end() for match in _BETWEEN_WORDS.finditer(kept)), default=0)]
    # Again from the first kind: what is cut away may open a string of another one.
    while unclosed := next((quote for quote in "\"'`" if kept.count(quote) % 2), ""):
        kept = kept[: kept.rindex(unclosed)]
    return f"{kept.rstrip()}…"


def plain_path(path: str) -> str:
    """A path on one line; in quotes where it is not written as it is, or looks like a signature."""
    shown = plain_line(path)
    return shown if shown == path and path[:1] not in (" ", '"') else f'"{shown}"'
