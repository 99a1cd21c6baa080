"""Scopes: which files and symbols a node of the graph is about.

A scope is a path, a folder, a glob (`src/**/*.py`; `*` stays inside one folder) or the name of a
symbol.  A node without one is about the whole project.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Final, TypeAlias

MOST_WORDS: Final = 32
"""Patterns that `{a,b}` may stand for."""
ScopeWay: TypeAlias = tuple[Callable[[str], object] | None, ...]
"""What fits each part of a path; None fits any number of parts."""

_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:(?:\.|::)[A-Za-z_][A-Za-z0-9_]*)*(?:\(\))?")


def is_symbol(scope: str) -> bool:
    """Whether a scope names a symbol and no path.  `a.py` could be both, and is a path."""
    if "/" in scope or not _SYMBOL.fullmatch(scope):
        return False
    suffix = scope.rpartition(".")[2] if "." in scope else ""
    return scope.endswith("()") or "::" in scope or not suffix or not suffix.islower()


def covers(scopes: Iterable[str], path: str) -> bool:
    """Whether one of the scopes holds a path, relative to the project."""
    names = path.split("/")
    return any(scope == path or any(fits(way, names) for way in ways_of(scope)) for scope in scopes)


def symbol_name(scope: str) -> str:
    """The last name of a symbol: what a text calls it by."""
    return scope.removesuffix("()").replace("::", ".").rpartition(".")[2]


def folder_of(scope: str) -> str:
    """The folder that a scope begins with, without any wild cards; empty for none."""
    plain = re.split(r"[*?\[{]", scope, maxsplit=1)[0]
    return plain.rstrip("/") if plain == scope else plain.rpartition("/")[0]


@lru_cache(maxsize=512)
def ways_of(scope: str) -> tuple[ScopeWay, ...]:
    """The patterns of a scope, part by part; None stands for any number of parts."""
    # A regular expression for the whole would try all ways to share the path out among the stars:
    # a scope is a model's word, and must not cost seconds.
    return tuple(_way(one) for one in _spread(scope))


def _spread(scope: str) -> list[str]:
    """What `{a,b}` stands for; what would be too many stays as it is written."""
    done: list[str] = []
    waiting = [scope]
    while waiting and len(done) + len(waiting) <= MOST_WORDS:
        one = waiting.pop(0)
        opened = re.search(r"\{([^{}]*)\}", one)
        if opened is None:
            done.append(one)
            continue
        words = opened[1].split(",")
        waiting += [one[: opened.start()] + word + one[opened.end() :] for word in words]
    return (done + waiting)[:MOST_WORDS]


def _way(scope: str) -> ScopeWay:
    parts = [part for part in scope.split("/") if part not in ("", ".")]
    # A bare name is looked for at any depth, as in ignore files, and a folder holds what is below.
    depth = ("**",) if len(parts) == 1 else ()
    return tuple(_test(part) for part in (*depth, *parts, "**"))


def _test(part: str) -> Callable[[str], object] | None:
    if part == "**":
        return None
    return re.compile(translate(part)).match if set(part) & set("*?[") else part.__eq__


def fits(way: ScopeWay, names: Sequence[str]) -> bool:
    """Match part by part, in time linear in both: only the last `**` is ever tried again."""
    at, name, star, behind = 0, 0, -1, 0
    while name < len(names):
        test = way[at] if at < len(way) else None
        if at < len(way) and test is None:
            star, behind = at, name
            at += 1
        elif test is not None and test(names[name]):
            at, name = at + 1, name + 1
        elif star >= 0:
            behind += 1
            at, name = star + 1, behind
        else:
            return False
    return all(test is None for test in way[at:])
