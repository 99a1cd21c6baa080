"""The session as programs hold it.

A handle is an id and the way to wherever the session lives; it may be kept for as long as one likes.  If the session was unloaded it
comes back with the next call, and if another process owns it, that process is asked.

The class is the four sections of the API, each in a file of its own: `talking`, `reading`, `steering` and `branching`.  They know
`Handle`, the way to the session, and not each other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from weft.api.branches import BranchCalls
from weft.api.handle import HandleHost
from weft.api.inspection import InspectionCalls
from weft.api.messaging import MessagingCalls
from weft.api.model_settings import SettingsCalls
from weft.events import Replaced
from weft.ids import SessionId
from weft.runtime.port import SessionPort
from weft.store import Store


class SessionHandleHost(HandleHost, Protocol):
    """What a whole session needs of the manager it came from: the others, too."""

    async def stop_session(self, session_id: str) -> None: ...

    @property
    def start_session(self) -> Callable[..., Awaitable[Session]]: ...

    async def get(self, session_id: str) -> Session: ...

    def store_of(self, session_id: SessionId) -> Store: ...


class Session(MessagingCalls, InspectionCalls, SettingsCalls, BranchCalls):
    """One session.  Every changing call is durable before it returns; cancelling a call undoes nothing."""

    _host: SessionHandleHost

    def __init__(
        self, session_id: SessionId, host: SessionHandleHost, port: SessionPort | None = None
    ) -> None:
        super().__init__(session_id, host, port)

    async def wait(self) -> str:
        """Wait until the session stops; returns why.  One that has stopped already is not started again for this."""
        last = self._port_now
        return await (last if last is not None else await self._port()).ended()

    async def stop(self) -> None:
        """End the session's life in this process; its record stays."""
        await self._host.stop_session(self.id)

    async def new_session(self, **settings: Any) -> Session:
        """Another session like this one, in the same store; this one stays, and can be resumed."""
        state = (await self._port()).state
        wanted = {
            "model": state.settings.model,
            "project_path": state.about.project_path,
            "store": self._host.store_of(self.id),
        }
        return await self._replaced_by(await self._host.start_session(**{**wanted, **settings}))

    async def load_session(self, session_id: str) -> Session:
        """Go over to a stored session; this one stays, and can be resumed."""
        return await self._replaced_by(await self._host.get(session_id))

    async def _replaced_by(self, other: Session) -> Session:
        """Readers of this handle are told where to go on, and end."""
        for subscription in self._readers():
            subscription.end_with(Replaced(session_id=self.id, by=other.id))
        self._subscriptions = []
        return other
