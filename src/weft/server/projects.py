"""The projects of one server: an application for each, opened when it is first asked for.

Each project has settings, rules, trust and an index of its own, so each has an `App` of its own;
all of them keep their sessions in the same store.  A session is always reached through the
application of its project.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

import anyio
import msgspec

from weft.api import Session, SessionRow
from weft.app import App
from weft.errors import SessionNotFound, StoreUnavailable, UsageError
from weft.ids import SessionId
from weft.server.errors import RequestRefusal
from weft.sha256 import sha256

logger = logging.getLogger(__name__)

MAIN = "main"
"""The project that the server was started in, by another name."""
LOOKED_AT = 1_000
"""Sessions among which projects are looked for."""


class ProjectInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A project that the server knows."""

    id: str
    """Names it in paths; it follows from the folder's path."""
    path: str
    name: str
    is_main: bool = False
    is_open: bool = False


def project_key(path: str) -> str:
    """The name of a project in the paths of requests."""
    return sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:16]


def _real(path: str) -> str:
    return os.path.realpath(path)


async def _is_folder(path: str) -> bool:
    """False, too, for one that this server's user may not look at."""
    try:
        return await anyio.Path(path).is_dir()
    except OSError:
        return False


def _expanded(path: str) -> str:
    return os.path.expanduser(path)


