"""Ignore files that ripgrep must not read: it opens each one that it meets, whatever it is.

A named pipe would hold it for ever, and a device or a huge file would fill the memory.  The files
that it reads first are looked at before it starts; those in the folders below only when it takes
long, because to look for them takes about as long as its search.  Then our own reading of the
ignore files is used, which is bounded.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Final

import anyio
import anyio.to_thread

from weft.workspace.base import RunResult

LOOK_AFTER_SECONDS: Final = 0.25
LARGEST: Final = 4 * 1024 * 1024
_MOST_FOLDERS: Final = 100_000
_NAMES: Final = (".gitignore", ".ignore", ".rgignore", ".git/info/exclude")
_SHORT: Final = frozenset(_NAMES[:3])


async def unless_trapped(
    folder: str, search: Callable[[], Awaitable[RunResult]]
) -> RunResult | None:
    """What a search in a folder finds; None where an ignore file would hold it up."""
    if await anyio.to_thread.run_sync(_is_trapped_above, folder):
        return None
    found: RunResult | None = None
    failure: Exception | None = None
    async with anyio.create_task_group() as group:

        async def look() -> None:
            await anyio.sleep(LOOK_AFTER_SECONDS)
            # The look is given up as soon as the search has ended.
            if await anyio.to_thread.run_sync(_is_trapped_below, folder, abandon_on_cancel=True):
                group.cancel_scope.cancel()

        group.start_soon(look)
        try:
            found = await search()
        except Exception as error:  # raised below: a group would wrap it
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return found


def _is_trapped_above(folder: str) -> bool:
    """Whether the ignore files of a folder, or of one above it, are traps."""
    while True:
        if _has_trap(folder):
            return True
        above = os.path.dirname(folder)
        if above == folder:
            return False
        folder = above


def _is_trapped_below(folder: str) -> bool:
    for parent, folders, names in islice(os.walk(folder), _MOST_FOLDERS):
        if (not _SHORT.isdisjoint(names) or ".git" in folders) and _has_trap(parent):
            return True
        if ".git" in folders:
            folders.remove(".git")
    return False


def _has_trap(folder: str) -> bool:
    return any(_is_trap(f"{folder}/{name}") for name in _NAMES)


def _is_trap(path: str) -> bool:
    """True for what is there, also behind a link, and is no regular file of a usual size."""
    try:
        about = os.stat(path)
    except OSError:
        return False
    if stat.S_ISDIR(about.st_mode):
        return False
    return not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST
