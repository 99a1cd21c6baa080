"""A session's events for a program in front of a user, also past the end of the process that has
the session.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Literal, Self

from weft.api.session import Session
from weft.events import Event
from weft.runtime.ports.local import LocalPort
from weft.session import Subscription


class SessionEvents:
    """An async iterator that ends when a session of this process does.

    Where another process has the session and goes, it reads on: no event is missed or comes twice.
    """

    def __init__(
        self,
        session: Session,
        events: Subscription,
        *,
        live: bool | Literal["status"],
        moved: Callable[[], None] | None,
    ) -> None:
        """`moved` is called when the session was opened anew."""
        self._moved = moved
        self._session = session
        self._events = events
        self._live = live
        self._is_local = self._looks_local()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._events.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while True:
            try:
                return await anext(self._events)
            except StopAsyncIteration:
                if self._is_local:
                    raise
            await self._move()

    async def _move(self) -> None:
        cursor = self._events.cursor
        await self._events.aclose()
        # Opens the session where it is now: here, or in the process that was quicker.
        self._events = await self._session.subscribe(after=cursor, live=self._live)
        self._is_local = self._looks_local()
        if self._moved is not None:
            self._moved()

    def _looks_local(self) -> bool:
        return isinstance(self._session._host.running(self._session.id), LocalPort)


async def session_events(
    session: Session,
    *,
    after: int | None = None,
    live: bool | Literal["status"] = True,
    moved: Callable[[], None] | None = None,
) -> SessionEvents:
    """Begin to read the events of a session: those after the cursor, or from now on."""
    events = await session.subscribe(after=after, live=live)
    return SessionEvents(session, events, live=live, moved=moved)
