"""The sessions that are open in this process: opened, made, equipped, let go.

A map of ids to ports, which is read without waiting.  A session that is stored and not open is
opened by the first call that needs it; one that another living process owns is reached through that
process.
"""

from __future__ import annotations

import logging
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

import anyio
import msgspec

from weft.config.project_ids import KnownProject, ProjectIds
from weft.config.settings import Config
from weft.errors import (
    AmbiguousId,
    Conflict,
    FinalToolError,
    Owned,
    SessionNotFound,
    UsageError,
    WeftError,
)
from weft.events import CallOrigin, CommandCause, Fact, ForkPoint, SessionCreated
from weft.ids import BlobId, SessionId
from weft.loop import TurnHooks
from weft.messages import Usage
from weft.permissions import Mode, PermissionRule, Verdict
from weft.runtime.agent_host import AgentTrees, SessionAgentHost
from weft.runtime.checkouts.arrived_folder import NOT_ARRIVED, ArrivedFolder
from weft.runtime.ports.local import UNLOADED, HookProvider, LocalPort
from weft.runtime.services import Services
from weft.runtime.tool_table import SessionTools, tool_table
from weft.runtime.turns.output_types import OutputTypes
from weft.runtime.turns.session_prompt import SessionPrompt
from weft.runtime.turns.tool_contexts import (
    DecisionsOnDemand,
    SessionLanguages,
    ToolContexts,
)
from weft.runtime.turns.turn_factory import SessionTurnFactory
from weft.runtime.workspaces.session_workspace import SessionRecoveryProbe, SessionWorkspace
from weft.session import (
    GrantedPermissions,
    LineCacheBudget,
    PermissionSources,
    SessionActor,
    SessionEnvironment,
    SessionPort,
)
from weft.state import SessionState
from weft.store import Lease, SessionRow, Store
from weft.tools import BuiltinTool, Tool
from weft.workspace import Runner, Workspace
from weft.workspace.disk_threads import DiskThreads

if TYPE_CHECKING:  # loaded with the first agent or file: it costs start-up time
    from weft.agents import ChildRequest
    from weft.project.mentions import AskRead, JudgeRead, MentionReader
    from weft.repo import ProjectIndex
    from weft.runtime.checkouts.session_folders import SessionFolders
    from weft.runtime.parent_rules import ParentRules
    from weft.runtime.ports.wait_signs import WaitSigns
    from weft.runtime.session_topic import SessionListEvents, SessionTopic
    from weft.runtime.snapshots.project_snapshots import ProjectFiles, ProjectSnapshots
    from weft.runtime.snapshots.workspace_saver import WorkspaceSaver
    from weft.runtime.workspaces.file_history import FileHistoryRunner
    from weft.runtime.workspaces.read_guard import SessionReadGuard

    SessionReach: TypeAlias = tuple[
        Workspace, FileHistoryRunner, SessionWorkspace, SessionLanguages
    ]

logger = logging.getLogger(__name__)

T = TypeVar("T")

DELETED_REMEMBERED: Final = 1_000
"""Deleted sessions that are remembered, so that a repeated call does not make one again."""

_INDEX_SECONDS: Final = 30.0
"""How long a tool waits for the index: a model that has `grep` need not wait for a huge project."""


def only_match(given: str, matches: Sequence[SessionId]) -> SessionId | None:
    """The one session that fits what was given; None when none does.

    Raises:
        AmbiguousId: several fit.
    """
    if len(matches) > 1:
        raise AmbiguousId(given, tuple(matches))
    return matches[0] if matches else None


