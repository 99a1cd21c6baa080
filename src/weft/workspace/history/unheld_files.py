"""Ignored files, which the history does not hold: listed before a command that nothing holds back,
and looked for after it, so that those it removed can be named.

What tools make again (`skipped_folders`) is left out, and so is what lies beyond a bound: a data
set may have a million files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from typing import Final, NamedTuple

from weft.workspace.base import ChangedFile
from weft.workspace.skipped_folders import SKIPPED_FOLDERS, is_remade

IGNORED: Final = "ignored"
MOST_FILES: Final = 2_000
MOST_LOOKED_AT: Final = 20_000
"""Files among which those that were moved are looked for."""


def unheld_places(left_out: Mapping[str, str]) -> list[str]:
    """The ignored files and folders (with a slash at their end) among what a history leaves out
    that no tool makes again.
    """
    return [
        path
        for path, why in left_out.items()
        if why == IGNORED and not is_remade(path) and path.rstrip("/") not in SKIPPED_FOLDERS
    ]


class UnheldFile(NamedTuple):
    """What tells a file from others, whatever its name."""

    mode: int
    inode: int


def unheld_files(root: str, places: Iterable[str]) -> dict[str, UnheldFile]:
    """The files at these places below a root.  Blocks."""
    return dict(islice(_files(root, places), MOST_FILES))


def removed_files(
    root: str, known: Mapping[str, UnheldFile], places: Iterable[str], changed: Iterable[str]
) -> list[ChangedFile]:
    """Those of the files that are nowhere any more: neither at these places nor among the files
    that changed.  Blocks.
    """
    gone = {path: file for path, file in known.items() if not os.path.lexists(f"{root}/{path}")}
    if not gone:
        return []
    now = islice(_files(root, places), MOST_LOOKED_AT)
    there = {inode for _, (_, inode) in chain(now, _named(root, changed))}
    return [
        ChangedFile(path=path, action="deleted", mode_before=file.mode, missing=IGNORED)
        for path, file in sorted(gone.items())
        if file.inode not in there
    ]


def _named(root: str, paths: Iterable[str]) -> Iterator[tuple[str, UnheldFile]]:
    for path in paths:
        yield from _file(root, path)


def _files(root: str, places: Iterable[str]) -> Iterator[tuple[str, UnheldFile]]:
    for place in places:
        if not place.endswith("/"):
            yield from _file(root, place)
            continue
        # Not `os.walk`, which reads a folder to its end before it tells of the first name.
        waiting = [place.rstrip("/")]
        while waiting:
            folder = waiting.pop()
            with suppress(OSError), os.scandir(f"{root}/{folder}") as entries:
                for entry in entries:
                    path = f"{folder}/{entry.name}"
                    if not entry.is_dir(follow_symlinks=False):
                        yield from _file(root, path)
                    elif entry.name not in SKIPPED_FOLDERS:
                        waiting.append(path)


def _file(root: str, path: str) -> Iterator[tuple[str, UnheldFile]]:
    try:
        about = os.lstat(f"{root}/{path}")
        path.encode()  # another name can be stored in no record
    except (OSError, UnicodeEncodeError):
        return
    is_file = stat.S_ISREG(about.st_mode) or stat.S_ISLNK(about.st_mode)
    if is_file and not is_remade(path):
        yield path, UnheldFile(about.st_mode, about.st_ino)
