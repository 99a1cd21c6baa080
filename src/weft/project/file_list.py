"""File list of a project, for the completion of `@file`: bounded in number and in time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Final

from weft.workspace.skipped_folders import SKIPPED_FOLDERS

MAX_FILES: Final = 20_000
MAX_SECONDS: Final = 0.5


def list_files(folder: str) -> Iterator[str]:
    """Files below a folder, the near ones first; none of hidden folders and of `SKIPPED_FOLDERS`.

    No program is asked (git would run what the repository's settings name), and no link is
    followed.
    """
    # Level by level, so that a limit cuts off the deep files and not those of late letters.
    until = time.monotonic() + MAX_SECONDS
    waiting, found = [""], 0
    while waiting and found < MAX_FILES and time.monotonic() < until:
        following: list[str] = []
        for relative in waiting:
            for entry in _entries(os.path.join(folder, relative)):
                path = f"{relative}{entry.name}"
                if entry.name.startswith(".") or not path.isprintable():
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in SKIPPED_FOLDERS:
                        following.append(f"{path}/")
                else:
                    found += 1
                    yield path
        waiting = following


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        return sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return []
