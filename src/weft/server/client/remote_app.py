"""A server as an application: `weft.connect`."""

from __future__ import annotations

import os
from typing import Any, Final, Self

import anyio
import anyio.to_thread
import msgspec

from weft.api import ExportFormat, SavedSessions, SessionInfo, SessionRecord
from weft.config import places
from weft.errors import AmbiguousId, UsageError
from weft.ids import SessionId
from weft.server.bodies import SessionList
from weft.server.client.remote_session import RemoteSession
from weft.server.client.server_link import ServerLink
from weft.server.routes.sessions import MOST_ROWS
from weft.server.server_record import running_servers, unix_name
from weft.transport import is_loopback, target

TOKEN_VARIABLE: Final = "WEFT_SERVER_TOKEN"
UNIX: Final = "unix:"


def connect(url: str = "http://127.0.0.1:7717", token: str | None = None) -> RemoteApp:
    """A server's sessions, as an async context manager: `weft.open` for those of another process or
    machine.

    `url` is `http://…`, `https://…` or `unix:` and the path of a socket.  `token` is by default
    that of a server of this user on this machine, or what `WEFT_SERVER_TOKEN` has.

    Raises:
        UsageError: it is no such address, or there is no token for it.
    """
    if url.startswith(UNIX):
        path = os.path.abspath(os.path.expanduser(url.removeprefix(UNIX)))
        return RemoteApp(ServerLink("http://localhost", token or _own_token(unix_name(path)), path))
    target(url)  # refused without a token for it, too
    return RemoteApp(ServerLink(url, token or _token_for(url)))


def _token_for(url: str) -> str:
    """The token of a server of this user; one on another machine has its own, whatever its port."""
    where = target(url)
    if given := os.environ.get(TOKEN_VARIABLE):
        return given
    servers = running_servers(places(os.environ).servers)
    if not is_loopback(where.host) and url.rstrip("/") not in [each.url for each in servers]:
        raise UsageError(
            f"there is no token for {url}: hand it over, or set {TOKEN_VARIABLE} to it"
        )
    return _own_token(str(where.port))


def _own_token(name: str) -> str:
    if given := os.environ.get(TOKEN_VARIABLE):
        return given
    file = places(os.environ).servers / f"{name}.token"
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"there is no token in {file}: start `weft serve`, or hand one over"
        ) from error


class RemoteApp:
    """An application in a server."""

    def __init__(self, link: ServerLink) -> None:
        self._link = link
        self.sessions = RemoteSessions(link)
        """Its sessions."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; sessions and turns go on in the server."""
        await self._link.aclose()

    async def call(
        self,
        operation: str,
        path: dict[str, str] | None = None,
        *,
        body: dict[str, Any] | None = None,
        query: dict[str, Any] | None = None,
    ) -> Any:
        """Any operation of the server by its `operationId`; the answer has its own type.

        Raises:
            WeftError: what the server raised.
        """
        return await self._link.call(operation, path, body=body, query=query)


