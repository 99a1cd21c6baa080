"""How search reads text: one way for every store, so that the same query finds the same places.

Text becomes a sequence of plain tokens: lower case, no accents, runs of letters and digits, each
Chinese, Japanese or Thai character on its own (those scripts put no spaces between words).  A query
becomes phrases, one for each of its words; a phrase is found where its tokens stand in a row and
the last one begins a word, so that a search can be shown while it is typed. Nothing that the user
types is ever syntax.
"""

from __future__ import annotations

import re

MOST_WORDS = 32
"""Words of a query beyond these are ignored."""

_EXCERPT_BEFORE = 60
_EXCERPT_AFTER = 120
_UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_PLAIN_TOKEN = re.compile(r"[a-z0-9]+")
_ANY_TOKEN = rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+"
_PUNCTUATION = str.maketrans(dict.fromkeys("\u00a0·×‐‑‒–—―‘’‚“”„†•…‹›→←↑↓⇒✓✗●○─│├└", " "))
"""What plain English is written with beside ASCII; none of it is part of a token."""


def tokens(text: str) -> list[str]:
    """The searchable tokens of `text`, in order."""
    # Most text is ASCII but for its dashes and quotes, and needs neither `casefold` nor
    # normalization.
    if text.isascii() or (text := text.translate(_PUNCTUATION)).isascii():
        return _PLAIN_TOKEN.findall(text.lower())
    return re.findall(_ANY_TOKEN, _folded(text))


def indexed(text: str) -> str:
    """`text` as an index keeps it: its tokens, each after one space."""
    return "".join(f" {token}" for token in tokens(text))


def phrases(query: str) -> list[str]:
    """The phrases of a query, each as tokens with a space between.

    Empty when there is nothing to look for.
    """
    found = (" ".join(tokens(word)) for word in query.split())
    return list(dict.fromkeys(phrase for phrase in found if phrase))[:MOST_WORDS]


def holds(index: str, phrase: str) -> bool:
    """True when text that was `indexed` has the phrase."""
    # The blank before it makes the first token whole; the last one may be the beginning of a word.
    return f" {phrase}" in index


def excerpt(text: str, found: list[str]) -> str:
    """The part of `text` around the first of the phrases, on one line."""
    at = _first_place(text, found)
    start = max(0, at - _EXCERPT_BEFORE)
    end = min(len(text), at + _EXCERPT_AFTER)
    shown = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{shown}{'…' if end < len(text) else ''}"


def _first_place(text: str, found: list[str]) -> int:
    beginnings = tuple(phrase.split(" ")[0] for phrase in found)
    for match in re.finditer(_ANY_TOKEN, text):
        if "".join(tokens(match.group())).startswith(beginnings):
            return match.start()
    return 0


def _folded(text: str) -> str:
    """Lower case without accents: what differs only by them is the same word."""
    import unicodedata  # only for those who search: it costs start-up time

    apart = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(char for char in apart if unicodedata.category(char) != "Mn")
    # Hangul falls apart into single sounds under NFKD; together again it searches as it is typed.
    return unicodedata.normalize("NFKC", bare)
