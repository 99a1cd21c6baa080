"""The host of an application's sessions: ports to them, their life, and what they all share.

`app.host`.  Screens, servers and `Session` handles stand on it; a program needs `app.sessions`
alone.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import anyio
import msgspec

from weft.errors import SessionNotFound, StoreError, UsageError, WeftError
from weft.events import Fact, SessionCreated
from weft.ids import BlobId, SessionId
from weft.messages import Content, ModelName, Text
from weft.project.instructions import InstructionSet
from weft.project.skills import SkillSet
from weft.providers import Model, ModelInfo
from weft.runtime.ports.local import LocalPort
from weft.runtime.registry import SessionRegistry
from weft.runtime.services import Services
from weft.runtime.tool_table import as_tool
from weft.session import (
    AbortTurn,
    ChangeSetting,
    ContinueTurn,
    GrantedPermissions,
    SessionPort,
    WakeTurn,
)
from weft.store import Lease, SessionRow, Store
from weft.store.location import StoreArgument
from weft.thinking_levels import KnownLevels, ThinkingLevel
from weft.tools import EDITS, PreparedCall, Tool, ToolContext
from weft.workspace.disk_threads import DiskThreads

if TYPE_CHECKING:  # loaded with the first command or agent: it costs start-up time
    from weft.agents.host import ChildRequest, IsolatedPlace
    from weft.config.key_check import KeyCheck
    from weft.project.agent_definitions import AgentDefinitions
    from weft.project.markdown_commands import Ask, ExpandedCommand, MarkdownCommandSet
    from weft.project.mentions import AskRead
    from weft.runtime.command_expansion import MarkdownCommands
    from weft.runtime.due_sessions import DueSessions
    from weft.runtime.fan.fan_run import FanRun
    from weft.runtime.snapshots.forbidden_contents import ForbiddenContents
    from weft.runtime.workspaces.file_view import ProjectFile
    from weft.tools import OutputSchema
    from weft.workspace import ChangeReview, RunResult

logger = logging.getLogger(__name__)


class CheckedStart(msgspec.Struct, frozen=True, kw_only=True):
    """A session to be made, or found by its id: names, models and tools are known to be right."""

    session_id: SessionId
    may_exist: bool
    """The caller named the id: a session of that id goes on."""
    facts: tuple[Fact, ...]
    """The first facts of a new one; `SessionCreated` is the first of them."""
    tools: Mapping[str, Tool]
    store: StoreArgument | None
    asking: Literal["wait", "yes", "no"]
    model: ModelName | None
    """None: the caller names none, and a stored session keeps its own.  So with the mode."""
    permission_mode: str | None
    resume: str | None
    """What happens to a turn that a crash cuts off; None leaves what the session has."""


class SessionHost:
    """The sessions of one application at work, and what they share."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.registry = SessionRegistry(services)
        self._due: DueSessions | None = None
        self.fan_runs: dict[str, FanRun] = {}
        """The fan-outs that were begun or taken up here, by their ids."""
        self.fan_locks: dict[str, anyio.Lock] = {}
        """Held while a fan-out is begun or opened: one at a time of an id."""
        self.registry.agents.isolated = self
        self._forbidden: WeakKeyDictionary[SessionPort, ForbiddenContents] = WeakKeyDictionary()
        self.on_woken: Callable[[SessionPort], None] = lambda port: None
        """Called with each session that goes on here because its wait is over."""

    # -- the start of sessions

    async def prepare_index(self, message: Sequence[Content]) -> None:
        """Have the index of the project, where it has one, look for what a first message may be
        about, before it is sent; a cancel leaves it to the message.
        """
        project_path = self.services.project_path
        if not self.services.indexes.exists(project_path):
            return
        request = "\n".join(part.text for part in message if isinstance(part, Text))

        def prepare() -> None:
            import weft.runtime.turns.request_hints  # noqa: F401  # loaded here and not by a message

            self.services.indexes.access().reader(project_path).prepare(request)

        try:
            await anyio.to_thread.run_sync(prepare, abandon_on_cancel=True)
        except OSError:
            logger.warning("the index could not be read", exc_info=True)

    async def start(self, wanted: CheckedStart) -> SessionPort:
        """Make a session, open the stored one of its id, or find the running one.

        Raises:
            UsageError: its folder is not there, or it is open from another store.
            StoreUnavailable: another process owns it and cannot be reached.
        """
        chosen, registry = wanted.session_id, self.registry
        is_open = registry.running(chosen) is not None
        async with registry.stores.entered(wanted.store, chosen, is_open=is_open) as store:
            # Two calls with one new id must not both make it: the second finds the first one's.
            async with registry.alone(chosen):
                is_known = wanted.may_exist and await store.row(chosen) is not None
                registry.keep_tools(chosen, wanted.tools)
                registry.keep_asking(chosen, wanted.asking)
                if not is_known:
                    await self._create(wanted)
            if is_known:
                return await self._resume(wanted)
        return registry.ports[chosen]

    async def _create(self, wanted: CheckedStart) -> None:
        created = wanted.facts[0]
        assert isinstance(created, SessionCreated)
        folder = created.project_path
        if not await DiskThreads.of(folder).run(lambda: os.path.isdir(folder)):
            raise UsageError(f"there is no folder {folder!r} to work in")
        # The caller of this very process chose the mode, so `auto` and `bypass` hold at once.
        self.registry.granted[wanted.session_id] = GrantedPermissions(trusted_mode=True)
        await self.registry.create(wanted.session_id, wanted.facts)

    async def _resume(self, wanted: CheckedStart) -> SessionPort:
        port = await self.port(wanted.session_id)
        settings, model = port.state.settings, wanted.model
        is_new = model is not None and model.name != settings.model
        if model is not None and (is_new or model.effort not in (None, settings.thinking)):
            await port.call(ChangeSetting(name="model", value=str(model)))
        if wanted.permission_mode is not None:
            await port.call(ChangeSetting(name="permission_mode", value=wanted.permission_mode))
        if wanted.resume is not None and wanted.resume != settings.get("resume", "ask"):
            await port.call(ChangeSetting(name="resume", value=wanted.resume))
        if wanted.resume == "auto" and port.status == "interrupted":
            await port.call(ContinueTurn(by_itself=True))
        elif wanted.resume == "auto" and port.status == "waiting":
            await port.call(WakeTurn())
        return port

    # -- ports

    async def port(self, session_id: SessionId) -> SessionPort:
        """The port of a session, wherever it lives; starts a stored one without calling a model."""
        return await self.registry.port(session_id)

    def running(self, session_id: SessionId) -> SessionPort | None:
        """The port of a session that is open here; None when it is not."""
        return self.registry.running(session_id)

    def runs_here(self, session_id: SessionId) -> bool:
        """True for a session that is open in this process, and not in another that we reach."""
        port = self.registry.running(session_id)
        return port is not None and port.lives_here

    @asynccontextmanager
    async def waiting(self, session_id: SessionId) -> AsyncGenerator[None]:
        """Meanwhile, this process waits for a turn of the session: should the process that has it
        die, the turn is not ended by another's prompt.
        """
        if self.runs_here(session_id):
            yield
            return
        store = await self.registry.store_of(session_id)
        async with self.registry.signs().shown(session_id, store.meeting_folder):
            yield

    async def local_port(self, session_id: SessionId) -> LocalPort:
        """The port of a session of this process; for other processes that ask us to drive it."""
        # Never a remote one: two processes that hand a command on to each other would not end.
        known = self.registry.running(session_id)
        if not isinstance(known, LocalPort):
            raise SessionNotFound(session_id)
        return known

    async def is_owned_by(self, pid: int, session_id: SessionId) -> bool:
        """Whether the living process of this id, on this machine, has a session."""
        store = await self.registry.store_of(session_id)
        lease = await store.lease_of(session_id)
        if lease is None:
            return False
        return lease.owner.pid == pid and lease.owner.host == store.owner.host

    async def is_at_work(self, session_id: SessionId) -> bool:
        """Whether a living process, this one or another, has the open turn of a session."""
        port = self.registry.running(session_id)
        if port is not None and port.lives_here:
            return port.status not in ("idle", "interrupted", "error")
        store = await self.registry.store_of(session_id)
        return await store.lease_of(session_id) is not None

    def store_of(self, session_id: SessionId) -> Store:
        """The store that a session was started in."""
        return self.registry.stores.of(session_id)

    async def row(self, session_id: SessionId) -> SessionRow | None:
        """What a list shows of one session; None when it is not stored."""
        return await (await self.registry.store_of(session_id)).row(session_id)

    def runs_command(self, session_id: SessionId, name: str) -> bool:
        """True while a background command of this name runs in this process."""
        return self.registry.agents.runs_command(session_id, name)

    def command_output(self, session_id: SessionId, name: str) -> tuple[str, int]:
        """The end of what a background command has printed, and how much that was in all; nothing
        of one that runs in another process.
        """
        return self.registry.agents.command_output(session_id, name)

    # -- sessions of other hosts

    async def take_over(self, leases: Sequence[Lease]) -> SessionPort:
        """Go on with the turn of a session that another host had: the first of these leases is its
        own, the others are of those that work for it.

        Raises:
            WeftError: it cannot be opened here; its leases are given back.
        """
        first, *others = leases
        registry, store = self.registry, self.services.stores.own
        registry.taken_along.update({SessionId(each.stream): each for each in others})
        try:
            port = await registry.open_taken(store, first)
        except BaseException:
            await registry.give_back_taken([SessionId(each.stream) for each in others])
            raise
        if port.status == "interrupted":
            await port.call(ContinueTurn())
        return port

    @property
    def load(self) -> int:
        """How busy this process is: its open sessions, those that work counted twice."""
        ports = [each for each in self.registry.ports.values() if isinstance(each, LocalPort)]
        return len(ports) + sum(port.actor.is_busy for port in ports)

    # -- isolated agents

    async def open_isolated(
        self, session_id: SessionId, wanted: ChildRequest, name: str, prompt: str
    ) -> IsolatedPlace | None:
        """The overlay of an isolated agent of a session (`AgentHost.open_isolated`)."""
        from weft.runtime.fan.isolated_agents import open_isolated  # few agents are isolated

        return await open_isolated(self, session_id, wanted, name, prompt)

    async def prepare_keep(
        self, session_id: SessionId, fan_id: str, context: ToolContext
    ) -> PreparedCall:
        """A call that puts what an isolated agent changed into the project, prepared."""
        from weft.runtime.fan.isolated_agents import prepare_keep  # as above

        return await prepare_keep(self, session_id, fan_id, context)

    # -- the end of sessions

    async def stop(self, session_id: SessionId, *, suspends: bool = False) -> None:
        """End a session's life in this process, and that of those that work for it.

        A turn that runs is aborted, or with `suspends` left open, to go on; the record stays.
        """
        # While it is still open: the ends of its agents and commands go on its record.
        await self.registry.agents.end_background(session_id, suspends=suspends)
        # Out of the registry first: a call that comes while it stops opens it again, after us.
        port = self.registry.forget(session_id)
        children = [] if port is None else list(port.state.children.known)
        if port is not None and children:
            self.registry.parting[session_id] = port.restrictions
        try:
            if port is not None:
                await port.close("stopped", suspends=suspends)
            self.registry.agents.left(session_id)
            for child in children:
                if child in self.registry.ports:
                    await self.stop(child, suspends=suspends)
                await self.registry.stores.release(child)
        finally:
            self.registry.parting.pop(session_id, None)
        await self.registry.give_back_taken(children)
        await self.registry.stores.release(session_id)

    async def finish_for_guests(self, session_id: SessionId) -> None:
        """Before this process ends: let a turn of this session end that runs for other processes.

        No further one is begun; those who wait take the session over.
        """
        port = self.registry.running(session_id)
        if isinstance(port, LocalPort) and port.actor.is_busy and port.actor.is_watched:
            await port.actor.finish_turn()

    async def stop_child(self, session_id: SessionId, child: SessionId) -> None:
        """Stop a session that works for another, and record its end there."""
        await (await self.port(child)).abort(AbortTurn(reason="it was stopped"))
        used = await self.registry.usage_of(child)
        await self.registry.agents.end_left_behind(session_id, child, used)

    async def delete(self, session_id: SessionId) -> None:
        """Remove a session for good, with all that worked for it.

        One that forks share is hidden.
        """
        async with self.registry.reading(session_id) as store:
            # Before the parent's record goes, which alone names them.
            children = await self._all_children(session_id)
            row = await store.row(session_id)
            await self.stop(session_id)
            await store.delete(session_id)
            self.registry.forget_deleted(session_id)
            await self._delete_beside(session_id, row, store)
            for child in children:
                if await store.last_seq(child):
                    await self.delete(child)

    async def _delete_beside(
        self, session_id: SessionId, row: SessionRow | None, store: Store
    ) -> None:
        """Remove what a deleted session left outside the store."""
        handover = self.services.places.handovers / f"{session_id}.md"
        await anyio.to_thread.run_sync(partial(handover.unlink, missing_ok=True))
        if await anyio.to_thread.run_sync(self.services.places.unsettled_fans.parent.is_dir):
            from weft.runtime.fan.stored_fans import forget_fans  # few sessions have any

            await forget_fans(self, session_id)
        # A chat that ended before its first message ran no command; the files of its project
        # need not be read again for it.
        if row is None or not (row.message_count or row.turn_count):
            return
        path = row.project_path
        others = await store.rows(project_path=path, limit=10_000, archived=True, children=True)
        # After a kill these copies are all that is known of what the last command changed.
        is_needed = any(each.turn_open for each in others)
        await self.services.workspaces.forget_files(path, is_needed=is_needed)
        # Records of the sandbox tell a command's changes, not its project: while any turn is open,
        # one of them may be its own.
        every = await store.rows(limit=10_000, archived=True, children=True)
        if not any(each.turn_open for each in every):
            await self.services.workspaces.forget_records()

    async def _all_children(self, session_id: SessionId) -> list[SessionId]:
        try:
            return list((await self.registry.state_of(session_id)).children.known)
        except WeftError:  # a damaged session can be deleted too
            return []

    async def wake_due(self) -> list[SessionId]:
        """Go on with the turns of this project whose wait is over and that no process has at work;
        returns whose they are.
        """
        return self._woken(await self._due_sessions().wake())

    async def wake_taken(self, lease: Lease) -> list[SessionId]:
        """The same for one session, whose lease was taken for it.

        Raises:
            WeftError: it cannot be opened here; its lease is given back.
        """
        return self._woken(await self._due_sessions().wake_taken(lease))

    async def wake_open(self, session_id: SessionId) -> list[SessionId]:
        """The same for one that is open here, in whichever folder lists say that it is."""
        return self._woken(await self._due_sessions().wake_open(session_id))

    def _due_sessions(self) -> DueSessions:
        if self._due is None:
            from weft.runtime.due_sessions import DueSessions  # a short run never asks

            clock, project = self.services.clock, self.services.project_path
            self._due = DueSessions(self.registry, clock, project)
        return self._due

    def _woken(self, ports: Sequence[SessionPort]) -> list[SessionId]:
        for port in ports:
            self.on_woken(port)
        return [port.session_id for port in ports]

    @property
    def last_used(self) -> float:
        """When a session in this process was used last, by the monotonic clock."""
        ports = self.registry.ports.values()
        return max(
            (port.actor.last_used for port in ports if isinstance(port, LocalPort)), default=0
        )

    @property
    def projects(self) -> set[str]:
        """The projects that sessions in this process work on."""
        ports = self.registry.ports.values()
        return {
            port.actor.state.about.project_path for port in ports if isinstance(port, LocalPort)
        }

    async def unload_idle(self, older_than_seconds: float) -> int:
        """Unload sessions that are neither used nor watched; returns how many.

        They come back with the next call.

        Raises:
            StoreError: one could not be unloaded; the others were.
        """
        limit = self.services.clock.monotonic() - older_than_seconds
        idle = [
            port
            for port in self.registry.ports.values()
            if isinstance(port, LocalPort)
            and not port.actor.is_busy
            and not port.actor.is_watched
            and port.actor.last_used <= limit
        ]
        unloaded, failure = 0, None
        for port in idle:
            # Each takes a while, and meanwhile one of those further down may have been used.
            if port.actor.last_used > limit or self.registry.agents.has_work(port.session_id):
                continue
            try:
                unloaded += await self.registry.unload_unused(port)
            except StoreError as error:
                failure = error
        # Only now: a session that cannot be unloaded must not keep those after it in memory.
        if failure is not None:
            raise failure
        return unloaded

    async def aclose(self) -> None:
        """Stop every session of this process, side by side; each stops those that work for it.

        Turns that run are suspended: they stay open, and can go on, like after a crash.
        """
        self.registry.is_closing = True
        await self._stop_all()
        self.registry.end_list_events()

    async def suspend_all(self) -> None:
        """Stop what runs here at once, and let every session go: others are about to take this
        process for dead.

        Turns stay open and can go on, wherever the session is opened next.
        """
        # Without the log first: it may be a while before the store answers.
        for port in self.registry.ports.values():
            if isinstance(port, LocalPort):
                port.actor.suspend_work()
        await self._stop_all()

    async def _stop_all(self) -> None:
        ports = self.registry.ports
        roots = [each for each, port in ports.items() if port.state.about.parent is None]
        # Twice: a root stops its own agents, and what is left then has a parent that is not open
        # here.
        for wave in (roots, list(ports)):
            async with anyio.create_task_group() as group:
                for session_id in wave:
                    if session_id in ports:
                        group.start_soon(self._stop_quietly, session_id)

    async def _stop_quietly(self, session_id: SessionId) -> None:
        """Stop one session; what cannot be stored stays interrupted, and the others stop."""
        try:
            await self.stop(session_id, suspends=True)
        except WeftError:
            logger.exception("a session could not be stopped", extra={"session": session_id})

    # -- models

    async def available_models(self, providers: Iterable[str] | None = None) -> list[ModelInfo]:
        """Every model that could be used, of these providers or of all."""
        return await self.services.models.available(providers)

    def usable_providers(self) -> frozenset[str]:
        """The providers that have a key here, or need none."""
        return self.services.models.usable()

    def check_model(self, name: str) -> None:
        """Refuse a name that could be no model's here.

        Raises:
            UsageError: there is no such provider, or no such short name.
        """
        self.services.models.check(name)

    def missing_key(self, model: str) -> str:
        """What to say of a model whose provider has no key here; empty when it can be asked.

        Raises:
            UsageError: there is a key that can be none.
        """
        if self.services.config.get("model.fallback"):
            return ""  # another one answers in its place
        return self.services.models.missing_key(model)

    def short_names(self) -> dict[str, tuple[str, ...]]:
        """The short names of models, by `provider:model`."""
        return self.services.models.short_names()

    def provider_address(self, provider: str) -> str:
        """Where a provider is reached."""
        return self.services.models.address(provider)

    def key_before_saved(self, provider: str) -> str:
        """The variable or setting whose key comes before a saved one at every start."""
        return self.services.models.key_before_saved(provider)

    async def check_key(self, provider: str, key: str) -> KeyCheck:
        """Ask a provider's server whether it takes a key, or the one that it has here."""
        return await self.services.models.check_key(provider, key)

    def shown_key(self, provider: str) -> tuple[str, str]:
        """A provider's key as it may be shown, and where it is from."""
        return self.services.models.shown_key(provider)

    def has_default_model(self) -> bool:
        """Whether settings or a key name the model of a new session; else it is a stand-in."""
        return bool(self.services.config.get("model.default")) or self.services.models.has_default()

    def default_model(self) -> str:
        """The model of a new session that names none."""
        return self.default_named().name

    def default_effort(self, model: str | None = None) -> ThinkingLevel:
        """The thinking level of a new session that names this model, or none, and no level."""
        named = self.model_named(model) if model else self.default_named()
        configured: ThinkingLevel = self.services.config.get("model.effort")
        return named.effort or configured

    def default_named(self) -> ModelName:
        """The model of a new session that names none, with the effort that is named with it."""
        configured = self.services.config.get("model.default")
        return self.model_named(configured or self.services.models.default())

    def model(self, name: str) -> Model:
        """The model that a session's log names."""
        return self.services.models.resolve(name)

    def context_window(self, model: str) -> int:
        """How much a model can take; 0 when that is not known, for lack of its key, say."""
        try:
            return self.model(model).info.context_window
        except WeftError:
            return 0

    async def stored_prefix(self, prefix: BlobId) -> bytes | None:
        """The prefix of a request, as it is stored; None where it is not."""
        for store in self.registry.stores.in_use:
            if (data := await store.blob(prefix)) is not None:
                return data
        return None

    def unused_edits(self, model: str) -> Collection[str]:
        """The tools for edits that a model is not told of: it has either patches or exact
        replacements.
        """
        try:
            return EDITS if self.model(model).info.edits_by_patch else ("apply_patch",)
        except WeftError:
            return ("apply_patch",)

    def levels_of(self, model: str) -> KnownLevels:
        """The thinking levels of a model; none if it does not think, None when not known."""
        return self.services.models.levels(model)

    def rotation(self) -> list[str]:
        """The models that `cycle_model` goes through."""
        return list(self.services.config.get("model.rotation"))

    def model_named(self, model: str | Model) -> ModelName:
        """The model that is meant, and the effort that is named with it.

        A model object becomes known by its name.

        Raises:
            UsageError: the name is not right.
        """
        models = self.services.models
        if isinstance(model, str):
            return models.named(model)
        if not isinstance(getattr(model, "info", None), ModelInfo):
            raise UsageError(f"{model!r} is not a model: write provider:model, or give a Model")
        return models.named(models.register(model))

    def normal_model(self, model: str | Model) -> str:
        """The name that the log has for a model; otherwise as `model_named`."""
        return self.model_named(model).name

    # -- what the project brings

    def skills(self, project_path: str) -> SkillSet:
        """The skills of a project."""
        return self.services.prompter.skills(project_path)

    def instructions(self, project_path: str) -> InstructionSet:
        """The instructions that the model reads when it works on a project."""
        return self.services.prompter.instructions(project_path)

    async def agents(self, project_path: str) -> AgentDefinitions:
        """The agents that a session on this project may use."""
        return await anyio.to_thread.run_sync(self.services.prompter.agents, project_path)

    def command_names(self) -> list[str]:
        """The slash commands that every screen has."""
        # Late: it costs start-up time.
        from weft.project.slash_commands import COMMANDS

        return [command.name for command in COMMANDS]

    def _markdown(self) -> MarkdownCommands:
        from weft.runtime.command_expansion import MarkdownCommands  # with the first such command

        return MarkdownCommands(self.services, self.registry)

    async def commands(self, project_path: str) -> MarkdownCommandSet:
        """The slash commands from Markdown files that a session on this project may use."""
        return await self._markdown().of(project_path)

    async def expand_command(
        self,
        session_id: SessionId,
        text: str,
        ask: Ask | None,
        client: str = "",
        ask_read: AskRead | None = None,
    ) -> ExpandedCommand:
        """What a line `/name arguments` stands for; `Session.expand_command` says how.

        Raises:
            UsageError: there is no such command, a shell command in it may not be run, or a file
                that it names may not be read.
        """
        return await self._markdown().expand(session_id, text, ask, client, ask_read)

    # -- files that are looked at

    async def read_file(
        self, session_id: SessionId, path: str, at: str | int | None, ask: AskRead | None
    ) -> ProjectFile:
        """A file of a session's project; `Session.read_file` says how.

        Raises:
            UsageError: it may not be read, or was not there.
        """
        from weft.runtime.workspaces.file_view import message_at, past_file, project_file

        port = await self.port(session_id)
        reader = await self.registry.mention_reader(port, ask)
        if at is None:
            return await project_file(reader, path)
        node = message_at(port.state, at)
        return await past_file(reader, path, port.state, self.store_of(session_id), node)

    async def read_blob(self, blob_id: BlobId) -> bytes:
        """The content of a blob; `App.read_blob` says how.

        Raises:
            UsageError: there is none, or it is of a file that may not be read.
        """
        from weft.runtime.snapshots.forbidden_contents import ForbiddenContents
        from weft.runtime.workspaces.file_view import shown_blob

        if not isinstance(blob_id, str):
            raise UsageError(f"a blob is named by a text, its SHA-256, not {blob_id!r:.80}")
        await self._refuse_for_stored(blob_id)
        for port in list(self.registry.ports.values()):
            await self.registry.reach_rules(port)
            if not (rules := self.registry.read_rules(port)):
                continue
            known = self._forbidden.setdefault(port, ForbiddenContents())
            judge, root = self.registry.read_judge(port), self.registry.root_of(port)
            store = self.store_of(port.session_id)
            await known.refuse(blob_id, port.state, store, rules, judge, root)
        return await shown_blob(blob_id, self.registry.stores.in_use, self.services.redact)

    async def _refuse_for_stored(self, blob_id: BlobId) -> None:
        """Refuse a blob that a session which is not open has of a file that may not be read.

        Raises:
            UsageError: it is one, or that cannot be known.
        """
        for store in self.registry.stores.in_use:
            for session_id in await store.sessions_with(blob_id):
                if session_id in self.registry.ports:
                    continue
                try:
                    await self._refuse_for_closed(blob_id, session_id, store)
                except StoreError as error:
                    raise UsageError(
                        f"blob {blob_id!r} is of the session {session_id}, which cannot be read, "
                        f"so that no rule can be heeded: {error}"
                    ) from error

    async def _refuse_for_closed(
        self, blob_id: BlobId, session_id: SessionId, store: Store
    ) -> None:
        from weft.runtime.snapshots.forbidden_contents import ForbiddenContents
        from weft.runtime.workspaces.read_guard import read_judge
        from weft.session import load_state

        row = await store.row(session_id)
        # Of a session with a row, without loading it: most have no rules at all.
        if row is not None and not self.registry.stored_read_rules(row.project_path):
            return
        state = await load_state(session_id, store)
        rules = self.registry.stored_read_rules(state.about.project_path)
        root = self.services.workspaces.workspace(state.about.project_path).root
        judge = read_judge(rules, root)
        await ForbiddenContents().refuse(blob_id, state, store, rules, judge, root)

    async def run_as_user(self, session_id: SessionId, command: str, *, to_model: bool) -> None:
        """Run a command line that the user typed: without a question, but with hooks, rules that
        deny and the records of a call.  With `to_model`, the model reads what it printed with the
        next message.

        Raises:
            UsageError: it may not be run.
        """
        await self._markdown().run_as_user(session_id, command, to_model=to_model)

    async def run_reviewed(
        self,
        session_id: SessionId,
        command: str,
        review: ChangeReview,
        on_output: Callable[[str], None],
    ) -> RunResult:
        """Run a command of the user's in the sandbox, as `run_as_user` does, for as long as it
        takes; what it changed is carried over if `review` says so.  `on_output` gets what it
        prints.

        Raises:
            UsageError: there is no sandbox, or it may not be run.
        """
        return await self._markdown().run_reviewed(session_id, command, review, on_output)

    # -- what messages bring

    def lend_tools(self, session_id: SessionId, wanted: Any) -> Any:
        """The names of these tools, for one message.

        Functions become known to the session by their names, in this process alone.

        Raises:
            UsageError: one is no tool, or the session lives in another process.
        """
        if isinstance(wanted, str) or not isinstance(wanted, Sequence):
            return wanted  # the session says what is wrong with it
        names: list[str] = []
        for each in wanted:
            made = each if isinstance(each, str) else as_tool(each)
            if isinstance(made, str):
                names.append(made)
                continue
            if not isinstance(self.registry.ports.get(session_id, None), LocalPort | None):
                raise UsageError(f"{made.name!r} cannot go to the process that has the session")
            self.registry.lent.setdefault(session_id, {})[made.name] = made
            names.append(made.name)
        return names

    async def save_handover(self, session_id: SessionId, text: str) -> str:
        """Save a handover document with our data, under the session's id; returns its path."""
        path = self.services.places.handovers / f"{session_id}.md"
        await anyio.to_thread.run_sync(write_private, path, text)
        return str(path)

    def now(self) -> float:
        """Wall-clock time."""
        return self.services.clock.now()

    def output_schema(self, wanted: Any) -> OutputSchema:
        """What a result must look like, from a JSON Schema or a type.

        Raises:
            UsageError: it is neither.
        """
        return self.registry.output_types.add(wanted)


def write_private(path: Path, text: str) -> None:
    """Write a file that only the user can read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Created with its mode: a chmod afterwards would leave an instant in which others can open it.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
