"""Words of texts, as retrieval compares them: identifiers split, endings taken off, their concepts
named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from weft.data_tables import read_table

LONGEST_KEPT = 200
"""Characters of a text whose words are kept."""
_TOKEN = re.compile(
    r"[A-Za-z][a-z]+(?=[A-Z])|[A-Z]+(?=[A-Z][a-z])|[A-Za-z]+(?:-[a-z]+)?|\d+(?:\.\d+)*"
)
# Ranges, not `\w`: the vowels of Indic scripts and accents that stand alone are marks, which Python
# does not take for parts of a word.  Left out are signs, punctuation and emoji.
_JOINED = "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
"""Han and Hangul: words are not set apart there, or not from their endings."""
_OTHER = (
    "[^\x00-\xbf\xd7\xf7\u02b9-\u02ff\u0589\u05be\u05f3\u05f4\u060c\u061b\u061f\u066a-\u066d\u06d4"
    "\u0964\u0965\u104a\u104b\u2000-\u2bff\u2e00-\u30ff\ufe10-\ufe6f\uff00-\uff20\ud800-\uf8ff"
    f"\U0001f000-\U0001faff{_JOINED}]"
)
"""Letters that are in no word of English."""
_ANY_TOKEN = re.compile(
    f"[A-Za-z]*{_OTHER}(?:[A-Za-z]|{_OTHER})*|[\u30a1-\u30fe]+|[{_JOINED}]+|{_TOKEN.pattern}"
)
"""The tokens of any script.  Hiragana is left out: what it writes is mostly grammar."""
_PAIR = re.compile(f"[{_JOINED}]{{2}}")
_CYRILLIC = re.compile(r"[\u0400-\u052f]{4,}")
_BRANDS = re.compile(
    r"\b(?:Java|Type|Coffee|Action|Post)?Script\b|\w*SQL\w*|\w+DB\b|\w+MQ\b|GraphQL|GitHub"
)
"""Names with capitals inside that are one word."""
_RUN = re.compile(r"\w+")
LONGEST_TOKEN = 60
"""Letters of a word: what is longer is encoded data."""
_ENDINGS = (
    *("ations", "ation", "izing", "ising", "ments", "ment", "able", "ible"),
    *("ies", "ing", "ers", "ed", "er", "es", "s"),
)
_CYRILLIC_ENDINGS = (
    *("иями", "ами", "ями", "ого", "его", "ому", "ему", "ыми", "ими", "ться", "тся", "ия", "ии"),
    *("ов", "ев", "ей", "ой", "ий", "ый", "ая", "яя", "ое", "ее", "ые", "ие", "ую", "юю", "ам"),
    *("ям", "ах", "ях", "ом", "ем", "ть", "а", "я", "о", "е", "ы", "и", "і", "у", "ю", "ь", "й"),
)


_IRREGULAR = {
    "documentation": "doc",
    "authentication": "auth",
    "authenticate": "auth",
    "configuration": "config",
    "configurable": "config",
    "configure": "config",
    "databases": "database",
}


@lru_cache(maxsize=4_096)
def stem(word: str) -> str:
    """A word without its ending: not its root, but the same for its forms."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith("ss") or len(word) < 4:
        return word
    for ending in _CYRILLIC_ENDINGS if _CYRILLIC.fullmatch(word) else _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + ("y" if ending == "ies" else "")
            break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


def words_of(text: str) -> tuple[str, ...]:
    """The stems of a text that say something, in order."""
    # Titles come again and again; of long texts few do, and each would stay.
    return _kept_words(text) if len(text) <= LONGEST_KEPT else _words_of(text)


@lru_cache(maxsize=1_024)
def _kept_words(text: str) -> tuple[str, ...]:
    return _words_of(text)


def _words_of(text: str) -> tuple[str, ...]:
    # Nearly all texts are plain: they need not be looked at with the wider pattern.
    pattern = _TOKEN if text.isascii() else _ANY_TOKEN
    tokens = (small_letters(match) for match in pattern.findall(_RUN.sub(_token, text)))
    found = (word for token in tokens for word in _cut_apart(token))
    plain = [
        piece for word in found for piece in ([word, *word.split("-")] if "-" in word else [word])
    ]
    return tuple(
        stem(word)
        for word in plain
        if word not in _common("stop") and (len(word) > 1 or word.isdigit())
    )


def small_letters(text: str) -> str:
    """A text in small letters, of which each is the same wherever it stands in a word."""
    # The Greek sigma has a form of its own at the end of one.
    return text.lower().replace("ς", "σ")


def _cut_apart(token: str) -> list[str]:
    """The words of a token: where a script does not set them apart, each two letters in a row."""
    if token.isascii() or len(token) <= 2 or not _PAIR.match(token):
        return [token]
    return [token[at : at + 2] for at in range(len(token) - 1)]


def _token(match: re.Match[str]) -> str:
    # `\w*SQL` begins anew at every letter of a text: tried on one short token, it costs little.
    token = match[0]
    if len(token) > LONGEST_TOKEN:
        # A sentence of Chinese is one run of letters.
        return " " if token.isascii() else token
    return _BRANDS.sub(_in_small, token)


def _in_small(match: re.Match[str]) -> str:
    return match[0].lower()


def root_of(word: str) -> str:
    """What every form of a stem has in it: a text without it does not have the word."""
    return word[:-1] if word.endswith("y") else word


def words_of_concepts(groups: Iterable[str]) -> set[str]:
    """The stems that belong to these groups."""
    wanted = set(groups)
    return {word for word, names in _concepts().items() if wanted.intersection(names)}


@cache
def _concepts() -> dict[str, tuple[str, ...]]:
    """Stem → the groups that it belongs to."""
    found: dict[str, list[str]] = {}
    for name, words in read_table(__file__, "tables/concepts.tsv", 2):
        for word in words.split():
            groups = found.setdefault(stem(word), [])
            if name not in groups:
                groups.append(name)
    return {word: tuple(groups) for word, groups in found.items()}


def concepts_of(words: Iterable[str]) -> set[str]:
    """The groups of words that these belong to."""
    known = _concepts()
    return {group for word in words for group in known.get(word, ())}


def is_generic(word: str) -> bool:
    """Whether a stem says little by itself, as two letters of Chinese or Korean do."""
    return word in _generic_stems() or is_pair(word)


def is_pair(word: str) -> bool:
    """Whether a word is two letters of a script that does not set words apart."""
    return _PAIR.fullmatch(word) is not None


@cache
def _generic_stems() -> frozenset[str]:
    return frozenset(stem(word) for word in _common("generic"))


@cache
def _common(kind: str) -> frozenset[str]:
    rows = read_table(__file__, "tables/common_words.tsv", 2)
    return frozenset(word for name, words in rows if name == kind for word in words.split())
