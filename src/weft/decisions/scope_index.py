"""Scopes of many nodes, found by a path without trying each one.

It gives what `covers` gives.  Plain scopes, which most are, are looked up by the folders of a path;
patterns are tried only where the folders before their first wild card are those of the path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from weft.decisions.scope import ScopeWay, fits, folder_of, is_symbol, symbol_name, ways_of

K = TypeVar("K")

_WILD = re.compile(r"[*?\[{]")
_WORDS = re.compile(r"[\w./*@-]+")


class ScopeIndex(Generic[K]):
    """What has which scope."""

    def __init__(self) -> None:
        self._plain: dict[str, dict[K, None]] = {}
        """By a whole path: of a file, or of a folder that holds others."""
        self._exact: dict[str, dict[K, None]] = {}
        """Patterns by themselves: a file may have a wild card in its name."""
        self._names: dict[str, dict[K, None]] = {}
        """By a bare name, which is looked for at any depth."""
        self._patterns: dict[str, dict[str, dict[K, None]]] = {}
        """By the folders before the first wild card, then by the scope."""
        self._ways: dict[str, tuple[ScopeWay, ...]] = {}
        """Each pattern that was tried."""
        self._symbols: dict[str, dict[K, None]] = {}
        self._folders: dict[str, dict[K, None]] = {}

    def add(self, key: K, scopes: Iterable[str]) -> None:
        """Take in what `key` is about."""
        for scope in scopes:
            for keys in self._places(scope):
                keys[key] = None

    def remove(self, key: K, scopes: Iterable[str]) -> None:
        """Forget it; the same scopes have to be given."""
        for scope in scopes:
            for keys in self._places(scope):
                keys.pop(key, None)

    def find(self, path: str) -> dict[K, None]:
        """All that is about a path, relative to the project."""
        names = path.split("/")
        found: dict[K, None] = dict(self._patterns_fitting("", names))
        found |= self._exact.get(path, {})
        for name in names:
            found |= self._names.get(name, {})
        for end in range(1, len(names) + 1):
            folder = "/".join(names[:end])
            found |= self._plain.get(folder, {})
            found |= dict(self._patterns_fitting(folder, names))
        return found

    def mentioned(self, text: str) -> dict[K, None]:
        """All whose path, folder or symbol a text names."""
        words = {word.strip(".@-") for word in _WORDS.findall(text)}
        found: dict[K, None] = {}
        for word in words:
            found |= self._symbols.get(word, {})
            if "/" in word or "." in word:
                path = word.rstrip("/")
                found |= {**self.find(path), **self._folders.get(path, {})}
        return found

    def _patterns_fitting(self, folder: str, names: list[str]) -> Iterator[tuple[K, None]]:
        for scope, keys in self._patterns.get(folder, {}).items():
            if not keys:
                continue
            ways = self._ways.get(scope)
            if ways is None:
                ways = self._ways[scope] = ways_of(scope)
            if any(fits(way, names) for way in ways):
                yield from keys.items()

    def _places(self, scope: str) -> Iterator[dict[K, None]]:
        """The tables that a scope stands in."""
        parts = [part for part in scope.split("/") if part not in ("", ".")]
        if is_symbol(scope):
            yield self._symbols.setdefault(symbol_name(scope), {})
        elif folder := folder_of(scope):
            yield self._folders.setdefault(folder, {})
        if not parts or _WILD.search(scope):
            yield self._pattern(scope, parts)
            yield self._exact.setdefault(scope, {})
        elif len(parts) == 1:
            yield self._names.setdefault(parts[0], {})
        else:
            yield self._plain.setdefault("/".join(parts), {})

    def _pattern(self, scope: str, parts: list[str]) -> dict[K, None]:
        plain = []
        for part in parts if len(parts) > 1 else ():
            # Braces may hold a slash, so that the parts behind the first one mean nothing.
            if _WILD.search(part):
                break
            plain.append(part)
        return self._patterns.setdefault("/".join(plain), {}).setdefault(scope, {})
