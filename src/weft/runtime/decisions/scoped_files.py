"""Files of a project that scopes may be about, for the check whether any fits one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from weft.decisions.scope import folder_of, is_symbol
from weft.project.file_list import MAX_FILES, list_files
from weft.workspace import SKIPPED_FOLDERS

MOST_FOLDERS: Final = 100
"""Folders that are listed beside the project."""


def scoped_files(project: str, scopes: Iterable[str]) -> set[str]:
    """The files of a project, as far as they are listed, and those that scopes name besides.

    Blocking.  The list of a project is bounded and leaves out what is hidden or built: that a
    scope is not in it says nothing about `.github/**` or `build/**`, or about the end of a large
    project.
    """
    paths = set(list_files(project))
    is_cut = len(paths) >= MAX_FILES
    folders: dict[str, None] = {}
    for scope in scopes:
        folder = folder_of(scope)
        if is_symbol(scope) or not folder:
            continue
        if os.path.lexists(os.path.join(project, folder)):
            if folder == scope.rstrip("/"):
                paths.add(folder)
            elif is_cut or any(map(_is_left_out, folder.split("/"))):
                folders[folder] = None
    for folder in list(folders)[:MOST_FOLDERS]:
        paths.update(f"{folder}/{name}" for name in list_files(os.path.join(project, folder)))
    return paths


def _is_left_out(name: str) -> bool:
    return name.startswith(".") or name in SKIPPED_FOLDERS
