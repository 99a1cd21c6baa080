"""Repositories under other names than `.git`: bare ones, and any folder that looks like one.

Git takes every folder with a HEAD, objects and refs for a repository, and obeys its settings and
hooks as soon as someone works inside; a prompt that shows the branch is enough.  So such a folder
is judged like a `.git`: by what it would be together with what is already there, since its parts
may come one by one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from typing import Final

from weft.workspace.git_repository import find_hook_folder

_SETTINGS: Final = ("config", "config.worktree", "commondir")
_FILES: Final = ("HEAD", *_SETTINGS)
_FOLDERS: Final = ("objects", "refs", "hooks")
OBEYED: Final = (*_SETTINGS, "hooks")
"""The parts by which a repository makes git do something."""


def parts_of_repositories(path: str) -> Iterator[tuple[str, str]]:
    """The folders that would be a repository with this path in it, and which part of it that is.

    None for what lies in a `.git`, which is protected by its name.
    """
    names = path.split("/")
    if ".git" in names:
        return
    for at, name in enumerate(names):
        if name in _FOLDERS or (name in _FILES and at == len(names) - 1):
            yield "/".join(names[:at]), name


def is_repository(folder: str, exists: Callable[[str], bool]) -> bool:
    """True when git would take a folder for a repository; `exists` is asked for its parts."""
    inside = f"{folder}/" if folder else ""
    if not exists(f"{inside}HEAD"):
        return False
    # With `commondir` objects and settings lie elsewhere, in a folder that may be called anything.
    is_whole = exists(f"{inside}objects") and exists(f"{inside}refs")
    return is_whole or exists(f"{inside}commondir")


def steers_git(place: str, others: Collection[str] = ()) -> bool:
    """True when writing the file at an absolute path would steer git: a setting or a hook of such a
    repository, a part that makes a folder one, or a hook where the settings of the repository
    around it have them.  `others` are written together with it.

    Blocks, for very few files.
    """

    def exists_then(path: str) -> bool:
        below = f"{path}/"
        return any(f"{each}/".startswith(below) for each in (place, *others)) or os.path.lexists(
            path
        )

    hooks = find_hook_folder(os.path.dirname(place))
    if hooks is not None and hooks.hold(place):
        return True
    return any(
        is_repository(folder, exists_then)
        and (part in OBEYED or not is_repository(folder, os.path.lexists))
        for folder, part in parts_of_repositories(place)
    )
