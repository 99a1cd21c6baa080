"""Answers in other languages: the words that say what they do, as English has them.

Nothing is translated: a few words that turn down, weigh, order, agree or ask stand for the English
ones, so that what was learned of English answers holds for others.  What an answer is about stays
as it is, and so does all of an English one.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from weft.data_tables import read_table

LEAST_SHARE: Final = 4
"""One of so many words is foreign, at least, in a text that is not English."""

_WORD: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?(?:-y)?")
_HAN: Final = re.compile(r"[\u4e00-\u9fff]")
_WIDE: Final = str.maketrans(
    {"，": ", ", "。": ". ", "！": "! ", "？": "? ", "；": "; ", "：": ": "}
)
_ASKS: Final = re.compile(r"(?:吗|呢)\s*(?=[?.!]|$)")
_BEGINS: Final = (
    (re.compile(r"^(?:Ich habe|J'ai|He(?= \w+(?:[ai]do|to|cho)\b))"), "I've"),
    (re.compile(r"^(?:Ich(?: werde| würde)?|Je(?: vais)?|J'(?=[a-zé])|Voy a|Vamos a)\b"), "I'll"),
    (re.compile(r"^(?:Soll ich|Dois-je|Veux-tu|Voulez-vous|¿)"), "Shall I"),
    (re.compile(r"^我(?:会|打算|准备|要|想)"), "I'll "),
    (re.compile(r"^我(?:已经)?(?=.*了)|^我把"), "I've "),
)
"""How a model says what it plans, has done and asks."""


def in_english(text: str) -> str:
    """A text with its small words in English, if it is not English."""
    if not text.isascii() and _HAN.search(text) is not None:
        return _from_chinese(text)
    begun, known = _begun(text), _by_word()
    if begun == text:
        words = _WORD.findall(text.lower())
        found = len([word for word in words if word in known])
        if not found or found * LEAST_SHARE < len(words):
            return text
    return _WORD.sub(lambda match: known.get(match[0].lower(), match[0]), begun)


def _from_chinese(text: str) -> str:
    plain = _ASKS.sub("?", _begun(text).translate(_WIDE))
    known = _by_sign()
    return _signs().sub(lambda match: f" {known[match[0]]} ", plain)


def _begun(text: str) -> str:
    if text[:1] not in "IJHVSD¿我":
        return text
    for pattern, english in _BEGINS:
        if pattern.match(text) is not None:
            return pattern.sub(english, text, count=1)
    return text


@cache
def _by_word() -> dict[str, str]:
    return _table()[0]


@cache
def _table() -> tuple[dict[str, str], dict[str, str]]:
    words: dict[str, str] = {}
    signs: dict[str, str] = {}
    for english, foreign in read_table(__file__, "foreign_words.tsv", 2):
        for word in foreign.split():
            (signs if _HAN.match(word) else words).setdefault(word, english)
    return words, signs


def _by_sign() -> dict[str, str]:
    return _table()[1]


@cache
def _signs() -> re.Pattern[str]:
    longest_first = sorted(_by_sign(), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)))
