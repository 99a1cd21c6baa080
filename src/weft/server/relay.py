"""The events of sessions for readers over HTTP, through the relay of `runtime/`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

from weft.api import Session, Subscription
from weft.app import App
from weft.errors import UsageError
from weft.runtime import EncodedEvents, JoinedSource, RelayHub


class SessionEvents:
    """A session of an application, as a relay reads it."""

    def __init__(self, app: App, session: Session) -> None:
        self._app = app
        self._session = session
        self.session_id = session.id

    @property
    def lives_here(self) -> bool:
        """False for one that another process has."""
        return self._app.host.runs_here(self.session_id)

    async def join(self, after: int | None = None) -> JoinedSource:
        """What is in flight and open, and the events that go on from there or from a cursor."""
        joined = await self._session.join(after)
        status = await self._session.get_status()
        return JoinedSource(joined.drafts, joined.requests, status, joined.events)

    async def stored(self, after: int) -> Subscription:
        """The facts after a cursor."""
        return await self._session.subscribe(after=after, live=False)


async def check_cursor(app: App, session: Session, after: int | None) -> None:
    """Refuse a cursor that the session has not come to: events up to there would be taken for known
    ones.

    Raises:
        UsageError: it is another session's, or of a log that was put back since.
    """
    if not after:
        return
    async with app.host.registry.reading(session.id) as store:
        last = await store.last_seq(session.id)
    if after > last:
        raise UsageError(
            f"this session has no event {after} yet, its last is {last}: read it from the beginning"
        )


class ServerRelays(RelayHub):
    """The relays of a server."""

    def follow_session(
        self, app: App, session: Session, after: int | None, lost: Callable[[], None]
    ) -> AsyncGenerator[EncodedEvents]:
        """What a reader of a session is sent; see `RelayHub.follow`."""
        return self.follow(SessionEvents(app, session), after, lost)
