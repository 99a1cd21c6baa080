"""Sessions of other folders that hold the same file: of one around the project, or of one below it.

Each folder is a project of its own, and so are its sessions; a line that one of those wrote is not
the user's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from weft.config.paths import WeftPaths
from weft.runtime.blame.version_index import VersionIndex
from weft.store import Store


async def folder_that_changed(store: Store, places: WeftPaths, project: str, path: str) -> str:
    """The folder whose sessions changed a file of the project, too; empty where there is none."""
    whole = PurePosixPath(project, path)
    for folder in _others(PurePosixPath(project), whole):
        name = str(folder)
        if not await store.rows(project_path=name, limit=1, archived=True, children=True):
            continue
        kept = places.index_of(name) if store.is_lasting else None
        index = await VersionIndex.opened(store, name, kept)
        try:
            if await index.of_path(str(whole.relative_to(folder))):
                return name
        finally:
            index.close()
    return ""


def _others(project: PurePosixPath, whole: PurePosixPath) -> Iterator[PurePosixPath]:
    return (each for each in whole.parents if each != project)
