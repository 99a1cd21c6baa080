"""The map: the best files with the signatures that fit, within so many tokens.

The first files are read once more: a definition fits when its body holds the words of the request,
not only its name.  That finds the changed function about twice as often under a small budget.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from weft.repo.definitions import Definition, cut_text, plain_line, plain_path
from weft.repo.file_ranker import IsLate, check_time, never_late
from weft.repo.words import IDENTIFIER, parts_of

_FILES_READ: Final = 8
"""As many files have their bodies looked at; more would cost more than they add."""
_FILES_DETAILED: Final = 8
_SHARE: Final = 0.28
"""Of what is left of the budget, for one of the first files."""
_SHARE_LATER: Final = 0.1
_MOST_SIGNATURES: Final = 25
_MOST_LATER: Final = 6
_MOST_OVERVIEW: Final = 3
_SIGNATURE_CHARS: Final = 110
_BY_NAME: Final = 3.0
_BY_BODY: Final = 4.0
_LINES_A_HIT: Final = 25.0
"""In a long body a word is found by chance: so many lines weigh as much as one occurrence."""
_SMALLEST: Final = 20
MOST_LETTERS: Final = 2_000_000
"""Letters of bodies that are looked at for a map: about a fifth of a second."""

_NAMES_SEARCHED: Final = 16
"""To search for more names takes longer than to look at every identifier."""
_WHOLE_NAME: Final = re.compile(rf"(?<!\w){IDENTIFIER.pattern}")
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


class MapSource(msgspec.Struct, frozen=True):
    """Where a map takes its text from."""

    definitions: Callable[[str], list[Definition] | None]
    text: ReadText
    tokens: Estimate = estimate_tokens
    letters: int = MOST_LETTERS
    """How many letters of files are looked at; behind them names decide."""
    is_late: IsLate = never_late
    """Whether it is too late for the map."""
    is_hurried: IsLate = never_late
    """Whether there is no more time for bodies: from then on names decide."""


def render_map(
    paths: Sequence[str], weights: Mapping[str, float], budget: int, source: MapSource
) -> str:
    """A map of these files, best first, for a request of these words.

    Raises:
        TimeoutError: it is later than the source allows.
    """
    rows: list[str] = []
    used = 0
    bodies = _BodyReader(weights, source)
    for number, path in enumerate(paths):
        check_time(source.is_late)
        title = f"{plain_path(path)}\n"
        left = budget - used - source.tokens(title)
        if left < 0:
            break
        section = title
        if left > _SMALLEST:
            section += _signatures(path, number, left, bodies, source)
        rows.append(section)
        used += source.tokens(section)
    return "".join(rows)


def render_overview(paths: Sequence[str], budget: int, source: MapSource) -> str:
    """A map of these files, best first, with a few definitions of each.

    Raises:
        TimeoutError: it is later than the source allows.
    """
    rows: list[str] = []
    for path in paths:
        check_time(source.is_late)
        best = _best(source.definitions(path) or [], _NO_HITS, {})[:_MOST_OVERVIEW]
        rows_of = sorted(best, key=lambda each: each.first)
        signatures = dict.fromkeys(_row(each) for each in rows_of)
        section = f"{plain_path(path)}\n{''.join(signatures)}"
        budget -= source.tokens(section)
        if budget < 0:
            break
        rows.append(section)
    return "".join(rows)


def _signatures(path: str, number: int, left: int, bodies: _BodyReader, source: MapSource) -> str:
    definitions = source.definitions(path) or []
    hits = bodies.hits(path) if number < _FILES_READ and definitions else _NO_HITS
    is_first = number < _FILES_DETAILED
    limit = left * (_SHARE if is_first else _SHARE_LATER)
    most = _MOST_SIGNATURES if is_first else _MOST_LATER
    chosen: dict[str, int] = {}
    for definition in _best(definitions, hits, bodies.weights)[:most]:
        row = _row(definition)
        if row in chosen:  # declared for each platform, or once more below another condition
            continue
        limit -= source.tokens(row)
        if limit < 0:
            break
        chosen[row] = definition.first
    return "".join(sorted(chosen, key=chosen.__getitem__))


def _row(definition: Definition) -> str:
    signature = plain_line(cut_text(definition.signature, _SIGNATURE_CHARS))
    # A heading is prose, and prose may be addressed to the reader: in quotes it is a quotation.
    return f'  "{signature}"\n' if definition.kind == "heading" else f"  {signature}\n"


def _best(
    definitions: Sequence[Definition], hits: _WordHits, weights: Mapping[str, float]
) -> list[Definition]:
    total = sum(weights.values()) or 1.0

    def plain(definition: Definition) -> float:
        return _PLAIN.get(definition.kind, 0.03) + 0.02 * (definition.name[:1] != "_")

    def value(definition: Definition) -> float:
        named = sum(weights.get(part, 0.0) for part in {*parts_of(definition.name)})
        found = _BY_NAME * named / total
        found += _BY_BODY * _body(definition, hits, weights) / total
        return found + plain(definition)

    return sorted(definitions, key=value if weights else plain, reverse=True)


_PLAIN: Final = {
    **dict.fromkeys(("class", "struct", "interface", "trait", "type", "enum"), 0.05),
    **dict.fromkeys(("constant", "macro", "property"), 0.01),
    "variable": 0.0,
}
"""What comes first where the request says nothing."""


class _WordHits(msgspec.Struct, frozen=True):
    """Lines and the words of the request on them, by line."""

    lines: list[int]
    words: list[str]
    by_word: Mapping[str, list[int]] = {}
    """The lines of each word, where there are many."""

    def counts(self, first: int, last: int) -> Mapping[str, int]:
        """How often each word stands on these lines."""
        begin, end = bisect_left(self.lines, first), bisect_right(self.lines, last)
        if end - begin <= _MANY_HITS:
            return Counter(self.words[begin:end])
        # Definitions may lie in one another by the thousand: each would look through the rest.
        found = {
            word: bisect_right(lines, last) - bisect_left(lines, first)
            for word, lines in self.by_word.items()
        }
        return {word: count for word, count in found.items() if count}


_NO_HITS: Final = _WordHits([], [])
_MANY_HITS: Final = 500


class _BodyReader:
    """Looks for the words of a request in files, up to so many letters of all of them."""

    def __init__(self, weights: Mapping[str, float], source: MapSource) -> None:
        self.weights = weights
        self._text = source.text
        self._left = source.letters
        self._is_late = source.is_late
        self._is_hurried = source.is_hurried

    def hits(self, path: str) -> _WordHits:
        """What is in a file."""
        if not self.weights or self._left <= 0 or self._is_hurried():
            return _NO_HITS
        text = (self._text(path) or "")[: self._left]
        self._left -= len(text)
        # By line breaks alone, as the lines of definitions are counted.
        breaks = [each.start() for each in re.finditer("\n", text)]
        found = {
            (bisect_left(breaks, place) + 1, word)
            for place, words in self._places(text, self._names(text))
            for word in words
        }
        ordered = sorted(found)
        by_word: dict[str, list[int]] = {}
        for line, word in ordered if len(ordered) > _MANY_HITS else ():
            by_word.setdefault(word, []).append(line)
        return _WordHits([line for line, _ in ordered], [word for _, word in ordered], by_word)

    def _places(self, text: str, names: Mapping[str, list[str]]) -> Iterator[tuple[int, list[str]]]:
        """Where these names stand in a text, each with its words."""
        if len(names) <= _NAMES_SEARCHED:
            for name, words in names.items():
                check_time(self._is_late)
                for place in _places_of(name, text):
                    yield place, words
            return
        for number, match in enumerate(_WHOLE_NAME.finditer(text)):
            if number % 1024 == 0:
                check_time(self._is_late)
            if (found := names.get(match[0])) is not None:
                yield match.start(), found

    def _names(self, text: str) -> dict[str, list[str]]:
        """The identifiers in a text that have words of the request, with those words.

        A word is a piece of the letters of an identifier, so all identifiers are searched for it as
        one text: to take each of them apart takes ten times as long, and most have none.
        """
        joined = "\n".join(sorted({*IDENTIFIER.findall(text)}))
        lower = joined.lower()
        if len(lower) != len(joined):  # a few letters get longer when they are made small
            return self._checked(joined.split("\n"))
        names: dict[str, None] = {}
        for word in self.weights:
            place = lower.find(word)
            while place >= 0:
                end = lower.find("\n", place)
                end = len(lower) if end < 0 else end
                names[joined[joined.rfind("\n", 0, place) + 1 : end]] = None
                place = lower.find(word, end)
        return self._checked(names)

    def _checked(self, names: Iterable[str]) -> dict[str, list[str]]:
        # The same word twice in a name is one.
        words = {name: [*dict.fromkeys(parts_of(name))] for name in names}
        return {
            name: kept
            for name, parts in words.items()
            if (kept := [part for part in parts if part in self.weights])
        }


def _places_of(name: str, text: str) -> Iterator[int]:
    """Where a name stands in a text, and not as a piece of a longer one."""
    place = text.find(name)
    while place >= 0:
        end = place + len(name)
        if not (_is_letter(text[place - 1 : place]) or _is_letter(text[end : end + 1])):
            yield place
        place = text.find(name, end)


def _is_letter(each: str) -> bool:
    return each == "_" or each.isalnum()


def _body(definition: Definition, hits: _WordHits, weights: Mapping[str, float]) -> float:
    counts = hits.counts(definition.first, definition.last)
    damp = 0.5 + (definition.last - definition.first + 1) / _LINES_A_HIT
    return sum(weights[part] * count / (count + damp) for part, count in counts.items())
