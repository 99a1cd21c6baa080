"""Which files of a project import which, by the words of their import lines.

Good enough to know whom an edit may have broken; the language server then says what is wrong.  It
reads at most some thousand files, and each one again only when it has changed.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from threading import Lock
from typing import Final

import msgspec

from weft.lsp.server_specs import suffix_of
from weft.lsp.wire import CHANGED, CREATED, DELETED
from weft.workspace import ignore_of

MOST_FILES: Final = 5_000
MOST_ENTRIES: Final = 100_000
MOST_SECONDS: Final = 1.0
"""Of one look, after which the rest of the project stays as it was known."""
MOST_BYTES: Final = 256 * 1024
"""Of the beginning of a file, where imports are."""

_WORDS: Final = re.compile(rb"[A-Za-z_]\w*")
# What may be of any length stands once between two words: to try every way to part it would take
# minutes for a file that is made for it.
_PYTHON: Final = re.compile(
    rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]{0,4000}\)|[^\n]*)"
    rb"|import[ \t]+([^\n]*))",
    re.MULTILINE,
)
_SCRIPT: Final = re.compile(
    rb"""(?:from|import|require)\s{0,99}(?:\(\s{0,99})?["']([^"'\n]+)["']"""
)
_C: Final = re.compile(rb"""^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]""", re.MULTILINE)
_RUST: Final = re.compile(rb"^[ \t]*(?:pub[^\n]*?)?(?:use|mod)[ \t]+([^;\n]+)", re.MULTILINE)
_FAMILIES: Final = {
    "python": (_PYTHON, (".py", ".pyi")),
    "script": (_SCRIPT, (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")),
    "c": (_C, (".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".m")),
    "rust": (_RUST, (".rs",)),
}
_FAMILY: Final = {suffix: name for name, (_, suffixes) in _FAMILIES.items() for suffix in suffixes}
_MAIN_NAMES: Final = {"python": "__init__", "script": "index", "rust": "mod"}
"""Files that are imported by the name of their folder, for each family."""


class _IndexedFile(msgspec.Struct, frozen=True):
    stamp: tuple[int, int]
    words: frozenset[bytes]


class ImportIndex:
    """The import lines of one project.  It reads the disk and blocks: use it in a thread."""

    def __init__(self, root: str, most_entries: int = MOST_ENTRIES) -> None:
        self._root = root
        self._most_entries = most_entries
        # A caller that was stopped leaves its thread behind, and the next one may come before that
        # is through.
        self._lock = Lock()
        self._files: dict[str, dict[str, _IndexedFile]] = {}
        """For each family, by absolute path."""
        self._cut: set[str] = set()
        """Families of which not all files were looked at."""

    def update(self, paths: Iterable[str]) -> list[tuple[str, int]]:
        """Look at all files of the languages of these again.

        Says which have changed since the last time, as the protocol counts kinds of changes.
        """
        families = {_FAMILY.get(suffix_of(path)) for path in paths} - {None}
        changed: list[tuple[str, int]] = []
        with self._lock:
            for family in sorted(filter(None, families)):
                before = self._files.get(family)
                self._files[family] = found = self._look(family, before or {})
                changed += [] if before is None else _differences(before, found)
        return changed

    def importers(self, path: str) -> list[str]:
        """Files that import this one, the nearest first."""
        family = _FAMILY.get(suffix_of(path))
        if family is None:
            return []
        names = _import_names(path, _MAIN_NAMES.get(family, ""))
        found = [
            each
            for each, indexed in self._files.get(family, {}).items()
            if each != path and not names.isdisjoint(indexed.words)
        ]
        return sorted(found, key=lambda each: _distance(each, path))

    def mentions(self, path: str, name: str) -> list[str]:
        """Files of the language of `path` in which a name stands as a word, the nearest first."""
        family = _FAMILY.get(suffix_of(path))
        word = re.compile(rb"(?<!\w)%b(?!\w)" % re.escape(name.encode()))
        found = [each for each in self._files.get(family or "", {}) if _holds(each, word)]
        return sorted(found, key=lambda each: _distance(each, path))

    def is_whole(self, path: str) -> bool:
        """Whether all files of the language of `path` were looked at."""
        return _FAMILY.get(suffix_of(path), "") not in self._cut

    def _look(self, family: str, before: dict[str, _IndexedFile]) -> dict[str, _IndexedFile]:
        pattern, suffixes = _FAMILIES[family]
        found: dict[str, _IndexedFile] = {}
        until = time.monotonic() + MOST_SECONDS
        self._cut.discard(family)
        for count, entry in enumerate(self._walk(suffixes)):
            if count >= self._most_entries or time.monotonic() > until:
                # What was not reached is not gone.
                self._cut.add(family)
                return {**before, **found}
            if entry is None:
                continue
            with suppress(OSError):
                about = entry.stat(follow_symlinks=False)
                if not stat.S_ISREG(about.st_mode):
                    continue
                stamp = (about.st_mtime_ns, about.st_size)
                known = before.get(entry.path)
                if known is None or known.stamp != stamp:
                    known = _IndexedFile(stamp, _words_in(entry.path, pattern))
                found[entry.path] = known
            if len(found) >= MOST_FILES:
                self._cut.add(family)
                break
        return found

    def _walk(self, suffixes: tuple[str, ...]) -> Iterator[os.DirEntry[str] | None]:
        """The files with these suffixes, and None for everything else that was come by."""
        waiting = [(self._root, ignore_of(self._root))]
        while waiting:
            folder, ignore = waiting.pop()
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                if not is_folder and not entry.name.lower().endswith(suffixes):
                    yield None
                    continue
                if ignore.ignores(entry.name, is_folder=is_folder):
                    continue
                if is_folder:
                    waiting.append((entry.path, ignore.below(entry.name, entry.path)))
                yield None if is_folder else entry


def _differences(
    before: dict[str, _IndexedFile], after: dict[str, _IndexedFile]
) -> list[tuple[str, int]]:
    gone = [(path, DELETED) for path in before.keys() - after.keys()]
    changed = [
        (path, CREATED if path not in before else CHANGED)
        for path, indexed in after.items()
        if path not in before or before[path].stamp != indexed.stamp
    ]
    return sorted(gone) + changed


def _beginning(path: str) -> bytes:
    # Not through a link: it may have been put in the file's place since it was listed.
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(file, MOST_BYTES)
    finally:
        os.close(file)


def _holds(path: str, word: re.Pattern[bytes]) -> bool:
    try:
        return word.search(_beginning(path)) is not None
    except OSError:
        return False


def _words_in(path: str, pattern: re.Pattern[bytes]) -> frozenset[bytes]:
    found: set[bytes] = set()
    for match in pattern.finditer(_beginning(path)):
        for group in match.groups():
            found.update(_WORDS.findall(group or b""))
    return frozenset(found)


def _import_names(path: str, main: str) -> frozenset[bytes]:
    """The words by which others import a file; a `main` one has the name of its folder too."""
    folder, _, name = path.rpartition("/")
    stem = name.partition(".")[0]
    named = [stem, folder.rpartition("/")[2]] if stem == main else [stem]
    # A name such as `a-b` is two words in an import line too; the longest says most.
    words = [_WORDS.findall(os.fsencode(each)) for each in named]
    return frozenset(max(each, key=len) for each in words if each)


def _distance(one: str, other: str) -> tuple[int, str]:
    shared = len(os.path.commonpath([one, other]).split("/"))
    return (one.count("/") + other.count("/") - 2 * shared, one)
