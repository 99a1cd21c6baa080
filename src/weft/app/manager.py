"""All sessions of an application: started, found, listed, stopped.

The registry is a map of ids to actors in this process; looking there waits for nobody.  A session that is stored and not running is
started by the first call that needs it; one that another living process owns is reached through that process.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import anyio
import msgspec

from weft.actors import Supervisor
from weft.app.config import Config
from weft.app.family import Desk, Families
from weft.app.filework import FileWork
from weft.app.models import Models
from weft.app.port import UNLOADED, Hooking, LocalPort, Port
from weft.app.prompt import Prompter
from weft.app.replies import HistoryMessage
from weft.app.seed import seed_facts
from weft.app.session import Session, history
from weft.app.shapes import Shapes
from weft.app.skills import Skills
from weft.app.workshop import AGENT, SessionWorkshop, as_tool, tool_table
from weft.clock import Clock
from weft.errors import AmbiguousId, Owned, SessionNotFound, UsageError, WeftError
from weft.events import Fact, ForkPoint, Origin, SessionCreated, Status
from weft.ids import BlobId, SessionId, new_call_uid, new_session_id
from weft.loop import Hooks
from weft.messages import Usage, clean_text, clean_value
from weft.permissions import MODES, Rule, Verdict
from weft.providers import Model, ModelInfo
from weft.redact import Redactor
from weft.session import (
    Abort,
    AddNote,
    ChangeSetting,
    ContinueTurn,
    Leave,
    SessionActor,
    SessionEnvironment,
    load_line,
    load_state,
    node_at,
)
from weft.state import SessionState
from weft.store import SessionRow, Store
from weft.tools import ReadLog, Shape, Tool, ToolContext
from weft.workspace import Runner, Workspace

if TYPE_CHECKING:  # loaded when somebody uses commands: it costs start-up time
    from weft.app.command_shell import Ask
    from weft.app.commands_md import Expanded, MarkdownCommand, MarkdownCommands, RunShell
    from weft.app.confinement import Confinement
if TYPE_CHECKING:
    from weft.agents import Definitions, Wanted

logger = logging.getLogger(__name__)

TITLE_LENGTH = 60
"""Characters of a title that is made from the first prompt."""


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A running session at a glance."""

    id: SessionId
    status: Status
    title: str
    model: str
    mode: str
    project_path: str
    last_active: float


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A stored session, read without starting anything."""

    row: SessionRow
    messages: tuple[HistoryMessage, ...]
    ids: tuple[str, ...]


ExportFormat: TypeAlias = Literal["json", "jsonl", "md", "html"]


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an import."""

    session: Session
    dropped: dict[str, int]
    """What the exported session had besides its conversation, by name, and how much of it: none of that is taken over."""


class Equipment(msgspec.Struct, frozen=True, kw_only=True):
    """What the application gives every session."""

    store: Store
    supervisor: Supervisor
    config: Config
    models: Models
    clock: Clock
    sleep: Callable[[float], Awaitable[None]]
    """How the waits before a retry are waited."""
    workspace: Callable[[str], Workspace]
    files: Callable[[str, Runner], FileWork]
    """What a session needs to know what its commands changed, and to take it back."""
    runner: Runner
    confinement: Callable[[], Confinement | None]
    """The sandbox that the commands of sessions run in; None where they run as they are."""
    prompter: Prompter
    redact: Redactor
    handovers: Path
    """Where handover documents are kept."""
    hooks: Callable[[SessionId, str], Hooking | None]
    """The hooks of a session on a project; None where there are none."""
    is_trusted: Callable[[str], Awaitable[bool]]
    """Whether the person trusts a project as it is now."""
    user_agents: Path
    """Where the person's own agents are defined."""
    worktrees: Path
    """Where copies of projects for isolated agents are made."""
    project_path: str
    resolve_path: Callable[[str], str]


