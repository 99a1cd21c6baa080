"""Maps for programs that ask for one and end: what a map is to show, of which project, and the
short way to one.

No event loop is loaded here: where nothing has changed, a map is only read, and the loop with all
that it needs would take as long as that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from weft.config.paths import WeftPaths
from weft.config.settings import load_config
from weft.errors import FinalToolError, UsageError
from weft.repo.project_index import ProjectIndex, folder_with_history
from weft.workspace import find_repository, ignore_of

MOST_TOKENS = 100_000
IS_OFF = "there is no index: the setting repo.index is off"


class MapRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a map is to show."""

    text: str = ""
    focus: tuple[str, ...] = ()
    """Files of the conversation: they are left out, and their neighbours come up."""
    tokens: int = 1024
    paths: tuple[str, ...] = ()
    """Folders and files that it is limited to; all where there is none."""
    history: Path | None = None
    """A file that has the past of the project, for one without git."""

    def check(self) -> None:
        """See whether there can be such a map.

        Raises:
            UsageError: so many tokens are not possible.
        """
        if not 0 < self.tokens <= MOST_TOKENS:
            raise UsageError(f"a map has 1 to {MOST_TOKENS:,} tokens, not {self.tokens:,}")

    def answer(self, index: ProjectIndex) -> str:
        """The map, from an index."""
        return index.map(self.text, self.focus, self.tokens, self.allows if self.paths else None)

    def allows(self, path: str) -> bool:
        """Whether a file may be in the map."""
        return any(_lies_in(path, place) for place in self.paths)


def unchanged_map(request: MapRequest, project: str, places: WeftPaths) -> str | None:
    """A map from the index as it is; None where an indexer has to bring it up to date first.

    Blocks for a look at each source file.

    Raises:
        UsageError: there cannot be such a map.
    """
    request.check()
    folder = places.index_of(project)
    if request.history is not None:
        folder = folder_with_history(folder, project)
    index = ProjectIndex(project, folder)
    try:
        return None if index.is_behind(request.history) else request.answer(index)
    finally:
        index.close()


def check_index_is_on(project: str, places: WeftPaths, environ: Mapping[str, str]) -> None:
    """See whether a project may have an index; blocks.

    Raises:
        UsageError: the setting `repo.index` is off, or settings cannot be read.
    """
    files: Mapping[str, bytes] = {}
    if os.path.lexists(f"{project}/.weft"):
        from weft.project.trust import look  # few projects have settings

        files = look(project).files
    # A project may switch its index off whether it is trusted or not.
    config = load_config(user=places.config, project=project, environ=environ, files=files)
    if not config.get("repo.index"):
        raise UsageError(IS_OFF)


def map_place(here: str, words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The project to map, and the paths in it that the map is limited to; blocks.

    Of the repository that we are in, its folders and files can be named; another folder is a
    project of its own.

    Raises:
        UsageError: there is no such path, or they lie in different projects.
    """
    if not words:
        return here, ()
    for word in words:
        if not os.path.exists(os.path.join(here, word)):
            raise UsageError(f"there is no file or folder {word!r}")
    named = [os.path.realpath(os.path.join(here, word)) for word in words]
    if all(_is_part_of(path, here) for path in named):
        return here, tuple(os.path.relpath(path, here) for path in named)
    if len(named) > 1 or not os.path.isdir(named[0]):
        raise UsageError("only paths of this project can be mapped together; or name one folder")
    return named[0], ()


def _is_part_of(path: str, project: str) -> bool:
    """Whether a path lies in a project and in no other one: not ignored there, and in the same
    repository.
    """
    if path == project:
        return True
    if not path.startswith(f"{project.rstrip('/')}/"):
        return False
    # A folder without git may be one of many projects: it is mapped by itself.
    if os.path.isdir(path) and not _is_in_repository(project):
        return False
    rules, place = ignore_of(project), project
    *folders, name = os.path.relpath(path, project).split("/")
    for folder in folders:
        place = f"{place}/{folder}"
        if rules.ignores(folder, is_folder=True) or os.path.lexists(f"{place}/.git"):
            return False
        rules = rules.below(folder, place)
    is_folder = os.path.isdir(path)
    return not rules.ignores(name, is_folder=is_folder) and not os.path.lexists(f"{path}/.git")


def _is_in_repository(project: str) -> bool:
    try:
        return find_repository(project) is not None
    except FinalToolError:
        return False


def _lies_in(path: str, place: str) -> bool:
    return place in ("", ".") or path == place or path.startswith(f"{place}/")
