"""Standing rules: the sentences of a user that order or forbid something, and those that hold exact
values.

Which words make a sentence a rule is data (`order_words.tsv`).  A sentence is taken word for word:
a rule that is told again in other words loses its force.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from weft.data_tables import read_table

LONGEST: Final = 600
"""Characters of a sentence; a longer one is pasted text, in which any word may stand."""
MOST: Final = 40
"""Sentences of one message; more are no rules but a document."""
EDGE: Final = 20_000
"""Characters at either end of a message that are looked at: what is longer is a pasted document,
and to look for words in all of it would hold up everything else."""
SHORT: Final = 8
"""Words of a sentence that may need the one before it to be understood."""

_FENCED: Final = re.compile(r"^```.*?(?:^```|\Z)", re.MULTILINE | re.DOTALL)
# The marks of Chinese and Japanese need no blank behind them.
_END: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_WORD: Final = re.compile(r"[\w']+")
_NO_BLANKS: Final = "\u2e80"
"""From here on scripts do not part words by blanks."""
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
        if not words.are_in(sentence):
            continue
        points_back = len(sentence.split()) < SHORT and _POINTS_BACK.search(sentence)
        found.append(f"{said[place - 1]} {sentence}" if place and points_back else sentence)
    return found[:MOST]


def is_firm(sentence: str) -> bool:
    """Whether a rule is an order, a ban or a choice, and not only a hint at one."""
    return _order_words(with_hints=False).are_in(sentence)


def values_of(text: str) -> list[str]:
    """The sentences of a message that hold an exact value: a number, a name, an address."""
    return [sentence for sentence in sentences(text) if _EXACT.search(sentence)][:MOST]


def sentences(text: str) -> list[str]:
    """What a message says, sentence by sentence, without blocks of code."""
    if len(text) > 2 * EDGE:
        text = f"{text[:EDGE]}\n{text[-EDGE:]}"
    pieces = (_BULLET.sub("", each).strip() for each in _END.split(_FENCED.sub("\n", text)))
    return [piece for piece in pieces if piece and len(piece) <= LONGEST]


class OrderWords:
    """The words of the table, so that a sentence is looked through once.

    One pattern of all of them would try each at every place: a tenth of a second for a long
    message, in which nothing else runs.
    """

    def __init__(self, rows: Sequence[str]) -> None:
        plain = [row for row in rows if not re.search(r"[ *^]", row)]
        phrases = [row for row in rows if " " in row or row.startswith("^")]
        self._words = frozenset(row for row in plain if row[0] < _NO_BLANKS)
        # Scripts without blanks have no ends of words.
        self._unspaced = tuple(row for row in plain if row[0] >= _NO_BLANKS)
        self._beginnings = tuple(row[:-1] for row in rows if row.endswith("*") and " " not in row)
        self._firsts = frozenset(row.removeprefix("^").split()[0] for row in phrases)
        self._phrases = re.compile("|".join(map(_shape, phrases)))

    def are_in(self, sentence: str) -> bool:
        """Whether a sentence has some of them."""
        # Typed apostrophes come in two forms.
        lower = sentence.lower().replace("’", "'")
        words = _WORD.findall(lower)
        return (
            not self._words.isdisjoint(words)
            or any(word.startswith(self._beginnings) for word in words)
            or any(each in lower for each in self._unspaced)
            or (not self._firsts.isdisjoint(words) and bool(self._phrases.search(lower)))
        )


@cache
def _order_words(*, with_hints: bool) -> OrderWords:
    rows = read_table(__file__, "order_words.tsv", 4)
    return OrderWords([words for words, kind, *_ in rows if with_hints or kind != "hint"])


def _shape(words: str) -> str:
    shape = re.escape(words.removeprefix("^")).replace(r"\*", r"\w*").replace(r"\ ", r"\s+")
    return rf"^\W*{shape}\b" if words.startswith("^") else rf"\b{shape}\b"