class SessionManager:
    """`app.sessions`."""

    def __init__(self, equipment: Equipment) -> None:
        self._equipment = equipment
        self._ports: dict[SessionId, Port] = {}
        self._opening: dict[SessionId, anyio.Lock] = {}
        self._tools: dict[SessionId, Mapping[str, Tool]] = {}
        self._lent: dict[SessionId, dict[str, Tool]] = {}
        self._asking: dict[SessionId, Literal["wait", "yes", "no"]] = {}
        self._leave: dict[SessionId, Leave] = {}
        self._hooks: dict[SessionId, Hooking] = {}
        self._shapes = Shapes()
        self._families = Families(
            config=equipment.config,
            models=equipment.models,
            clock=equipment.clock,
            supervisor=equipment.supervisor,
            runner=equipment.runner,
            user_agents=equipment.user_agents,
            worktrees=equipment.worktrees,
            ports=self._ports,
            open_port=self.port,
            open_child=self._open_child,
            close=self._unload,
        )

    # -- starting

    async def start_session(
        self,
        *,
        session_id: str | None = None,
        model: str | Model | None = None,
        project_path: str | os.PathLike[str] | None = None,
        title: str | None = None,
        tools: str | Sequence[str | Tool | Callable[..., Any]] = "all",
        auto_approve: bool = False,
        system_prompt: str | None = None,
        permission_mode: str | None = None,
        messages: Sequence[Mapping[str, Any] | HistoryMessage] | None = None,
        resume: Literal["ask", "auto"] = "ask",
        parent: Origin | None = None,
        asking: Literal["wait", "no"] = "wait",
        **settings: Any,
    ) -> Session:
        """Start a new session, resume a stored one, or return the running one.

        `auto_approve` answers every ask with yes; deny rules still hold.  `messages` seeds a new session with a conversation.  With
        `resume="auto"` a turn that was interrupted goes on at once.

        Raises:
            UsageError: a setting, a tool or the model's name is wrong.
            StoreUnavailable: another process owns it and cannot be reached.
        """
        if permission_mode is not None and permission_mode not in MODES:
            raise UsageError(
                f"no permission mode {permission_mode!r}; there are {', '.join(MODES)}"
            )
        table, wanted = tool_table(tools)
        name = self.normal_model(model) if model is not None else None
        chosen = SessionId(session_id) if session_id else new_session_id(self.now())
        _check_id(chosen)
        path = self._equipment.resolve_path(str(project_path or self._equipment.project_path))
        settings = clean_value(settings)
        self._check_settings(settings, path, table, name)
        seeds = seed_facts(messages or (), self.now())
        created = SessionCreated(
            project_path=path,
            title=clean_text(title or "")
            or f"Session {datetime.fromtimestamp(self.now()):%Y-%m-%d %H:%M}",
            model=name or self.default_model(),
            settings=_settings(
                settings,
                tools=wanted,
                system_prompt=clean_text(system_prompt) if system_prompt else None,
                permission_mode=permission_mode or self._equipment.config.get("permissions.mode"),
                auto_title=title is None,
            ),
            parent=parent,
        )
        async with self._alone(chosen):
            is_known = session_id is not None and await self._is_stored(chosen)
            self._tools[chosen] = table
            self._asking[chosen] = "yes" if auto_approve else asking
            if not is_known:
                await self._refuse_missing(path)
                self._leave[chosen] = Leave(trusted_mode=True)
                self._keep(self._way_to(await self._create(chosen, (created, *seeds))))
        if is_known:
            return await self._resume(chosen, name, permission_mode, resume)
        return Session(chosen, self, self._ports[chosen])

    async def _refuse_missing(self, path: str) -> None:
        if not await anyio.Path(path).is_dir():
            raise UsageError(f"there is no folder {path!r} to work in")

    def _check_settings(
        self, settings: dict[str, Any], path: str, table: Mapping[str, Tool], model: str | None
    ) -> None:
        """Refuse settings that no turn could work with."""
        budget = settings.get("budget") or {}
        if not isinstance(budget, Mapping):
            raise UsageError(f"a budget has max_budget_usd and max_tokens, and is no {budget!r}")
        wishes = {**settings, **budget}
        if model is not None:
            wishes["model"] = model
        state = SessionState(session_id=SessionId(""))
        home = self._families.unseated()
        self._workshop(path, _with_agent(table, home), {}, home).check(state, wishes)

    async def _resume(
        self,
        session_id: SessionId,
        model: str | None,
        permission_mode: str | None,
        resume: Literal["ask", "auto"],
    ) -> Session:
        port = await self.port(session_id)
        session = Session(session_id, self, port)
        if model is not None and model != port.state.settings.model:
            await port.call(ChangeSetting(name="model", value=model))
        if permission_mode is not None:
            await port.call(ChangeSetting(name="permission_mode", value=permission_mode))
        if resume == "auto" and port.status == "interrupted":
            await port.call(ContinueTurn())
        return session

    async def _create(
        self,
        session_id: SessionId,
        facts: tuple[Fact, ...],
        blobs: Mapping[BlobId, bytes] | None = None,
    ) -> SessionActor:
        store = self._equipment.store
        if await store.last_seq(session_id):
            raise UsageError(
                f"{session_id!r} was deleted, and forks share its past; use another id"
            )
        created = facts[0]
        assert isinstance(created, SessionCreated)
        environment = self._environment(session_id, created.project_path, created.parent)
        lease = await store.take_lease(session_id)
        actor = SessionActor(
            SessionState(session_id=session_id),
            lease,
            store=store,
            environment=environment,
            supervisor=self._equipment.supervisor,
        )
        try:
            await actor.create(facts, blobs)
        except WeftError:
            await store.release_lease(lease)
            raise
        actor.start()
        self._families.joined(actor)
        return actor

    async def _open_child(self, parent: SessionId, wanted: Wanted) -> Port:
        """A session that works for another, with no more than that one has."""
        child, about = wanted.child, (await self.port(parent)).state.about
        self._tools[child] = self._tools.get(parent) or tool_table("all")[0]
        self._lent[child] = self._lent.get(parent, {})
        self._asking[child] = self._asking.get(parent, "wait")
        if child in self._ports or await self._equipment.store.last_seq(child):
            return await self.port(child)
        settings = {
            "tools": list(wanted.tools),
            "system_prompt": wanted.system_prompt,
            "append_system_prompt": wanted.append_system_prompt,
            "permission_mode": wanted.permission_mode,
            "max_turns": wanted.max_turns,
            "depth": wanted.depth,
        }
        created = SessionCreated(
            project_path=wanted.project_path or about.project_path,
            project_id=about.project_id,
            title=wanted.title,
            model=wanted.model,
            settings={name: value for name, value in settings.items() if value not in (None, "")},
            parent=wanted.origin,
        )
        self._leave[child] = Leave(trusted_mode=True)
        actor = await self._create(child, (created, *wanted.facts))
        return self._keep(self._way_to(actor))

    async def fork_session(
        self, session_id: str, at: str | int | None = None, title: str | None = None
    ) -> Session:
        """A new session that shares the history up to and including `at` (a message id or its index) by reference."""
        source = await self._resolved(session_id)
        state = await self._state_of(source)
        node = state.tree.head if at is None else node_at(state, at)
        forked = new_session_id(self.now())
        created = SessionCreated(
            project_path=state.about.project_path,
            project_id=state.about.project_id,
            title=title or f"{state.settings.title} (fork)",
            model=state.settings.model,
            settings={"auto_title": False, "archived": False},
            fork=ForkPoint(session_id=source, seq=state.seq, node=node),
        )
        self._tools.setdefault(forked, self._tools.get(source) or tool_table("all")[0])
        self._leave[forked] = self._leave_for_fork(source)
        actor = await self._create(forked, (created,))
        return Session(forked, self, self._keep(self._way_to(actor)))

    def _leave_for_fork(self, source: SessionId) -> Leave:
        """A fork inherits no grants; the mode holds only if it holds for its source, here and now."""
        port = self._ports.get(source)
        is_trusted = isinstance(port, LocalPort) and port.actor.gate.leave.trusted_mode
        return Leave(trusted_mode=is_trusted)

    # -- finding

    async def get(self, session_id: str) -> Session:
        """The session of this id (or unique prefix), started if it is only stored; no model is called.

        Raises:
            SessionNotFound, AmbiguousId: no session, or several, have it.
        """
        resolved = await self._resolved(session_id)
        return Session(resolved, self, await self.port(resolved))

    async def find_session(self, session_id: str) -> Session | None:
        """The running session of this id or unique prefix; None when none runs."""
        exact = self._ports.get(SessionId(session_id))
        if exact is not None and exact.is_open:
            return Session(exact.session_id, self, exact)
        matches = [
            port
            for port in self._ports.values()
            if port.is_open and port.session_id.startswith(session_id)
        ]
        if len(matches) > 1:
            raise AmbiguousId(session_id, tuple(port.session_id for port in matches))
        return Session(matches[0].session_id, self, matches[0]) if matches else None

    async def read_session(self, session_id: str) -> SessionRecord:
        """Messages and metadata of a stored session, without starting anything."""
        store = self._equipment.store
        resolved = await self._resolved(session_id)
        state = await load_state(resolved, store)
        row = await store.row(resolved) or SessionRow(id=resolved)
        line = await load_line(state.tree, state.tree.head, store)
        rows = history(line, state)
        return SessionRecord(
            row=row,
            messages=tuple(message for _, message in rows),
            ids=tuple(each for each, _ in rows),
        )

    async def row(self, session_id: SessionId) -> SessionRow | None:
        """What a list shows of one session; None when it is not stored."""
        return await self._equipment.store.row(session_id)

    async def list_active(self) -> list[SessionInfo]:
        """The sessions that run in this process; those that work for others are listed by them."""
        return [
            _info(port)
            for port in self._ports.values()
            if port.is_open and port.state.about.parent is None
        ]

    async def list_saved(
        self,
        project_path: str | os.PathLike[str] | None = None,
        query: str | None = None,
        limit: int = 100,
        *,
        archived: bool = False,
    ) -> list[SessionRow]:
        """Stored sessions, last active first; `query` searches titles and what was said."""
        path = self._equipment.resolve_path(str(project_path)) if project_path else None
        return await self._equipment.store.rows(
            project_path=path, query=query, limit=limit, archived=archived
        )

    # -- files

    async def export_session(
        self,
        session_id: str,
        format: ExportFormat = "json",
        path: str | os.PathLike[str] | None = None,
    ) -> str:
        """The whole conversation as text; with `path` also written there (replacing what was), readable by its owner alone.

        `json` and `jsonl` are complete and can be imported; `md` and `html` are the present line, for reading.

        Raises:
            SessionNotFound, AmbiguousId: no session, or several, have this id.
            UsageError: there is no such format, or the file cannot be written.
        """
        from weft.app.exchange import export  # only here: it costs start-up time

        resolved = await self._resolved(session_id)
        return await export(resolved, self._equipment.store, format, path)

    async def import_session(self, path: str | os.PathLike[str]) -> ImportReport:
        """A new session with the conversation of a json or jsonl export, on this app's project.

        An export is untrusted: only the conversation is taken over.  What the exported session had besides (grants, rules, queue,
        requests, file history, …) is named in `dropped`.  All of it is imported, or nothing.

        Raises:
            UsageError: the file cannot be read, or is no export.
            TooNew, Corrupt: a newer program wrote it; it is damaged.
        """
        from weft.app.exchange import read_export  # as above

        restored = await read_export(path)
        imported = new_session_id(self.now())
        created = SessionCreated(
            project_path=self._equipment.project_path,
            title=restored.title,
            model=restored.model,
            settings={"permission_mode": self._equipment.config.get("permissions.mode")},
            imported=True,
            at=restored.created,
        )
        actor = await self._create(imported, (created, *restored.facts), restored.blobs)
        session = Session(imported, self, self._keep(self._way_to(actor)))
        return ImportReport(session=session, dropped=restored.dropped)

    # -- ending

    async def stop_session(self, session_id: str) -> None:
        """End a session's life in this process; its record stays.  A turn that runs is aborted.

        Raises:
            SessionNotFound: no session has this id.
        """
        resolved = await self._resolved(session_id)
        await self._families.end_background(resolved)
        port = self._ports.pop(resolved, None)
        children = [] if port is None else list(port.state.children.known)
        if port is not None:
            await port.leave("stopped")
        self._families.left(resolved)
        for child in children:
            if child in self._ports:
                await self.stop_session(child)

    async def stop_child(self, session_id: SessionId, child: SessionId) -> None:
        """Stop a session that works for another, and see that its end is on the other's record."""
        await (await self.port(child)).abort(Abort(reason="it was stopped"))
        await self._families.end_left_behind(session_id, child, await self._usage_of(child))

    async def delete_session(self, session_id: str) -> None:
        """Remove a session for good, with all that worked for it; one that forks share is only hidden."""
        resolved = await self._resolved(session_id)
        children = await self._all_children(resolved)
        await self.stop_session(resolved)
        await self._equipment.store.delete(resolved)
        for child in children:
            if await self._equipment.store.last_seq(child):
                await self.delete_session(child)

    async def _all_children(self, session_id: SessionId) -> list[SessionId]:
        try:
            return list((await self._state_of(session_id)).children.known)
        except WeftError:  # a damaged session can be deleted too
            return []

    async def rename_session(self, session_id: str, title: str) -> None:
        """Give a session another title."""
        if not title.strip():
            raise UsageError("a title needs some text")
        await self._change(session_id, "title", title.strip())

    async def archive_session(self, session_id: str, archived: bool = True) -> None:
        """Take a session out of the usual lists (or, with False, back into them)."""
        await self._change(session_id, "archived", archived)

    async def _change(self, session_id: str, name: str, value: Any) -> None:
        port = await self.port(await self._resolved(session_id))
        await port.call(ChangeSetting(name=name, value=value))

    async def aclose(self) -> None:
        """Stop every session of this process, side by side; each stops those that work for it."""
        roots = [each for each, port in self._ports.items() if port.state.about.parent is None]
        for wave in (roots, list(self._ports)):
            async with anyio.create_task_group() as group:
                for session_id in wave:
                    if session_id in self._ports:
                        group.start_soon(self._stop_quietly, session_id)

    async def _stop_quietly(self, session_id: SessionId) -> None:
        """Stop one session; what cannot be stored any more stays interrupted, and the others stop all the same."""
        try:
            await self.stop_session(session_id)
        except WeftError:
            logger.exception("a session could not be stopped", extra={"session": session_id})

    async def unload_idle(self, older_than_seconds: float) -> int:
        """Unload sessions that nobody uses or watches; they come back with the next call.  Returns how many."""
        limit = self._equipment.clock.monotonic() - older_than_seconds
        idle = [
            port
            for port in self._ports.values()
            if isinstance(port, LocalPort)
            and not port.actor.is_busy
            and not port.actor.is_watched
            and port.actor.last_used <= limit
            and not self._families.has_work(port.session_id)
        ]
        for port in idle:
            await self._unload(port.session_id)
        return len(idle)

    async def _unload(self, session_id: SessionId) -> None:
        port = self._ports.pop(session_id, None)
        if isinstance(port, LocalPort):
            self._leave[session_id] = port.actor.gate.leave
            await port.actor.stop(UNLOADED)
        self._families.left(session_id)

    # -- the way to a session

    async def port(self, session_id: SessionId) -> Port:
        """The way to a session, wherever it lives; starts a stored one without calling a model."""
        known = self._ports.get(session_id)
        if known is not None and known.is_open:
            return known
        async with self._alone(session_id):
            known = self._ports.get(session_id)
            if known is not None and known.is_open:
                return known
            return self._keep(await self._open(session_id))

    @asynccontextmanager
    async def _alone(self, session_id: SessionId) -> AsyncGenerator[None]:
        """Nobody else of this process opens or makes this session meanwhile."""
        lock = self._opening.setdefault(session_id, anyio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():
                self._opening.pop(session_id, None)

    def _way_to(self, actor: SessionActor) -> LocalPort:
        hooks = self._hooks.get(actor.session_id)
        return LocalPort(actor) if hooks is None else hooks.way_to(actor, self._agent(actor))

    def _agent(self, actor: SessionActor) -> str:
        """What kind of agent a session is; empty when it works for no other."""
        origin = actor.state.about.parent
        if origin is None:
            return ""
        parent = self._ports.get(origin.session_id)
        known = parent.state.children.known.get(actor.session_id) if parent is not None else None
        return (known.name if known is not None else "") or "agent"

    def _keep(self, port: Port) -> Port:
        self._ports[port.session_id] = port
        return port

    async def _open(self, session_id: SessionId) -> Port:
        store, supervisor = self._equipment.store, self._equipment.supervisor
        if not await self._is_stored(session_id):
            raise SessionNotFound(session_id)
        try:
            lease = await store.take_lease(session_id)
        except Owned as owner:
            from weft.app.remote import open_remote  # only then: it costs start-up time

            return await open_remote(session_id, owner, store, supervisor)
        try:
            state = await load_state(session_id, store)
            environment = self._environment(
                session_id, state.about.project_path, state.about.parent
            )
        except BaseException:
            await store.release_lease(lease)
            raise
        actor = SessionActor(
            state,
            lease,
            store=store,
            environment=environment,
            supervisor=supervisor,
        )
        actor.start()
        self._families.joined(actor)
        return self._way_to(actor)

    async def local_port(self, session_id: SessionId) -> Port:
        """The way to a session of this process; for other processes that ask us to drive it."""
        known = self._ports.get(session_id)
        if not isinstance(known, LocalPort) or not known.is_open:
            raise SessionNotFound(session_id)
        return known

    def _hooks_of(self, session_id: SessionId, project_path: str) -> Hooking | None:
        """The hooks of a session; the same ones when it comes back, for they know what they have told."""
        if session_id not in self._hooks:
            found = self._equipment.hooks(session_id, project_path)
            if found is None:
                return None
            self._hooks[session_id] = found
        return self._hooks[session_id]

    def _workshop(
        self,
        project_path: str,
        tools: Mapping[str, Tool],
        lent: Mapping[str, Tool],
        home: Desk,
        hooks: Hooks | None = None,
        files: FileWork | None = None,
    ) -> SessionWorkshop:
        equipment = self._equipment
        return SessionWorkshop(
            config=equipment.config,
            models=equipment.models,
            clock=equipment.clock,
            sleep=equipment.sleep,
            workspace=equipment.workspace(project_path),
            runner=equipment.runner if files is None else files,
            confinement=equipment.confinement,
            load=equipment.store.blob,
            tools=tools,
            lent=lent,
            prompter=equipment.prompter,
            shapes=self._shapes,
            redact=equipment.redact,
            usage_of=self._usage_of,
            hooks=hooks,
            unclaimed=(lambda: ()) if files is None else files.unclaimed,
            home=home,
        )

    def _environment(
        self, session_id: SessionId, project_path: str, parent: Origin | None
    ) -> SessionEnvironment:
        equipment = self._equipment
        home = self._families.desk(session_id, parent)
        table = _with_agent(self._tools.get(session_id) or tool_table("all")[0], home)
        lent = self._lent.setdefault(session_id, {})
        hooks = self._hooks_of(session_id, project_path)
        files = equipment.files(project_path, equipment.runner)
        return SessionEnvironment(
            workshop=self._workshop(
                project_path,
                table,
                lent,
                home,
                None if hooks is None else hooks.of_turns,
                files,
            ),
            files=files,
            history_bytes=files.kept_bytes,
            clock=equipment.clock,
            rules=rules_of(equipment.config),
            asking=self._asking.get(session_id, "wait"),
            ceiling=self._families.ceiling(parent),
            leave=self._leave.pop(session_id, Leave()),
            title=title_of,
        )

    async def _is_stored(self, session_id: SessionId) -> bool:
        """True for a session that can be opened; a deleted one whose past forks share has facts but no row."""
        return await self._equipment.store.row(session_id) is not None

    async def _resolved(self, given: str) -> SessionId:
        store = self._equipment.store
        exact = SessionId(given)
        if exact in self._ports or await self._is_stored(exact):
            return exact
        matches = await store.ids_with_prefix(given) if given else []
        if not matches:
            raise SessionNotFound(given)
        if len(matches) > 1:
            raise AmbiguousId(given, tuple(matches))
        return matches[0]

    async def _state_of(self, session_id: SessionId) -> SessionState:
        port = self._ports.get(session_id)
        if port is not None and port.is_open:
            return port.state
        return await load_state(session_id, self._equipment.store)

    async def _usage_of(self, session_id: SessionId) -> Mapping[str, Usage]:
        """What a session has used, by model; nothing when it was never begun or cannot be read."""
        try:
            return (await self._state_of(session_id)).ledger.by_model()
        except WeftError:
            return {}

    # -- what handles ask for

    async def available_models(self) -> list[ModelInfo]:
        """Every model that could be used."""
        return await self._equipment.models.available()

    def default_model(self) -> str:
        """The model of a new session that names none."""
        configured = self._equipment.config.get("model.default")
        return self.normal_model(configured or self._equipment.models.default())

    def model(self, name: str) -> Model:
        """The model that a session's log names."""
        return self._equipment.models.resolve(name)

    def skills(self, project_path: str) -> Skills:
        """The skills of a project."""
        return self._equipment.prompter.skills(project_path)

    async def agents(self, project_path: str) -> Definitions:
        """The agents that a session on this project may use."""
        from weft.agents import find_definitions  # only for those who ask

        folders = list(self._families.folders(project_path))
        return await anyio.to_thread.run_sync(find_definitions, folders)

    def rotation(self) -> list[str]:
        """The models that `cycle_model` goes through."""
        return list(self._equipment.config.get("model.rotation"))

    async def keep_handover(self, session_id: SessionId, text: str) -> str:
        """Keep a handover document beside the data, under the session's id; returns its path."""
        path = self._equipment.handovers / f"{session_id}.md"
        await anyio.to_thread.run_sync(write_private, path, text)
        return str(path)

    def command_names(self) -> list[str]:
        """The slash commands that every screen has."""
        from weft.app.slash import COMMANDS  # only for those who ask: it costs start-up time

        return [command.name for command in COMMANDS]

    async def commands(self, project_path: str) -> MarkdownCommands:
        """The slash commands from Markdown files that a session on this project may use."""
        from weft.app.slash import taken_names  # as above

        find = self._equipment.prompter.commands
        commands = await anyio.to_thread.run_sync(find, project_path)
        taken = taken_names()
        free = {k: v for k, v in commands.found.items() if f"/{k}" not in taken}
        return msgspec.structs.replace(commands, found=free)

    async def expand_command(
        self, session_id: SessionId, text: str, ask: Ask | None, client: str = ""
    ) -> Expanded:
        """What a line `/name arguments` stands for; `Session.expand_command` says how.

        Raises:
            UsageError: there is no such command, or a shell command in it may not be run.
        """
        from weft.app.commands_md import expand, named, split_line

        line = split_line(text)
        if line is None:
            raise UsageError(f"{text[:80]!r} is no command; one is written /name arguments")
        port = await self.port(session_id)
        project = port.state.about.project_path
        command = named(await self.commands(project), line[0])
        return await expand(
            command,
            line[1],
            workspace=self._equipment.workspace(project),
            run_shell=await self._shell_for(port, command, ask, client),
            redact=self._equipment.redact,
        )

    async def _shell_for(
        self, port: Port, command: MarkdownCommand, ask: Ask | None, client: str
    ) -> RunShell:
        """Runs the shell commands of a slash command, as far as they may be run."""
        from weft.app.command_shell import CommandShell

        if not isinstance(port, LocalPort):
            return _refuse_elsewhere
        session_id, project = port.session_id, port.state.about.project_path
        table = self._tools.get(session_id) or tool_table("all")[0]
        wanted = port.state.settings.get("tools", "all")
        if "shell" not in table or (wanted != "all" and "shell" not in wanted):
            return _refuse_without_shell
        hooks = self._hooks.get(session_id)
        return CommandShell(
            command.name,
            tool=table["shell"],
            context=ToolContext(
                workspace=self._equipment.workspace(project),
                runner=self._equipment.runner,
                reads=ReadLog(),
                call_uid=new_call_uid(self.now()),
            ),
            gate=port.actor.gate,
            hooks=None if hooks is None else hooks.of_turns,
            ask=ask,
            is_trusted=command.source == "person" or await self._equipment.is_trusted(project),
            note=lambda text: port.call(AddNote(text=text, client=client)),
            redact=self._equipment.redact,
        )

    def lend_tools(self, session_id: SessionId, wanted: Any) -> Any:
        """The names of these tools, for one message; functions become known to the session by them, in this process.

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
            if not isinstance(self._ports.get(session_id, None), LocalPort | None):
                raise UsageError(f"{made.name!r} cannot go to the process that has the session")
            self._lent.setdefault(session_id, {})[made.name] = made
            names.append(made.name)
        return names

    def now(self) -> float:
        """Wall-clock time."""
        return self._equipment.clock.now()

    def shape(self, wanted: Any) -> Shape:
        """What a result must look like, from a JSON Schema or a type.

        Raises:
            UsageError: it is neither.
        """
        return self._shapes.add(wanted)

    def normal_model(self, model: str | Model) -> str:
        """The name that the log has for a model; a model object becomes known by it.

        Raises:
            UsageError: the name is not right.
        """
        if isinstance(model, str):
            return self._equipment.models.normal(model)
        if not isinstance(getattr(model, "info", None), ModelInfo):
            raise UsageError(f"{model!r} is no model: write provider:model, or give a Model")
        return self._equipment.models.register(model)


async def _refuse_elsewhere(command: str) -> str:
    raise UsageError(
        f"`{command}` cannot be run here: another process has this session; use the command there"
    )


async def _refuse_without_shell(command: str) -> str:
    raise UsageError(f"`{command}` may not be run: this session has no shell")


def _with_agent(table: Mapping[str, Tool], home: Desk) -> Mapping[str, Tool]:
    """The tools and, unless one of them has the name, the one that starts agents."""
    return table if AGENT in table else {**table, AGENT: home.entry}


def rules_of(config: Config) -> tuple[Rule, ...]:
    """The standing rules that the settings name."""
    rules: list[Rule] = []
    for verdict in ("allow", "ask", "deny"):
        for layer in config.layers(f"permissions.{verdict}"):
            rules += [_rule(verdict, text, layer.source) for text in layer.value]
    return tuple(rules)


def _rule(verdict: Verdict, text: str, source: str) -> Rule:
    tool, _, rest = text.partition("(")
    return Rule(verdict=verdict, tool=tool.strip(), pattern=rest.removesuffix(")"), source=source)


def title_of(state: SessionState) -> str:
    """A title from the first words that were said."""
    words = " ".join(state.about.first_prompt.split())
    if len(words) <= TITLE_LENGTH:
        return words
    return words[:TITLE_LENGTH].rsplit(" ", 1)[0] + "…"


def _info(port: Port) -> SessionInfo:
    state = port.state
    return SessionInfo(
        id=port.session_id,
        status=port.status,
        title=state.settings.title,
        model=state.settings.model,
        mode=state.settings.mode,
        project_path=state.about.project_path,
        last_active=max(state.about.last_message, state.about.created),
    )


def _settings(given: dict[str, Any], **named: Any) -> dict[str, Any]:
    """Settings as the log keeps them: only what was set."""
    known = {"max_turns", "thinking", "budget", "mode", "append_system_prompt"}
    known |= {"plan_model", "edit_model"}
    unknown = sorted(set(given) - known)
    if unknown:
        raise UsageError(f"start_session takes no {unknown[0]!r}")
    kept = {**given, **named}
    if kept.get("tools") == "all":
        del kept["tools"]
    return {name: value for name, value in kept.items() if value not in (None, "", False)}


def _check_id(session_id: str) -> None:
    fine = all(c.isalnum() or c in "-_." for c in session_id) and len(session_id) <= 128
    if not fine or session_id.startswith("."):
        raise UsageError(
            f"{session_id!r} cannot be a session id: use up to 128 letters, digits, '-', '_', '.'"
        )


def write_private(path: Path, text: str) -> None:
    """Write a file that only the person can read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)


def absolute(path: str) -> str:
    """The path as sessions store it."""
    return str(Path(path).expanduser().resolve())
