"""Agent trees: which session works for which, under which limits, and how it reaches its agents.

A session's `SessionAgentHost` is what its agents see of it.  A child is opened here with no more
than its parent has: the parent's tools, at most its mode, its way of answering asks, none of its
grants.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import anyio

from weft.agents.lazy_tool import AgentEntry
from weft.agents.limits import AgentLimits, AgentTree
from weft.errors import SessionNotFound, SessionStopped, UsageError, WeftError
from weft.events import (
    BoundaryChanged,
    CallOrigin,
    Fact,
    PermissionResolved,
    QuestionAnswered,
    Signal,
)
from weft.ids import CallUid, RequestId, SessionId, TurnId
from weft.loop import Build, Commit, TurnLimits
from weft.messages import ModelName, Usage
from weft.permissions import MODES, Mode
from weft.redact import Redactor
from weft.runtime.services import Services
from weft.runtime.tool_table import AGENT, SessionTools
from weft.runtime.turns.output_types import OutputTypes
from weft.runtime.turns.prompt_files import PromptFiles, PromptReader
from weft.runtime.turns.turn_settings import TurnSettings
from weft.session import (
    AbortTurn,
    ForwardRequest,
    ReportChild,
    Reserve,
    SessionActor,
    SessionPort,
    Settle,
    checked,
)
from weft.state import SessionState
from weft.tools import PreparedCall, ToolContext, ToolOutcome
from weft.workspace import ProcessCommand, Runner

if TYPE_CHECKING:
    from weft.agents.host import ChildRequest, IsolatedPlace
    from weft.project.agent_definitions import AgentDefinitions
    from weft.runtime.background_commands import BackgroundShells
    from weft.runtime.foreign_budget import ForeignBudget
    from weft.workspace.egress.judge import EgressJudge

logger = logging.getLogger(__name__)

STOP_SECONDS = 3.0
"""How long background agents may take to end when their session stops."""


class SessionOpener(Protocol):
    """The sessions of this process, as agents open and close them."""

    @property
    def ports(self) -> Mapping[SessionId, SessionPort]:
        """Those that are open."""
        ...

    @property
    def output_types(self) -> OutputTypes: ...

    @property
    def is_closing(self) -> bool:
        """The program closes: nothing is opened any more."""
        ...

    def running(self, session_id: SessionId) -> SessionPort | None:
        """The port of a session that is open."""
        ...

    async def port(self, session_id: SessionId) -> SessionPort:
        """The port of a session; opens one that is stored."""
        ...

    async def stored_state(self, session_id: SessionId) -> SessionState:
        """The state of a session as its log has it at this moment."""
        ...

    async def open_child(self, parent: SessionId, wanted: ChildRequest) -> SessionPort: ...

    async def unload(self, session_id: SessionId) -> None: ...


class IsolatedAgents(Protocol):
    """The overlays of isolated agents, of all sessions; `AgentHost` says what each does."""

    async def open_isolated(
        self, session_id: SessionId, wanted: ChildRequest, name: str, prompt: str
    ) -> IsolatedPlace | None: ...

    async def prepare_keep(
        self, session_id: SessionId, fan_id: str, context: ToolContext
    ) -> PreparedCall: ...


class AgentTrees:
    """The agent trees of all sessions of an application."""

    def __init__(self, services: Services, sessions: SessionOpener) -> None:
        self.services = services
        self.sessions = sessions
        self.ports = sessions.ports
        self.prompt_reader = PromptReader(services.prompter)
        self.isolated: IsolatedAgents | None = None
        """The overlays of isolated agents."""
        self._hosts: dict[SessionId, SessionAgentHost] = {}

    # -- hosts

    def host(
        self, session_id: SessionId, parent: CallOrigin | None, tools: SessionTools
    ) -> SessionAgentHost:
        """The host of a session that is about to open."""
        tree = None
        if parent is not None and parent.session_id in self._hosts:
            tree = self._hosts[parent.session_id].agent_tree
        if tree is None:
            # A session without an open parent is a root of its own until `adopt`; its limits are
            # its own until then.
            tree = AgentTree(
                session_id, self._bounds, lambda: self._limits_of(session_id), self._has_ended
            )
        host = self._hosts[session_id] = SessionAgentHost(self, session_id, tree, tools)
        return host

    def host_of(self, session_id: SessionId) -> SessionAgentHost:
        """The host of a session that is open here.

        Raises:
            SessionNotFound: it is not.
        """
        if session_id not in self._hosts:
            raise SessionNotFound(session_id)
        return self._hosts[session_id]

    def settings(self, tools: SessionTools) -> TurnSettings:
        """The settings that the turns of a session with these tools would have."""
        none = SessionId("")
        tree = AgentTree(none, self._bounds, TurnLimits)
        return SessionAgentHost(self, none, tree, tools).settings

    def joined(self, actor: SessionActor) -> None:
        """The session is open."""
        host = self._hosts.get(actor.session_id)
        if host is not None:
            host.actor = actor
            host.agent_tree.join(actor.session_id, lambda: actor.state)

    def adopt(self, port: SessionPort, parent: SessionId) -> None:
        """A child that was opened by itself, or lives in another process, belongs to its parent's
        tree from now on.
        """
        child, agent_tree = port.session_id, self._hosts[parent].agent_tree
        host = self._hosts.get(child)
        # What it spends in another process is read from its log.
        if host is None:
            agent_tree.join(child, lambda: port.state)
        # Both had a tree: what the child spends from now on counts for the parent's budget.
        elif host.agent_tree is not agent_tree:
            host.agent_tree = agent_tree
            agent_tree.join(child, lambda: port.state)

    def actor_of(self, session_id: SessionId) -> SessionActor | None:
        """The actor of a session of this process; None for any other."""
        host = self._hosts.get(session_id)
        return None if host is None else host.actor

    # -- the budget that a tree shares

    async def share_budget(self, session_id: SessionId, command: Reserve | Settle) -> str:
        """What a session of this process answers to one that works for it in another.

        Raises:
            SessionStopped: the session is not open here.
            UsageError: that one does not work for it.
        """
        host = self._hosts.get(session_id)
        if host is None or host.actor is None:
            raise SessionStopped(session_id, "it is not open")
        if command.child not in host.actor.state.children.known:
            raise UsageError(f"no session {command.child!r} works for this one")
        # Also one whose end is on record, and which the user has go on: the root holds the budget
        # of all.
        return await host.shared_budget.answer(command)

    async def parent_port(self, parent: SessionId) -> SessionPort:
        return await self.sessions.port(parent)

    def tree_with(self, session_id: SessionId, parent: SessionId) -> AgentTree | None:
        above, port = self._hosts.get(parent), self.ports.get(session_id)
        if above is None or above.actor is None or port is None:
            return None
        if session_id in above.actor.state.children.known:
            self.adopt(port, parent)
        return self._hosts[session_id].agent_tree

    async def turn_ended(self, session_id: SessionId) -> None:
        """A turn of a session has ended: one that worked on after its end, for the user, has what
        it used counted by the session that it worked for.
        """
        host = self._hosts.get(session_id)
        origin = None if host is None or host.actor is None else host.actor.state.about.parent
        if host is None or host.actor is None or origin is None:
            return
        # One that is followed is counted with its end.  What is suspended goes on, and is counted
        # then.
        state = host.actor.state
        if host.agent_tree.is_at_work(session_id) or state.turn.open is not None:
            return
        report = ReportChild(
            child=session_id,
            reason=state.turn.last_reason or "stop",
            used=dict(state.ledger.models),
            is_late=True,
        )
        with suppress(WeftError):  # it is gone, and its budget with it
            await (await self.sessions.port(origin.session_id)).call(report)

    def start(self, send: Callable[[], Awaitable[None]], name: str) -> None:
        self.services.supervisor.start(send, name)

    def left(self, session_id: SessionId) -> None:
        """The session is closed."""
        host = self._hosts.pop(session_id, None)
        if host is not None:
            host.agent_tree.leave(session_id)

    async def _has_ended(self, session_id: SessionId, turn_id: TurnId) -> bool:
        """Whether a turn of another process is over, by the log of its session."""
        try:
            turn = (await self.sessions.stored_state(session_id)).turn.open
        except SessionNotFound:
            return True
        except WeftError:
            return False  # unreadable: what it set aside may be spent still
        return turn is None or turn.turn_id != turn_id

    def _bounds(self) -> AgentLimits:
        return AgentLimits(
            depth=self.services.config.get("agents.max_depth"),
            at_once=self.services.config.get("agents.max_parallel"),
            in_all=self.services.config.get("agents.max_total"),
        )

    def _limits_of(self, root: SessionId) -> TurnLimits:
        host, port = self._hosts.get(root), self.ports.get(root)
        if host is None or port is None:
            return TurnLimits()
        return host.settings.limits_now(port.state)

    # -- privileges

    def ceiling(self, parent: CallOrigin | None) -> Callable[[], Mode] | None:
        """The mode that a child may not be above: its parent's, as it is at that moment."""
        if parent is None:
            return None
        return lambda: self.mode_of(parent.session_id)

    def overlay_ceiling(
        self, parent: CallOrigin | None, *, has_own_network: bool
    ) -> Callable[[], Mode] | None:
        """The mode that a child in an overlay may not be above: what it does stays there until it
        is kept, so it need not be asked for.
        """
        if parent is None or parent.call_uid is None:
            return None  # a candidate, which the user has started
        if not has_own_network:
            return self.ceiling(parent)

        def ceiling() -> Mode:
            mode = self.mode_of(parent.session_id)
            return mode if mode == "plan" else max(mode, "auto", key=MODES.index)

        return ceiling

    def mode_of(self, session_id: SessionId) -> Mode:
        """The mode that is in force in a session.

        Of one that is not open here, the one it would come back with at most.
        """
        port = self.ports.get(session_id)
        if port is None or not port.is_open:
            # The free modes hold only where they were set, in this process; a child must not
            # inherit one from the parent's log.
            return "default"
        return port.permission_mode

    def original(self, session_id: SessionId) -> str:
        """The project of a session; of one that works in a copy, the project that was copied."""
        about = self.ports[session_id].state.about
        while about.parent is not None and Path(about.project_path).is_relative_to(
            self.services.places.worktrees
        ):
            parent = self.ports.get(about.parent.session_id)
            if parent is None:
                break  # not open here: the copy stands for itself, and is not trusted
            about = parent.state.about
        return about.project_path

    # -- background work

    def has_work(self, session_id: SessionId) -> bool:
        """True while an agent of the session is at work, or a command of it runs in the
        background.
        """
        host, port = self._hosts.get(session_id), self.ports.get(session_id)
        if host is None or port is None:
            return False
        if host.shells is not None and host.shells.is_running:
            return True
        return any(host.agent_tree.is_at_work(child) for child in port.state.children.known)

    def runs_command(self, session_id: SessionId, name: str) -> bool:
        """True while a background command of this name runs here."""
        host = self._hosts.get(session_id)
        return host is not None and host.shells is not None and host.shells.has(name)

    def command_output(self, session_id: SessionId, name: str) -> tuple[str, int]:
        """The end of what a background command has printed here, and how much that was in all."""
        host = self._hosts.get(session_id)
        return ("", 0) if host is None or host.shells is None else host.shells.printed(name)

    async def end_background(self, session_id: SessionId, *, suspends: bool = False) -> None:
        """Stop what a session has in the background, and wait until the ends are on its record.

        With `suspends` its agents stay at work in the log, to go on with it later; its commands end
        with the program.
        """
        host = self._hosts.get(session_id)
        actor = None if host is None else host.actor
        if host is None or actor is None:
            return
        if host.shells is not None:
            await host.shells.aclose()
        if suspends or actor.stopped.is_set():
            return
        beside = [
            child
            for child in actor.state.children.at_work(background=True)
            if host.agent_tree.is_at_work(child) and child in self.ports
        ]
        # A child whose tool does not end would keep its parent, and with it the program, from
        # stopping. What is not on record by then is settled by the next process that opens the
        # session.
        with anyio.move_on_after(STOP_SECONDS):
            for child in beside:
                await self.ports[child].abort(
                    AbortTurn(reason="the session it works for was stopped")
                )
            await actor.until(
                lambda state: not any(state.children.known[child].is_open for child in beside)
            )

    async def end_left_behind(
        self, session_id: SessionId, child: SessionId, used: Mapping[str, Usage]
    ) -> None:
        """Put the end of a child on record that another process left behind."""
        host = self._hosts.get(session_id)
        if host is None or host.actor is None or host.agent_tree.is_at_work(child):
            return
        await host.actor.call(ReportChild(child=child, reason="aborted", used=dict(used)))