class SessionRegistry:
    """Every session that is open here."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.stores = services.stores
        self.ports: dict[SessionId, SessionPort] = {}
        self.is_closing = False
        """The program closes: what works in the background opens no session again."""
        self.reaches_owners = True
        """A session of another process is reached through that one; False of a server whose
        gateway does so."""
        self.host = ""
        """Where this server of several is reached; empty for all other programs."""
        self.taken_along: dict[SessionId, Lease] = {}
        """Leases of sessions that work for one that was taken over; each is opened when needed."""
        self.parting: dict[SessionId, tuple[PermissionRule, ...]] = {}
        """What those that are being stopped were denied: it holds for their agents to the end."""
        self._opening: dict[SessionId, anyio.Lock] = {}
        # What a session was started with must outlive its being stopped or unloaded: with the next
        # call it comes back, and must not come back with more.  So these hold only what is not the
        # usual, and `forget_deleted` ends them.
        self._tools: dict[SessionId, Mapping[str, Tool]] = {}
        """The tools of its program's own that a session was started with."""
        self.lent: dict[SessionId, dict[str, Tool]] = {}
        """Tools that only messages that name them have."""
        self._deleted: dict[SessionId, None] = {}
        """Those that were deleted here, the last one at the end."""
        self._asking: dict[SessionId, Literal["wait", "yes", "no"]] = {}
        self.granted: dict[SessionId, GrantedPermissions] = {}
        """What a session finds granted when it is opened the next time."""
        self.factories: dict[SessionId, SessionTurnFactory] = {}
        """What makes the turns, and the calls outside of turns, of each session that is open."""
        self._hooks: dict[SessionId, HookProvider] = {}
        self._line_budget = LineCacheBudget()
        self.output_types = OutputTypes()
        self.agents = AgentTrees(services, self)
        self._topic: SessionTopic | None = None
        self._signs: WaitSigns | None = None

    # -- the way to a session

    async def port(self, session_id: SessionId) -> SessionPort:
        """The port of a session, wherever it lives; starts a stored one without calling a model."""
        known = self.running(session_id)
        if known is not None:
            return known
        async with self.alone(session_id):
            # A second look: while this task waited for the lock, another may have opened it. Two
            # actors on one log would each believe to be the only writer.
            known = self.running(session_id)
            if known is not None:
                return known
            return self._keep(await self._open(session_id))

    @asynccontextmanager
    async def alone(self, session_id: SessionId) -> AsyncGenerator[None]:
        """No other task of this process opens or makes this session meanwhile."""
        lock = self._opening.setdefault(session_id, anyio.Lock())
        try:
            async with lock:
                yield
        finally:
            # Others may wait for it still; the last one removes it, so that the map does not grow
            # for ever.
            if not lock.locked():
                self._opening.pop(session_id, None)

    def running(self, session_id: SessionId) -> SessionPort | None:
        """The port of a session that is open here; None when it is not."""
        port = self.ports.get(session_id)
        return port if port is not None and port.is_open else None

    def _port_to(self, actor: SessionActor) -> LocalPort:
        hooks = self._hooks.get(actor.session_id)
        return LocalPort(actor) if hooks is None else hooks.port_to(actor, self._agent(actor))

    def _agent(self, actor: SessionActor) -> str:
        """What kind of agent a session is; empty when it works for no other."""
        origin = actor.state.about.parent
        if origin is None:
            return ""
        parent = self.ports.get(origin.session_id)
        known = parent.state.children.known.get(actor.session_id) if parent is not None else None
        return (known.name if known is not None else "") or "agent"

    def _keep(self, port: SessionPort) -> SessionPort:
        self.ports[port.session_id] = port
        return port

    async def open_free(
        self, store: Store, ids: Sequence[SessionId]
    ) -> dict[SessionId, SessionPort | WeftError]:
        """Open sessions that no process has, their leases taken in one go.

        Those that another process took meanwhile are left to it; of one that cannot be opened there
        is the reason.
        """
        opened: dict[SessionId, SessionPort | WeftError] = {}
        async with AsyncExitStack() as held:
            # All of them first, and always in this order: a lease that is taken twice here would
            # fence off the actor that has it.
            for each in sorted(ids):
                await held.enter_async_context(self.alone(each))
            free = [each for each in ids if self.running(each) is None]
            for lease in await _free_leases(store, free):
                session_id = SessionId(lease.stream)
                try:
                    async with self.stores.joined(session_id, store):
                        opened[session_id] = self._keep(
                            await self._open_in(store, session_id, lease)
                        )
                except WeftError as error:
                    opened[session_id] = error
        return opened

    async def open_taken(self, store: Store, lease: Lease) -> SessionPort:
        """Open a session whose lease was taken; it is given back where that fails."""
        session_id = SessionId(lease.stream)
        async with self.alone(session_id), self.stores.joined(session_id, store):
            # One of this process may have asked for it meanwhile, and has it by the lease that was
            # taken last: two actors on one log would each believe to be the only writer.
            known = self.running(session_id)
            return known or self._keep(await self._open_in(store, session_id, lease))

    async def give_back_taken(self, ids: Iterable[SessionId]) -> None:
        """Give back leases that came with a session which is let go, and were not needed."""
        for each in ids:
            if (lease := self.taken_along.pop(each, None)) is not None:
                await self.stores.of(each).release_lease(lease)

    async def _open(self, session_id: SessionId) -> SessionPort:
        store = await self.stores.find(session_id)
        if store is None:
            raise SessionNotFound(session_id)
        async with self.stores.joined(session_id, store):
            return await self._open_in(store, session_id)

    async def _open_in(
        self, store: Store, session_id: SessionId, taken: Lease | None = None
    ) -> SessionPort:
        supervisor = self._services.supervisor
        try:
            # The lease first: what is read before it could be written to by its owner meanwhile.
            along = self.taken_along.pop(session_id, None)
            lease = taken or along or await store.take_lease(session_id)
        except Owned as owner:
            if not self.reaches_owners:
                raise
            from weft.runtime.ports.remote import open_remote  # only then: it costs start-up time

            remote = await open_remote(session_id, owner, store, supervisor)
            await self._find_moved(remote.state)
            return remote
        try:
            from weft.session import load_for_owner  # not for a new one: start-up time

            state, snapshot_seq = await load_for_owner(session_id, store)
            await self._find_moved(state)
            await self._find_here(state, store)
            arrival = await self._arrived(state, state.about.project_path, store)
            is_carried = self._carries(state, lease, store)
            if is_carried:
                self._carry_grants(state)
            environment = self._environment(
                *(session_id, state.about.project_path, state.about.parent, store),
                *(_place_of(state), arrival),
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
            snapshot_seq=snapshot_seq,
        )
        if is_carried:
            # At once: what was carried here is to be carried on, though nothing is done with it.
            await self._note_carried(actor, store, lease)
        actor.start()
        self.agents.joined(actor)
        return self._port_to(actor)

    def _carries(self, state: SessionState, lease: Lease, store: Store) -> bool:
        """Whether another server of this database had the session last."""
        # Another store, which is open beside it, is a file that may come from elsewhere.
        is_shared = bool(self.host) and store is self.stores.own
        return is_shared and state.hosting.counts_for(lease.fence)

    def _carry_grants(self, state: SessionState) -> None:
        """Let a session keep what its user granted it at another server of this database."""
        hosted, known = state.hosting, self.granted.get(state.session_id)
        if known is None or known.is_woken:
            # What asks for nothing at all is given by a user who is there, each time.
            trusted = hosted.trusted_mode and state.settings.permission_mode != "bypass"
            self.granted[state.session_id] = GrantedPermissions(
                trusted_mode=trusted, grants=hosted.grants, rules=hosted.rules
            )
        if not hosted.asks:
            self.keep_asking(state.session_id, "no")

    async def _note_carried(self, actor: SessionActor, store: Store, lease: Lease) -> None:
        granted = actor.gate.granted
        if not (granted.trusted_mode or granted.grants or granted.rules):
            return
        try:
            await actor.log.commit_first()
        except BaseException:
            await store.release_lease(lease)
            raise

    def forget(self, session_id: SessionId) -> SessionPort | None:
        """Take a session out of those that are open; returns its port."""
        self.factories.pop(session_id, None)
        if not self.lent.get(session_id):
            self.lent.pop(session_id, None)
        return self.ports.pop(session_id, None)

    def forget_deleted(self, session_id: SessionId) -> None:
        """Let go of everything that is kept for a session which does not come back."""
        if self._topic is not None:
            self._topic.forget(session_id)
        self._deleted[session_id] = None
        while len(self._deleted) > DELETED_REMEMBERED:
            del self._deleted[next(iter(self._deleted))]
        kept = (self._tools, self.lent, self._asking, self.granted, self._hooks)
        for each in kept:
            each.pop(session_id, None)

    async def unload(self, session_id: SessionId) -> None:
        """Unload an unused session: what was granted to it is kept, what it left running
        is ended.
        """
        await self.agents.end_background(session_id)
        port = self.forget(session_id)
        if isinstance(port, LocalPort):
            # The user gave these for this process, not for as long as the session happens to be in
            # memory.
            self.granted[session_id] = port.actor.gate.granted
            await port.actor.stop(UNLOADED)
        self.agents.left(session_id)
        await self.stores.release(session_id)

    async def unload_unused(self, port: LocalPort) -> bool:
        """Unload a session unless it is used by now; says whether it was.

        It is not opened again before it is unloaded.
        """
        session_id = port.session_id
        async with self.alone(session_id):
            if self.ports.get(session_id) is not port or not port.is_open:
                return False
            if not await port.actor.stop_if_unused(UNLOADED):
                return False
            self.forget(session_id)
            self.granted[session_id] = port.actor.gate.granted
        self.agents.left(session_id)
        await self.give_back_taken(port.state.children.known)
        return True

    # -- new ones

    async def create(
        self,
        session_id: SessionId,
        facts: tuple[Fact, ...],
        blobs: Mapping[BlobId, bytes] | None = None,
        store: Store | None = None,
        *,
        past: SessionState | None = None,
        cause: CommandCause | None = None,
    ) -> SessionPort:
        """Make a session with these first facts, and begin to serve it; `store` has it unless it
        was started in one.  A fork brings its `past`, a call that may come again its `cause`.

        Raises:
            UsageError: the id belongs to a deleted one that others share.
        """
        store = store or self.stores.of(session_id)
        async with self.stores.joined(session_id, store):
            state = past or SessionState(session_id=session_id)
            return await self._create_in(store, state, facts, blobs, cause)

    async def _create_in(
        self,
        store: Store,
        state: SessionState,
        facts: tuple[Fact, ...],
        blobs: Mapping[BlobId, bytes] | None,
        cause: CommandCause | None,
    ) -> SessionPort:
        session_id = state.session_id
        created = facts[0]
        assert isinstance(created, SessionCreated)
        created = await self._of_project(created, store)
        facts = (created, *facts[1:])
        place = str(created.settings.get("place", "")) or _place_of(state)
        here = self._here_of(created)
        arrival = await self._arrived(state, here, store)
        environment = self._environment(session_id, here, created.parent, store, place, arrival)
        lease = await store.take_lease(session_id)
        actor = SessionActor(
            state,
            lease,
            store=store,
            environment=environment,
            supervisor=self._services.supervisor,
        )
        try:
            await actor.create(facts, blobs, cause)
        except Conflict as conflict:
            await store.release_lease(lease)
            if conflict.stream != session_id:
                raise
            # There was no row, or the caller would have found the session; but the facts of one
            # that was deleted are the past of its forks, and new ones cannot follow on them.
            raise UsageError(
                f"{session_id!r} was deleted, and forks share its past; use another id"
            ) from conflict
        except WeftError:
            await store.release_lease(lease)
            raise
        if here != created.project_path:
            about = actor.state.about
            about.project_path, about.listed_path = here, created.project_path
        actor.start()
        self.agents.joined(actor)
        return self._keep(self._port_to(actor))

    def _here_of(self, created: SessionCreated) -> str:
        """Where a new session works: in the folder of the one that it comes from, where that is
        known by the same path.
        """
        for source in (created.parent, created.fork):
            port = None if source is None else self.running(source.session_id)
            if port is not None and port.state.about.known_path == created.project_path:
                return port.state.about.project_path
        return created.project_path

    async def was_made(self, session_id: SessionId, cause: CommandCause | None) -> bool:
        """Whether a call has made the session of this id before, under the same input id.

        Raises:
            StaleInput: the call had other arguments.
            UsageError: it was deleted since.
        """
        if cause is None:
            return False
        if not (session_id in self.ports or await self.is_stored(session_id)):
            # Its facts are there still where forks share them; else this process may know.
            if session_id in self._deleted or await self.stores.of(session_id).last_seq(session_id):
                raise UsageError(
                    f"the session that input_id {cause.input_id!r} made, {session_id}, was deleted;"
                    " use another input_id to make one"
                )
            return False
        inputs = (await self.state_of(session_id)).inputs
        inputs.earlier_answer(cause.input_id, cause.digest)
        return True

    async def _of_project(self, created: SessionCreated, store: Store) -> SessionCreated:
        """The first fact of a session, with the id of its project."""
        # What is not kept leaves nothing behind, an id neither.
        if created.project_id or not store.is_lasting:
            return created
        ids, path = ProjectIds(self._services.places.projects), created.project_path
        now = self._services.clock.now()
        try:
            made = await DiskThreads.of(path).run(lambda: ids.make(path, now))
        except OSError:
            # A full disk must not keep a session from being started; the next one makes the id.
            logger.warning("no project id could be written down", exc_info=True)
            return created
        return msgspec.structs.replace(created, project_id=made)

    async def project_known(self, path: str) -> KnownProject | None:
        """What is written down of the project in a folder: its id, and where it was before."""
        if not self.stores.own.is_lasting:
            return None
        ids = ProjectIds(self._services.places.projects)
        return await anyio.to_thread.run_sync(ids.known, path)

    async def _find_moved(self, state: SessionState) -> None:
        """Let a session of a project that was moved work where that is now."""
        about, services = state.about, self._services
        if not about.project_id:
            return
        ids = ProjectIds(services.places.projects)
        find = partial(ids.place_of, about.project_id, about.project_path)
        perhaps = services.project_path
        about.project_path = await anyio.to_thread.run_sync(lambda: find(perhaps=perhaps))

    async def _find_here(self, state: SessionState, store: Store) -> None:
        """Let a session that another host had work where its files are here; they are brought here
        if need be.
        """
        if not self.host or store is not self.stores.own or _place_of(state):
            return
        about, known = state.about, state.about.known_path
        here = await self._family_folder(state, store) or await self._folder_of(state, store)
        about.project_path, about.listed_path = here, "" if here == known else known

    async def _family_folder(self, state: SessionState, store: Store) -> str | None:
        """The folder of the session that one works for, where both work in the same."""
        about = state.about
        if about.parent is None:
            return None
        above = self.running(about.parent.session_id)
        there = await self.state_of(about.parent.session_id) if above is None else above.state
        if there.about.known_path != about.known_path:
            return None
        if above is not None:
            return there.about.project_path
        return await self._family_folder(there, store) or await self._folder_of(there, store)

    async def _folder_of(self, state: SessionState, store: Store) -> str:
        folders = self.folders()
        found = await folders.find(state)
        return await folders.make(state, store) if found is None else found

    async def _arrived(self, state: SessionState, here: str, store: Store) -> ArrivedFolder:
        """What a session of a server of several says of its folder."""
        if not self.host or store is not self.stores.own or _place_of(state):
            return NOT_ARRIVED
        return await self.folders().arrived(state, here, store, self._services.config)

    def folders(self) -> SessionFolders:
        """The folders of sessions that came from other hosts."""
        from weft.runtime.checkouts.session_folders import SessionFolders  # at such hosts alone

        services = self._services
        return SessionFolders(services.places.workspaces, lambda: services.workspaces.runner)

    async def folder_here(self, session_id: SessionId, *, makes: bool) -> str | None:
        """The folder that a session works in on this host; None where it is elsewhere, and is not
        to be made.

        Raises:
            UsageError: its files cannot be brought here.
        """
        store = self.stores.own
        state = await self.state_of(session_id)
        if makes:
            await self._find_here(state, store)
            return state.about.project_path
        return await self.folders().find(state)

    async def open_child(self, parent: SessionId, wanted: ChildRequest) -> SessionPort:
        """A session that works for another, with no more than that one has."""
        above = (await self.port(parent)).state
        child, about = wanted.child, above.about
        self.keep_tools(child, self.table_of(parent))
        self.lent[child] = self.lent.get(parent, {})
        self.keep_asking(child, self._asking.get(parent, "wait"))
        store = self.stores.of(parent)
        # After a crash the parent's turn asks again for the child that it had named: the same one
        # goes on.
        if child in self.ports or await store.last_seq(child):
            if wanted.place and child not in self.ports:
                # The user has it go on, and what it does stays in its overlay as before.
                self.granted[child] = GrantedPermissions(trusted_mode=True)
            return await self.port(child)
        settings = {
            "tools": list(wanted.tools),
            "system_prompt": wanted.system_prompt,
            "append_system_prompt": wanted.append_system_prompt,
            "permission_mode": wanted.permission_mode,
            "max_turns": wanted.max_turns,
            "depth": wanted.depth,
            "thinking": wanted.model.effort if wanted.model.effort != "default" else None,
        }
        # What works for a candidate works in its overlay, too.
        settings["place"] = wanted.place or _place_of(above)
        created = SessionCreated(
            project_path=wanted.project_path or about.known_path,
            project_id=about.project_id,
            title=wanted.title,
            model=wanted.model.name,
            settings={name: value for name, value in settings.items() if value not in (None, "")},
            parent=wanted.origin,
        )
        # The parent's mode bounds it anyway (`ceiling`), and is the one that holds in this process.
        self.granted[child] = GrantedPermissions(trusted_mode=True, rules=wanted.rules)
        past = None
        if wanted.forks:
            # It shares the parent's line up to its head, and nothing is awaited in between.
            above = (await self.port(parent)).state
            point = ForkPoint(session_id=parent, seq=above.seq, node=wanted.origin.node)
            created = msgspec.structs.replace(created, fork=point)
            past = above.fork(child)
        return await self.create(child, (created, *wanted.facts), store=store, past=past)

    def granted_to_fork(self, source: SessionId) -> GrantedPermissions:
        """A fork inherits what was denied and no grants; the mode holds only if it holds for its
        source, here and now."""
        port = self.ports.get(source)
        if not isinstance(port, LocalPort):
            return GrantedPermissions()
        granted = port.actor.gate.granted
        return GrantedPermissions(trusted_mode=granted.trusted_mode, rules=granted.restrictions)

    def _parent_rules(self, parent: CallOrigin | None) -> ParentRules | None:
        """The ask and deny rules of the session that a child works for."""
        if parent is None:
            return None
        from weft.runtime.parent_rules import ParentRules  # only for agents

        return ParentRules(self, parent.session_id)

    # -- what they are handed

    def check(self, path: str, tools: Mapping[str, Tool], options: Mapping[str, Any]) -> None:
        """Refuse settings that no turn of a session on this project could work with.

        Raises:
            UsageError: it could not.
        """
        names = {*self._tool_names(), *tools}
        rules_of(self._services.config, str(self._services.places.user), names)
        settings = self.agents.settings(SessionTools(tools, {}))
        settings.check(SessionState(session_id=SessionId("")), options)

    def session_rules(self, given: Iterable[PermissionRule]) -> tuple[PermissionRule, ...]:
        """Rules that a program gives a session, read like those that are written.

        Raises:
            UsageError: one of them would cover nothing.
        """
        rules = tuple(given)
        if not rules:
            return ()
        from weft.permissions import problem_of, read_rule  # not without rules

        home, names = str(self._services.places.user), self._tool_names()
        found: list[PermissionRule] = []
        for rule in rules:
            if not isinstance(rule, PermissionRule):
                raise UsageError(f"a rule is a PermissionRule, not {rule!r}")
            if why := problem_of(rule, tools=names):
                raise UsageError(why)
            if rule.is_exact:
                found.append(rule)
                continue
            text = f"{rule.tool}({rule.pattern})" if rule.pattern else rule.tool
            found += read_rule(rule.verdict, text, source=rule.source, home=home)
        return tuple(dict.fromkeys(found))

    def _tool_names(self) -> set[str]:
        """The tools that any session here has, or was lent."""
        tables = (*self._tools.values(), *self.lent.values())
        return {name for table in tables for name in table}

    def table_of(self, session_id: SessionId) -> Mapping[str, Tool]:
        """The tools that a session was started with."""
        return {**tool_table("all")[0], **self._tools.get(session_id, {})}

    def keep_tools(self, session_id: SessionId, table: Mapping[str, Tool]) -> None:
        """A session is started with these tools."""
        own = {name: tool for name, tool in table.items() if not isinstance(tool, BuiltinTool)}
        _set_or_drop(self._tools, session_id, own or None)

    def keep_asking(self, session_id: SessionId, asking: Literal["wait", "yes", "no"]) -> None:
        """What an ask means in a session that is started."""
        _set_or_drop(self._asking, session_id, asking if asking != "wait" else None)

    def hooks_of(self, session_id: SessionId) -> TurnHooks | None:
        """What the turns of a session ask; None where there are no hooks."""
        hooks = self._hooks.get(session_id)
        return None if hooks is None else hooks.of_turns

    def _find_hooks(self, session_id: SessionId, project_path: str) -> HookProvider | None:
        """The hooks of a session.

        The same ones when it comes back, for they remember what they reported.
        """
        if session_id not in self._hooks:
            found = self._services.hooks(session_id, project_path)
            if found is None:
                return None
            self._hooks[session_id] = found
        return self._hooks[session_id]

    def _environment(
        self,
        session_id: SessionId,
        project_path: str,
        parent: CallOrigin | None,
        store: Store,
        place: str = "",
        arrival: ArrivedFolder = NOT_ARRIVED,
    ) -> SessionEnvironment:
        """`place` names the overlay that a candidate of a fan-out works in, and `arrival` tells of
        a folder that is this host's own.
        """
        services = self._services
        services.mcp.look(project_path)
        lent = self.lent.setdefault(session_id, {})
        host = self.agents.host(session_id, parent, SessionTools(self.table_of(session_id), lent))
        hooks = self._find_hooks(session_id, project_path)
        reach = self._candidate if place else self._project
        plain, files, workspace, languages = reach(project_path, store, place)
        decisions = DecisionsOnDemand(
            services, store, plain, workspace.read_guard.forbids, only_reads=bool(place)
        )
        contexts = ToolContexts(
            workspace,
            files,
            host,
            services.redact,
            languages,
            # The index is of the project, and not of an overlay.
            index=None if place else self._index_of(project_path),
            decisions=decisions,
            aside=services.places.home / "mcp" / "refused",
        )
        above = self._parent_rules(parent)
        factory = SessionTurnFactory(
            services,
            host,
            contexts,
            self._prompt(session_id, project_path, host, store, decisions),
            None if hooks is None else hooks.of_turns,
            None if above is None else above.reach,
        )
        self.factories[session_id] = factory
        return SessionEnvironment(
            turns=factory,
            enricher=decisions,
            probe=SessionRecoveryProbe(plain, workspace, self.usage_of),
            prices=services.models,
            finder=workspace,
            files=files,
            history_bytes=files.kept_bytes,
            host=self.host,
            folder=arrival.identity,
            arrival=arrival.note,
            line_budget=self._line_budget,
            clock=services.clock,
            sleep=services.sleep,
            permissions=self._permissions(
                session_id,
                project_path,
                ceiling=self._overlay_ceiling(parent, place)
                if place
                else self.agents.ceiling(parent),
                above=above,
            ),
            stop_command=host.stop_command,
            share_budget=lambda command: self.agents.share_budget(session_id, command),
            turn_ended=None if parent is None else lambda: self.agents.turn_ended(session_id),
            listed=self._put_row,
            is_awaited=lambda: self.signs().others_wait(session_id, store.meeting_folder),
            title=lambda state: state.about.short_title,
        )

    def _prompt(
        self,
        session_id: SessionId,
        project_path: str,
        host: SessionAgentHost,
        store: Store,
        decisions: DecisionsOnDemand,
    ) -> SessionPrompt:
        return SessionPrompt(
            self._services,
            host,
            store.blob,
            has_user=self._asking.get(session_id, "wait") != "no",
            read_rules=lambda: self._read_rules_of(session_id, project_path),
            network_rules=lambda: self._network_rules_of(session_id),
            decisions=decisions,
        )

    def _index_of(self, project_path: str) -> Callable[[], Awaitable[ProjectIndex]] | None:
        if not self._services.config.get("repo.index"):
            return None
        return partial(_index, self._services, project_path)

    def _permissions(
        self,
        session_id: SessionId,
        project_path: str,
        *,
        ceiling: Callable[[], Mode] | None,
        above: ParentRules | None,
    ) -> PermissionSources:
        """What decides about a session's effects; `above` are the rules of its parent."""
        services = self._services
        return PermissionSources(
            rules=self._rules(project_path),
            keep_rule=lambda text: anyio.to_thread.run_sync(
                services.saved_rules.add, project_path, text
            ),
            asking=self._asking.get(session_id, "wait"),
            ceiling=ceiling,
            # Looked up at each decision: what the user denies the parent holds for agents that
            # already run.
            inherited=(lambda: ()) if above is None else above.known,
            protects=services.places.are_words_of_user,
            granted=self.granted.pop(session_id, GrantedPermissions()),
            seal=services.seal,
        )

    def _project(self, project_path: str, store: Store, place: str) -> SessionReach:
        """What a session reaches the machine through; `place` is empty."""
        services = self._services
        plain = services.workspaces.workspace(project_path)
        files = services.workspaces.file_history(project_path, store)
        workspace = SessionWorkspace(
            plain,
            files,
            store.blob,
            services.workspaces.sandbox,
            services.workspaces.added,
            partial(_snapshots, files, project_path, store),
            partial(_saver, services, project_path, store) if _hosts_move(store) else None,
        )
        return plain, files, workspace, SessionLanguages(services, workspace)

    def _candidate(self, project_path: str, store: Store, place: str) -> SessionReach:
        """What a candidate of a fan-out reaches the machine through, in place of the project."""
        from weft.runtime.fan.candidate_parts import (  # few sessions are candidates
            CandidateFiles,
            ClosedRunner,
            ClosedWorkspace,
            NoLanguages,
        )

        workspaces = self._services.workspaces
        view = workspaces.views.get(place)
        runner: Runner
        plain: Workspace
        if view is None:
            plain = ClosedWorkspace(project_path, place)
            runner = ClosedRunner(lambda: workspaces.runner, place)
        else:
            # Its session's workspace is made with the runner, and knows what it may reach.
            plain = view.workspace()
            runner = view.runner(workspaces.runner, lambda command: workspace.egress(command))
        files = CandidateFiles(project_path, runner)
        workspace = SessionWorkspace(plain, runner, store.blob, is_confined=True)
        return plain, files, workspace, NoLanguages(self._services, workspace)

    def _overlay_ceiling(self, parent: CallOrigin | None, place: str) -> Callable[[], Mode] | None:
        view = self._services.workspaces.views.get(place)
        has_own = view is not None and view.has_own_network
        return self.agents.overlay_ceiling(parent, has_own_network=has_own)

    def _rules(self, project_path: str) -> tuple[PermissionRule, ...]:
        """The standing rules of a session on a project."""
        services = self._services
        return (
            *rules_of(
                services.config,
                str(services.places.user),
                self._tool_names(),
                cache(lambda: services.mcp.names(project_path)),
                is_driven=services.mcp.is_driven,
            ),
            *services.saved_rules.of(project_path),
        )

    def renew(self) -> None:
        """Have open sessions heed the settings as they are now: a folder was trusted, or no longer
        is.

        Rules count from the next decision on; hooks that a session had none of before, from its
        next message on.
        """
        for session_id, port in list(self.ports.items()):
            if not isinstance(port, LocalPort) or not port.is_open:
                continue
            path = port.state.about.project_path
            port.actor.gate.rules = self._rules(path)
            if session_id in self._hooks:
                continue  # they are renewed where they are kept
            if (found := self._find_hooks(session_id, path)) is not None:
                self.factories[session_id].hooks = found.of_turns
                self.ports[session_id] = found.port_to(port.actor, self._agent(port.actor))

    def signs(self) -> WaitSigns:
        """The signs of processes that wait for a session of another."""
        if self._signs is None:
            from weft.runtime.ports.wait_signs import WaitSigns  # only where a process was lost

            self._signs = WaitSigns(self._services.clock)
        return self._signs

    # -- files that are looked at

    async def mention_reader(self, port: SessionPort, ask: AskRead | None) -> MentionReader:
        """Reads files for a session, as far as its rules about reading go."""
        from weft.project.mentions import MentionReader  # only where files are named

        await self.reach_rules(port)
        services = self._services
        return MentionReader(
            services.workspaces.workspace(port.state.about.project_path),
            home=str(services.places.user),
            redact=services.redact,
            ask=ask,
            judge=self.read_judge(port),
        )

    def read_judge(self, port: SessionPort) -> JudgeRead:
        """What the rules about reading say of a path."""
        from weft.runtime.workspaces.read_guard import read_judge

        return read_judge(self.read_rules(port), self.root_of(port))

    async def reach_rules(self, port: SessionPort) -> None:
        """Wait until the rules of the session that this one works for are known."""
        factory = self.factories.get(port.session_id)
        if factory is not None and factory.reach_rules is not None:
            await factory.reach_rules()

    def read_rules(self, port: SessionPort) -> Sequence[PermissionRule]:
        """The rules about reading: those of the session, where it is open here."""
        if isinstance(port, LocalPort):
            return port.actor.gate.read_rules
        stored = self.stored_read_rules(port.state.about.project_path)
        return (*stored, *port.restrictions)

    def _read_rules_of(self, session_id: SessionId, project_path: str) -> Sequence[PermissionRule]:
        port = self.running(session_id)
        return self.stored_read_rules(project_path) if port is None else self.read_rules(port)

    def _network_rules_of(self, session_id: SessionId) -> Sequence[PermissionRule]:
        port = self.running(session_id)
        return port.actor.gate.network_rules if isinstance(port, LocalPort) else ()

    def stored_read_rules(self, project_path: str) -> Sequence[PermissionRule]:
        """The rules that hold for every session on a project, open or not."""
        services = self._services
        standing = standing_rules(services.config, str(services.places.user))
        return (*standing, *services.saved_rules.of(project_path))

    def root_of(self, port: SessionPort) -> str:
        """The folder that a session's relative paths begin at."""
        return self._services.workspaces.workspace(port.state.about.project_path).root

    # -- the list that changes

    async def list_events(self) -> SessionListEvents:
        """Read which sessions of the list change from now on.

        Raises:
            UsageError: the program closes, or has.
        """
        if self.is_closing:
            raise UsageError("the app is closed: nothing of it changes any more")
        if self._topic is None:
            from weft.runtime.session_topic import SessionTopic  # only where a list is shown

            self._topic = SessionTopic(self._newest_rows, self._services.supervisor)
        return await self._topic.subscribe()

    def end_list_events(self) -> None:
        """Tell those who read the list that nothing more comes."""
        if self._topic is not None:
            self._topic.close()

    def _put_row(self, row: SessionRow) -> None:
        if self._topic is not None:
            self._topic.put_row(row)

    async def _newest_rows(self, limit: int) -> list[SessionRow]:
        return await self.stores.rows(project_path=None, query=None, limit=limit, archived=True)

    # -- what is stored

    async def is_stored(self, session_id: SessionId) -> bool:
        """True for a session that can be opened.

        A deleted one whose past forks share has facts but no row.
        """
        return await self.stores.find(session_id) is not None

    async def resolved(self, given: str) -> SessionId:
        """The whole id for an id or a unique prefix, which may lack its `ses_`.

        Raises:
            SessionNotFound, AmbiguousId: no session, or several, have it.
        """
        if not isinstance(given, str):
            raise UsageError(f"the id of a session is a text, not {given!r:.80}")
        # The exact id first: one id may be the beginning of another, and is then not ambiguous.
        exact = SessionId(given)
        if exact in self.ports or await self.is_stored(exact):
            return exact
        for prefix in (given, f"ses_{given}") if given else ():
            found = only_match(given, await self.stores.ids_with_prefix(prefix))
            if found is not None:
                return found
        raise SessionNotFound(given)

    def running_with_prefix(self, prefix: str) -> SessionPort | None:
        """The open session of this id or unique prefix; None when none is.

        Raises:
            AmbiguousId: several have it.
        """
        exact = self.running(SessionId(prefix))
        if exact is not None:
            return exact
        ports = self.ports.values()
        matches = [p.session_id for p in ports if p.is_open and p.session_id.startswith(prefix)]
        found = only_match(prefix, matches)
        return None if found is None else self.ports[found]

    async def state_of(self, session_id: SessionId) -> SessionState:
        """The state of a session, open or not; only to be read."""
        port = self.running(session_id)
        if port is not None:
            return port.state
        from weft.session import load_state  # as above

        return await load_state(session_id, await self.store_of(session_id))

    async def stored_state(self, session_id: SessionId) -> SessionState:
        """The state of a session as its log has it at this moment; only to be read."""
        port = self.running(session_id)
        # What follows a session of another process may be behind its log.
        if port is not None and port.lives_here:
            return port.state
        from weft.session import load_state  # as above

        return await load_state(session_id, await self.store_of(session_id))

    async def store_of(self, session_id: SessionId) -> Store:
        """The store that has a session, or would have it."""
        return await self.stores.find(session_id) or self.stores.of(session_id)

    @asynccontextmanager
    async def reading(self, session_id: SessionId) -> AsyncGenerator[Store]:
        """The store that has a session.

        It stays open meanwhile, though its last session may be stopped.
        """
        store = await self.store_of(session_id)
        async with self.stores.kept(store):
            yield store

    async def usage_of(self, session_id: SessionId) -> Mapping[str, Usage]:
        """What a session has used, by model; nothing when it was never begun or cannot be read."""
        try:
            return dict((await self.state_of(session_id)).ledger.models)
        except WeftError:
            return {}


