"""Sessions whose wait is over and that no process has at work: opened here, and gone on with.

A turn that waits is a state of the log, and the store knows when it is due (`Store.due`).  So the
process that began the wait need not be there any more: the first that asks the store takes the
session over, and the lease sees to it that no second one does.
"""

from __future__ import annotations

import logging
from typing import Final

from weft.clock import Clock
from weft.config.project_ids import KnownProject
from weft.errors import WeftError
from weft.ids import SessionId
from weft.runtime.ports.local import LocalPort
from weft.runtime.registry import SessionRegistry
from weft.session import GrantedPermissions, SessionPort, WakeTurn
from weft.store import SessionRow, Store

logger = logging.getLogger(__name__)

AT_ONCE: Final = 8
"""Sessions that are woken by one look: each may ask a model at once."""
DUE_ROWS: Final = 100
"""Rows that one look asks for, besides those that are left alone."""
AGAIN_SECONDS: Final = 600.0
"""How long a session is left alone that could not be woken."""


class DueSessions:
    """Wakes what is due in the stores of one application."""

    def __init__(self, registry: SessionRegistry, clock: Clock, project_path: str) -> None:
        self._registry = registry
        self._clock = clock
        self._project_path = project_path
        self._known: KnownProject | None = None
        """What is written down of the project: its id, and where it was before."""
        self._of_others = 0
        """Sessions of other projects that stay due in its folders, and take places in a look."""
        self._failed: dict[SessionId, float] = {}
        """Those that could not be woken, and when to try again."""

    async def wake(self) -> list[SessionPort]:
        """Go on with the turns that are due; returns whose they are."""
        now = self._clock.now()
        self._failed = {each: again for each, again in self._failed.items() if again > now}
        woken: list[SessionPort] = []
        for store in self._registry.stores.in_use:
            # Of this project alone: its rules, hooks and settings are those that are loaded here.
            # Sessions that failed stay due: each takes a place within the limit.
            limit = DUE_ROWS + len(self._failed)
            for row in await self._due_in(store, now, limit):
                port = await self._woke(store, row) if len(woken) < AT_ONCE else None
                if port is not None:
                    woken.append(port)
        return woken

    async def _due_in(self, store: Store, now: float, limit: int) -> list[SessionRow]:
        """What is due of this project, wherever that was when the wait began."""
        # Asked again until it has an id, which comes with its first session.
        if self._known is None:
            self._known = await self._registry.project_known(self._project_path)
        known = self._known
        found: list[SessionRow] = []
        for path in (self._project_path, *(known.former if known is not None else ())):
            rows = await store.due(now, project_path=path, limit=limit + self._of_others)
            # Another project may be where this one was, and this one where another was.
            ours = [row for row in rows if known is None or row.project_id in ("", known.id)]
            self._of_others = max(self._of_others, len(rows) - len(ours))
            found += ours
        return found

    async def _woke(self, store: Store, row: SessionRow) -> SessionPort | None:
        if self._registry.is_closing or row.id in self._failed:
            return None
        try:
            return await self._wake(store, row.id)
        except WeftError:
            # One that cannot be opened (its project is gone, its log is damaged) must neither keep
            # the others asleep nor be tried every few seconds.
            self._failed[row.id] = self._clock.now() + AGAIN_SECONDS
            logger.exception("a session that is due could not be woken", extra={"session": row.id})
            return None

    async def _wake(self, store: Store, session_id: SessionId) -> SessionPort | None:
        port = self._registry.running(session_id)
        # A process that has it at work wakes it itself, in time: no lease is asked for then.
        if port is None and await store.lease_of(session_id) is not None:
            return None
        port = port or await self._opened(session_id)
        if not isinstance(port, LocalPort) or port.actor.is_busy:
            return None
        return port if await port.call(WakeTurn()) else None

    async def _opened(self, session_id: SessionId) -> SessionPort:
        """A session that no user has opened here: it has no mode but the one that asks."""
        granted = self._registry.granted
        is_new = session_id not in granted
        granted.setdefault(session_id, GrantedPermissions(is_woken=True))
        try:
            return await self._registry.port(session_id)
        finally:
            # Taken along by the session; left where it could not be opened.
            if is_new:
                granted.pop(session_id, None)
