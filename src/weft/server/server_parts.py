"""What the operations of a server share: its projects, tokens, clients, relays."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol

import anyio
import anyio.abc

from weft.api import Session
from weft.errors import WeftError
from weft.loom import LoomSession
from weft.server.page_tokens import TokenStore
from weft.server.projects import ServedProjects
from weft.server.relay import ServerRelays
from weft.server.repeats import RepeatCache
from weft.server.telemetry.request_meter import RequestMeter

MOST_CLIENTS: Final = 1_000
"""Clients that are held; the one that was quiet for longest is forgotten, and attaches again."""
RETURN_SECONDS: Final = 5.0
"""How long a client may be without the events that it followed before it is taken for gone."""


class AttachedClients:
    """Handles of clients, by the client's id.

    A client that follows its session's events is detached when they end: one that was killed, or
    lost its network, says nothing, but its connection ends.
    """

    def __init__(self, return_seconds: float = RETURN_SECONDS) -> None:
        self._held: OrderedDict[str, Session] = OrderedDict()
        self._streams: Counter[str] = Counter()
        """How many streams of events each client follows."""
        self._group: anyio.abc.TaskGroup | None = None
        self.return_seconds = return_seconds

    def open(self, group: anyio.abc.TaskGroup) -> None:
        """Clients that have gone are detached in this group."""
        self._group = group

    def keep(self, client: str, session: Session) -> None:
        """A client has attached."""
        self._held[client] = session
        while len(self._held) > MOST_CLIENTS:
            _, quiet = self._held.popitem(last=False)
            self._start(self._detach, quiet)

    @contextmanager
    def following(self, client: str) -> Iterator[None]:
        """Meanwhile, the client follows its session; afterwards it has a moment to come back."""
        self._streams[client] += 1
        try:
            yield
        finally:
            self._streams[client] -= 1
            if not self._streams[client]:
                del self._streams[client]
                self._start(self._detach_unless_back, client)

    def _start(self, run: Callable[[Any], Coroutine[Any, Any, None]], of: Any) -> None:
        if self._group is not None:
            self._group.start_soon(run, of)

    async def _detach_unless_back(self, client: str) -> None:
        await anyio.sleep(self.return_seconds)
        session = self._held.get(client)
        if session is not None and client not in self._streams:
            self.drop(client)
            await self._detach(session)

    async def _detach(self, session: Session) -> None:
        with suppress(WeftError):  # the session has stopped, and its clients went with it
            await session.detach()

    def get(self, client: str) -> Session | None:
        """The handle of a client; None when it is not known here."""
        if client in self._held:
            self._held.move_to_end(client)
        return self._held.get(client)

    def drop(self, client: str) -> None:
        """A client has gone."""
        self._held.pop(client, None)


class PageCluster(Protocol):
    """This server among others, as its operations use it."""

    @property
    def accepting(self) -> bool:
        """Whether it takes further sessions."""
        ...

    def frames(
        self,
        parts: ServerParts,
        name: str,
        after: int | None,
        lost: Callable[[], None],
        *,
        role: str,
    ) -> AsyncGenerator[str]:
        """The events of a session, wherever it is."""
        ...

    async def detach(self, session_id: str, client: str, role: str) -> None:
        """Detach a page's client from a session of another server."""
        ...


class ServerParts:
    """What the operations of a server share."""

    def __init__(self, projects: ServedProjects, tokens: TokenStore) -> None:
        self.projects = projects
        self.tokens = tokens
        self.clients = AttachedClients()
        self.repeats = RepeatCache()
        self.relays = ServerRelays()
        self.meter = RequestMeter()
        self.generations: dict[str, set[LoomSession]] = {}
        """The views that generate, by the root of their tree."""
        self.cluster: PageCluster | None = None
        """This server among others; None for one that is alone."""
