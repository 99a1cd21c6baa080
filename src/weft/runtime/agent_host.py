"""Families of sessions: who works for whom, under which limits, and how a session reaches the ones that work for it.

A session's `SessionAgentHost` is what its agents see of it.  A child is opened here with no more than its parent has: the parent's tools, at most its
mode, its way of answering asks, none of its grants.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import anyio

from weft.actors import Supervisor
from weft.agents.lazy_tool import AgentEntry
from weft.agents.limits import AgentLimits, AgentTree
from weft.clock import Clock
from weft.config.models import ModelRegistry
from weft.config.settings import Config
from weft.errors import SessionStopped
from weft.events import BoundaryChanged, CallOrigin, Fact, PermissionResolved, QuestionAnswered
from weft.ids import RequestId, SessionId
from weft.loop import Build, Commit, TurnLimits, child_finished
from weft.messages import ModelName, Usage
from weft.permissions import Mode
from weft.project.system_prompt import SystemPromptWriter
from weft.runtime.port import LocalPort, SessionPort
from weft.session import AbortTurn, SessionActor
from weft.state import SessionState
from weft.workspace import Runner

if TYPE_CHECKING:
    from weft.agents.host import ChildRequest
    from weft.project.agent_definitions import AgentDefinitions
    from weft.runtime.background_commands import BackgroundShells

logger = logging.getLogger(__name__)

STOP_SECONDS = 3.0
"""How long background agents may take to end when their session stops."""


class TurnInfo(Protocol):
    """What a desk asks the session's workshop."""

    def tool_names(self, state: SessionState) -> list[str]:
        """The tools of the turn that runs."""
        ...

    def model_now(self, state: SessionState) -> ModelName:
        """The model of the turn that runs, and the effort with which it thinks."""
        ...

    def limits_now(self, state: SessionState) -> TurnLimits:
        """The limits of the turn that runs, or of the session."""
        ...


