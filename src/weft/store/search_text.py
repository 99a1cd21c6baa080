"""How search reads text: one way for every store, so that the same query finds the same places.

Text becomes a sequence of plain tokens: lower case, no accents, runs of letters and digits, each
Chinese, Japanese or Thai character on its own (those scripts put no spaces between words).  A query
becomes phrases, one for each of its words; a phrase is found where its tokens stand in a row and
the last one begins a word, so that a search can be shown while it is typed. Nothing that the user
types is ever syntax.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, repeat

MOST_WORDS = 32
"""Words of a query beyond these are ignored."""

LOOKED_THROUGH = 100_000
"""Characters of a text in which the place of an excerpt is looked for."""
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
    """The part of `text` around the phrases, on one line."""
    at = place_of(text, found)
    start = max(0, at - _EXCERPT_BEFORE)
    end = min(len(text), at + _EXCERPT_AFTER)
    shown = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{shown}{'…' if end < len(text) else ''}"


def around(text: str, query: str, before: int = 20) -> str:
    """A text from a little before the words of a query on."""
    first = place_of(text, phrases(query))
    if first <= before:
        return text
    lead = text[first - before : first]
    # From a word's beginning, where one begins between here and there.
    return f"…{lead.partition(' ')[2] or lead}{text[first:]}"


def place_of(text: str, found: list[str]) -> int:
    """Where the most of the phrases stand near each other: the first such place, from its first
    phrase on; 0 where there is none of them.
    """
    near: dict[str, int] = {}
    most, best = 0, 0
    for at, phrase in _places(text, found):
        near[phrase] = at
        near = {each: place for each, place in near.items() if at - place < _EXCERPT_AFTER}
        if len(near) > most:
            most, best = len(near), min(near.values())
        if most == len(found):
            break
    return best


def _places(text: str, found: list[str]) -> Iterator[tuple[int, str]]:
    """Where each of the phrases stands, in the order of the text."""
    wanted = [(phrase, phrase.split(" ")) for phrase in found]
    longest = max((len(parts) for _, parts in wanted), default=0)
    matches = re.finditer(_ANY_TOKEN, text[:LOOKED_THROUGH])
    row: list[tuple[int, str]] = []
    for match in chain(matches, repeat(None, longest - 1)):
        if match is not None:
            row.append((match.start(), "".join(tokens(match.group()))))
        if match is not None and len(row) < longest:
            continue
        for phrase, parts in wanted:
            if _begins(row, parts):
                yield row[0][0], phrase
        del row[:1]


def _begins(row: Sequence[tuple[int, str]], parts: Sequence[str]) -> bool:
    """Whether tokens begin with those of a phrase, whose last one may be a beginning."""
    *whole, last = parts
    return (
        len(row) >= len(parts)
        and row[len(whole)][1].startswith(last)
        and all(token == part for (_, token), part in zip(row, whole, strict=False))
    )


def _folded(text: str) -> str:
    """Lower case without accents: what differs only by them is the same word."""
    import unicodedata  # only for those who search: it costs start-up time

    apart = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(char for char in apart if unicodedata.category(char) != "Mn")
    # Hangul falls apart into single sounds under NFKD; together again it searches as it is typed.
    return unicodedata.normalize("NFKC", bare)
