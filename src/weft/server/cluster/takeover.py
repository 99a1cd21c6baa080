"""What a dead or drained server had at work goes on here.

Five times a second each server asks the store what was left.  What it is given is its own from that
moment on: another one that asks gets the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import anyio

from weft.errors import Owned, StoreError, WeftError
from weft.ids import SessionId

if TYPE_CHECKING:  # they import the operations
    from weft.api import SessionRow
    from weft.server.cluster.host_list import HostList
    from weft.server.cluster.session_routes import SessionPlace
    from weft.server.projects import ServedProjects

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.2
AT_ONCE: Final = 50
"""Sessions that are taken at a look: the other servers take some of them, too."""


class SessionTakeover:
    """Takes over what others left."""

    def __init__(self, projects: ServedProjects, hosts: HostList) -> None:
        self._projects = projects
        self._hosts = hosts
        self.taken = 0
        """Sessions that went on here."""

    async def run(self) -> None:
        """Look again and again; never returns."""
        while True:
            await anyio.sleep(LOOK_SECONDS)
            if not self._hosts.accepting:
                continue
            try:
                await self.take_left()
            except StoreError:
                logger.warning("what other servers left cannot be looked up", exc_info=True)

    async def open_here(self, place: SessionPlace) -> bool:
        """Open a session here, and go on with its turn if a dead server had it; False where another
        server was quicker.

        Raises:
            WeftError: it cannot be opened.
        """
        try:
            app = await self._projects.home_of(place.session_id, opens=True)
            if app.host.running(place.session_id) is None:
                await self.take_left(place.root)
            await app.host.port(place.session_id)
        except Owned as owned:
            if owned.address.startswith("http"):
                return False
            raise
        return True

    async def take_left(self, only: SessionId | None = None) -> None:
        """Go on with what dead servers had at work, or with one session of it."""
        store = self._projects.main.store
        adopted = await store.adopt(AT_ONCE, only=only)
        leases = {SessionId(each.stream): each for each in adopted}
        families: dict[SessionId, list[Any]] = {}
        idle: list[Any] = []
        for session_id, lease in leases.items():
            root = await self._root(session_id, leases)
            families.setdefault(root, []).append(lease)
        async with anyio.create_task_group() as group:
            for root, found in families.items():
                row = await store.row(root)
                family = [leases[root], *(each for each in found if each is not leases[root])]
                # What waits is woken in its time, and what is at rest by the next that asks for it.
                if row is None or not row.turn_open or row.waits:
                    idle += family
                elif not await self._can_have(row):
                    # To go on without its files would be to work in the wrong place.
                    logger.warning(
                        "a session's files are not on this host", extra={"session": root}
                    )
                    idle += family
                else:
                    group.start_soon(self._take, root, family)
        if idle:
            await store.release_leases(idle)

    async def _can_have(self, row: SessionRow) -> bool:
        try:
            return await self._projects.can_have(row)
        except WeftError:
            # Deleted meanwhile, or damaged; what was adopted is held here until it is given back.
            logger.exception("a session cannot be read", extra={"session": row.id})
            return False

    async def _root(self, session_id: SessionId, leases: dict[SessionId, Any]) -> SessionId:
        """The session that all of a family work for, as far as it was taken."""
        store = self._projects.main.store
        row = await store.row(session_id)
        while row is not None and row.is_child and row.parent_id in leases:
            session_id = row.parent_id
            row = await store.row(session_id)
        return session_id

    async def _take(self, session_id: SessionId, leases: Sequence[Any]) -> None:
        about = {"session": session_id}
        try:
            try:
                app = await self._projects.home_of(session_id, opens=True)
            except BaseException:
                await self._projects.main.store.release_leases(leases)
                raise
            await app.host.take_over(leases)
        except (WeftError, OSError):
            # It is interrupted, and is offered to the user who opens it.
            logger.exception("a session that another server had cannot go on here", extra=about)
            return
        self.taken += 1
        logger.info("a session that another server had goes on here", extra=about)
