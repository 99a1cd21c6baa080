"""The servers of one database: who lives, who takes further sessions, and how busy each is.

It tells them of this one, and looks again twice a second: the answers are read without waiting.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from weft.errors import StoreError, StoreUnavailable

if TYPE_CHECKING:  # it imports the operations
    from weft.server.projects import ServedProjects

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.5
FREE_LOAD: Final = 8
"""A server that has less than this takes what comes, however little the others have."""
SHARE: Final = 1.5
"""How many times the mean of all a server may have before new sessions go to another."""


class ServerHost(NamedTuple):
    """A server of the database that lives."""

    process_id: str
    address: str
    accepting: bool
    load: float


class HostList:
    """This server among the others."""

    def __init__(self, projects: ServedProjects, address: str) -> None:
        self._projects = projects
        self.address = address
        """Where the others reach this one."""
        self.accepting = True
        """It takes further sessions; False from the beginning of its end."""
        self._hosts: list[ServerHost] = []
        self._told = -1

    @property
    def process_id(self) -> str:
        """This server, as leases name it."""
        return self._projects.main.store.owner.process_id

    @property
    def load(self) -> int:
        """How busy this server is."""
        return sum(app.host.load for app in self._projects.apps)

    async def join(self) -> None:
        """Tell the others of this server."""
        await self._projects.main.store.register_address(self.address)
        await self.look()

    async def stop_accepting(self) -> None:
        """Say that nothing more is taken here; what cannot be told is not, and the end goes on."""
        self.accepting = False
        try:
            await self._projects.main.store.register_address(self.address, accepting=False)
        except StoreError:
            logger.warning("the others do not know that this server ends", exc_info=True)

    async def keep(self) -> None:
        """Look again and again; never returns."""
        while True:
            await anyio.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except StoreError:
                logger.warning("the other servers cannot be looked up", exc_info=True)

    async def look(self) -> None:
        """Tell how busy this server is, and read how the others are."""
        store = self._projects.main.store
        if (load := self.load) != self._told:
            await store.publish_load(load)
            self._told = load
        found = await store.hosts()
        self._hosts = [
            ServerHost(each.owner.process_id, each.owner.address, each.owner.accepting, each.load)
            for each in found
        ]

    def lives(self, process_id: str) -> bool:
        """Whether a server was there at the last look."""
        return any(host.process_id == process_id for host in self._hosts)

    def least_loaded(self) -> ServerHost | None:
        """The server that a session goes to which none has; None for this one.

        Raises:
            StoreUnavailable: this one takes none, and there is no other.
        """
        ours, load = self.process_id, self.load
        others = [host for host in self._hosts if host.process_id != ours and host.accepting]
        least = min(others, key=lambda host: host.load, default=None)
        if not self.accepting:
            if least is None:
                raise StoreUnavailable("this server ends, and no other takes sessions; try again")
            return least
        if least is None or load < FREE_LOAD:
            return None
        mean = math.fsum([load, *(host.load for host in others)]) / (len(others) + 1)
        return least if load > SHARE * mean and least.load < load else None
