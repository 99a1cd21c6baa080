"""A turn's way to its session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from weft.events import Fact, PermissionResolved, QuestionAnswered, Signal, Status
from weft.ids import NodeId, RequestId
from weft.loop import Build, ContextLine, SessionWork, TurnJournal
from weft.session.log.session_log import SessionLog
from weft.state import SessionState


class TurnOwner(Protocol):
    """What a turn needs of the actor besides the log."""

    async def write_for(self, turn: SessionWork, build: Build) -> Sequence[Fact]:
        """Commit what a turn has to say, in the mailbox's order."""
        ...

    def status_of(self, turn: SessionWork, status: Status) -> None:
        """A turn does something else now."""
        ...

    async def resolution(self, request_id: RequestId) -> PermissionResolved | QuestionAnswered: ...

    async def until(self, holds: Callable[[SessionState], bool]) -> None: ...


class SessionTurnJournal(TurnJournal):
    """The journal of one turn; `turn` is set before it begins."""

    def __init__(self, log: SessionLog, office: TurnOwner) -> None:
        self._log = log
        self._office = office
        self.turn: SessionWork | None = None

    @property
    def state(self) -> SessionState:
        return self._log.state

    async def commit(self, build: Build) -> Sequence[Fact]:
        assert self.turn is not None
        return await self._office.write_for(self.turn, build)

    def signal(self, signal: Signal) -> None:
        self._log.signal(signal)

    def status(self, status: Status) -> None:
        if self.turn is not None:
            self._office.status_of(self.turn, status)

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
        return await self._office.resolution(request_id)

    async def until(self, holds: Callable[[SessionState], bool]) -> None:
        await self._office.until(holds)