class ServedProjects:
    """The applications of a server, by project."""

    def __init__(self, main: App, open_other: Callable[[str], App]) -> None:
        """`main` is open; `open_other` makes the application of another folder, not yet open."""
        self.main = main
        self._open_other = open_other
        self._apps: dict[str, App] = {project_key(main.project_path): main}
        self._lock = anyio.Lock()
        self._homes: dict[SessionId, App] = {}
        self.is_closing = False
        self._host = ""

    def join_cluster(self, address: str) -> None:
        """These are hosted by one of several servers, which is reached there.  Its gateway reaches
        the sessions of the others: none is opened here for reading.
        """
        self._host = address
        for app in self.apps:
            self._join(app)

    def _join(self, app: App) -> None:
        if self._host:
            app.host.registry.reaches_owners = False
            app.host.registry.host = self._host

    @property
    def apps(self) -> list[App]:
        """Those that are open, the main one first."""
        return list(self._apps.values())

    async def at(self, path: str) -> App:
        """The application of a folder.

        Raises:
            UsageError: there is no such folder.
        """
        if self.is_closing:
            raise StoreUnavailable("the server is closing; try again when it is back")
        try:
            key = project_key(path)
            is_folder = key in self._apps or await anyio.Path(path).is_dir()
        except (ValueError, OSError):  # a zero byte, half a letter, or too long a name
            is_folder = False
        if not is_folder:
            raise UsageError(f"there is no folder {path!r:.200}")
        if key in self._apps:
            return self._apps[key]
        async with self._lock:
            if key not in self._apps:
                app = self._open_other(_real(path))
                await app.__aenter__()
                self._join(app)
                self._apps[key] = app
        return self._apps[key]

    async def named(self, key: str) -> App:
        """The application of a project by its name in paths.

        Raises:
            RequestRefusal: no project that is known has it.
        """
        if key == MAIN:
            return self.main
        if key in self._apps:
            return self._apps[key]
        for info in await self.known():
            if info.id == key:
                return await self.at(info.path)
        raise RequestRefusal(
            404, "project", f"no project {key!r:.80} is known; GET /api/projects lists them"
        )

    async def known(self) -> list[ProjectInfo]:
        """The projects that are open, and those of stored sessions, newest first."""
        rows = await self.main.sessions.list_saved(limit=LOOKED_AT)
        paths = [app.project_path for app in self.apps]
        paths += [row.project_path for row in rows if row.project_path]
        found: dict[str, ProjectInfo] = {}
        for path in paths:
            key = project_key(path)
            if key not in found and (key in self._apps or await anyio.Path(path).is_dir()):
                found[key] = ProjectInfo(
                    id=key,
                    path=path,
                    name=os.path.basename(path) or path,
                    is_main=path == self.main.project_path,
                    is_open=key in self._apps,
                )
        return list(found.values())

    async def can_have(self, row: SessionRow) -> bool:
        """Whether a session's files are on this host, or can be brought here."""
        if not self._host:
            return await _is_folder(row.project_path)
        known = await self.main.host.registry.state_of(row.id)
        return known.files.saved is not None or await _is_folder(row.project_path)

    async def is_at_home(self, row: SessionRow) -> bool:
        """Whether a session's files are where lists say that they are."""
        if not self._host:
            return True
        registry = self.main.host.registry
        return await registry.folder_here(row.id, makes=False) == row.project_path

    @property
    def is_clustered(self) -> bool:
        """Whether this is one of several servers, which may have sessions that are not at home."""
        return bool(self._host)

    async def with_files_of(self, session_id: SessionId) -> App:
        """The application of the folder that a session has here; its files are brought there.

        Raises:
            UsageError: they cannot be, or the folder cannot be opened as a project.
        """
        here = await self.main.host.registry.folder_here(session_id, makes=True)
        return await self.at(here or "")

    async def session(self, session_id: str) -> tuple[App, Session]:
        """A session by its id or a unique prefix, and the application that it belongs to.

        Raises:
            SessionNotFound, AmbiguousId: no session, or several, have it.
        """
        app = await self.home_of(session_id, opens=True)
        return app, await app.sessions.get(session_id)

    async def for_start(self, session_id: str | None, folder: str | None) -> App:
        """The application that a session is started or resumed in."""
        if session_id is not None:
            try:
                return await self.home_of(session_id, opens=True)
            except SessionNotFound:
                pass  # a new one, under an id that the caller chose
        if folder is None:
            return self.main
        path = _expanded(folder)
        if not os.path.isabs(path):
            raise UsageError(f"name a folder by its whole path, not {folder!r:.200}")
        return await self.at(path)

    async def home_of(self, session_id: str, *, opens: bool = False) -> App:
        """The application that a session belongs to; nothing is started.  `opens`: it is to be
        opened, so that its files are brought here from where it was.
        """
        if self.is_closing:
            raise StoreUnavailable("the server is closing; try again when it is back")
        known = self._homes.get(SessionId(session_id))
        if known is not None:
            return known
        for app in self.apps:
            if await app.sessions.find_session(session_id) is not None:
                return app
        resolved = await self.main.sessions.resolve_id(session_id)
        row = await self.main.store.row(resolved)
        if self._host:  # where it was last is for the log to say, each time
            return await self._home_at_host(resolved, row, makes=opens)
        self._homes[resolved] = await self._home(row)
        return self._homes[resolved]

    async def _home_at_host(
        self, session_id: SessionId, row: SessionRow | None, *, makes: bool
    ) -> App:
        if row is None:
            return self.main
        here = await self.main.host.registry.folder_here(session_id, makes=makes)
        return self.main if here is None else await self._home(row, here)

    async def _home(self, row: SessionRow | None, here: str = "") -> App:
        if row is None or not row.project_path:
            return self.main
        try:
            return await self.at(here or row.project_path)
        except UsageError:
            # Its folder is gone, or its settings are not right: it can be read all the same.
            logger.warning("a project could not be opened", exc_info=True)
            return self.main

    async def aclose(self) -> None:
        """Close them all; turns that run are suspended, and can go on."""
        self.is_closing = True
        others = [app for app in self.apps if app is not self.main]
        shares = any(app.store is self.main.store for app in others)
        async with self._lock:
            async with anyio.create_task_group() as group:
                for app in others if shares else self.apps:
                    group.start_soon(app.aclose)
            if shares:
                await self.main.aclose()  # last: the store of all is its own

    async def suspend(self) -> None:
        """Let all sessions go; their turns are suspended, and go on where they are opened next."""
        self.is_closing = True
        async with self._lock, anyio.create_task_group() as group:
            for app in self.apps:
                group.start_soon(app.sessions.aclose)
