"""What a session was denied that another works for, wherever it lives: asked for before each call,
and nothing is allowed while it cannot be known.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final, Protocol

from weft.errors import OwnerLost, SessionNotFound, SessionStopped, WeftError
from weft.ids import SessionId
from weft.permissions import CLOSED_RULES, PermissionRule
from weft.session import SessionPort

logger = logging.getLogger(__name__)

ATTEMPTS: Final = 20
"""How often a parent is looked for that goes from one process to another."""


class ParentPlaces(Protocol):
    """The sessions of this process, and the way to those of others."""

    @property
    def is_closing(self) -> bool: ...

    @property
    def parting(self) -> Mapping[SessionId, tuple[PermissionRule, ...]]:
        """What sessions were denied that are being stopped."""
        ...

    def running(self, session_id: SessionId) -> SessionPort | None: ...

    async def port(self, session_id: SessionId) -> SessionPort: ...


class ParentRules:
    """The ask and deny rules of one parent."""

    def __init__(self, places: ParentPlaces, parent: SessionId) -> None:
        self._places = places
        self._parent = parent
        self._is_gone = False

    def known(self) -> tuple[PermissionRule, ...]:
        """The rules as they are now.

        Looked up at each decision: what the user denies the parent holds for agents that already
        run.
        """
        port = self._places.running(self._parent)
        if port is not None:
            return port.restrictions
        if self._is_gone:
            return ()
        return self._places.parting.get(self._parent, CLOSED_RULES)

    async def reach(self) -> None:
        """Find the parent where it lives, or open it here where it lives nowhere."""
        for _ in range(ATTEMPTS):
            is_known = self._places.running(self._parent) is not None
            # One that is being stopped must not be opened again by its own agents.
            if is_known or self._parent in self._places.parting or self._places.is_closing:
                return
            try:
                await self._places.port(self._parent)
            except (OwnerLost, SessionStopped):
                continue  # it is being taken over by another process, or by this one
            except SessionNotFound:
                self._is_gone = True  # it was deleted, or never came here with its agent
                return
            except WeftError:
                logger.warning("the rules of %s cannot be known", self._parent, exc_info=True)
                return
