"""Differences of texts: which segments an edit touches, and two branches word by word.

Pure.  What both texts share at their ends is cut off first: a comparison of everything takes the
square of the length, and an edit is small in a text that is long.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import accumulate, pairwise
from typing import Final, Literal, TypeAlias

import msgspec

MOST_WORDS: Final = 4_000
"""Words that are compared one by one; beyond, what differs counts as one piece."""
MOST_PAIRS: Final = 40_000
"""Words of one text times words of the other that an edit has compared one by one."""
_RUN: Final = 6
"""Words and blanks that are looked for together."""
_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")
_INSIDE: Final = re.compile(r"\w\w")

DiffPiece: TypeAlias = tuple[Literal["same", "changed"], str, str]


class DiffPart(msgspec.Struct, frozen=True):
    """A piece of two texts: the same in both, or what each has in its place."""

    kind: Literal["same", "changed"]
    first: str
    second: str


def common_ends(first: str, second: str) -> tuple[int, int]:
    """How many characters two texts share at the beginning, and after that at the end."""
    start = _common(first, second)
    end = _common(first[start:][::-1], second[start:][::-1])
    return start, end


def _common(first: str, second: str) -> int:
    """The length of the common beginning."""
    low, high = 0, min(len(first), len(second))
    # Halving, because comparing two slices is a hundred times as fast as a loop over characters.
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def mapped_segments(segments: Sequence[str], edited: str) -> list[str]:
    """The edited text cut at the places that the ends of the segments have gone to.

    What is inserted between two segments belongs to the later one.
    """
    original = "".join(segments)
    start, end = common_ends(original, edited)
    old, new = original[start : len(original) - end], edited[start : len(edited) - end]
    places = list(accumulate(len(segment) for segment in segments[:-1]))
    bounds = [0, *_mapped(places, start, old, new), len(edited)]
    return [edited[one:two] for one, two in pairwise(bounds)]


def _mapped(places: Sequence[int], start: int, old: str, new: str) -> list[int]:
    """Where places of the original text, in order, are in the edited one."""
    # Nothing is aligned where no place lies within what has changed.
    within = any(start < place < start + len(old) for place in places)
    pieces = iter(_aligned(old, new) if within else [("changed", old, new)])
    kind, one, two = next(pieces)
    at, to = start, start
    found: list[int] = []
    for place in places:
        if place <= start:
            found.append(place)
            continue
        if place >= start + len(old):
            found.append(place + len(new) - len(old))
            continue
        while at + len(one) < place:
            at, to = at + len(one), to + len(two)
            kind, one, two = next(pieces)
        inside = place - at
        found.append(to + (inside if kind == "same" else _kept(inside, len(one), len(two))))
    return found


def _kept(place: int, old: int, new: int) -> int:
    """A place within a piece that was replaced: as far from the nearer end as it was."""
    half = new // 2
    return min(place, half) if 2 * place < old else max(half, new - (old - place))


def _aligned(old: str, new: str) -> list[DiffPiece]:
    """Two texts as pieces that are the same, or differ; what is long by runs of words that each has
    once, so that the time is about that of reading them.
    """
    one, two = _WORDS.findall(old), _WORDS.findall(new)
    found: list[DiffPiece] = []
    a = c = 0
    for b, d in [*_anchors(one, two), (len(one), len(two))]:
        # Anchors overlap: what is left of one goes on from the last, or it lies elsewhere.
        if b < a or d < c:
            if b - a != d - c:
                continue
        elif b > a or d > c:
            before, after = "".join(one[a:b]), "".join(two[c:d])
            is_small = (b - a) * (d - c) <= MOST_PAIRS
            found += _pieces(before, after) if is_small else [("changed", before, after)]
            a, c = b, d
        same = "".join(one[a : b + _RUN])
        if same:
            found.append(("same", same, same))
        a, c = min(b + _RUN, len(one)), min(d + _RUN, len(two))
    return found


def _anchors(one: Sequence[str], two: Sequence[str]) -> list[tuple[int, int]]:
    """Where runs of words begin that both texts have exactly once, in the order of both."""
    if len(one) * len(two) <= MOST_PAIRS:
        return []
    first, second = _runs(one), _runs(two)
    pairs = [(at, second[run]) for run, at in first.items() if at >= 0 and second.get(run, -1) >= 0]
    # The longest row of them that rises in both: `ends` has for each length the least last place.
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, there) in enumerate(pairs):
        length = bisect_left(ends, there)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [there]
        last[length : length + 1] = [number]
    found: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    found.reverse()
    return found


def _runs(words: Sequence[str]) -> dict[tuple[str, ...], int]:
    """Each run of words with its place; -1 where there are several."""
    found: dict[tuple[str, ...], int] = {}
    for at in range(len(words) - _RUN + 1):
        run = tuple(words[at : at + _RUN])
        found[run] = -1 if run in found else at
    return found


def _pieces(old: str, new: str) -> list[DiffPiece]:
    """Two texts as pieces that are the same, or differ, in order."""
    one, two = _WORDS.findall(old), _WORDS.findall(new)
    if len(one) > MOST_WORDS or len(two) > MOST_WORDS:
        return [("changed", old, new)]
    matcher = SequenceMatcher(None, one, two, autojunk=False)
    return [
        ("same" if kind == "equal" else "changed", "".join(one[a:b]), "".join(two[c:d]))
        for kind, a, b, c, d in matcher.get_opcodes()
    ]


def word_diff(first: str, second: str) -> list[DiffPart]:
    """Two texts word by word."""
    start, end = common_ends(first, second)
    # At the beginning of a word: half a word that both have is no word of either.
    while _cuts_word(first, start) or _cuts_word(second, start):
        start -= 1
    while _cuts_word(first, len(first) - end) or _cuts_word(second, len(second) - end):
        end -= 1
    old, new = first[start : len(first) - end], second[start : len(second) - end]
    found = [DiffPart("same", first[:start], second[:start])] if start else []
    found += [DiffPart(*piece) for piece in _pieces(old, new)] if old or new else []
    if end:
        found.append(DiffPart("same", first[len(first) - end :], second[len(second) - end :]))
    return _merged(found)


def _cuts_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and _INSIDE.match(text, at - 1) is not None


def _merged(parts: Sequence[DiffPart]) -> list[DiffPart]:
    merged: list[DiffPart] = []
    for part in parts:
        if merged and merged[-1].kind == part.kind:
            last = merged.pop()
            part = DiffPart(part.kind, last.first + part.first, last.second + part.second)
        merged.append(part)
    return merged


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a text; each keeps the empty lines that follow it."""
    found = re.split(r"(?<=\n)(?=[^\n])(?<=\n\n)", text)
    return [each for each in found if each]
