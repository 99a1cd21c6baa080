"""All sessions of an application: started, found, listed, stopped."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias, Unpack

import anyio
import msgspec

from weft.api.handle import input_id_of
from weft.api.history import history
from weft.api.options import SessionDefaults, ToolSelection, refuse_unknown
from weft.api.results import HistoryMessage
from weft.api.seed_messages import seed_facts
from weft.api.session import Session
from weft.errors import AmbiguousId, UsageError, WeftError
from weft.events import CallOrigin, ForkPoint, SessionCreated, Status, SystemNote
from weft.ids import SessionId, new_session_id
from weft.messages import ModelName, clean_text, clean_value
from weft.permissions import MODES
from weft.providers import Model
from weft.runtime.port import LocalPort, SessionPort
from weft.runtime.session_host import SessionHost
from weft.runtime.stores import WantedStore
from weft.runtime.tool_table import tool_table
from weft.session import (
    AbortTurn,
    ChangeSetting,
    ContinueTurn,
    GrantedPermissions,
    load_line,
    load_state,
    node_at,
)
from weft.store import SessionRow
from weft.thinking import level_note, thinking_level
from weft.tools import Tool

logger = logging.getLogger(__name__)


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


class SessionManager(SessionHost):
    """`app.sessions`."""

    # -- starting

    async def start_session(
        self,
        *,
        session_id: str | None = None,
        model: str | Model | None = None,
        project_path: str | os.PathLike[str] | None = None,
        title: str | None = None,
        tools: ToolSelection = "all",
        auto_approve: bool = False,
        system_prompt: str | None = None,
        permission_mode: str | None = None,
        store: WantedStore | None = None,
        messages: Sequence[Mapping[str, Any] | HistoryMessage] | None = None,
        resume: Literal["ask", "auto"] = "ask",
        parent: CallOrigin | None = None,
        asking: Literal["wait", "no"] = "wait",
        **settings: Unpack[SessionDefaults],
    ) -> Session:
        """Start a new session, resume a stored one, or return the running one.

        `auto_approve` answers every ask with yes; deny rules still hold.  `messages` seeds a new session with a conversation.  With
        `resume="auto"` a turn that was interrupted goes on at once.

        `store` is where the session is kept if not with the others of this app: what `weft.open` takes.  Its children and forks are kept
        there too.  To resume it name the store again, unless a session of that store is still open here: until then
        its sessions are found by id.  A `Store` that is handed in stays yours to close, after the session was stopped; one that is named is closed
        with its last session, and "memory" with the app.

        Raises:
            UsageError: a setting, a tool, the store or the model's name is wrong.
            StoreUnavailable: another process owns it and cannot be reached.
        """
        if permission_mode is not None and permission_mode not in MODES:
            raise UsageError(
                f"no permission mode {permission_mode!r}; there are {', '.join(MODES)}"
            )
        table, wanted = tool_table(tools)
        named = self.model_named(model) if model is not None else None
        chosen = SessionId(session_id) if session_id else new_session_id(self.now())
        _check_id(chosen)
        path = self._equipment.resolve_path(str(project_path or self._equipment.project_path))
        refuse_unknown(settings, SessionDefaults, "start_session")
        defaults: dict[str, Any] = clean_value(settings)
        self._check_settings(defaults, path, table, named)
        chosen_model = named or self._default_named()
        asked_level = defaults.get("thinking") or chosen_model.effort
        seeds = seed_facts(messages or (), self.now())
        created = SessionCreated(
            project_path=path,
            title=clean_text(title or "")
            or f"Session {datetime.fromtimestamp(self.now()):%Y-%m-%d %H:%M}",
            model=chosen_model.name,
            settings=_settings(
                {**defaults, "thinking": asked_level or self._equipment.config.get("model.effort")},
                tools=wanted,
                system_prompt=clean_text(system_prompt) if system_prompt else None,
                permission_mode=permission_mode or self._equipment.config.get("permissions.mode"),
                auto_title=title is None,
            ),
            parent=parent,
        )
        is_open = self._registry.running(chosen) is not None
        async with self._registry.stores.entered(store, chosen, is_open=is_open) as kept_in:
            async with self._registry.alone(chosen):
                is_known = session_id is not None and await kept_in.row(chosen) is not None
                self._registry.tools[chosen] = table
                self._registry.asking[chosen] = "yes" if auto_approve else asking
                if not is_known:
                    await self._refuse_missing(path)
                    self._registry.leave[chosen] = GrantedPermissions(trusted_mode=True)
                    told = self._told_of_level(created, is_asked=bool(asked_level))
                    await self._registry.create(chosen, (created, *seeds, *told))
            if is_known:
                return await self._resume(chosen, named, permission_mode, resume)
        return Session(chosen, self, self._registry.ports[chosen])

    def _told_of_level(self, created: SessionCreated, *, is_asked: bool) -> tuple[SystemNote, ...]:
        """A note where the model lacks the thinking level that the session starts with.

        A configured level is meant for all models: of one that does not think it says nothing.
        """
        level = thinking_level(created.settings.get("thinking")) or "default"
        if level == "default":
            return ()
        levels = self.levels_of(created.model)
        said = level_note(created.model, level, levels if levels or is_asked else None)
        return (SystemNote(text=said),) if said else ()

    async def _refuse_missing(self, path: str) -> None:
        if not await anyio.Path(path).is_dir():
            raise UsageError(f"there is no folder {path!r} to work in")

    def _check_settings(
        self,
        settings: dict[str, Any],
        path: str,
        table: Mapping[str, Tool],
        model: ModelName | None,
    ) -> None:
        """Refuse settings that no turn could work with."""
        budget = settings.get("budget") or {}
        if not isinstance(budget, Mapping):
            raise UsageError(f"a budget has max_budget_usd and max_tokens, and is no {budget!r}")
        wishes = {**settings, **budget}
        if model is not None:
            wishes["model"] = model.name
        self._registry.check(path, table, wishes)

    async def _resume(
        self,
        session_id: SessionId,
        model: ModelName | None,
        permission_mode: str | None,
        resume: Literal["ask", "auto"],
    ) -> Session:
        port = await self.port(session_id)
        session = Session(session_id, self, port)
        settings = port.state.settings
        is_new = model is not None and model.name != settings.model
        if model is not None and (is_new or model.effort not in (None, settings.thinking)):
            await port.call(ChangeSetting(name="model", value=str(model)))
        if permission_mode is not None:
            await port.call(ChangeSetting(name="permission_mode", value=permission_mode))
        if resume == "auto" and port.status == "interrupted":
            await port.call(ContinueTurn())
        return session

    async def fork_session(
        self, session_id: str, at: str | int | None = None, title: str | None = None
    ) -> Session:
        """A new session that shares the history up to and including `at` (a message id or its index) by reference."""
        source = await self._registry.resolved(session_id)
        state = await self._registry.state_of(source)
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
        self._registry.tools.setdefault(forked, self._registry.table_of(source))
        self._registry.leave[forked] = self._registry.leave_for_fork(source)
        store = await self._registry.store_of(source)
        return Session(forked, self, await self._registry.create(forked, (created,), store=store))

    # -- finding

    async def get(self, session_id: str) -> Session:
        """The session of this id (or unique prefix), started if it is only stored; no model is called.

        Raises:
            SessionNotFound, AmbiguousId: no session, or several, have it.
        """
        resolved = await self._registry.resolved(session_id)
        return Session(resolved, self, await self.port(resolved))

    async def find_session(self, session_id: str) -> Session | None:
        """The running session of this id or unique prefix; None when none runs."""
        exact = self._registry.running(SessionId(session_id))
        if exact is not None:
            return Session(exact.session_id, self, exact)
        matches = [
            port
            for port in self._registry.ports.values()
            if port.is_open and port.session_id.startswith(session_id)
        ]
        if len(matches) > 1:
            raise AmbiguousId(session_id, tuple(port.session_id for port in matches))
        return Session(matches[0].session_id, self, matches[0]) if matches else None

    async def read_session(self, session_id: str) -> SessionRecord:
        """Messages and metadata of a stored session, without starting anything."""
        resolved = await self._registry.resolved(session_id)
        async with self._registry.reading(resolved) as store:
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
        return await (await self._registry.store_of(session_id)).row(session_id)

    async def list_active(self) -> list[SessionInfo]:
        """The sessions that run in this process; those that work for others are listed by them."""
        return [
            _info(port)
            for port in self._registry.ports.values()
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
        """Stored sessions, last active first; `query` searches titles and what was said.

        Those of the app's own store, and of every other store that a session is open from.
        """
        path = self._equipment.resolve_path(str(project_path)) if project_path else None
        return await self._registry.stores.rows(
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
        from weft.api.export_files import export  # only here: it costs start-up time

        resolved = await self._registry.resolved(session_id)
        async with self._registry.reading(resolved) as store:
            return await export(resolved, store, format, path)

    async def import_session(self, path: str | os.PathLike[str]) -> ImportReport:
        """A new session with the conversation of a json or jsonl export, on this app's project.

        An export is untrusted: only the conversation is taken over.  What the exported session had besides (grants, rules, queue,
        requests, file history, …) is named in `dropped`.  All of it is imported, or nothing.

        Raises:
            UsageError: the file cannot be read, or is no export.
            TooNew, Corrupt: a newer program wrote it; it is damaged.
        """
        from weft.api.export_files import read_export  # as above

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
        port = await self._registry.create(imported, (created, *restored.facts), restored.blobs)
        return ImportReport(session=Session(imported, self, port), dropped=restored.dropped)

    # -- ending

    async def stop_session(self, session_id: str) -> None:
        """End a session's life in this process; its record stays.  A turn that runs is aborted.

        Raises:
            SessionNotFound: no session has this id.
        """
        resolved = await self._registry.resolved(session_id)
        await self._registry.families.end_background(resolved)
        port = self._registry.forget(resolved)
        children = [] if port is None else list(port.state.children.known)
        if port is not None:
            await port.leave("stopped")
        self._registry.families.left(resolved)
        for child in children:
            if child in self._registry.ports:
                await self.stop_session(child)
            await self._registry.stores.leave(child)
        await self._registry.stores.leave(resolved)

    async def stop_child(self, session_id: SessionId, child: SessionId) -> None:
        """Stop a session that works for another, and see that its end is on the other's record."""
        await (await self.port(child)).abort(AbortTurn(reason="it was stopped"))
        await self._registry.families.end_left_behind(
            session_id, child, await self._registry.usage_of(child)
        )

    async def delete_session(self, session_id: str) -> None:
        """Remove a session for good, with all that worked for it; one that forks share is only hidden."""
        resolved = await self._registry.resolved(session_id)
        async with self._registry.reading(resolved) as store:
            children = await self._all_children(resolved)
            await self.stop_session(resolved)
            await store.delete(resolved)
            for child in children:
                if await store.last_seq(child):
                    await self.delete_session(child)

    async def _all_children(self, session_id: SessionId) -> list[SessionId]:
        try:
            return list((await self._registry.state_of(session_id)).children.known)
        except WeftError:  # a damaged session can be deleted too
            return []

    async def rename_session(
        self, session_id: str, title: str, *, input_id: str | None = None
    ) -> None:
        """Give a session another title."""
        if not title.strip():
            raise UsageError("a title needs some text")
        await self._change(session_id, "title", title.strip(), input_id)

    async def archive_session(
        self, session_id: str, archived: bool = True, *, input_id: str | None = None
    ) -> None:
        """Take a session out of the usual lists (or, with False, back into them)."""
        await self._change(session_id, "archived", archived, input_id)

    async def _change(self, session_id: str, name: str, value: Any, input_id: str | None) -> None:
        port = await self.port(await self._registry.resolved(session_id))
        given = input_id_of(input_id)
        await port.call(ChangeSetting(name=name, value=value, input_id=given))

    async def aclose(self) -> None:
        """Stop every session of this process, side by side; each stops those that work for it."""
        roots = [
            each for each, port in self._registry.ports.items() if port.state.about.parent is None
        ]
        for wave in (roots, list(self._registry.ports)):
            async with anyio.create_task_group() as group:
                for session_id in wave:
                    if session_id in self._registry.ports:
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
            for port in self._registry.ports.values()
            if isinstance(port, LocalPort)
            and not port.actor.is_busy
            and not port.actor.is_watched
            and port.actor.last_used <= limit
        ]
        unloaded = 0
        for port in idle:
            # Each takes a while, and meanwhile somebody may have come to one of those that wait their turn.
            if port.actor.last_used > limit or self._registry.families.has_work(port.session_id):
                continue
            unloaded += await self._registry.unload_unused(port)
        return unloaded


def _info(port: SessionPort) -> SessionInfo:
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


def _settings(given: Mapping[str, Any], **named: Any) -> dict[str, Any]:
    """Settings as the log keeps them: only what was set."""
    kept = {**given, **named}
    if kept.get("tools") == "all":
        del kept["tools"]
    if kept.get("thinking") == "default":
        del kept["thinking"]
    return {name: value for name, value in kept.items() if value not in (None, "", False)}


def _check_id(session_id: str) -> None:
    fine = all(c.isalnum() or c in "-_." for c in session_id) and len(session_id) <= 128
    if not fine or session_id.startswith("."):
        raise UsageError(
            f"{session_id!r} cannot be a session id: use up to 128 letters, digits, '-', '_', '.'"
        )
