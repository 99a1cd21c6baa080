"""The clients of a session: any number that watch, one that drives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from weft.errors import ViewerRefused
from weft.events import ClientAttached, DriverChanged, Signal
from weft.ids import client_name
from weft.session.commands import (
    AnswerQuestion,
    AttachClient,
    Command,
    DecidePlan,
    DetachClient,
    RespondToPermission,
)

FROM_ANYONE: Final = (AttachClient, DetachClient, RespondToPermission, AnswerQuestion, DecidePlan)
"""Commands of clients that watch, too."""


class AttachedClients:
    """Who is attached, and who of them drives."""

    def __init__(self, signal: Callable[[Signal], None]) -> None:
        self._signal = signal
        self._roles: dict[str, Literal["viewer", "driver"]] = {}
        self._driver = ""

    def __len__(self) -> int:
        return len(self._roles)

    def __contains__(self, client: str) -> bool:
        return client in self._roles

    def check(self, command: Command[Any]) -> None:
        """A client that came to watch cannot drive.

        Raises:
            ViewerRefused: it tries to.
        """
        # Who watches may answer what the session asks: it waits for the first answer of anyone.
        if isinstance(command, FROM_ANYONE) or not command.client:
            return
        # A client that never attached may drive: programs that hold a handle need not know of
        # roles.
        if self._roles.get(command.client) == "viewer":
            drives = f"; {name} drives" if (name := client_name(self._driver)) else ""
            raise ViewerRefused(f"this client only watches{drives}; claim_driver() lets it drive")

    def attach(self, command: AttachClient) -> str:
        """A client comes, or takes another role; who drove before watches.

        Returns the client that drives now; empty when none does.
        """
        client = command.client
        self._roles[client] = command.role
        self._signal(ClientAttached(client=client, role=command.role))
        if command.role == "viewer" and self._driver == client:
            self._driver = ""
            self._signal(DriverChanged(client=""))
        if command.role == "driver" and self._driver != client:
            # It stays attached, so that its screen goes on showing what happens.
            if self._driver in self._roles:
                self._roles[self._driver] = "viewer"
            self._driver = client
            self._signal(DriverChanged(client=client))
        return self._driver

    def detach(self, command: DetachClient) -> None:
        """A client goes."""
        client = command.client
        role = self._roles.pop(client, None)
        self._signal(ClientAttached(client=client, role=role or "viewer", left=True))
        if self._driver == client:
            self._driver = ""
            self._signal(DriverChanged(client=""))
