"""The events of a session for a page, wherever the session is, and through its moves.

A page has one WebSocket for all of its sessions.  Those of other servers are read from there as
server-sent events, and go on as frames; a cursor is kept, so that a move costs a pause and no
event.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import anyio
import msgspec

from weft.errors import ProviderUnavailable, StoreUnavailable, WeftError
from weft.server.cluster.server_hop import HopLost, HopRequest, ServerHop
from weft.server.cluster.session_routes import SessionPlace, SessionRoutes
from weft.server.cluster.takeover import SessionTakeover
from weft.server.relay import check_cursor
from weft.transport import EventParser

if TYPE_CHECKING:  # they import the operations
    from weft.server.server_parts import ServerParts

AGAIN_SECONDS: Final = 0.25
PATIENCE_SECONDS: Final = 30.0
"""How long a session may be with no server before its reader is told."""


class FarEvents:
    """Frames of one session for one page."""

    def __init__(
        self,
        parts: ServerParts,
        routes: SessionRoutes,
        hop: ServerHop,
        takeover: SessionTakeover,
        *,
        role: str,
    ) -> None:
        self._takeover = takeover
        self._parts = parts
        self._routes = routes
        self._hop = hop
        self._role = role
        self._cursor: int | None = None
        self._has_told = False

    async def frames(
        self, name: str, after: int | None, lost: Callable[[], None]
    ) -> AsyncGenerator[str]:
        """Frames until the session ends; `lost` is called when the reader is too slow.

        Raises:
            WeftError: it cannot be followed.
        """
        self._cursor, missed = after, 0.0
        while True:
            place = await self._routes.place_of(name)
            self._has_told = False
            try:
                async with aclosing(self._at(place, lost)) as frames:
                    async for frame in frames:
                        yield frame
                if await self._is_over(place):
                    return
            except HopLost:
                pass
            missed = 0.0 if self._has_told else missed + AGAIN_SECONDS
            if missed > PATIENCE_SECONDS:
                raise StoreUnavailable("the server that has this session does not answer")
            await anyio.sleep(AGAIN_SECONDS)

    async def _is_over(self, place: SessionPlace) -> bool:
        """Whether a session that can be followed no longer at a place is nowhere else."""
        if not place.is_here:
            return False
        return (await self._routes.place_of(place.session_id)).is_here

    def _at(self, place: SessionPlace, lost: Callable[[], None]) -> AsyncGenerator[str]:
        return self._here(place, lost) if place.is_here else self._there(place)

    async def _here(self, place: SessionPlace, lost: Callable[[], None]) -> AsyncGenerator[str]:
        if not await self._takeover.open_here(place):
            raise HopLost
        app, session = await self._parts.projects.session(place.session_id)
        await check_cursor(app, session, self._cursor)
        if self._cursor is None:
            self._cursor = await app.store.last_seq(place.session_id)
            begin: int | None = None
        else:
            begin = self._cursor
        ticks = self._parts.relays.follow_session(app, session, begin, lost)
        async with aclosing(ticks):
            async for tick in ticks:
                for seq, _ in tick.events:
                    self._note(seq)
                yield tick.frame_text

    async def _there(self, place: SessionPlace) -> AsyncGenerator[str]:
        begin = self._cursor
        if begin is None:
            self._cursor = await self._parts.projects.main.store.last_seq(place.session_id)
        request = HopRequest(
            method="GET",
            target=f"/api/sessions/{place.session_id}/events"
            + ("" if begin is None else f"?after={begin}"),
            headers=(("accept", "text/event-stream"),),
            body=b"",
            role=self._role,
            client="",
            hops=0,
        )
        parser = EventParser()
        name = msgspec.json.encode(place.session_id).decode()
        async with aclosing(self._hop.events(request, place)) as pieces:
            async for piece in pieces:
                self._has_told = True
                try:
                    events = parser.feed(piece)
                except ProviderUnavailable as error:
                    raise HopLost from error
                told = [data.decode() for kind, data in events if not kind]
                if told:
                    # After the events are taken apart: the id is that of the last one.
                    self._note(int(parser.last_id) if parser.last_id else None)
                    yield f'{{"s":{name},"e":[{",".join(told)}]}}'
                if any(kind == b"closed" for kind, _ in events):
                    return

    def _note(self, seq: int | None) -> None:
        self._has_told = True
        if seq is not None:
            self._cursor = seq


async def detach_far(
    hop: ServerHop, routes: SessionRoutes, session_id: str, client: str, role: str
) -> None:
    """Detach a page's client from a session of another server; that one may be gone with it."""
    request = HopRequest(
        method="DELETE",
        target=f"/api/sessions/{session_id}/clients/{client}",
        headers=(("content-type", "application/json"),),
        body=b"{}",
        role=role,
        client="",
        hops=0,
    )
    try:
        place = await routes.place_of(session_id)
        if not place.is_here:
            async with aclosing(hop.events(request, place)) as pieces:
                async for _ in pieces:
                    pass
    except (HopLost, WeftError):
        return
