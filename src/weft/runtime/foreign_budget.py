"""The budget of a session that works for one of another process: counted where that one lives, and
asked for there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Protocol

import msgspec

from weft.agents.limits import AgentTree
from weft.errors import OwnerLost, SessionNotFound, SessionStopped, WeftError
from weft.ids import SessionId, TurnId
from weft.loop import SharedBudget
from weft.messages import Usage
from weft.session import Reserve, SessionPort, Settle

ATTEMPTS: Final = 20
"""How often a parent is looked for that goes from one process to another."""


class TreePlaces(Protocol):
    """Where the sessions of a tree live."""

    async def parent_port(self, parent: SessionId) -> SessionPort:
        """The port of a session that another works for; opened here where it is open nowhere."""
        ...

    def tree_with(self, session_id: SessionId, parent: SessionId) -> AgentTree | None:
        """The tree that both belong to; None while the parent lives in another process."""
        ...

    def start(self, send: Callable[[], Awaitable[None]], name: str) -> None:
        """Run a task in the background."""
        ...


class ForeignBudget(SharedBudget):
    """What a session may use of its parent's budget, by the parent's word."""

    is_limited = True
    """Only the parent knows."""

    def __init__(
        self, places: TreePlaces, session_id: SessionId, parent: SessionId, own: AgentTree
    ) -> None:
        """`own` is the tree of the session and those that work for it here."""
        self._places = places
        self._session_id = session_id
        self._parent = parent
        self._own = own
        self._asked: dict[TurnId, SessionPort] = {}
        """Where something is set aside: for turns of its own, and of those that work for it."""

    async def refusal(self, turn_id: TurnId, pending: Usage, *, is_priced: bool) -> str | None:
        tree = await self._tree_here()
        if tree is not None:
            return await tree.refusal(turn_id, pending, is_priced=is_priced)
        return await self._ask(self._reserve(turn_id, pending, None, is_priced=is_priced))

    async def reserve(
        self,
        turn_id: TurnId,
        pending: Usage,
        outstanding: Callable[[], Usage],
        *,
        is_priced: bool,
    ) -> str | None:
        tree = await self._tree_here()
        if tree is not None:
            return await tree.reserve(turn_id, pending, outstanding, is_priced=is_priced)
        share = outstanding()
        return await self._ask(self._reserve(turn_id, pending, share, is_priced=is_priced))

    def release(self, turn_id: TurnId) -> None:
        tree = self._places.tree_with(self._session_id, self._parent)
        if tree is not None:
            tree.release(turn_id)
        port = self._asked.pop(turn_id, None)
        if port is not None and port.is_open:
            command = Settle(child=self._session_id, turn_id=turn_id)

            async def send() -> None:
                # The log of this session tells the same, only later.
                with suppress(WeftError):
                    await port.call(command)

            self._places.start(send, f"budget of {self._session_id}")

    async def answer(self, command: Reserve | Settle) -> str:
        """Ask on behalf of a session that works for this one."""
        if isinstance(command, Settle):
            self.release(command.turn_id)
            return ""
        self._own.tell(command.child, command.total)
        asked = self._reserve(
            command.turn_id, command.pending, command.share, is_priced=command.is_priced
        )
        whose = command.session or command.child
        return await self._ask(msgspec.structs.replace(asked, session=whose)) or ""

    def _reserve(
        self, turn_id: TurnId, pending: Usage, share: Usage | None, *, is_priced: bool
    ) -> Reserve:
        return Reserve(
            child=self._session_id,
            turn_id=turn_id,
            total=self._own.spent(),
            pending=pending,
            share=share,
            is_priced=is_priced,
        )

    async def _tree_here(self) -> AgentTree | None:
        """The tree of both, where the parent lives here by now."""
        with suppress(WeftError):
            await self._places.parent_port(self._parent)
        return self._places.tree_with(self._session_id, self._parent)

    async def _ask(self, command: Reserve) -> str | None:
        for _ in range(ATTEMPTS):
            try:
                port = await self._places.parent_port(self._parent)
                self._asked[command.turn_id] = port
                return await port.call(command) or None
            except (OwnerLost, SessionStopped):
                continue  # it is being taken over by another process, or by this one
            except SessionNotFound:
                return None  # it was deleted, and its budget with it
            except WeftError as error:
                return f"the session that it works for cannot be asked for its budget: {error}"
        return "the session that it works for cannot be found to ask for its budget"
