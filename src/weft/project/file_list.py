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
                if not entry.is_dir(follow_symlinks=False):
                    found += 1
                    yield f"{relative}{entry.name}"
                elif entry.name not in SKIPPED_FOLDERS:
                    following.append(f"{relative}{entry.name}/")
        waiting = following


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """What is not hidden and has a name that can be shown, in order."""
    try:
        found = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return []
    return [each for each in found if each.name.isprintable() and not each.name.startswith(".")]
