"""Differences of texts: which segments an edit touches, and two branches word by word.

Pure.  What both texts share at their ends is cut off first: a comparison of everything takes the
square of the length, and an edit is small in a text that is long.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final, Literal

import msgspec

MOST_WORDS: Final = 4_000
"""Words that are compared one by one; beyond, what differs counts as one piece."""
_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")


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
    cuts: list[int] = []
    at = 0
    for segment in segments[:-1]:
        at += len(segment)
        cuts.append(_mapped(at, start, old, new))
    bounds = [0, *cuts, len(edited)]
    return [edited[one:two] for one, two in pairwise(bounds)]


def _mapped(place: int, start: int, old: str, new: str) -> int:
    """Where a place of the original text is in the edited one."""
    if place <= start:
        return place
    if place >= start + len(old):
        return place + len(new) - len(old)
    at = 0
    for kind, one, _ in _pieces(old, new):
        if start + at + len(one) >= place:
            within = place - start - at if kind == "same" else 0
            return start + len(new) - _rest(old, new, at) + within
        at += len(one)
    return start + len(new)


def _rest(old: str, new: str, before: int) -> int:
    """How much of the new text follows the piece that begins at `before` in the old one."""
    at = done = 0
    for _, one, two in _pieces(old, new):
        if at == before:
            break
        at += len(one)
        done += len(two)
    return len(new) - done


def _pieces(old: str, new: str) -> list[tuple[Literal["same", "changed"], str, str]]:
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
    while start and first[start - 1 : start + 1].isalnum() and first[start - 1].isalnum():
        start -= 1
    while end and first[len(first) - end].isalnum() and first[len(first) - end - 1 :][:1].isalnum():
        end -= 1
    old, new = first[start : len(first) - end], second[start : len(second) - end]
    found = [DiffPart("same", first[:start], second[:start])] if start else []
    found += [DiffPart(*piece) for piece in _pieces(old, new)] if old or new else []
    if end:
        found.append(DiffPart("same", first[len(first) - end :], second[len(second) - end :]))
    return _merged(found)


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
