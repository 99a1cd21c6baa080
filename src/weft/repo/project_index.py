"""The index of a project, for those who ask: symbols, outlines, maps.

It only reads `cache.db`, which an indexer writes; what is being read right now is answered from
what is there.  May be used by several threads.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple, TypeVar

import apsw
import msgspec

from weft.errors import FinalToolError
from weft.repo.definitions import MOST_BYTES, Definition
from weft.repo.file_paths import FileListing
from weft.repo.file_ranker import FileRanker, IsLate, never_late
from weft.repo.freshness import has_new_rules, is_stale
from weft.repo.index_cache import DAMAGE, FileStamp, IndexCache
from weft.repo.indexer_order import CACHE, DAMAGED, REBUILT, history_mark
from weft.repo.map_text import MapSource, render_map, render_overview
from weft.repo.posting_lists import NAME, NAME_PART, WHOLE
from weft.repo.words import IDENTIFIER, parts_of
from weft.workspace import find_repository, read_beneath

MOST_SYMBOLS: Final = 50
_HINTED_FILES: Final = 12
_HINTED_FROM: Final = 40
"""Files that are looked at for a hint; behind them nothing fits."""
_HINTED_LETTERS: Final = 200_000
"""Letters of these files that are looked at: twenty milliseconds."""
_REBUILD_SECONDS: Final = 3600.0
"""An index that was just made anew is not damaged: something else is wrong."""
_QUALIFIER: Final = re.compile(r"\.|::|#|->|/")

Allows = Callable[[str], bool]
_T = TypeVar("_T")


class Symbol(NamedTuple):
    """A definition and where it is."""

    path: str
    definition: Definition


class IndexStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What an index holds."""

    files: int = 0
    """All files that were listed."""
    sources: int = 0
    """Those whose definitions and words are known."""
    languages: dict[str, int] = {}
    """How many of those are of each language."""
    commits: int = 0
    """Past commits whose words lead to files."""
    is_there: bool = False
    """False when there is no index yet."""


def folder_with_history(folder: Path, project: str) -> Path:
    """Where the index of a project lies that has its past from a file, beside `folder`, its own.

    Where git tells the past, it is another one: sessions are not to rank by what one call was
    given.  Blocks.
    """
    try:
        is_told = find_repository(project) is not None
    except FinalToolError:
        is_told = False
    return folder.with_name(f"{folder.name}-history") if is_told else folder


