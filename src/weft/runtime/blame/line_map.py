"""Where a line of one text stands in another: by the lines that both have, as a diff finds them."""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Final

_LONGEST: Final = 4_000_000
"""Pairs of lines that are compared without a short cut: it takes quadratic time."""
_BINARY_BYTES: Final = 8_000


def lines_of(data: bytes) -> list[bytes]:
    """The lines of a text; whether the last one is ended makes no difference to it."""
    lines = data.split(b"\n")
    return lines[:-1] if not lines[-1] else lines


def is_binary(data: bytes) -> bool:
    """As git tells it: text has no NUL at its beginning."""
    return b"\0" in data[:_BINARY_BYTES]


def place_before(old: Sequence[bytes], new: Sequence[bytes], place: int) -> int | None:
    """Where the line at `place` of the new text stood in the old one; None where it is new."""
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and old[start] == new[start]:
        start += 1
    if place < start:
        return place
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    if place >= len(new) - end:
        return place - len(new) + len(old)
    return _in_middle(old, new, place, (start, len(old) - end, start, len(new) - end))


def _in_middle(
    old: Sequence[bytes], new: Sequence[bytes], place: int, span: tuple[int, int, int, int]
) -> int | None:
    """The same inside a span of both, between two of the lines that each has once: what is
    everywhere (blank lines, braces) says little of what follows on what.
    """
    old_start, old_end, new_start, new_end = span
    for anchor_old, anchor_new in _anchors(old, new, span):
        if anchor_new == place:
            return anchor_old
        if anchor_new > place:
            old_end, new_end = anchor_old, anchor_new
            break
        old_start, new_start = anchor_old + 1, anchor_new + 1
    middle_old, middle_new = old[old_start:old_end], new[new_start:new_end]
    # In a very long change, lines that are everywhere only count beside others.
    autojunk = len(middle_old) * len(middle_new) > _LONGEST
    matcher = difflib.SequenceMatcher(None, middle_old, middle_new, autojunk=autojunk)
    for block in matcher.get_matching_blocks():
        if block.b <= place - new_start < block.b + block.size:
            return old_start + block.a + (place - new_start - block.b)
    return None


def _anchors(
    old: Sequence[bytes], new: Sequence[bytes], span: tuple[int, int, int, int]
) -> list[tuple[int, int]]:
    """Lines that are once in both, as many as follow on each other in both (patience)."""
    once_old, once_new = _once(old, span[0], span[1]), _once(new, span[2], span[3])
    common = sorted((n, once_old[line]) for line, n in once_new.items() if line in once_old)
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(common):
        at = bisect_left(tails, place)
        before.append(ends[at - 1] if at else -1)
        tails[at : at + 1] = [place]
        ends[at : at + 1] = [number]
    found: list[tuple[int, int]] = []
    number = ends[-1] if ends else -1
    while number >= 0:
        found.append((common[number][1], common[number][0]))
        number = before[number]
    return found[::-1]


def _once(lines: Sequence[bytes], start: int, end: int) -> dict[bytes, int]:
    counts = Counter(lines[start:end])
    return {lines[n]: n for n in range(start, end) if counts[lines[n]] == 1}


def likeness(one: Sequence[bytes], two: Sequence[bytes]) -> float:
    """How much of two texts is the same, from 0 to 1, by the lines that are not blank."""
    first = Counter(line.strip() for line in one if line.strip())
    second = Counter(line.strip() for line in two if line.strip())
    count = first.total() + second.total()
    return 2 * (first & second).total() / count if count else 0.0
