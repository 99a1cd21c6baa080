"""One server of several: what its parts share, from joining the others to the drain."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import TYPE_CHECKING

import anyio.abc
import msgspec
from starlette.types import ASGIApp

from weft.clock import Clock
from weft.server.cluster.cluster_secret import ClusterSecret, HopToken
from weft.server.cluster.far_events import FarEvents, detach_far
from weft.server.cluster.gateway import SessionGateway
from weft.server.cluster.host_list import HostList
from weft.server.cluster.server_hop import ServerHop
from weft.server.cluster.session_routes import SessionRoutes
from weft.server.cluster.takeover import SessionTakeover
from weft.server.operation import ApiOperation
from weft.server.projects import ServedProjects

if TYPE_CHECKING:  # it imports the operations
    from weft.server.server_parts import ServerParts


class ClusterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is one of several."""

    secret: ClusterSecret
    address: str = ""
    """Where the other servers reach this one; empty for where it listens."""
    authorities: str = ""
    """A file with certificates by which other servers are known; empty for those of the system."""
    drain_seconds: float = 1.0
    """How long a server that ends goes on handing requests to the others."""


class ServerCluster:
    """This server among the others."""

    def __init__(
        self, settings: ClusterSettings, projects: ServedProjects, address: str, clock: Clock
    ) -> None:
        self.settings = settings
        self._projects = projects
        self._clock = clock
        self.hosts = HostList(projects, settings.address or address)
        self.routes = SessionRoutes(projects, self.hosts)
        self.hop = ServerHop(
            settings.secret, lambda: projects.main.store.tenant, self.routes, clock, self._tls()
        )
        self.takeover = SessionTakeover(projects, self.hosts)
        projects.join_cluster(self.hosts.address)

    def _tls(self) -> Callable[[], ssl.SSLContext] | None:
        file = self.settings.authorities
        return (lambda: ssl.create_default_context(cafile=file)) if file else None

    @property
    def tenant(self) -> str:
        """Whose sessions these are."""
        return self._projects.main.store.tenant

    def gateway(self, inside: ASGIApp, operations: Iterable[ApiOperation]) -> SessionGateway:
        """The gateway before the routes of this server."""
        return SessionGateway(inside, operations, self.routes, self.hop, self.takeover, self._clock)

    def checked_hop(self, text: str, method: str, target: str, client: str) -> HopToken | None:
        """The token of a request that another server handed on; None where it is no such."""
        token = self.settings.secret.hop(text, self._clock.now())
        if token is None or token.tenant != self.tenant or token.to != self.hosts.address:
            return None
        is_same = (token.method, token.target, token.client) == (method, target, client)
        return token if is_same else None

    @property
    def accepting(self) -> bool:
        """Whether this server takes further sessions."""
        return self.hosts.accepting

    def frames(
        self,
        parts: ServerParts,
        name: str,
        after: int | None,
        lost: Callable[[], None],
        *,
        role: str,
    ) -> AsyncGenerator[str]:
        """The events of a session for a page, as frames; `lost` is called where it is too slow."""
        far = FarEvents(parts, self.routes, self.hop, self.takeover, role=role)
        return far.frames(name, after, lost)

    async def detach(self, session_id: str, client: str, role: str) -> None:
        """Detach a page's client from a session of another server."""
        await detach_far(self.hop, self.routes, session_id, client, role)

    async def start(self, group: anyio.abc.TaskGroup) -> None:
        """Tell the others of this server, and begin to look after what they leave."""
        await self.hosts.join()
        group.start_soon(self.hosts.keep)
        group.start_soon(self.takeover.run)

    async def drain(self) -> None:
        """Take nothing more, and let every session go: turns are suspended, and go on elsewhere."""
        await self.hosts.stop_accepting()
        await self._projects.suspend()

    async def aclose(self) -> None:
        """Close the connections to other servers."""
        await self.hop.aclose()