class ProjectIndex:
    """The index of one project, open for reading."""

    def __init__(self, project: str, folder: Path) -> None:
        self.project = project
        self._path = folder / CACHE
        self._lock = Lock()
        self._cache: IndexCache | None = None
        self._ranker: FileRanker | None = None
        self._is_reported = False
        """It was said that the index is damaged: once, for it costs a whole reading."""

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._let_go()

    def _let_go(self) -> None:
        if self._cache is not None:
            self._cache.close()
        self._cache = self._ranker = None

    def prepare(self, request: str) -> None:
        """Rank for a request whose hint will be asked for soon, so that it waits for less.
        Blocks.
        """

        def prepared(_: IndexCache) -> None:
            assert self._ranker is not None
            self._ranker.prepare(request, _HINTED_FROM)

        self._ask(prepared, None)

    def status(self) -> IndexStatus:
        """What it holds now."""
        return self._ask(_status, IndexStatus())

    def is_stale(self) -> bool:
        """Whether an indexer would find something to do.  Blocks."""
        if self._path.with_name(DAMAGED).exists():
            return True
        return self._ask(lambda cache: is_stale(cache, self.project), True)

    def is_behind(self, history: Path | None) -> bool:
        """Whether it is stale, or its past is another one than that of a file.  Blocks."""
        return self.is_stale() or (history is not None and not self.has_history(history))

    def has_history(self, history: Path) -> bool:
        """Whether the past is the one that a file has.  Blocks."""
        try:
            mark = history_mark(history.read_bytes())
        except OSError:
            return False
        return self._ask(lambda cache: cache.note("past head") == mark, False)

    def files(self) -> FileListing:
        """All files, as they were listed last."""
        return FileListing(self._ask(lambda cache: cache.listing(), ""))

    def outline(self, path: str) -> list[Definition] | None:
        """What a file defines, in its order; None for a file that is not in the index."""
        return self._ask(lambda cache: cache.definitions(path), None)

    def symbols(self, name: str, most: int = MOST_SYMBOLS) -> list[Symbol]:
        """The definitions by a name: those that have it exactly, else in other letters, else those
        that are made of its words.

        `Cart.total` means the `total` that lies in a `Cart`.
        """
        return self._ask(lambda cache: _symbols(cache, name, most), [])

    def files_with(self, name: str) -> list[str]:
        """The source files that a name may be in, in whatever letters."""
        return self._ask(lambda cache: _files_with(cache, name), [])

    def rank(self, request: str, focus: Sequence[str] = ()) -> list[str]:
        """The source files, best first for a request."""

        def ranked(_: IndexCache) -> list[str]:
            assert self._ranker is not None
            return self._ranker.rank(request, focus)

        return self._ask(ranked, [])

    def map(
        self,
        request: str = "",
        focus: Sequence[str] = (),
        tokens: int = 1024,
        allows: Allows | None = None,
    ) -> str:
        """The files that a request is about, best first, with the signatures that fit; empty
        without an index.

        Of a file that `allows` refuses, nothing is shown.
        """

        def mapped(cache: IndexCache) -> str:
            assert self._ranker is not None
            paths = self._ranker.rank(request, focus)
            if allows is not None:
                paths = [path for path in paths if allows(path)]
            source = MapSource(cache.definitions, self._text)
            return render_map(paths, self._ranker.word_weights(request), tokens, source)

        return self._ask(mapped, "")

    def hint(
        self,
        request: str,
        focus: Sequence[str],
        tokens: int,
        allows: Allows | None = None,
        is_late: IsLate = never_late,
        is_hurried: IsLate = never_late,
    ) -> str:
        """A map of the few files that share words with a request; empty when none does.

        Only of files that are still there, and with definitions of those that are as they were
        read: the index may be older than they are.  From when on `is_hurried`, definitions are
        chosen by their names alone.

        Raises:
            TimeoutError: `is_late` says so.
        """

        def hinted(cache: IndexCache) -> str:
            assert self._ranker is not None
            if has_new_rules(cache):
                return ""  # a file that was left out a moment ago must not be shown any more
            there = [
                path
                for path in self._ranker.likely(request, focus, _HINTED_FROM, is_late)
                if (allows is None or allows(path)) and os.path.isfile(f"{self.project}/{path}")
            ]
            weights = self._ranker.word_weights(request)
            current = partial(self._current, cache)
            source = MapSource(
                current,
                self._text,
                letters=_HINTED_LETTERS,
                is_late=is_late,
                is_hurried=is_hurried,
            )
            return render_map(there[:_HINTED_FILES], weights, tokens, source)

        return self._ask(hinted, "")

    def overview(
        self, tokens: int, allows: Allows | None = None, is_late: IsLate = never_late
    ) -> str:
        """A map of the files that matter most whatever is asked, in the order that they had when
        the project was listed last; empty without an index.

        Raises:
            TimeoutError: `is_late` says so.
        """

        def shown(cache: IndexCache) -> str:
            assert self._ranker is not None
            if has_new_rules(cache):
                return ""
            ranked = cache.important()
            if ranked is None:  # an earlier version has made the index
                ranked = self._ranker.important(is_late=is_late)
            there = [
                path
                for path in ranked
                if (allows is None or allows(path)) and os.path.isfile(f"{self.project}/{path}")
            ]
            source = MapSource(partial(self._current, cache), self._text, is_late=is_late)
            return render_overview(there, tokens, source)

        return self._ask(shown, "")

    def _current(self, cache: IndexCache, path: str) -> list[Definition] | None:
        """What a file defines, where it is as it was read."""
        try:
            about = os.lstat(f"{self.project}/{path}")
        except OSError:
            return None
        known = cache.known_files([path]).get(path)
        if known is None or known.stamp != FileStamp.of(about):
            return None
        return cache.definitions(path)

    def _text(self, path: str) -> str | None:
        data = read_beneath(self.project, path, MOST_BYTES)
        return None if data is None else data.decode("utf-8", "replace")

    def _ask(self, question: Callable[[IndexCache], _T], nothing: _T) -> _T:
        """The answer of the index; `nothing` while there is none."""
        with self._lock:
            try:
                if self._cache is not None and self._cache.is_replaced():
                    self._let_go()
                if self._cache is None:
                    self._cache = IndexCache(self._path)
                    self._ranker = FileRanker(self._cache)
                # In one snapshot: between two reads an indexer may have given a file a new number.
                with self._cache.snapshot():
                    return question(self._cache)
            except (apsw.Error, *DAMAGE) as error:
                # Not there yet, of another version, damaged, or deleted meanwhile: it is a cache.
                self._let_go()
                # A question that is no UTF-8 is the asker's fault.
                if isinstance(error, DAMAGE) and not isinstance(error, UnicodeEncodeError):
                    self._report_damage()
                return nothing

    def _report_damage(self) -> None:
        """Have the next indexer make it anew: what it still says need not be what was written."""
        if self._is_reported or _is_young(self._path.with_name(REBUILT)):
            return
        self._is_reported = True
        with suppress(OSError):
            self._path.with_name(DAMAGED).touch(mode=0o600)


