"""The WebSocket of a page: all sessions that it shows on one connection.

Up: `{"follow": id, "after": seq}`, `{"drop": id}`, `{"client": id}` (a client that is detached when
this connection ends).  Down: `{"s": id, "e": [event, …]}`, a frame a
tick; `{"s": id, "closed": why}` when a session can be followed no more.  `sessions` in the place of
an id follows the list of sessions.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.abc
import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from weft.errors import WeftError
from weft.server.gate import SUBPROTOCOL, abort_of
from weft.server.relay import check_cursor

if TYPE_CHECKING:
    from weft.server.server_parts import ServerParts

logger = logging.getLogger(__name__)

TOO_SLOW: Final = 4408
BAD_FRAME: Final = 4400
NOT_ALLOWED: Final = 4403
TOO_MANY: Final = 4429
GOING_AWAY: Final = 1012
MOST_FOLLOWED: Final = 200
"""Sessions on one connection."""
CLOSE_SECONDS: Final = 1.0
LIST_TOPIC: Final = "sessions"


class SocketOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a page asks for."""

    follow: str | None = None
    after: int | None = None
    drop: str | None = None
    client: str | None = None


class PageSocket:
    """One connection."""

    def __init__(self, parts: ServerParts, socket: WebSocket) -> None:
        self._parts = parts
        self._socket = socket
        self._followed: dict[str, anyio.CancelScope] = {}
        self._clients: set[str] = set()
        self._far: dict[str, None] = {}
        """Sessions that were followed last and may be another server's, the latest at the end."""
        self._close_code = 0
        self._all: anyio.CancelScope | None = None

    async def run(self) -> None:
        """Serve the page until it goes, is too slow, or the server ends."""
        if self._parts.relays.is_closing.is_set():
            # Not accepted: the page would take the server for back, and send what is refused.
            await self._socket.close(GOING_AWAY)
            return
        await self._socket.accept(SUBPROTOCOL)
        try:
            async with anyio.create_task_group() as group:
                self._all = group.cancel_scope
                group.start_soon(self._watch_server)
                await self._read(group)
                group.cancel_scope.cancel()
        except* (WebSocketDisconnect, OSError):
            pass  # it went while something was sent
        finally:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await self._detach()
        if not self._close_code:
            return
        with anyio.move_on_after(CLOSE_SECONDS) as limit:
            await self._close()
        if limit.cancelled_caught or self._close_code == TOO_SLOW:
            # Closing would wait until it reads what it does not read.
            abort_of(dict(self._socket.scope))

    async def _detach(self) -> None:
        """A page that is gone drives no more, however it went."""
        for client in self._clients:
            held = self._parts.clients.get(client)
            self._parts.clients.drop(client)
            if held is not None:
                with suppress(WeftError):
                    await held.detach()
            elif self._parts.cluster is not None:
                for session_id in self._far:
                    await self._parts.cluster.detach(session_id, client, "driver")

    async def _close(self) -> None:
        # It may be gone before.
        with suppress(WebSocketDisconnect, OSError, RuntimeError):
            await self._socket.close(self._close_code)

    async def _read(self, group: anyio.abc.TaskGroup) -> None:
        while True:
            try:
                text = await self._socket.receive_text()
                order = msgspec.json.decode(text, type=SocketOrder)
            except WebSocketDisconnect:
                return
            except (msgspec.MsgspecError, KeyError, RecursionError):
                self._end(BAD_FRAME)
                return
            if order.drop is not None and order.drop in self._followed:
                self._followed.pop(order.drop).cancel()
            if order.client is not None:
                if self._socket.scope["weft.role"] == "viewer":
                    # What it names is detached with this connection, and it only reads.
                    self._end(NOT_ALLOWED)
                    return
                self._clients = {order.client}
            if order.follow is not None:
                if len(self._followed) >= MOST_FOLLOWED:
                    self._end(TOO_MANY)
                    return
                # Once at a time: to follow anew is to come back with a cursor.
                if order.follow in self._followed:
                    self._followed.pop(order.follow).cancel()
                scope = self._followed[order.follow] = anyio.CancelScope()
                group.start_soon(self._follow, order.follow, order.after, scope)

    async def _follow(self, name: str, after: int | None, scope: anyio.CancelScope) -> None:
        why = "ended"
        with scope:
            try:
                await (self._list() if name == LIST_TOPIC else self._session(name, after))
            except WeftError as error:
                why = str(error)
        if self._followed.get(name) is scope:
            del self._followed[name]
            await self._send(msgspec.json.encode({"s": name, "closed": why}).decode())

    async def _session(self, name: str, after: int | None) -> None:
        if self._parts.cluster is not None:
            self._note_far(name)
            role = self._socket.scope["weft.role"]
            frames = self._parts.cluster.frames(self._parts, name, after, self._too_slow, role=role)
            async with aclosing(frames):
                async for frame in frames:
                    await self._send(frame)
            return
        app, session = await self._parts.projects.session(name)
        await check_cursor(app, session, after)
        ticks = self._parts.relays.follow_session(app, session, after, self._too_slow)
        try:
            async for tick in ticks:
                await self._send(tick.frame_text)
        finally:
            with anyio.CancelScope(shield=True):
                await ticks.aclose()

    def _note_far(self, name: str) -> None:
        self._far.pop(name, None)
        self._far[name] = None
        # What a page names, and drops again, has no end.
        if len(self._far) > MOST_FOLLOWED:
            del self._far[next(iter(self._far))]

    async def _list(self) -> None:
        async for change in await self._parts.projects.main.subscribe(LIST_TOPIC):
            frame: dict[str, Any] = {"s": LIST_TOPIC, "e": [change]}
            await self._send(msgspec.json.encode(frame).decode())

    async def _send(self, frame: str) -> None:
        # No lock: a frame is written whole, and those of two sessions may come in any order.
        await self._socket.send_text(frame)

    def _too_slow(self) -> None:
        self._end(TOO_SLOW)

    async def _watch_server(self) -> None:
        await self._parts.relays.is_closing.wait()
        self._end(GOING_AWAY)

    def _end(self, code: int) -> None:
        self._close_code = self._close_code or code
        if self._all is not None:
            self._all.cancel()


def page_endpoint(parts: ServerParts) -> Callable[[WebSocket], Awaitable[None]]:
    """The endpoint of `/api/ws`."""

    async def serve(socket: WebSocket) -> None:
        await PageSocket(parts, socket).run()

    return serve
