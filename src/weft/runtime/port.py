"""The way to a session: the actor in this process, or the one in another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, Protocol, TypeVar

import msgspec

from weft.events import Status
from weft.ids import NodeId, SessionId
from weft.loop import LineEntry, TurnHooks
from weft.messages import Part
from weft.permissions import Mode
from weft.session import AbortReceipt, AbortTurn, Command, SessionActor, Subscription, checked
from weft.state import QueueEntry, SessionState

T = TypeVar("T")

UNLOADED: Final = "unloaded"
"""Why a session stopped that only nobody used; the next call brings it back."""


class SessionPort(Protocol):
    """What a handle needs of a session, wherever it lives."""

    session_id: SessionId

    @property
    def state(self) -> SessionState:
        """The state as it is now; only to be read."""
        ...

    @property
    def status(self) -> Status: ...

    @property
    def error(self) -> str:
        """Why the session is down; empty when it is not."""
        ...

    @property
    def draft(self) -> tuple[NodeId, str] | None:
        """The text in flight, and the node it will become."""
        ...

    @property
    def permission_mode(self) -> Mode:
        """The mode that is in force."""
        ...

    @property
    def is_open(self) -> bool:
        """False once the session has stopped or the way to it is gone."""
        ...

    async def call(self, command: Command[T]) -> T:
        """Have a command carried out; the answer has the type that the command names."""
        ...

    async def abort(self, command: AbortTurn) -> AbortReceipt:
        """Stop the turn, and wait until everything is settled."""
        ...

    async def line(self, tip: NodeId | None = None) -> list[LineEntry]:
        """A line with all its words."""
        ...

    async def in_full(self, entries: Iterable[QueueEntry]) -> tuple[QueueEntry, ...]:
        """Queued entries with all their words."""
        ...

    async def revisions(self, node: NodeId) -> list[tuple[Part, ...]]:
        """What a node said in each revision, oldest first."""
        ...

    def subscribe(
        self, *, after: int | None = None, live: bool | Literal["status"] = True
    ) -> Subscription:
        """Read events."""
        ...

    async def leave(self, why: str) -> None:
        """End the session's life in this process, or the way to another's."""
        ...

    async def ended(self) -> str:
        """Wait until the session stops, and say why."""
        ...


class LocalPort(SessionPort):
    """The way to an actor of this process."""

    def __init__(self, actor: SessionActor) -> None:
        self.actor = actor
        self.session_id = actor.session_id

    @property
    def state(self) -> SessionState:
        return self.actor.state

    @property
    def status(self) -> Status:
        return self.actor.status

    @property
    def error(self) -> str:
        return self.actor.error

    @property
    def draft(self) -> tuple[NodeId, str] | None:
        return self.actor.log.draft

    @property
    def permission_mode(self) -> Mode:
        return self.actor.gate.mode

    @property
    def is_open(self) -> bool:
        return not self.actor.stopped.is_set()

    async def call(self, command: Command[T]) -> T:
        return await self.actor.call(checked(command))

    async def abort(self, command: AbortTurn) -> AbortReceipt:
        checked(command)
        turn_id = self.actor.trip(command)
        receipt = await self.actor.call(command)
        await self.actor.wait_settled(turn_id)
        return msgspec.structs.replace(receipt, turn_id=receipt.turn_id or turn_id)

    async def line(self, tip: NodeId | None = None) -> list[LineEntry]:
        return await self.actor.log.line(tip)

    async def in_full(self, entries: Iterable[QueueEntry]) -> tuple[QueueEntry, ...]:
        return await self.actor.log.in_full(entries)

    async def revisions(self, node: NodeId) -> list[tuple[Part, ...]]:
        return await self.actor.log.revisions(node)

    def subscribe(
        self, *, after: int | None = None, live: bool | Literal["status"] = True
    ) -> Subscription:
        return self.actor.subscribe(after=after, live=live)

    async def leave(self, why: str) -> None:
        await self.actor.stop(why)

    async def ended(self) -> str:
        await self.actor.stopped.wait()
        return self.actor.stopped_because


class HookProvider(Protocol):
    """The hooks of one session."""

    @property
    def of_turns(self) -> TurnHooks:
        """What its turns ask."""
        ...

    def way_to(self, actor: SessionActor, agent: str) -> LocalPort:
        """The way to the session that leads through them; `agent` is its kind, if it works for another."""
        ...
