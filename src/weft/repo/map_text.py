"""The map: the best files with the signatures that fit, within so many tokens.

The first files are read once more: a definition fits when its body holds the words of the request,
not only its name.  That finds the changed function about twice as often under a small budget.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from weft.repo.definitions import Definition
from weft.repo.words import IDENTIFIER, parts_of

_FILES_READ: Final = 8
"""As many files have their bodies looked at; more would cost more than they add."""
_FILES_DETAILED: Final = 8
_SHARE: Final = 0.28
"""Of what is left of the budget, for one of the first files."""
_SHARE_LATER: Final = 0.1
_MOST_SIGNATURES: Final = 25
_MOST_LATER: Final = 6
_SIGNATURE_CHARS: Final = 110
_BY_NAME: Final = 3.0
_BY_BODY: Final = 4.0
_LINES_A_HIT: Final = 25.0
"""In a long body a word is found by chance: so many lines weigh as much as one occurrence."""
_SMALLEST: Final = 20

_PIECES: Final = re.compile(r"[A-Za-z]+|\d+|[^\sA-Za-z\d]+")

Estimate = Callable[[str], int]
ReadText = Callable[[str], str | None]


def estimate_tokens(text: str) -> int:
    """About how many tokens a map is, or a few more.

    By its words and not by its length: signatures are denser than prose, and a budget that is
    overrun is worse than one that is not used up.  Within 0 to 13 percent above what o200k counts,
    on maps of four languages.
    """
    pieces = text.count("\n")
    for piece in _PIECES.findall(text):
        first = piece[0]
        if first.isalpha():
            pieces += (len(piece) + 5) // 6
        elif first.isdigit():
            pieces += (len(piece) + 2) // 3
        else:
            pieces += (len(piece) + 1) // 2
    return math.ceil(pieces * 0.95)


class MapSource(NamedTuple):
    """Where a map takes its text from."""

    definitions: Callable[[str], list[Definition] | None]
    text: ReadText
    tokens: Estimate = estimate_tokens


def render_map(
    paths: Sequence[str], weights: Mapping[str, float], budget: int, source: MapSource
) -> str:
    """A map of these files, best first, for a request of these words."""
    rows: list[str] = []
    used = 0
    for number, path in enumerate(paths):
        left = budget - used - source.tokens(path + "\n")
        if left < 0:
            break
        section = path + "\n"
        if left > _SMALLEST:
            section += _signatures(path, number, left, weights, source)
        rows.append(section)
        used += source.tokens(section)
    return "".join(rows)


def _signatures(
    path: str, number: int, left: int, weights: Mapping[str, float], source: MapSource
) -> str:
    definitions = source.definitions(path) or []
    text = source.text(path) if number < _FILES_READ and definitions else None
    is_first = number < _FILES_DETAILED
    limit = left * (_SHARE if is_first else _SHARE_LATER)
    most = _MOST_SIGNATURES if is_first else _MOST_LATER
    chosen: list[Definition] = []
    for definition in _best(definitions, text, weights)[:most]:
        limit -= source.tokens(_row(definition))
        if limit < 0:
            break
        chosen.append(definition)
    return "".join(_row(each) for each in sorted(chosen, key=lambda each: each.first))


def _row(definition: Definition) -> str:
    return f"  {definition.signature[:_SIGNATURE_CHARS]}\n"


def _best(
    definitions: Sequence[Definition], text: str | None, weights: Mapping[str, float]
) -> list[Definition]:
    total = sum(weights.values()) or 1.0
    hits = _hits(text, weights) if text and weights else []

    def value(definition: Definition) -> float:
        named = sum(weights.get(part, 0.0) for part in {*parts_of(definition.name)})
        found = _BY_NAME * named / total
        found += _BY_BODY * _body(definition, hits, weights) / total
        return found + _PLAIN.get(definition.kind, 0.03) + 0.02 * (definition.name[:1] != "_")

    return sorted(definitions, key=value, reverse=True)


_PLAIN: Final = {"class": 0.05, "struct": 0.05, "interface": 0.05, "trait": 0.05, "variable": 0.0}
"""What comes first where the request says nothing."""


def _hits(text: str, weights: Mapping[str, float]) -> list[tuple[int, str]]:
    """Lines and the words of the request on them."""
    # A stem is the beginning of a word, so a line without its letters cannot have it: most lines
    # are passed over without being taken apart.
    letters = re.compile("|".join(map(re.escape, weights)), re.IGNORECASE)
    return [
        (number, part)
        for number, line in enumerate(text.splitlines(), 1)
        if letters.search(line)
        for part in {part for word in IDENTIFIER.findall(line) for part in parts_of(word)}
        if part in weights
    ]


def _body(
    definition: Definition, hits: Sequence[tuple[int, str]], weights: Mapping[str, float]
) -> float:
    counts = Counter(part for line, part in hits if definition.first <= line <= definition.last)
    damp = 0.5 + (definition.last - definition.first + 1) / _LINES_A_HIT
    return sum(weights[part] * count / (count + damp) for part, count in counts.items())