class AgentTrees:
    """The families of all sessions of an application."""

    def __init__(
        self,
        *,
        config: Config,
        models: ModelRegistry,
        clock: Clock,
        supervisor: Supervisor,
        runner: Runner,
        prompter: SystemPromptWriter,
        worktrees: Path,
        is_trusted: Callable[[str], Awaitable[bool]],
        ports: Mapping[SessionId, SessionPort],
        open_port: Callable[[SessionId], Awaitable[SessionPort]],
        open_child: Callable[[SessionId, ChildRequest], Awaitable[SessionPort]],
        close: Callable[[SessionId], Awaitable[None]],
    ) -> None:
        self.models = models
        self.clock = clock
        self.supervisor = supervisor
        self.runner = runner
        self.worktrees = worktrees
        self.is_trusted = is_trusted
        self.ports = ports
        self.open_port = open_port
        self.open_child = open_child
        self.close = close
        self.prompter = prompter
        self._config = config
        self._desks: dict[SessionId, SessionAgentHost] = {}

    # -- desks

    def desk(self, session_id: SessionId, parent: CallOrigin | None) -> SessionAgentHost:
        """The desk of a session that is about to open."""
        family = None
        if parent is not None and parent.session_id in self._desks:
            family = self._desks[parent.session_id].family
        if family is None:
            family = AgentTree(session_id, self._bounds, lambda: self._limits_of(session_id))
        desk = self._desks[session_id] = SessionAgentHost(self, session_id, family)
        return desk

    def unseated(self) -> SessionAgentHost:
        """A desk that belongs to no session, where one only looks at what a session would have."""
        nobody = SessionId("")
        return SessionAgentHost(self, nobody, AgentTree(nobody, self._bounds, TurnLimits))

    def joined(self, actor: SessionActor) -> None:
        """The session is open."""
        desk = self._desks.get(actor.session_id)
        if desk is not None:
            desk.family.join(actor.session_id, lambda: actor.state)

    def adopt(self, child: SessionId, parent: SessionId) -> None:
        """A child that was opened by itself belongs to its parent's family from now on."""
        desk, family = self._desks[child], self._desks[parent].family
        if desk.family is not family:
            desk.family = family
            family.join(child, lambda: self.ports[child].state)

    def left(self, session_id: SessionId) -> None:
        """The session is closed."""
        desk = self._desks.pop(session_id, None)
        if desk is not None:
            desk.family.leave(session_id)

    def _bounds(self) -> AgentLimits:
        return AgentLimits(
            depth=self._config.get("agents.max_depth"),
            at_once=self._config.get("agents.max_parallel"),
            in_all=self._config.get("agents.max_total"),
        )

    def _limits_of(self, root: SessionId) -> TurnLimits:
        desk, port = self._desks.get(root), self.ports.get(root)
        if desk is None or desk.turns is None or port is None:
            return TurnLimits()
        return desk.turns.limits_now(port.state)

    # -- privileges

    def ceiling(self, parent: CallOrigin | None) -> Callable[[], Mode] | None:
        """The mode that a child may not be above: its parent's, as it is at that moment."""
        if parent is None:
            return None
        return lambda: self.mode_of(parent.session_id)

    def mode_of(self, session_id: SessionId) -> Mode:
        """The mode that is in force in a session; of one that is not open here, the one it would come back with at most."""
        port = self.ports.get(session_id)
        if port is None or not port.is_open:
            return "default"
        return port.permission_mode

    def original(self, session_id: SessionId) -> str:
        """The project of a session; of one that works in a copy, the project that was copied."""
        about = self.ports[session_id].state.about
        while about.parent is not None and Path(about.project_path).is_relative_to(self.worktrees):
            parent = self.ports.get(about.parent.session_id)
            if parent is None:
                break  # not open here: the copy stands for itself, and nobody has trusted that
            about = parent.state.about
        return about.project_path

    # -- work beside the turns

    def has_work(self, session_id: SessionId) -> bool:
        """True while an agent of the session is at work, or a command of it runs in the background."""
        desk, port = self._desks.get(session_id), self.ports.get(session_id)
        if desk is None or port is None:
            return False
        if desk.shells is not None and desk.shells.is_running:
            return True
        return any(desk.family.is_at_work(child) for child in port.state.children.known)

    def runs_command(self, session_id: SessionId, name: str) -> bool:
        """True while a background command of this name runs here."""
        desk = self._desks.get(session_id)
        return desk is not None and desk.shells is not None and desk.shells.has(name)

    async def end_background(self, session_id: SessionId) -> None:
        """Stop what a session has in the background, and wait until the ends are on its record."""
        desk, port = self._desks.get(session_id), self.ports.get(session_id)
        if desk is None or not isinstance(port, LocalPort):
            return
        if desk.shells is not None:
            await desk.shells.aclose()
        if not port.is_open:
            return
        beside = [
            child
            for child in port.state.children.at_work(background=True)
            if desk.family.is_at_work(child) and child in self.ports
        ]
        with anyio.move_on_after(STOP_SECONDS):
            for child in beside:
                await self.ports[child].abort(
                    AbortTurn(reason="the session it works for was stopped")
                )
            await port.actor.until(
                lambda state: not any(state.children.known[child].is_open for child in beside)
            )

    async def end_left_behind(
        self, session_id: SessionId, child: SessionId, used: Mapping[str, Usage]
    ) -> None:
        """Put the end of a child on record that nobody here sees to its end: another process left it behind."""
        desk, port = self._desks.get(session_id), self.ports.get(session_id)
        if desk is None or not isinstance(port, LocalPort) or desk.family.is_at_work(child):
            return
        await port.actor.append(
            lambda state: (
                Commit(facts=(child_finished(state, child, "aborted", used),))
                if state.children.known[child].is_open
                else Commit(facts=())
            )
        )


