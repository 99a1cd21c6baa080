"""The sessions of an application, as far as fan-outs need them."""

from __future__ import annotations

from typing import Any, Protocol

from weft.ids import SessionId
from weft.runtime.fan.fan_places import FanPlaces
from weft.runtime.registry import SessionRegistry
from weft.runtime.services import Services
from weft.session import SessionPort


class FanHost(Protocol):
    """What `SessionHost` has.  Not the class itself: it settles the fan-outs of its sessions."""

    registry: SessionRegistry
    services: Services
    fan_runs: dict[str, Any]
    """The fan-outs that were begun or taken up here, by their ids."""

    async def port(self, session_id: SessionId) -> SessionPort:
        """How the session is reached; it is opened where it is not.

        Raises:
            SessionNotFound: there is none with this id.
        """
        ...

    async def stop(self, session_id: SessionId, *, suspends: bool = False) -> None:
        """End the session's life in this process; with `suspends` its turn stays open."""
        ...


def places_of(host: FanHost) -> FanPlaces:
    """The places of all fan-outs of an application."""
    services = host.services
    most = int(services.config.get("fan.max_disk"))
    return FanPlaces(services.workspaces.sandbox, str(services.places.sandbox), most_bytes=most)
