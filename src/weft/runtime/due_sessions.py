"""Sessions whose wait is over and that no process has at work: opened here, and gone on with.

A turn that waits is a state of the log, and the store knows when it is due (`Store.due`).  So the
process that began the wait need not be there any more: the first that asks the store takes the
session over, and the lease sees to it that no second one does.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import islice
from typing import Final

from weft.clock import Clock
from weft.config.project_ids import KnownProject
from weft.errors import WeftError
from weft.ids import SessionId
from weft.runtime.ports.local import LocalPort
from weft.runtime.registry import SessionRegistry
from weft.session import GrantedPermissions, SessionPort, WakeTurn
from weft.store import Lease, SessionRow, Store

logger = logging.getLogger(__name__)

AT_ONCE: Final = 8
"""Sessions that are woken by one look: each may ask a model at once."""
DUE_ROWS: Final = 100
"""Rows that one look asks for, besides those that are left alone or at work."""
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
        self._at_work = 0
        """Sessions that go on by themselves after a crash, and so stay due while they are at work
        anywhere: the last look found so many.
        """
        self._failed: dict[SessionId, float] = {}
        """Those that could not be woken, and when to try again."""

    async def wake(self) -> list[SessionPort]:
        """Go on with the turns that are due; returns whose they are."""
        now = self._clock.now()
        self._failed = {each: again for each, again in self._failed.items() if again > now}
        woken: list[SessionPort] = []
        at_work, self._at_work = self._at_work, 0
        for store in self._registry.stores.in_use:
            # Of this project alone: its rules, hooks and settings are those that are loaded here.
            # Sessions that failed stay due: each takes a place within the limit.
            rows = iter(await self._due_in(store, now, DUE_ROWS + len(self._failed) + at_work))
            while batch := list(islice(rows, AT_ONCE - len(woken))):
                ports = await self._open(store, batch)
                woken += [port for port in ports if await self._wake(port)]
        return woken

    async def wake_taken(self, lease: Lease) -> list[SessionPort]:
        """Go on with a turn that is due of a session whose lease was taken for it.

        Raises:
            WeftError: it cannot be opened; its lease is given back.
        """
        registry, session_id = self._registry, SessionId(lease.stream)
        is_new = session_id not in registry.granted
        registry.granted.setdefault(session_id, GrantedPermissions(is_woken=True))
        try:
            port = await registry.open_taken(registry.stores.own, lease)
        finally:
            if is_new:  # taken along by the session; left where it could not be opened
                registry.granted.pop(session_id, None)
        return [port] if await self._wake(port) else []

    async def wake_open(self, session_id: SessionId) -> list[SessionPort]:
        """Go on with what is due of a session that is open here."""
        port, again = self._registry.running(session_id), self._failed.get(session_id, 0.0)
        if port is None or again > self._clock.now() or not self._is_ready(port):
            return []
        return [port] if await self._wake(port) else []

    async def _open(self, store: Store, rows: Sequence[SessionRow]) -> list[SessionPort]:
        """Those of the sessions that are open here and at rest, or that no process has."""
        ports: list[SessionPort] = []
        free: list[SessionId] = []
        for row in rows:
            if self._registry.is_closing or row.id in self._failed:
                continue
            port = self._registry.running(row.id)
            # No lease is asked for then.
            if port is not None and self._is_ready(port):
                ports.append(port)
            elif port is None and await store.lease_of(row.id) is None:
                free.append(row.id)
            else:
                self._at_work += 1
        return [*ports, *await self._open_free(store, free)]

    async def _open_free(self, store: Store, free: Sequence[SessionId]) -> list[SessionPort]:
        """Open sessions that no user has opened here: they have no mode but the one that asks."""
        granted = self._registry.granted
        new = [each for each in free if each not in granted]
        granted.update(dict.fromkeys(new, GrantedPermissions(is_woken=True)))
        try:
            found = await self._registry.open_free(store, free) if free else {}
        except WeftError as error:
            # One alone (a newer program has written it, say) must not keep the others asleep: each
            # is tried again by itself.
            found = await self._one_by_one(store, free, error)
        finally:
            # Taken along by the sessions; left where one could not be opened.
            for each in new:
                granted.pop(each, None)
        opened: list[SessionPort] = []
        for session_id, result in found.items():
            if isinstance(result, WeftError):
                self._leave_alone(session_id, result)
            elif isinstance(result, LocalPort):
                opened.append(result)
        return opened

    async def _one_by_one(
        self, store: Store, free: Sequence[SessionId], error: WeftError
    ) -> dict[SessionId, SessionPort | WeftError]:
        if len(free) == 1:
            return {free[0]: error}
        found: dict[SessionId, SessionPort | WeftError] = {}
        for each in free:
            try:
                found |= await self._registry.open_free(store, [each])
            except WeftError as failure:
                found[each] = failure
        return found

    def _is_ready(self, port: SessionPort) -> bool:
        """Whether there may be something to do for a session that is open here."""
        # A process that has it at work wakes its turn itself, in time, and queues the round that
        # is due.
        return isinstance(port, LocalPort) and (not port.actor.is_busy or self._has_round(port))

    def _has_round(self, port: SessionPort) -> bool:
        """Whether a scheduled round is due that does not wait behind the turn already."""
        queue, overdue = port.state.queue.entries, port.state.schedules.overdue(self._clock.now())
        return any(each.entry_id not in queue for each in overdue)

    async def _wake(self, port: SessionPort) -> bool:
        try:
            woken = await port.call(WakeTurn())
            if not woken and self._has_round(port):
                # What was given to it was not sealed here: only the user can have it begin.
                self._failed[port.session_id] = self._clock.now() + AGAIN_SECONDS
            return woken
        except WeftError as error:
            self._leave_alone(port.session_id, error)
            return False

    def _leave_alone(self, session_id: SessionId, error: WeftError) -> None:
        """One that cannot be opened (its project is gone, its log is damaged) must neither keep the
        others asleep nor be tried every few seconds.
        """
        self._failed[session_id] = self._clock.now() + AGAIN_SECONDS
        about = {"session": session_id}
        logger.error("a session that is due could not be woken", exc_info=error, extra=about)

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
