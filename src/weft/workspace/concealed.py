"""Concealed files: those of a project that patterns keep from being read, found for the sandbox to
hide.

A sandbox hides paths, and rules name patterns: so before each command the project is looked
through.  A folder is read again only when something came or went in it; what is left is one `stat`
for each folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from fnmatch import translate

MOST_FOLDERS = 20_000
"""Folders that are looked through before one command; a `stat` of each takes about 50 ms."""
MOST_HIDDEN = 500
"""Paths that one command's view hides: each is a mount."""
_WILD = re.compile(r"[*?\[]")
_INSIDE = re.compile(r"(?:/\*{1,2})+$")


class TooManyFiles(Exception):
    """Not everything that the patterns mean was found, or could be hidden."""


class ConcealedFiles:
    """What patterns mean in one project and the folders added to it; remembers what it saw."""

    def __init__(self, root: str, added: Iterable[str] = ()) -> None:
        self._root = root.rstrip("/")
        self._roots = {self._root, *map(os.path.realpath, added)}
        self._patterns: frozenset[str] = frozenset()
        self._wild: re.Pattern[str] | None = None
        self._seen: dict[str, tuple[int, list[str], list[str]]] = {}
        self._before = self._seen
        """What the look before this one saw."""

    def find(self, patterns: Iterable[str]) -> list[str]:
        """The absolute paths, files and folders, that these patterns mean now.

        Raises:
            TooManyFiles: there are more than can be found, or hidden.
        """
        # What lies in a folder is hidden with the folder: one mount, however many files there are.
        given = frozenset(_INSIDE.sub("", pattern) or pattern for pattern in patterns)
        if given != self._patterns:
            self._patterns, self._seen = given, {}
            self._wild = _together(given)
        # Only what this look comes by is kept: folders that are gone would pile up.
        self._before, self._seen = self._seen, {}
        found = dict.fromkeys(self._literal())
        if self._wild is not None:
            for top in self._tops():
                found |= dict.fromkeys(self._below(top, self._wild))
        self._before = {}
        if len(found) > MOST_HIDDEN:
            raise TooManyFiles
        return list(found)

    def _literal(self) -> list[str]:
        """What patterns without a wildcard mean; also those that hold letters of one in a name."""
        paths = (
            each if each.startswith("/") else f"{self._root}/{each}" for each in self._patterns
        )
        return sorted(path for path in paths if os.path.lexists(path))

    def _tops(self) -> list[str]:
        """The folders to look through: the project's, and where absolute patterns begin."""
        tops = {*self._roots} if any(map(_is_relative_and_wild, self._patterns)) else set()
        for pattern in self._patterns:
            if pattern.startswith("/") and (wild := _WILD.search(pattern)) is not None:
                folder = pattern[: pattern.rindex("/", 0, wild.start())]
                tops.add(folder or "/")
        return sorted(tops)

    def _below(self, top: str, wild: re.Pattern[str]) -> list[str]:
        found: list[str] = []
        folders = [top]
        looked = 0
        while folders:
            folder = folders.pop()
            looked += 1
            if looked > MOST_FOLDERS:
                raise TooManyFiles
            concealed, below = self._names(folder, wild)
            found += concealed
            folders += below
        return found

    def _names(self, folder: str, wild: re.Pattern[str]) -> tuple[list[str], list[str]]:
        """What is concealed in a folder, and the folders in it to look at."""
        try:
            changed = os.stat(folder).st_mtime_ns
            known = self._before.get(folder)
            if known is not None and known[0] == changed:
                self._seen[folder] = known
                return known[1], known[2]
            concealed, below = self._listing(folder, wild)
        except OSError:
            return [], []  # gone, or not for us: a command has no more rights than we have
        self._seen[folder] = (changed, concealed, below)
        return concealed, below

    def _listing(self, folder: str, wild: re.Pattern[str]) -> tuple[list[str], list[str]]:
        concealed: list[str] = []
        below: list[str] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                # Rules judge the real name of a file; a link is another name for what it leads to.
                if entry.is_symlink():
                    continue
                if self._fits(entry.path, wild):
                    concealed.append(entry.path)
                # Git could not work without its own files, and none of them is in a walk's reach by
                # a plain name.
                elif entry.is_dir() and entry.name != ".git":
                    below.append(entry.path)
        return concealed, below

    def _fits(self, path: str, wild: re.Pattern[str]) -> bool:
        if wild.match(path):
            return True
        inside = path.startswith(f"{self._root}/")
        return inside and wild.match(path[len(self._root) + 1 :]) is not None


def _together(patterns: frozenset[str]) -> re.Pattern[str] | None:
    """One expression for all patterns with a wildcard; None where there is none."""
    wild = [each for each in patterns if _WILD.search(each)]
    return re.compile("|".join(map(translate, sorted(wild)))) if wild else None


def _is_relative_and_wild(pattern: str) -> bool:
    return not pattern.startswith("/") and _WILD.search(pattern) is not None
