"""What agents need of the application: sessions to drive, and the way back to the session they work
for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from weft.agents.limits import AgentTree
from weft.events import (
    CallOrigin,
    Fact,
    FileTouched,
    FinishReason,
    PermissionResolved,
    QuestionAnswered,
)
from weft.ids import RequestId, SessionId
from weft.messages import ModelName, Usage
from weft.permissions import Mode, PermissionRule
from weft.project import AgentDefinitions
from weft.session import Command, ForwardRequest, ReportChild, SessionPort
from weft.state import SessionState
from weft.tools import PreparedCall, ToolContext

T = TypeVar("T")


class ChildRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A child session as it is to be.  Only a child that is not there yet is made so."""

    child: SessionId
    origin: CallOrigin
    title: str
    model: ModelName
    """With the effort it thinks with; without one, at its vendor's default."""
    tools: tuple[str, ...]
    """Of those that the parent has."""
    permission_mode: Mode
    depth: int
    system_prompt: str | None = None
    append_system_prompt: str = ""
    max_turns: int | None = None
    project_path: str | None = None
    """None: the parent's."""
    facts: tuple[Fact, ...] = ()
    """What else its log begins with."""
    first: tuple[Command[Any], ...] = ()
    """What is to be carried out there before its task.

    Each with an `input_id`, so that it is done once.
    """
    place: str = ""
    """The overlay that a candidate works in, by its name; empty for the project."""
    forks: bool = False
    """It begins with the line of its parent, up to the node that it is for."""
    rules: tuple[PermissionRule, ...] = ()
    """What the user has approved for it already, in a plan."""


class ChildEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a child's turn ended."""

    reason: FinishReason
    detail: str = ""
    text: str = ""
    """Its last words."""
    used: dict[str, Usage] = {}
    """In all, by model."""
    descendants: int = 0
    files: tuple[FileTouched, ...] = ()
    """What it changed, as the parent's log is to have it."""

    def report(self, child: SessionId) -> ReportChild:
        """As the parent is told of it."""
        return ReportChild(
            child=child,
            reason=self.reason,
            used=self.used,
            text=self.text or self.detail,
            descendants=self.descendants,
            files=self.files,
        )


class IsolatedPlace(Protocol):
    """The overlay that one isolated agent works in."""

    @property
    def wanted(self) -> ChildRequest:
        """The child as it is to be there."""
        ...

    async def follow(self, run: Callable[[], Awaitable[ChildEnd]]) -> tuple[ChildEnd, str]:
        """See the child to its end and close the overlay; returns the end, and what the model is
        told of the changes.

        A cancel leaves what was changed in the overlay, closed.
        """
        ...

    async def leave(self) -> None:
        """Close it; nothing is at work in it.  What was changed stays."""
        ...


class AgentHost(Protocol):
    """One session and the sessions that work for it."""

    session_id: SessionId
    agent_tree: AgentTree

    @property
    def state(self) -> SessionState:
        """The session's own state; only to be read."""
        ...

    @property
    def tools(self) -> Sequence[str]:
        """The tools that its present turn has."""
        ...

    @property
    def model(self) -> ModelName:
        """The model of its present turn, and the effort with which it thinks."""
        ...

    @property
    def mode(self) -> Mode:
        """The permission mode that is in force."""
        ...

    @property
    def is_closing(self) -> bool:
        """True once the program closes: what runs is suspended, not ended."""
        ...

    @property
    def is_aborting(self) -> bool:
        """Its work was asked to stop.

        False when its process is going, and the work will go on in another.
        """
        ...

    def now(self) -> float:
        """Wall-clock time."""
        ...

    async def is_trusted(self) -> bool:
        """Whether the user trusts the project as it is now; a copy is trusted as its original."""
        ...

    def definitions(self) -> AgentDefinitions:
        """The agents that may be used."""
        ...

    def model_named(self, name: str) -> ModelName:
        """The model that is meant, and the effort that is named with it.

        Raises:
            UsageError: it names none.
        """
        ...

    def inherited(self) -> tuple[Fact, ...]:
        """The facts by which what holds for the session's files holds for a child's too."""
        ...

    async def open_child(self, wanted: ChildRequest) -> SessionPort:
        """The child session: made if it is not there yet, else opened as it is."""
        ...

    async def close_child(self, child: SessionId) -> None:
        """The child has nothing more to do; its record stays."""
        ...

    async def open_isolated(
        self, wanted: ChildRequest, name: str, prompt: str
    ) -> IsolatedPlace | None:
        """The overlay of an isolated child: made, or opened as another process left it; None where
        it is over, or was a copy of an earlier kind.  `name` is the kind of agent.

        Raises:
            WeftError: the child cannot be isolated here, and why.
        """
        ...

    async def prepare_keep(self, fan_id: str, context: ToolContext) -> PreparedCall:
        """A call that puts what an isolated agent changed into the project, prepared.

        Raises:
            FinalToolError: there is no such agent of this session, or nothing to be put.
        """
        ...

    async def tell(self, command: ReportChild | ForwardRequest) -> None:
        """Have the session put on its record what a child has to say, wherever it lives by now."""
        ...

    async def resolution(self, request_id: RequestId) -> PermissionResolved | QuestionAnswered:
        """Wait until a request on the session's own record is answered."""
        ...

    def start(self, run: Callable[[], Awaitable[None]], name: str) -> None:
        """Run a task in the background of the turns."""
        ...