class RemoteSessions:
    """`app.sessions` of a server: the calls of `SessionManager`."""

    def __init__(self, link: ServerLink) -> None:
        self._link = link

    def _session(self, view: Any) -> RemoteSession:
        return RemoteSession(self._link, view.id)

    async def start_session(self, *, input_id: str | None = None, **settings: Any) -> RemoteSession:
        """Start a session, or resume the one with `session_id`; as
        `SessionManager.start_session`, but for what cannot travel.

        Raises:
            UsageError: an object was given where the server needs a name.
        """
        for name in ("tools", "model", "store"):
            given = settings.get(name)
            names = given if isinstance(given, list | tuple) else (given,)
            if (name == "store" and given is not None) or not all(map(_is_name, names)):
                raise UsageError(f"{name}= cannot travel to a server: it takes names alone")
        return self._session(
            await self._link.call("start_session", body={"input_id": input_id, **settings})
        )

    async def get(self, session_id: str) -> RemoteSession:
        """The session of this id or unique prefix.

        Raises:
            SessionNotFound, AmbiguousId: no session, or several, have it.
        """
        return self._session(await self._link.call("editor_snapshot", {"id": session_id}))

    async def find_session(self, session_id: str) -> RemoteSession | None:
        """The session of this id or unique prefix that runs in the server; None when none runs.

        Raises:
            AmbiguousId: several have it.
        """
        running = [each.id for each in await self.list_active()]
        found = [
            each
            for each in running
            if each.removeprefix("ses_").startswith(session_id.removeprefix("ses_"))
        ]
        if session_id in running:
            found = [SessionId(session_id)]
        if len(found) > 1:
            raise AmbiguousId(session_id, tuple(found))
        return RemoteSession(self._link, found[0]) if found else None

    async def resolve_id(self, session_id: str) -> SessionId:
        """The whole id for an id or a unique prefix.

        Raises:
            SessionNotFound, AmbiguousId: no session, or several, have it.
        """
        return (await self.read_session(session_id)).row.id

    async def read_session(self, session_id: str) -> SessionRecord:
        """Messages and metadata of a stored session, without starting anything."""
        record: SessionRecord = await self._link.call("read_session", {"id": session_id})
        return record

    async def list_active(self) -> list[SessionInfo]:
        """The sessions that run in the server."""
        found: list[SessionInfo] = await self._link.call("list_active")
        return found

    async def list_saved(
        self,
        project_path: str | os.PathLike[str] | None = None,
        query: str | None = None,
        limit: int = 100,
        *,
        archived: bool = False,
        after: str | None = None,
    ) -> SavedSessions:
        """Stored sessions, last active first; `after` goes on behind an earlier page.

        `project_path` is a folder of the server's machine.
        """
        asked: dict[str, Any] = {"q": query}
        if project_path is not None:
            body = {"path": os.fspath(project_path)}
            asked["project"] = (await self._link.call("open_project", body=body)).id
        if archived:
            asked["archived"] = "true"
        page, working = SavedSessions(), set[SessionId]()
        page.next = after
        while len(page) < limit:
            most = min(limit - len(page), MOST_ROWS)
            query_of = {**asked, "limit": most, "after": page.next}
            found: SessionList = await self._link.call("list_saved", query=query_of)
            page.extend(found.rows)
            page.next = found.next
            working.update(map(SessionId, found.working))
            if found.next is None:
                break
        page.working = frozenset(working)
        return page

    async def fork_session(
        self,
        session_id: str,
        at: str | int | None = None,
        title: str | None = None,
        *,
        input_id: str | None = None,
    ) -> RemoteSession:
        """A new session that shares the history up to and including `at`."""
        body = {"at": at, "title": title, "input_id": input_id}
        return self._session(await self._link.call("fork_session", {"id": session_id}, body=body))

    async def rename_session(
        self, session_id: str, title: str, *, input_id: str | None = None
    ) -> None:
        """Give a session another title."""
        body = {"title": title, "input_id": input_id}
        await self._link.call("change_session", {"id": session_id}, body=body)

    async def archive_session(
        self, session_id: str, archived: bool = True, *, input_id: str | None = None
    ) -> None:
        """Leave a session out of lists, or show it again."""
        body = {"archived": archived, "input_id": input_id}
        await self._link.call("change_session", {"id": session_id}, body=body)

    async def stop_session(self, session_id: str) -> None:
        """Stop a session; its record stays."""
        await self._link.call("stop_session", {"id": session_id})

    async def delete_session(self, session_id: str, *, input_id: str | None = None) -> None:
        """Delete a session for good."""
        await self._link.call("delete_session", {"id": session_id}, body={"input_id": input_id})

    async def export_session(
        self,
        session_id: str,
        format: ExportFormat = "json",
        path: str | os.PathLike[str] | None = None,
        *,
        files: bool = False,
    ) -> str:
        """The whole conversation as text; with `path` also written there, on this machine."""
        asked = {"format": format, **({"files": "true"} if files else {})}
        text: str = await self._link.call("export_session", {"id": session_id}, query=asked)
        if path is not None:
            await _write_private(os.fspath(path), text)
        return text

    async def import_session(
        self, path: str | os.PathLike[str], *, input_id: str | None = None
    ) -> RemoteImport:
        """A new session with the conversation of an export, a file of this machine.

        Raises:
            UsageError: the file cannot be read, or is no export.
        """
        try:
            content = await anyio.Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read {os.fspath(path)}: {error}") from error
        made = await self._link.call(
            "import_session", body={"content": content, "input_id": input_id}
        )
        return RemoteImport(session=self._session(made.session), dropped=made.dropped)

    async def unload_idle(self, older_than_seconds: float) -> int:
        """The server unloads idle sessions itself.

        Raises:
            UsageError: always.
        """
        raise UsageError("unload_idle() is the server's own: it unloads idle sessions itself")

    async def aclose(self) -> None:
        """Close the connections; sessions go on in the server."""
        await self._link.aclose()


class RemoteImport(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an import; see `ImportReport`."""

    session: RemoteSession
    dropped: dict[str, int]


def _is_name(value: object) -> bool:
    return value is None or isinstance(value, str)


async def _write_private(path: str, text: str) -> None:
    def write() -> None:
        with open(path, "w", encoding="utf-8", opener=_private) as file:
            file.write(text)

    try:
        await anyio.to_thread.run_sync(write)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
