"""Sessions of other folders that have the same file: of one around the project, of one below it, or
of another work tree of its repository.

Each folder is a project of its own, and so are its sessions; a line that one of those wrote is not
the user's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final

import anyio.to_thread

from weft.config.paths import WeftPaths
from weft.errors import FinalToolError
from weft.runtime.blame.version_index import VersionIndex
from weft.store import Store
from weft.workspace import find_repository
from weft.workspace.git_repository import read_small

MOST_TREES: Final = 50


async def folder_that_changed(store: Store, places: WeftPaths, project: str, path: str) -> str:
    """The folder whose sessions changed a file of the project, too; empty where there is none."""
    for whole in await anyio.to_thread.run_sync(_names_of, project, path):
        for folder in map(str, whole.parents):
            if folder == project:
                continue
            if not await store.rows(project_path=folder, limit=1, archived=True, children=True):
                continue
            kept = places.index_of(folder) if store.is_lasting else None
            index = await VersionIndex.opened(store, folder, kept)
            try:
                if await index.of_path(str(whole.relative_to(folder))):
                    return folder
            finally:
                index.close()
    return ""


def _names_of(project: str, path: str) -> list[PurePosixPath]:
    """The file, and what stands for it in the other work trees of its repository.  Blocks."""
    whole = PurePosixPath(project, path)
    found = dict.fromkeys([whole])
    with suppress(FinalToolError, OSError, ValueError):
        repository = find_repository(project)
        if repository is not None:
            inside = whole.relative_to(repository.top)
            found |= dict.fromkeys(PurePosixPath(top) / inside for top in _tops(repository.common))
    return list(found)


def _tops(common: str) -> Iterator[str]:
    """The work trees of a repository."""
    if os.path.basename(common) == ".git":
        yield os.path.dirname(common)
    for record in sorted(Path(common, "worktrees").glob("*/gitdir"))[:MOST_TREES]:
        name = os.fsdecode(read_small(str(record)) or b"").strip()
        if os.path.isabs(name) and "\0" not in name:
            yield os.path.realpath(os.path.dirname(name))
