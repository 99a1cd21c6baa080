"""Freshness of an index: whether there is something to be read, found without listing the project.

The times of the indexed files show what was edited, and those of their folders what came or went;
those of the ignore files show whether other files are to be listed, and those that git keeps its
head in whether there are new commits.  A folder has a new time also when something comes that is
ignored, so its names decide.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Set
from typing import Final

import msgspec

from weft.repo.definitions import READER_VERSION
from weft.repo.file_paths import IGNORE_FILES, FileListing, IgnoredPaths
from weft.repo.index_cache import ABSENT, VERSION_NOTE, FileStamp, IndexCache

TICK_NS: Final = 20_000_000
"""The kernel's clock for files goes by ticks of up to ten milliseconds: what was changed within so
short a time before it was looked at may be changed again without another time."""
_MOST_LOOKED: Final = 2_000
UNSETTLED: Final = -1
"""The time of a folder whose names have to be looked at anew."""


def is_stale(cache: IndexCache, project: str) -> bool:
    """Whether an update would list, read or forget something.

    Blocks for a look at each source file.
    """
    cache.check()
    if cache.note(VERSION_NOTE) != READER_VERSION:
        return True
    look = os.lstat
    try:
        # Of each file: nothing is made in this loop that is not needed.
        for path, size, mtime, ctime in cache.stamps():
            about = look(f"{project}/{path}")
            if about.st_mtime_ns != mtime or about.st_ctime_ns != ctime or about.st_size != size:
                return True
    except (OSError, ValueError):
        return True
    return has_new_rules(cache) or has_new_head(cache) or _has_new_names(cache, project)


def has_new_rules(cache: IndexCache) -> bool:
    """Whether an ignore file was changed since the files were listed.  Blocks."""
    return any(stamp_at(path) != stamp for path, stamp in cache.rules().items())


def has_new_head(cache: IndexCache) -> bool:
    """Whether something was committed or checked out since the past was read.  Blocks."""
    return any(stamp_at(path) != stamp for path, stamp in cache.head_stamps().items())


def stamp_at(path: str) -> FileStamp:
    """The stamp of a file; `ABSENT` where there is none."""
    try:
        return FileStamp.of(os.lstat(path))
    except (OSError, ValueError):
        return ABSENT


def _has_new_names(cache: IndexCache, project: str) -> bool:
    folders = cache.folders()
    if not folders:
        return True  # never listed to the end
    changed: list[str] = []
    for folder, ctime in folders.items():
        try:
            # Not the other time: unpackers and `touch -r` set that back.
            if os.stat(f"{project}/{folder}").st_ctime_ns != ctime:
                changed.append(folder)
        except (OSError, ValueError):
            return True
    if not changed:
        return False
    known = ListedProject(
        project, FileListing(cache.listing()), folders.keys(), cache.rules().keys()
    )
    return known.differs_in(changed)


class ListedProject(msgspec.Struct, frozen=True):
    """A project as it was listed."""

    project: str
    listing: FileListing
    folders: Set[str]
    """Those that have files."""
    rules: Set[str]
    """The ignore files, absolute."""

    def differs_in(self, changed: Iterable[str]) -> bool:
        """Whether some folders hold other names by now, without those that are ignored.  Blocks."""
        listed: dict[str, set[str]] = {folder: set() for folder in changed}
        for path in self.listing.paths():
            folder, _, name = path.rpartition("/")
            if folder in listed:
                listed[folder].add(name)
        ignored = IgnoredPaths(self.project)
        try:
            return any(self._differs(folder, names, ignored) for folder, names in listed.items())
        except (OSError, ValueError):
            return True

    def _differs(self, folder: str, names: set[str], ignored: IgnoredPaths) -> bool:
        left = set(names)
        try:
            found = os.scandir(f"{self.project}/{folder}")
        except PermissionError:
            return bool(names)  # it is still one that may not be looked into
        with found as entries:
            for entry in entries:
                if entry.name in left:
                    left.discard(entry.name)
                elif self._is_new(
                    f"{folder}/{entry.name}" if folder else entry.name, entry, ignored
                ):
                    return True
        return bool(left)

    def _is_new(self, path: str, entry: os.DirEntry[str], ignored: IgnoredPaths) -> bool:
        if entry.name in IGNORE_FILES:
            # It may leave out itself, and others with it.
            return f"{self.project}/{path}" not in self.rules
        is_folder = entry.is_dir(follow_symlinks=False)
        if is_folder and path in self.folders:
            return False
        if not is_folder:
            return not ignored.holds(path, is_folder=False)
        return _has_files(self.project, path, ignored)


def _has_files(project: str, folder: str, ignored: IgnoredPaths) -> bool:
    """Whether a folder has a file that is not ignored, at any depth; a large one is not looked
    through to the end.
    """
    waiting, looked = [folder], 0
    while waiting:
        folder = waiting.pop()
        if ignored.holds(folder, is_folder=True) or os.path.lexists(f"{project}/{folder}/.git"):
            continue
        with os.scandir(f"{project}/{folder}") as entries:
            for entry in entries:
                looked += 1
                path = f"{folder}/{entry.name}"
                if looked > _MOST_LOOKED:
                    return True
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                elif not ignored.holds(path, is_folder=False):
                    return True
    return False
