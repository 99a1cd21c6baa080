"""The index of the application's project: files, symbols, maps, as programs ask for them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import anyio.to_thread
import msgspec

from weft.config.paths import WeftPaths
from weft.config.settings import load_config
from weft.errors import FinalToolError, UsageError
from weft.project.path_finder import PathFinder
from weft.repo.definitions import Definition
from weft.repo.project_index import IndexStatus, ProjectIndex, Symbol
from weft.runtime.index_access import IndexAccess
from weft.workspace import find_repository, ignore_of

MOST_TOKENS = 100_000
IS_OFF = "there is no index: the setting repo.index is off"
_T = TypeVar("_T")


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

    def answer(self, index: ProjectIndex) -> str:
        """The map, from an index."""
        return index.map(self.text, self.focus, self.tokens, self.allows if self.paths else None)

    def allows(self, path: str) -> bool:
        """Whether a file may be in the map."""
        return any(_lies_in(path, place) for place in self.paths)


class AppIndex:
    """What is known of a project's files.  Each call first has what has changed read."""

    def __init__(self, project: str, access: IndexAccess) -> None:
        self._project = project
        self._access = access

    async def files(self) -> list[str]:
        """The paths of all files, relative to the project, without those that are ignored."""
        return await self._ask(lambda index: index.files().paths())

    async def find(self, text: str, touched: Sequence[str] = ()) -> list[str]:
        """The files whose paths fit what was typed, best first: those of `touched`, then by name,
        then anywhere in the path, then letters in order.

        Answered from the listing as it is: a key press does not wait for the index.
        """
        return await anyio.to_thread.run_sync(self._find, text, touched)

    def _find(self, text: str, touched: Sequence[str]) -> list[str]:
        listing = self._access.reader(self._project).files().text
        finders = self._access.finders
        known = finders.get(self._project)
        if known is None or known[0] != listing:
            known = finders[self._project] = (listing, PathFinder(listing))
        return known[1].find(text, touched)

    async def symbols(self, name: str) -> list[Symbol]:
        """The definitions by a name, exact ones first; `Cart.total` is the one in a `Cart`."""
        return await self._ask(lambda index: index.symbols(name))

    async def outline(self, path: str) -> list[Definition]:
        """What a file defines, in its order.

        Raises:
            UsageError: it is no source file of the project.
        """
        found = await self._ask(lambda index: index.outline(path))
        if found is None:
            raise UsageError(f"{path!r} is no source file in the index of this project")
        return found

    async def map(self, request: str = "", focus: Sequence[str] = (), tokens: int = 1024) -> str:
        """The files that a request is about, best first, with the signatures that fit into so many
        tokens.

        `focus` are files of the conversation: they are left out, and their neighbours come up.

        Raises:
            UsageError: so many tokens are not possible.
        """
        return await self.map_of(MapRequest(text=request, focus=tuple(focus), tokens=tokens))

    async def map_of(self, request: MapRequest) -> str:
        """The same, with everything that `weft map` takes."""
        if not 0 < request.tokens <= MOST_TOKENS:
            raise UsageError(f"a map has 1 to {MOST_TOKENS:,} tokens, not {request.tokens:,}")
        return await self._ask(request.answer, request.history)

    async def status(self) -> IndexStatus:
        """What the index holds at this moment; nothing is read for it."""
        return await anyio.to_thread.run_sync(self._access.reader(self._project).status)

    def close(self) -> None:
        """Let go of the index, where there is no application that does."""
        self._access.close()

    async def _ask(self, question: Callable[[ProjectIndex], _T], history: Path | None = None) -> _T:
        index = await self._access.ready(self._project, history)
        return await anyio.to_thread.run_sync(question, index)


def open_index(project: str, places: WeftPaths, environ: Mapping[str, str]) -> AppIndex:
    """The index of a project without an application around it; the caller closes it.

    Raises:
        UsageError: the setting `repo.index` is off, or settings cannot be read.
    """
    if not _is_on(project, places, environ):
        raise UsageError(IS_OFF)
    return AppIndex(project, IndexAccess(places, environ))


def _is_on(project: str, places: WeftPaths, environ: Mapping[str, str]) -> bool:
    files: Mapping[str, bytes] = {}
    if os.path.lexists(f"{project}/.weft"):
        from weft.project.trust import look  # few projects have settings

        files = look(project).files
    # A project may switch its index off whether it is trusted or not.
    config = load_config(user=places.config, project=project, environ=environ, files=files)
    return bool(config.get("repo.index"))


def listed_paths(project: str, places: WeftPaths) -> str:
    """The paths of a project's files as its index has them, with a NUL behind each; blocks."""
    index = ProjectIndex(project, places.index_of(project))
    try:
        return index.files().text
    finally:
        index.close()


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
    if not path.startswith(f"{project.rstrip('/')}/") or not _is_in_repository(project):
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
