"""The port of a session: the one interface by which it is driven and read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from weft.events import PermissionResolved, QuestionAnswered, Status
from weft.ids import CallUid, NodeId, RequestId, SessionId
from weft.loop import LineEntry
from weft.messages import Part
from weft.permissions import Mode, PermissionRule
from weft.session.answers import AbortReceipt
from weft.session.commands import AbortTurn, Command
from weft.session.subscriptions.subscription import Subscription
from weft.state import QueueEntry, SessionState
from weft.store import Draft

if TYPE_CHECKING:  # for screens: start-up time
    from weft.session.log.stored_line import CallRecord

T = TypeVar("T")


class SessionPort(Protocol):
    """A session as its users and agents drive it, wherever it lives.

    `LocalPort` leads to an actor of this process, `HookedPort` there through its hooks, and
    `RemotePort` to the process that owns the session.
    """

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
    def drafts(self) -> tuple[Draft, ...]:
        """The answers in flight, the one that was begun last at the end."""
        ...

    @property
    def permission_mode(self) -> Mode:
        """The mode that is in force."""
        ...

    @property
    def restrictions(self) -> tuple[PermissionRule, ...]:
        """What was denied, or is to be asked about, in the process that has the session: it holds
        for the sessions that work for it, too.
        """
        ...

    @property
    def lives_here(self) -> bool:
        """True for a session of this process: its end is an end, and no move to another."""
        ...

    @property
    def is_open(self) -> bool:
        """False once the session has stopped or its owner cannot be reached."""
        ...

    async def call(self, command: Command[T]) -> T:
        """Have a command carried out; the answer has the type that the command names."""
        ...

    async def resolution(self, request_id: RequestId) -> PermissionResolved | QuestionAnswered:
        """Wait until a request on the session's record is answered."""
        ...

    async def abort(self, command: AbortTurn) -> AbortReceipt:
        """Stop the turn, and wait until everything is settled."""
        ...

    async def line(self, tip: NodeId | None = None) -> list[LineEntry]:
        """A line with all its words."""
        ...

    async def nodes(self, nodes: Sequence[NodeId]) -> list[LineEntry]:
        """These nodes with all words."""
        ...

    async def call_records(self, nodes: Sequence[NodeId]) -> dict[CallUid, CallRecord]:
        """How the settled calls of these nodes went."""
        ...

    async def beginnings(self, nodes: Sequence[NodeId]) -> list[LineEntry]:
        """These nodes with the beginning of their words, and no results."""
        ...

    async def in_full(self, entries: Iterable[QueueEntry]) -> tuple[QueueEntry, ...]:
        """Queued entries with all their words."""
        ...

    async def revisions(self, node: NodeId) -> list[tuple[Part, ...]]:
        """What a node said in each revision, oldest first."""
        ...

    def subscribe(
        self,
        *,
        after: int | None = None,
        live: bool | Literal["status"] = True,
        retell: bool = False,
    ) -> Subscription:
        """Read events.

        With `retell`, a reader that lost signals is handed the answers in flight anew.
        """
        ...

    async def close(self, why: str, *, suspends: bool = False) -> None:
        """End the session's life in this process, or the way to another's.

        A turn that runs here is aborted; with `suspends` it stays open, to go on later.
        """
        ...

    async def ended(self) -> str:
        """Wait until the session stops, and say why."""
        ...