async def _free_leases(store: Store, ids: Sequence[SessionId]) -> list[Lease]:
    """The leases of these sessions that no process holds."""
    left = list(ids)
    while left:
        try:
            return await store.take_leases(left)
        except Owned as owner:
            left.remove(SessionId(owner.stream))
    return []


_VERDICTS: Final[tuple[Verdict, ...]] = ("allow", "ask", "deny")


def rules_of(
    config: Config,
    home: str,
    tools: Collection[str],
    servers: Callable[[], Collection[str]] | None = None,
    *,
    is_driven: bool = False,
) -> tuple[PermissionRule, ...]:
    """The standing rules that the settings name; `home` is the folder that `~` means in them, and
    `tools` names those that a program has brought; `servers` says which MCP servers are configured,
    where that is to be checked; `is_driven`: a program drives us.

    Raises:
        UsageError: one of them names a tool that there is not.
    """
    for verdict in _VERDICTS:
        for layer in config.layers(f"permissions.{verdict}"):
            for text in layer.value:
                # A program that drives us may bring servers of its own later.
                is_open = is_driven and layer.source == "caller"
                _check_rule(text, layer.source, tools, None if is_open else servers)
    for layer in config.layers("permissions.examples"):
        if layer.value:
            _check_examples(layer.value, layer.source, home)
    return standing_rules(config, home)


