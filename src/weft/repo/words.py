"""Words of code and of requests, made comparable.

`parseHTTPHeaders`, `http_header` and "the headers of HTTP" share the words `http` and `header`:
identifiers are split, and the endings of English are cut.  The cutting is crude on purpose: it only
has to do the same to both sides.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import msgspec

IDENTIFIER: Final = re.compile(r"[^\W\d]\w+")
_HUMPS: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[^\W\d_A-Za-z]+")
_CODE: Final = re.compile(r"[a-z][A-Z]|_|\d|[A-Z]{2}")
_ENDINGS: Final = (
    *("ations", "ation", "ingly", "edly", "ings", "ing", "ers", "ies", "ied"),
    *("ed", "es", "er", "ly", "s"),
)
_SHORTEST: Final = 3
_FIRST_LINE: Final = 2.0
_CODE_WORD: Final = 1.3
MOST_WORDS: Final = 128
"""Words of a request that are looked for: each costs a look at all files that have it, and what
people write themselves has fewer.
"""
_MOST_LETTERS: Final = 8_000
"""Of a longer message, so many from its beginning and its end: between them is what was pasted."""

_CUTS: Final = bytes(
    byte if byte >= 128 or chr(byte).isalnum() or byte == ord("_") else ord(" ")
    for byte in range(256)
)

_COMMON_TEXT: Final = """
    a about add added adds after all also an and any are as at be because been before being but by
    can cannot change changed could did do does don each fix fixed fixes for from get had has have
    how if in instead into is it its just let like make makes may might more most need new no nor
    not now of on one only or other our out over please remove removed same set should so some such
    support than that the their them then there these they this those to too two under up use used
    user users using very via want was we were what when where which while who why will with without
    would you your
"""
COMMON: Final = frozenset(_COMMON_TEXT.split())
"""Words that say nothing about where in a project something is."""


class RequestWords(msgspec.Struct, frozen=True):
    """What a request asks for, with the weight of each word."""

    parts: dict[str, float]
    """Words as `parts_of` gives them."""
    whole: dict[str, float]
    """Words as they were written, in lower case."""


def stem(word: str) -> str:
    """A word without its ending."""
    if not word.endswith(_ENDINGS):  # most have none, and one call tells
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            return word[: -len(ending)]
    return word


@lru_cache(maxsize=50_000)
def parts_of(identifier: str) -> tuple[str, ...]:
    """The words that an identifier is made of: `parseHTTPHeaders` → `pars`, `http`, `head`."""
    humps = (hump.lower() for hump in _HUMPS.findall(identifier))
    return tuple(stem(hump) for hump in humps if len(hump) > 1)


def parts_in(identifiers: Iterable[str]) -> Counter[str]:
    """How often each part occurs in identifiers."""
    return Counter(part for identifier in identifiers for part in parts_of(identifier))


def count_pieces(content: bytes) -> tuple[bytes, list[int]]:
    """The pieces of a file that identifiers stand in, with a blank between them, and how often each
    occurs.
    """
    # Cut in C where ASCII has no letter, digit or underscore: to look for identifiers by a pattern
    # takes four times as long.  What is no ASCII stays in the pieces, and is looked for there.
    pieces = Counter(content.translate(_CUTS).split())
    return b" ".join(pieces), list(pieces.values())


def request_words(text: str) -> RequestWords:
    """The words of a request.

    The first line counts double: people say there what they want, and explain below.  A word that
    looks like code names something; most other words do not.  Of a long message, the words that
    count most are taken.
    """
    if len(text) > 2 * _MOST_LETTERS:
        text = f"{text[:_MOST_LETTERS]}\n{text[-_MOST_LETTERS:]}"
    parts: dict[str, float] = {}
    whole: dict[str, float] = {}
    for number, line in enumerate(text.splitlines()):
        for word in IDENTIFIER.findall(line):
            if word.lower() in COMMON:
                continue
            weight = _FIRST_LINE if number == 0 else 1.0
            if _CODE.search(word):
                weight *= _CODE_WORD
            _raise(whole, word.lower(), weight)
            for part in parts_of(word):
                if part not in COMMON:
                    _raise(parts, part, weight)
    return RequestWords(_heaviest(parts, MOST_WORDS), _heaviest(whole, MOST_WORDS))


def _heaviest(weights: dict[str, float], most: int) -> dict[str, float]:
    """Those that count most; of equal ones, those that came first."""
    if len(weights) <= most:
        return weights
    return dict(sorted(weights.items(), key=lambda pair: -pair[1])[:most])


def _raise(weights: dict[str, float], word: str, weight: float) -> None:
    if weight > weights.get(word, 0.0):
        weights[word] = weight
