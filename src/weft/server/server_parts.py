"""What the operations of a server share: its projects, tokens, clients, relays."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from weft.api import Session
from weft.loom import LoomSession
from weft.server.page_tokens import TokenStore
from weft.server.projects import ServedProjects
from weft.server.relay import ServerRelays
from weft.server.repeats import RepeatCache
from weft.server.telemetry.request_meter import RequestMeter

MOST_CLIENTS: Final = 1_000
"""Clients that are held; the one that was quiet for longest is forgotten, and attaches again."""


class AttachedClients:
    """Handles of clients, by the client's id."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, Session] = OrderedDict()

    def keep(self, client: str, session: Session) -> None:
        """A client has attached."""
        self._held[client] = session
        while len(self._held) > MOST_CLIENTS:
            self._held.popitem(last=False)

    def get(self, client: str) -> Session | None:
        """The handle of a client; None when it is not known here."""
        if client in self._held:
            self._held.move_to_end(client)
        return self._held.get(client)

    def drop(self, client: str) -> None:
        """A client has gone."""
        self._held.pop(client, None)


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