class SessionAgentHost:
    """One session, as its agents see it."""

    def __init__(self, families: AgentTrees, session_id: SessionId, family: AgentTree) -> None:
        self._families = families
        self.session_id = session_id
        self.family = family
        self.runner = families.runner
        self.worktrees = families.worktrees
        self.turns: TurnInfo | None = None
        self.shells: BackgroundShells | None = None
        """Its background commands, once there was one."""
        self.entry = AgentEntry(self)

    @property
    def _port(self) -> SessionPort:
        port = self._families.ports.get(self.session_id)
        if port is None:
            raise SessionStopped(self.session_id, "it is not open")
        return port

    @property
    def _turns(self) -> TurnInfo:
        assert self.turns is not None  # set where both are made
        return self.turns

    @property
    def state(self) -> SessionState:
        return self._port.state

    @property
    def tools(self) -> Sequence[str]:
        return self._turns.tool_names(self.state)

    @property
    def model(self) -> ModelName:
        return self._turns.model_now(self.state)

    @property
    def mode(self) -> Mode:
        return self._port.permission_mode

    @property
    def is_aborting(self) -> bool:
        port = self._families.ports.get(self.session_id)
        return isinstance(port, LocalPort) and port.actor.is_aborting

    def now(self) -> float:
        return self._families.clock.now()

    async def is_trusted(self) -> bool:
        return await self._families.is_trusted(self._families.original(self.session_id))

    def definitions(self) -> AgentDefinitions:
        prompter = self._families.prompter
        return prompter.agents(self.state.about.project_path).masked(prompter.redact)

    def told(self, state: SessionState) -> str:
        """What the system prompt says of the agents that are defined; nothing where none is."""
        return self._families.prompter.agents_told(state.about.project_path)

    def model_named(self, name: str) -> ModelName:
        return self._families.models.named(name)

    def inherited(self) -> tuple[Fact, ...]:
        return tuple(
            BoundaryChanged(path=path, first=held.first, last=held.last, base=held.base)
            for path, held in self.state.boundaries.held.items()
        )

    async def open_child(self, wanted: ChildRequest) -> SessionPort:
        port = await self._families.open_child(self.session_id, wanted)
        self._families.adopt(wanted.child, self.session_id)
        return port

    async def close_child(self, child: SessionId) -> None:
        port = self._families.ports.get(child)
        if isinstance(port, LocalPort) and not port.actor.is_busy and not port.actor.is_watched:
            await self._families.close(child)

    async def append(self, build: Build, *, wake: bool = False) -> None:
        port = await self._families.open_port(self.session_id)
        if not isinstance(port, LocalPort):
            raise SessionStopped(self.session_id, "another process has taken it over")
        await port.actor.append(build, wake=wake)

    async def resolution(self, request_id: RequestId) -> PermissionResolved | QuestionAnswered:
        port = await self._families.open_port(self.session_id)
        if not isinstance(port, LocalPort):
            raise SessionStopped(self.session_id, "another process has taken it over")
        return await port.actor.resolution(request_id)

    async def until(self, holds: Callable[[SessionState], bool]) -> None:
        """Wait until something is true of the session's state, or its life in this process is over."""
        port = self._port
        if not isinstance(port, LocalPort):
            return
        async with anyio.create_task_group() as group:

            async def give_up() -> None:
                await port.ended()
                group.cancel_scope.cancel()

            group.start_soon(give_up)
            await port.actor.until(holds)
            group.cancel_scope.cancel()

    async def ended(self) -> None:
        """Wait until the session's life in this process is over."""
        await self._port.ended()

    def stop_command(self, name: str) -> None:
        """Have a background command of the session end."""
        if self.shells is not None:
            self.shells.stop_soon(name)

    def start(self, run: Callable[[], Awaitable[None]], name: str) -> None:
        self._families.supervisor.start(run, name)

    def wake_background(self, state: SessionState) -> None:
        """Go on with the background agents that another process left at work."""
        for child in state.children.at_work(background=True):
            # One whose call is still open is gone on with by that call.
            is_open_call = state.children.known[child].call_uid in state.turn.intents
            if not is_open_call and not self.family.is_at_work(child):
                self.entry.resume(child)