def standing_rules(config: Config, home: str) -> tuple[PermissionRule, ...]:
    """The standing rules of the settings, whether or not there is every tool that they name."""
    texts = [
        (verdict, text, layer.source)
        for verdict in _VERDICTS
        for layer in config.layers(f"permissions.{verdict}")
        for text in layer.value
    ]
    if not texts:
        return ()
    from weft.permissions import read_rule  # not without rules

    return tuple(
        rule
        for verdict, text, source in texts
        for rule in read_rule(verdict, text, source=source, home=home)
    )


def _check_examples(tables: Mapping[str, object], source: str, home: str) -> None:
    from weft.permissions import table_problem  # not without rules

    for name, examples in tables.items():
        if why := table_problem(name, examples, home=home):
            raise UsageError(f"{source}: {why}")


def _check_rule(
    text: str, source: str, tools: Collection[str], servers: Callable[[], Collection[str]] | None
) -> None:
    from weft.permissions import rule_problem  # not without rules

    # A program may lend a tool with a later message; `name*` is how it says that it will.
    is_open = source == "caller" and "*" in text.partition("(")[0]
    is_servers = text.lstrip().startswith("mcp__")
    known = servers() if servers is not None and is_servers else None
    if why := rule_problem(text, tools=None if is_open else tools, servers=known):
        raise UsageError(why if source == "caller" else f"{source}: {why}")


