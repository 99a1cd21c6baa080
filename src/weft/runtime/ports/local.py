"""Ports to sessions of this process: straight to the actor, or through its hooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar, cast

import msgspec

from weft.events import PermissionResolved, QuestionAnswered, Status
from weft.ids import CallUid, NodeId, RequestId
from weft.loop import LineEntry, TurnHooks
from weft.messages import Part
from weft.permissions import Mode, PermissionRule
from weft.session import (
    AbortReceipt,
    AbortTurn,
    Command,
    Reserve,
    SessionActor,
    SessionPort,
    Settle,
    Subscription,
    checked,
)
from weft.state import QueueEntry, SessionState
from weft.store import Draft

if TYPE_CHECKING:  # for screens: start-up time
    from weft.session import CallRecord

T = TypeVar("T")

UNLOADED: Final = "unloaded"
"""Why a session stopped that was only unused; the next call brings it back."""


class LocalPort(SessionPort):
    """The port of an actor of this process."""

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
    def drafts(self) -> tuple[Draft, ...]:
        return self.actor.log.drafts

    @property
    def permission_mode(self) -> Mode:
        return self.actor.gate.mode

    @property
    def restrictions(self) -> tuple[PermissionRule, ...]:
        return self.actor.gate.restrictions

    @property
    def lives_here(self) -> bool:
        return True

    @property
    def is_open(self) -> bool:
        return not self.actor.stopped.is_set()

    async def call(self, command: Command[T]) -> T:
        if isinstance(command, Reserve | Settle):
            why: Any = await self.actor.share_budget(checked(command))
            return cast("T", why)
        return await self.actor.call(checked(command))

    async def resolution(self, request_id: RequestId) -> PermissionResolved | QuestionAnswered:
        return await self.actor.resolution(request_id)

    async def abort(self, command: AbortTurn) -> AbortReceipt:
        checked(command)
        # Past the mailbox: it may be busy with an append on a slow disk, and the user wants the
        # tool to stop now.
        turn_id = self.actor.trip(command)
        if turn_id is not None:
            command = msgspec.structs.replace(command, turn_id=turn_id)
        receipt = await self.actor.call(command)
        # After the mailbox has answered: the receipt promises that everything is settled.
        await self.actor.wait_settled(turn_id)
        return msgspec.structs.replace(receipt, turn_id=receipt.turn_id or turn_id)

    async def line(self, tip: NodeId | None = None) -> list[LineEntry]:
        return await self.actor.log.line(tip)

    async def nodes(self, nodes: Sequence[NodeId]) -> list[LineEntry]:
        return await self.actor.log.nodes(nodes)

    async def call_records(self, nodes: Sequence[NodeId]) -> dict[CallUid, CallRecord]:
        return await self.actor.log.call_records(nodes)

    async def beginnings(self, nodes: Sequence[NodeId]) -> list[LineEntry]:
        return await self.actor.log.beginnings(nodes)

    async def in_full(self, entries: Iterable[QueueEntry]) -> tuple[QueueEntry, ...]:
        return await self.actor.log.in_full(entries)

    async def revisions(self, node: NodeId) -> list[tuple[Part, ...]]:
        return await self.actor.log.revisions(node)

    def subscribe(
        self,
        *,
        after: int | None = None,
        live: bool | Literal["status"] = True,
        retell: bool = False,
    ) -> Subscription:
        return self.actor.subscribe(after=after, live=live, retell=retell)

    async def close(self, why: str, *, suspends: bool = False) -> None:
        await self.actor.stop(why, suspends=suspends)

    async def ended(self) -> str:
        await self.actor.stopped.wait()
        return self.actor.stopped_because


class HookProvider(Protocol):
    """The hooks of one session."""

    @property
    def of_turns(self) -> TurnHooks:
        """What its turns ask."""
        ...

    def port_to(self, actor: SessionActor, agent: str) -> LocalPort:
        """The way to the session that leads through them.

        `agent` is its kind, if it works for another.
        """
        ...
