"""Standing rules: the sentences of a user that order or forbid something, and those that hold exact
values.

Which words make a sentence a rule is data (`order_words.tsv`).  A sentence is taken word for word:
a rule that is told again in other words loses its force.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from weft.data_tables import read_table

LONGEST: Final = 600
"""Characters of a sentence; a longer one is pasted text, in which any word may stand."""
MOST: Final = 40
"""Sentences of one message; more are no rules but a document."""
SHORT: Final = 8
"""Words of a sentence that may need the one before it to be understood."""

_FENCED: Final = re.compile(r"^```.*?(?:^```|\Z)", re.MULTILINE | re.DOTALL)
# The marks of Chinese and Japanese need no blank behind them.
_END: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_BULLET: Final = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_POINTS_BACK: Final = re.compile(r"\b(?:that|this|it|those|these|them|das|cela|eso)\b", re.I)
_EXACT: Final = re.compile(
    r"\d{2,}|`[^`]+`|\"[^\"]{2,}\"|https?://|\b\w+[._/]\w+|\b\w*[a-z][A-Z]\w*|\b[A-Z][A-Z0-9_]{2,}\b"
)
"""Numbers, what is quoted, addresses, paths, and names as programs have them."""


def rules_of(text: str) -> list[str]:
    """The sentences of a message that order or forbid something, word for word."""
    words = _order_words(with_hints=True)
    said = sentences(text)
    found: list[str] = []
    for place, sentence in enumerate(said):
        if not words.search(sentence):
            continue
        points_back = len(sentence.split()) < SHORT and _POINTS_BACK.search(sentence)
        found.append(f"{said[place - 1]} {sentence}" if place and points_back else sentence)
    return found[:MOST]


def is_firm(sentence: str) -> bool:
    """Whether a rule is an order, a ban or a choice, and not only a hint at one."""
    return _order_words(with_hints=False).search(sentence) is not None


def values_of(text: str) -> list[str]:
    """The sentences of a message that hold an exact value: a number, a name, an address."""
    return [sentence for sentence in sentences(text) if _EXACT.search(sentence)][:MOST]


def sentences(text: str) -> list[str]:
    """What a message says, sentence by sentence, without blocks of code."""
    pieces = (_BULLET.sub("", each).strip() for each in _END.split(_FENCED.sub("\n", text)))
    return [piece for piece in pieces if piece and len(piece) <= LONGEST]


@cache
def _order_words(*, with_hints: bool) -> re.Pattern[str]:
    rows = read_table(__file__, "order_words.tsv", 4)
    shapes = [_shape(words) for words, kind, *_ in rows if with_hints or kind != "hint"]
    return re.compile("|".join(shapes), re.IGNORECASE)


def _shape(words: str) -> str:
    shape = re.escape(words.removeprefix("^")).replace(r"\*", r"\w*").replace(r"\ ", r"\s+")
    # Typed apostrophes come in two forms.
    shape = shape.replace("'", "['’]")
    if words.startswith("^"):
        return rf"^\W*{shape}\b"
    # Scripts without blanks have no ends of words.
    return rf"\b{shape}\b" if words[0] < "\u2e80" else shape