def _set_or_drop(kept: dict[SessionId, T], session_id: SessionId, value: T | None) -> None:
    if value is None:
        kept.pop(session_id, None)
    else:
        kept[session_id] = value


def _place_of(state: SessionState) -> str:
    """The overlay that a session was made for; empty for most."""
    return str(state.settings.get("place", ""))


def _snapshots(
    files: ProjectFiles,
    project_path: str,
    store: Store,
    guard: SessionReadGuard,
) -> ProjectSnapshots:
    from weft.runtime.snapshots.project_snapshots import ProjectSnapshots  # with the first effect
    from weft.workspace.sandbox.secret_names import SecretNames

    names = SecretNames()
    return ProjectSnapshots(
        files,
        DiskThreads.of(project_path),
        store,
        lambda paths: guard.forbidden_among(paths) | {path for path in paths if names.has(path)},
        has_rules=lambda: guard.has_rules,
    )


def _hosts_move(store: Store) -> bool:
    """Whether sessions of a store may go on at another host."""
    return store.is_shared and store.liveness == "time"


def _saver(
    services: Services, project_path: str, store: Store, snapshots: ProjectSnapshots
) -> WorkspaceSaver:
    from weft.runtime.snapshots.workspace_saver import WorkspaceSaver  # where hosts share a store

    return WorkspaceSaver(
        snapshots,
        DiskThreads.of(project_path),
        store,
        services.workspaces.runner,
        project_path,
        services.places.workspaces / ".git-calls",
    )


async def _index(services: Services, project_path: str) -> ProjectIndex:
    """The index of a project, up to date.

    Raises:
        FinalToolError: there is none, and none may be made.
    """
    has_index = services.indexes.exists(project_path)
    if not has_index and not await anyio.to_thread.run_sync(
        services.indexes.may_make, project_path
    ):
        raise FinalToolError(
            "no index is made of this folder: it has no code, holds a home folder, or nothing of "
            "this session is stored; use grep"
        )
    return await services.indexes.access().ready(project_path, seconds=_INDEX_SECONDS)
