"""Operations that follow something: the events of a session, or a topic that is no session's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, nullcontext
from typing import Literal

import anyio

from weft.errors import UsageError, WeftError
from weft.server.operation import CLIENT_HEADER, ApiCall, ApiOperation, QueryFields
from weft.server.relay import check_cursor
from weft.server.sse import EventResponse, piece_of

END_SECONDS = 1.0
"""How long the reason of a session's end may take; one in another process has none."""
CURSOR_HEADER = "last-event-id"


class CursorQuery(QueryFields, frozen=True, kw_only=True):
    """Where to go on: the `id` of the last event that was taken in; without it, from now on."""

    after: int | None = None


class TopicQuery(QueryFields, frozen=True, kw_only=True):
    """What to follow."""

    topic: Literal["sessions", "repo:updates"] = "sessions"


async def _events(call: ApiCall) -> EventResponse:
    after = cursor_of(call)
    app, session = await call.parts.projects.session(call.path["id"])
    await call.session()  # so that a client that is not known here learns it
    await check_cursor(app, session, after)
    client = call.request.headers.get(CLIENT_HEADER)

    async def pieces(lost: Callable[[], None]) -> AsyncIterator[bytes]:
        why = ""
        with nullcontext() if client is None else call.parts.clients.following(client):
            ticks = call.parts.relays.follow_session(app, session, after, lost)
            try:
                async with aclosing(ticks):
                    async for piece in (tick.sse async for tick in ticks if tick.events):
                        yield piece
            except WeftError:
                return  # it cannot be reached now: the reader comes back, and is told why
        if not call.parts.relays.is_closing.is_set():
            with anyio.move_on_after(END_SECONDS):
                why = await session.wait()
            yield piece_of({"kind": "closed", "session_id": session.id, "why": why}, event="closed")

    return EventResponse(pieces, call.parts.relays.is_closing)


def cursor_of(call: ApiCall) -> int | None:
    """The cursor that a reader comes back with.

    Raises:
        UsageError: it is none.
    """
    kept = call.request.headers.get(CURSOR_HEADER)
    after: int | None = call.query.after
    # What the reader has seen since counts more than the address that it began with.
    if kept:
        if not (kept.isascii() and kept.isdigit() and len(kept) < 19):
            raise UsageError(f"Last-Event-ID is the id of an event, not {kept!r:.40}")
        return int(kept)
    if after is not None and not 0 <= after < 2**63:
        raise UsageError(f"after is the id of an event, not {after}")
    return after


async def _topic(call: ApiCall) -> EventResponse:
    app = await call.app()
    changes = await app.subscribe(call.query.topic)

    async def pieces(lost: Callable[[], None]) -> AsyncIterator[bytes]:
        del lost  # what is not taken waits together, in one event
        async for change in changes:
            yield piece_of(change)

    return EventResponse(pieces, call.parts.relays.is_closing)


EVENT_STREAMS: tuple[ApiOperation, ...] = (
    ApiOperation(
        method="GET",
        path="/sessions/{id}/events",
        name="subscribe",
        says="The events of a session as server-sent events, from a cursor on.",
        run=_events,
        query=CursorQuery,
        answer=str,
        media_type="text/event-stream",
        streams=True,
        calls=("session.subscribe", "session.join", "session.unsubscribe"),
    ),
    ApiOperation(
        method="GET",
        path="/events",
        name="subscribe_topic",
        says="What changes in the list of sessions, or in the project's files.",
        run=_topic,
        query=TopicQuery,
        answer=str,
        media_type="text/event-stream",
        streams=True,
        calls=("app.subscribe",),
    ),
)