def _is_young(file: Path) -> bool:
    """Whether a file was written within the last hour."""
    try:
        return time.time() - file.stat().st_mtime < _REBUILD_SECONDS
    except OSError:
        return False


def _status(cache: IndexCache) -> IndexStatus:
    return IndexStatus(
        files=cache.listing().count("\0"),
        sources=cache.count(),
        languages=cache.languages(),
        commits=int(str(cache.note("past commits") or 0)),
        is_there=True,
    )


def _paths(cache: IndexCache, kind: str, words: Iterable[str]) -> list[str]:
    """The files that all of these words are in."""
    asked = list(words)
    lists = cache.lists(kind, asked)
    if len(lists) < len(set(asked)):
        return []
    ids = set.intersection(*(set(each.ids) for each in lists.values()))
    return cache.paths(ids)


def _files_with(cache: IndexCache, name: str) -> list[str]:
    # The index knows words: of `valid?` and `$total` what is a word, of one letter nothing.
    words = [word.lower() for word in IDENTIFIER.findall(name)]
    return _paths(cache, WHOLE, words) if words else sorted(cache.ids())


def _symbols(cache: IndexCache, name: str, most: int) -> list[Symbol]:
    *above, last = [part for part in _QUALIFIER.split(name) if part] or [""]
    if not last:
        return []
    found: list[Symbol] = []
    for path in _paths(cache, NAME, [last.lower()]):
        # Read once: a file may have thousands by one name.
        definitions = cache.definitions(path) or []
        named: Sequence[Definition] = [
            each for each in definitions if each.name.lower() == last.lower()
        ]
        if above:
            named = _lying_in(above[-1].lower(), named, definitions, path)
        found += [Symbol(path, each) for each in named]
    exact = [each for each in found if each.definition.name == last]
    return (exact or found or _by_parts(cache, last))[:most]


def _lying_in(
    owner: str, named: Sequence[Definition], definitions: Sequence[Definition], path: str
) -> Sequence[Definition]:
    """Those of a file that lie in something by this name; all of one that is called so."""
    if owner in path.lower():
        return named
    inside: set[Definition] = set()
    last = 0
    for each in sorted(definitions, key=lambda each: (each.first, -each.last)):
        if each.last <= last:
            inside.add(each)
        if each.name.lower() == owner:
            last = max(last, each.last)
    return [each for each in named if each in inside or owner in each.signature.lower()]


def _by_parts(cache: IndexCache, name: str) -> list[Symbol]:
    """The definitions whose names have all words of this one."""
    wanted = set(parts_of(name))
    if not wanted:
        return []
    return [
        Symbol(path, each)
        for path in _paths(cache, NAME_PART, wanted)
        for each in cache.definitions(path) or ()
        if wanted <= set(parts_of(each.name))
    ]
