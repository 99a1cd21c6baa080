"""The index of the application's project: files, symbols, maps, as programs ask for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import anyio.to_thread

from weft.app.map_request import MapRequest
from weft.config.paths import WeftPaths
from weft.errors import UsageError
from weft.project.path_finder import PathFinder
from weft.repo.definitions import Definition
from weft.repo.project_index import IndexStatus, ProjectIndex, Symbol
from weft.runtime.index_access import IndexAccess

_T = TypeVar("_T")


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
        request.check()
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
    """The index of a project without an application around it; the caller closes it, and has seen
    that there may be one.
    """
    return AppIndex(project, IndexAccess(places, environ))


def listed_paths(project: str, places: WeftPaths) -> str:
    """The paths of a project's files as its index has them, with a NUL behind each; blocks."""
    index = ProjectIndex(project, places.index_of(project))
    try:
        return index.files().text
    finally:
        index.close()
