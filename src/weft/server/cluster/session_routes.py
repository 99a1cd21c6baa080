"""The way to a session: which server answers for it.

The one that has it open; else the one that has its lease; else, where none has it, this one, or the
least busy one where this one has more than its share.  A session that works for another is where
that one is: a family lives and moves together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from weft.errors import SessionNotFound
from weft.ids import SessionId

if TYPE_CHECKING:  # it imports the operations
    from weft.server.cluster.host_list import HostList
    from weft.server.projects import ServedProjects

_DEEPEST = 32
"""Agents of agents that are followed up; there are far fewer."""


NEW = SessionId("")
"""A session that has no id yet."""


class SessionPlace(NamedTuple):
    """Where a session is, or is to be."""

    session_id: SessionId
    address: str = ""
    """Empty for this server."""
    process_id: str = ""
    root: SessionId = NEW
    """The session that it works for, in the end: a family is at one place."""

    @property
    def is_here(self) -> bool:
        """Whether this server answers for it."""
        return not self.address


class SessionRoutes:
    """Finds the server of a session."""

    def __init__(self, projects: ServedProjects, hosts: HostList) -> None:
        self._projects = projects
        self._hosts = hosts

    def is_open_here(self, session_id: str) -> bool:
        """Whether a session is open in this server."""
        return any(app.host.runs_here(SessionId(session_id)) for app in self._projects.apps)

    async def place_of(self, given: str, *, was_sent: bool = False) -> SessionPlace:
        """Where a session is; one that another server sent here is taken if none has it.

        Raises:
            SessionNotFound, AmbiguousId: no session, or several, have this id.
            StoreUnavailable: no server takes it now.
        """
        if self.is_open_here(given):
            return SessionPlace(SessionId(given), root=SessionId(given))
        session_id = await self._projects.main.sessions.resolve_id(given)
        family = [session_id, *await self._above(session_id)]
        root = family[-1]
        if any(self.is_open_here(each) for each in family):
            return SessionPlace(session_id, root=root)
        for each in reversed(family):
            lease = await self._projects.main.store.lease_of(each)
            if lease is not None:
                owner = lease.owner
                is_other = owner.process_id != self._hosts.process_id
                # What a command line has, no server can hand on: the caller is told who has it.
                if is_other and owner.address.startswith("http"):
                    return SessionPlace(session_id, owner.address, owner.process_id, root)
                return SessionPlace(session_id, root=root)
        return self.place_for_new(session_id, root, was_sent=was_sent)

    def place_for_new(
        self, session_id: SessionId, root: SessionId = NEW, *, was_sent: bool = False
    ) -> SessionPlace:
        """Where a session goes that no server has."""
        is_taken = was_sent and self._hosts.accepting
        host = None if is_taken else self._hosts.least_loaded()
        if host is None:
            return SessionPlace(session_id, root=root)
        return SessionPlace(session_id, host.address, host.process_id, root)

    async def has_moved(self, place: SessionPlace) -> bool:
        """Whether another server than this place's has the session now, or that one is gone."""
        if not self._hosts.lives(place.process_id):
            return True
        if not place.session_id:
            return False
        lease = await self._projects.main.store.lease_of(place.session_id)
        return lease is not None and lease.owner.process_id != place.process_id

    async def _above(self, session_id: SessionId) -> list[SessionId]:
        """The sessions that it works for, the nearest first."""
        found: list[SessionId] = []
        below = session_id
        store = self._projects.main.store
        while len(found) < _DEEPEST:
            row = await store.row(below)
            if row is None and below is session_id:
                raise SessionNotFound(session_id)
            if row is None or not row.is_child or row.parent_id is None:
                break
            below = row.parent_id
            found.append(below)
        return found
