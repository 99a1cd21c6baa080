"""A server as an application: `weft.connect`."""

from __future__ import annotations

import os
from typing import Any, Final, Self

from weft.api import ExportFormat, SavedSessions, SessionInfo, SessionRecord
from weft.config import places
from weft.errors import UsageError
from weft.ids import SessionId
from weft.server.bodies import SessionList
from weft.server.client.remote_session import RemoteSession
from weft.server.client.server_link import ServerLink
from weft.transport import target

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
        return RemoteApp(ServerLink("http://localhost", token or _own_token("unix"), path))
    where = target(url)
    return RemoteApp(ServerLink(url, token or _own_token(str(where.port))))


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
    """`app.sessions` of a server."""

    def __init__(self, link: ServerLink) -> None:
        self._link = link

    async def start_session(self, *, input_id: str | None = None, **settings: Any) -> RemoteSession:
        """Start a session, or resume the one with `session_id`; as
        `SessionManager.start_session`, but for what cannot travel.
        """
        view = await self._link.call("start_session", body={"input_id": input_id, **settings})
        return RemoteSession(self._link, view.id)

    async def get(self, session_id: str) -> RemoteSession:
        """The session of this id or unique prefix.

        Raises:
            SessionNotFound, AmbiguousId: no session, or several, have it.
        """
        view = await self._link.call("editor_snapshot", {"id": session_id})
        return RemoteSession(self._link, view.id)

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
        query: str | None = None,
        limit: int = 100,
        *,
        archived: bool = False,
        after: str | None = None,
    ) -> SavedSessions:
        """Stored sessions, last active first; `after` goes on behind an earlier page."""
        asked = {"q": query, "limit": limit, "after": after}
        if archived:
            asked["archived"] = "true"
        found: SessionList = await self._link.call("list_saved", query=asked)
        page = SavedSessions(found.rows)
        page.next = found.next
        page.working = frozenset(map(SessionId, found.working))
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
        view = await self._link.call("fork_session", {"id": session_id}, body=body)
        return RemoteSession(self._link, view.id)

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

    async def export_session(self, session_id: str, format: ExportFormat = "json") -> str:
        """The whole conversation as text."""
        text: str = await self._link.call(
            "export_session", {"id": session_id}, query={"format": format}
        )
        return text
