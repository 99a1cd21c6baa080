"""The project's own list of ignored files that it needs wherever it is worked on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Final

from weft.workspace.ignore import IgnoreFile

INCLUDE: Final = ".worktreeinclude"


def is_named(wanted: IgnoreFile, path: str) -> bool:
    """Whether a list names a path, or a folder that it lies in."""
    found = False
    for end in (*slashes(path), len(path)):
        prefix, _, name = path[:end].rpartition("/")
        said = wanted.judge(f"{prefix}/" if prefix else "", name, is_folder=end < len(path))
        found = found if said is None else said
    return found


def files_of(
    root: str, path: str, on_error: Callable[[OSError], None] | None = None
) -> Iterator[tuple[str, str]]:
    """The files of a tree, and where they lie below the root; `on_error` is told of folders that
    cannot be read.
    """
    top = f"{root}/{path}"
    if os.path.islink(top) or os.path.isfile(top):
        yield top, path
        return
    for folder, folders, names in os.walk(top, onerror=on_error):
        links = [name for name in folders if os.path.islink(f"{folder}/{name}")]
        for name in (*names, *links):
            source = f"{folder}/{name}"
            if os.path.islink(source) or os.path.isfile(source):
                yield source, source[len(root) + 1 :]


def slashes(path: str) -> Iterator[int]:
    """Where the slashes of a path are."""
    return (at for at, letter in enumerate(path) if letter == "/")
