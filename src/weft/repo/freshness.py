"""Freshness of an index: whether there is something to be read, found without listing the project.

The times of the indexed files show what was edited, and those of their folders what came or went.
A folder has a new time also when something comes that no index is made of, so its names decide.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from contextlib import suppress

from weft.repo.index_cache import IndexCache
from weft.repo.languages import language_of
from weft.workspace import SKIPPED_FOLDERS


def is_stale(cache: IndexCache, project: str) -> bool:
    """Whether an update would read or forget something.  Blocks: a look at each source file."""
    known = cache.known_files()
    for path, (stamp, _) in known.items():
        try:
            about = os.lstat(f"{project}/{path}")
        except OSError:
            return True
        if stamp != (about.st_size, about.st_mtime_ns):
            return True
    return _has_new_files(project, cache.folders(), known.keys())


def _has_new_files(project: str, folders: Mapping[str, int], files: Set[str]) -> bool:
    if not folders:
        return True  # never listed to the end
    for folder, mtime in folders.items():
        place = f"{project}/{folder}"
        with suppress(OSError):
            if os.stat(place).st_mtime_ns != mtime and _has_new(place, folder, folders, files):
                return True
    return False


def _has_new(place: str, folder: str, folders: Mapping[str, int], files: Set[str]) -> bool:
    with os.scandir(place) as entries:
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                if path not in folders and entry.name not in SKIPPED_FOLDERS:
                    return True
            elif path not in files and language_of(path) is not None:
                return True
    return False
