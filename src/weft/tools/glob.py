"""Patterns for file names: `*.py` anywhere, `src/**/test_*.py` from the start; `{a,b}` and `[abc]`
too.

Pure.  Each part of a pattern is matched against one part of the path, which keeps the time linear
in the length of both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import translate

_MAX_BRACES = 64

Part = Callable[[str], object] | None


def matcher(pattern: str) -> Callable[[str], bool]:
    """A function that tells whether a path (with forward slashes) fits the pattern."""
    ways = [_parts(one) for one in _braces(pattern.removeprefix("./"))]

    def matches(path: str) -> bool:
        names = path.split("/")
        return any(_fits(way, names) for way in ways)

    return matches


def _braces(pattern: str) -> list[str]:
    """The patterns that `{a,b}` stands for.

    What is left over when there are too many stays literal.
    """
    found = [pattern]
    while len(found) <= _MAX_BRACES:
        spread: list[str] = []
        for one in found:
            group = re.search(r"\{([^{}]*,[^{}]*)\}", one)
            if group is None:
                spread.append(one)
                continue
            spread += [
                one[: group.start()] + word + one[group.end() :] for word in group[1].split(",")
            ]
        if spread == found:
            break
        found = spread
    return found[:_MAX_BRACES]


def _parts(pattern: str) -> list[Part]:
    """One test for each part; None stands for `**`, any number of parts."""
    words = [word for word in pattern.split("/") if word]
    if "/" not in pattern.rstrip("/"):
        words = ["**", *words]  # a bare name is looked for at any depth
    parts: list[Part] = []
    for word in words:
        if word == "**":
            # Two `**` in a row mean no more than one.
            if not parts or parts[-1] is not None:
                parts.append(None)
        else:
            parts.append(re.compile(translate(word)).match)
    if words and words[-1] == "**":
        parts.append(lambda name: True)
    return parts


def _fits(parts: Sequence[Part], names: Sequence[str]) -> bool:
    """Does the whole path fit: parts against names, by the positions that can be reached."""
    reached = {0}
    for part in parts:
        if not reached:
            return False
        if part is None:
            # Positions in the path that the pattern can have got to. A set and not recursion:
            # `**/**/**` would otherwise be tried in exponentially many ways.
            reached = set(range(min(reached), len(names) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(names) and part(names[at])}
    return len(names) in reached