class SessionAgentHost:
    """One session, as its agents see it."""

    def __init__(
        self, trees: AgentTrees, session_id: SessionId, agent_tree: AgentTree, tools: SessionTools
    ) -> None:
        services = trees.services
        self._trees = trees
        self._services = services
        self.session_id = session_id
        self.agent_tree = agent_tree
        self._foreign: ForeignBudget | None = None
        self.entry = AgentEntry(self)
        # The tool that starts agents needs this host, and the settings need all tools: both are
        # made here.
        table = tools.table if AGENT in tools.table else {**tools.table, AGENT: self.entry}
        output_types = trees.sessions.output_types
        self.files = PromptFiles(trees.prompt_reader)
        self.settings = TurnSettings(
            services, files=self.files, tools=table, lent=tools.lent, output_types=output_types
        )
        self.actor: SessionActor | None = None
        """The session itself, once it is open."""
        self.shells: BackgroundShells | None = None
        """Its background commands, once there was one."""

    @property
    def _port(self) -> SessionPort:
        port = self._trees.ports.get(self.session_id)
        if port is None:
            raise SessionStopped(self.session_id, "it is not open")
        return port

    @property
    def runner(self) -> Runner:
        return self._services.workspaces.runner

    def egress(self, command: ProcessCommand) -> EgressJudge | None:
        """What a check of the session's candidates may reach: what its commands may."""
        rules = () if self.actor is None else self.actor.gate.network_rules
        if not any(rule.verdict == "allow" for rule in rules):
            return None
        from weft.runtime.workspaces.session_egress import session_egress  # few commands may

        return session_egress(rules)

    @property
    def state(self) -> SessionState:
        return self._port.state

    @property
    def tools(self) -> Sequence[str]:
        return self.settings.tool_names(self.state)

    @property
    def model(self) -> ModelName:
        return self.settings.model_now(self.state)

    @property
    def mode(self) -> Mode:
        return self._port.permission_mode

    def mode_of(self, state: SessionState, facts: Sequence[Fact] = ()) -> Mode:
        """The permission mode in force, also while the session is just being opened; with `facts`,
        the one that they bring.
        """
        if facts and self.actor is not None:
            return self.actor.gate.mode_after(facts)
        port = self._trees.ports.get(self.session_id)
        return state.settings.permission_mode if port is None else port.permission_mode

    @property
    def is_aborting(self) -> bool:
        return self.actor is not None and self.actor.is_aborting

    @property
    def shared_budget(self) -> AgentTree | ForeignBudget:
        """What its model calls are paid from."""
        origin = None if self.actor is None else self.actor.state.about.parent
        # A tree of its own is all that a session has here whose parent lives in another process.
        if origin is None or self.agent_tree.root != self.session_id:
            return self.agent_tree
        if self._foreign is None:
            from weft.runtime.foreign_budget import ForeignBudget  # few families live apart

            self._foreign = ForeignBudget(
                self._trees, self.session_id, origin.session_id, self.agent_tree
            )
        return self._foreign

    @property
    def is_closing(self) -> bool:
        return self._trees.sessions.is_closing

    def now(self) -> float:
        return self._services.clock.now()

    async def is_trusted(self) -> bool:
        return await self._services.is_trusted(self._trees.original(self.session_id))

    def definitions(self) -> AgentDefinitions:
        prompter = self._services.prompter
        return prompter.agents(self.state.about.project_path).masked(prompter.redact)

    def model_named(self, name: str) -> ModelName:
        return self._services.models.named(name)

    def inherited(self) -> tuple[Fact, ...]:
        return tuple(
            BoundaryChanged(path=path, first=held.first, last=held.last, base=held.base)
            for path, held in self.state.boundaries.held.items()
        )

    async def open_child(self, wanted: ChildRequest) -> SessionPort:
        port = await self._trees.sessions.open_child(self.session_id, wanted)
        self._trees.adopt(port, self.session_id)
        return port

    async def open_isolated(
        self, wanted: ChildRequest, name: str, prompt: str
    ) -> IsolatedPlace | None:
        isolated, worktrees = self._trees.isolated, self._services.places.worktrees
        assert isolated is not None
        with suppress(SessionNotFound):
            about = (await self._trees.sessions.stored_state(wanted.child)).about
            if Path(about.project_path).is_relative_to(worktrees):
                return None  # it was begun in a git worktree, by an earlier version
        return await isolated.open_isolated(self.session_id, wanted, name, prompt)

    async def prepare_keep(self, fan_id: str, context: ToolContext) -> PreparedCall:
        isolated = self._trees.isolated
        assert isolated is not None
        return await isolated.prepare_keep(self.session_id, fan_id, context)

    async def close_child(self, child: SessionId) -> None:
        actor = self._trees.actor_of(child)
        if actor is None:
            self.agent_tree.leave(child)  # it lives on in its own process
        # The user may be watching the child on a screen, or may have sent it a message since.
        elif not actor.is_busy and not actor.is_watched:
            await self._trees.sessions.unload(child)

    async def tell(self, command: ReportChild | ForwardRequest) -> None:
        # Opened again if it was unloaded, or reached where it lives by now: a background agent may
        # outlast its parent's stay here. Not while the program closes: the next process finds the
        # agent at work and goes on with it, and an end that is written now would be the end of a
        # suspended child.
        actor = self.actor
        # Straight to the session while it serves: one that is being stopped is not among the open
        # ones any more, and to open it again would take it away from itself.
        if actor is not None and not actor.stopped.is_set():
            await actor.call(checked(command))
        else:
            await (await self._own_port()).call(command)

    async def _own_port(self) -> SessionPort:
        sessions = self._trees.sessions
        if sessions.is_closing and sessions.running(self.session_id) is None:
            raise SessionStopped(self.session_id, "the program is closing")
        return await sessions.port(self.session_id)

    def signal(self, signal: Signal) -> None:
        """Show something to those that watch the session here."""
        if self.actor is not None:
            self.actor.log.signal(signal)

    async def append(self, build: Build, *, wake: bool = False) -> Sequence[Fact]:
        """Put on the session's own record what happens in this process, such as the end of a
        background command (`SessionActor.append`).
        """
        await self._own_port()
        actor = self._trees.actor_of(self.session_id)
        if actor is None:
            raise SessionStopped(self.session_id, "another process has taken it over")
        return await actor.append(build, wake=wake)

    async def resolution(self, request_id: RequestId) -> PermissionResolved | QuestionAnswered:
        port = await self._trees.sessions.port(self.session_id)
        return await port.resolution(request_id)

    async def until(self, holds: Callable[[SessionState], bool]) -> None:
        """Wait until something is true of the session's state, or its life in this process
        is over.
        """
        actor = self.actor
        if actor is None:
            return
        async with anyio.create_task_group() as group:
            # The actor's waiters are not woken when it stops; without this a background command
            # would wait for ever.
            async def give_up() -> None:
                await actor.stopped.wait()
                group.cancel_scope.cancel()

            group.start_soon(give_up)
            await actor.until(holds)
            group.cancel_scope.cancel()

    async def ended(self) -> None:
        """Wait until the session's life in this process is over."""
        await self._port.ended()

    def background_shells(
        self, redact: Redactor, changes_of: Callable[[CallUid, ToolOutcome | None], Commit]
    ) -> BackgroundShells:
        """The session's background commands.

        `changes_of` makes the facts of what one has changed.
        """
        if self.shells is None:
            from weft.runtime.background_commands import BackgroundShells  # only with the first one

            self.shells = BackgroundShells(self, redact, changes_of)
        return self.shells

    def stop_command(self, name: str) -> None:
        """Have a background command of the session end."""
        if self.shells is not None:
            self.shells.stop_soon(name)

    def start(self, run: Callable[[], Awaitable[None]], name: str) -> None:
        self._services.supervisor.start(run, name)

    def wake_background(self, state: SessionState) -> None:
        """Go on with the background agents that another process left at work."""
        for child in state.children.at_work(background=True):
            # One whose call is still open is gone on with by that call.
            is_open_call = state.children.known[child].call_uid in state.turn.intents
            if not is_open_call and not self.agent_tree.is_at_work(child):
                self.entry.resume(child)
