"""Colours of code, line by line: strings, comments, numbers and the words of common languages.

No parser: a line is looked at alone, so that a piece of a file is coloured like the whole of it.
"""

from __future__ import annotations

import re

_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
        and as assert async await break case catch class const continue def default del delete do
        elif else enum except export extends false False finally fn for from func function global
        go if impl implements import in interface is lambda let match mod mut namespace new nil
        None nonlocal not null or package pass private protected pub public raise return self
        static struct super switch this throw trait true True try type typeof undefined use using
        var void where while with yield
        """,
    )
)
_PIECE = re.compile(
    r"(?P<string>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)"
    r"|(?P<comment>(?:(?<=\s)|^)#.*$|//.*$|(?:(?<=\s)|^)--\s.*$|/\*.*?(?:\*/|$))"
    r"|(?P<number>\b\d[\w.]*\b)"
    r"|(?P<word>[A-Za-z_]\w*)"
)
_PROSE = frozenset(("", "text", "txt", "plain", "console", "output", "diff", "markdown", "md"))
_LONGEST = 2_000
"""Characters of a line beyond which it is left alone: it is data."""


def code_spans(line: str, language: str) -> list[tuple[str, str]]:
    """Pieces of a line of code, each with its style; without a language it is all `code`."""
    if not line:
        return []
    if language.lower() in _PROSE or len(line) > _LONGEST:
        return [(line, "code")]
    return syntax_spans(line)


def syntax_spans(line: str) -> list[tuple[str, str]]:
    """Pieces of a line of code with the colours of its syntax."""
    spans: list[tuple[str, str]] = []
    place = 0
    for found in _PIECE.finditer(line):
        style = found.lastgroup or ""
        if style == "word":
            if found.group() not in _KEYWORDS:
                continue
            style = "keyword"
        if found.start() > place:
            spans.append((line[place : found.start()], ""))
        spans.append((found.group(), "quiet" if style == "comment" else style))
        place = found.end()
    if place < len(line):
        spans.append((line[place:], ""))
    return spans
