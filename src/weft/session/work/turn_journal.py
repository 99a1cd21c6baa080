"""A turn's way to its session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from weft.events import Fact, PermissionResolved, QuestionAnswered, Signal, Status
from weft.ids import NodeId, RequestId
from weft.loop import Build, ContextLine, TurnJournal
from weft.session.log.session_log import SessionLog
from weft.state import SessionState


class TurnOwner(Protocol):
    """What a turn needs of the actor besides the log."""

    async def write_for(self, journal: TurnJournal, build: Build) -> Sequence[Fact]:
        """Commit what the turn of this journal writes, in the mailbox's order."""
        ...

    def status_of(self, journal: TurnJournal, status: Status) -> None:
        """The turn of this journal does something else now."""
        ...

    async def resolution(self, request_id: RequestId) -> PermissionResolved | QuestionAnswered: ...

    async def until(self, holds: Callable[[SessionState], bool]) -> None: ...


class SessionTurnJournal(TurnJournal):
    """The journal of one turn.

    It stands for its turn in the mailbox: what it writes after another turn has begun is refused.
    """

    def __init__(self, log: SessionLog, owner: TurnOwner) -> None:
        self._log = log
        self._owner = owner

    @property
    def state(self) -> SessionState:
        return self._log.state

    async def commit(self, build: Build) -> Sequence[Fact]:
        return await self._owner.write_for(self, build)

    def signal(self, signal: Signal) -> None:
        self._log.signal(signal)

    def status(self, status: Status) -> None:
        self._owner.status_of(self, status)

    def draft(
        self,
        node: NodeId,
        part: Literal["text", "thinking"],
        chunk: str,
        *,
        restart: bool = False,
    ) -> None:
        self._log.save_draft(node, part, chunk, restart=restart)

    async def line(self) -> ContextLine:
        turn = self._log.state.turn.open
        return await self._log.context_line(turn.tip if turn is not None else None)

    async def resolution(self, request_id: RequestId) -> PermissionResolved | QuestionAnswered:
        return await self._owner.resolution(request_id)

    async def until(self, holds: Callable[[SessionState], bool]) -> None:
        await self._owner.until(holds)
