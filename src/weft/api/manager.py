"""All sessions of an application: started, found, listed, stopped."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, Unpack

import msgspec

from weft.api.handle import LARGEST_NUMBER, input_id_of, number_of, path_of, text_of
from weft.api.history import history
from weft.api.options import SessionDefaults, ToolSelection
from weft.api.session import Session, open_handle
from weft.api.session_start import StartRequest, start
from weft.config.paths import absolute
from weft.errors import SessionNotFound, StaleInput, UsageError
from weft.events import CallOrigin, CommandCause, ForkPoint, SessionCreated, Status
from weft.ids import SessionId, derived_id, new_session_id, time_of
from weft.providers import Model
from weft.runtime.session_host import SessionHost
from weft.session import (
    ChangeSetting,
    SessionPort,
)
from weft.sha256 import sha256
from weft.store import RowPlace
from weft.store import SessionRow as SessionRow
from weft.store.location import StoreArgument
from weft.view.snapshot import HistoryMessage

if TYPE_CHECKING:  # loaded with the first import: it costs start-up time
    from weft.export import RestoredFacts

logger = logging.getLogger(__name__)

DELETED_REMEMBERED: Final = 1_000
"""Input ids of deletions that are remembered, the oldest forgotten first."""


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
    """What the exported session had besides its conversation, by name, and how much of it: none of
    that is taken over.
    """


class SavedSessions(list[SessionRow]):
    """A page of the list of sessions."""

    next: str | None = None
    """Hand this to `list_saved(after=…)` for the sessions behind these; None when there are
    none.
    """
    working: frozenset[SessionId] = frozenset()
    """Those whose turn is at work, in this process or in another that lives.  Any other with a turn
    that is open (`turn_open`) waits, or is interrupted.
    """


class SessionManager:
    """`app.sessions`."""

    def __init__(self, host: SessionHost) -> None:
        self._host = host
        self._registry = host.registry
        self._deleted: dict[str, set[str]] = {}
        """The input ids of deletions, each with the names that the session was called by."""

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
        store: StoreArgument | None = None,
        messages: Sequence[Mapping[str, Any] | HistoryMessage] | None = None,
        resume: Literal["ask", "auto", "never"] | None = None,
        parent: CallOrigin | None = None,
        asking: Literal["wait", "no"] = "wait",
        **settings: Unpack[SessionDefaults],
    ) -> Session:
        """Start a new session, resume a stored one, or return the running one.

        `auto_approve` answers every ask with yes; deny rules still hold.  `messages` seeds a new
        session with a conversation.

        `resume` says what happens to a turn that a crash cuts off, from now on: `ask` (it waits for
        the user), `auto` (it goes on by itself, and here at once) or `never`.  None leaves what the
        session has; a new one has what the settings say.

        `store` is where the session is kept if not with the others of this app: what `weft.open`
        takes.  Its children and forks are kept there too.  To resume it name the store again,
        unless a session of that store is still open here: until then its sessions are found by id.
        A `Store` that is handed in stays yours to close, after the session was stopped; one that is
        named is closed with its last session, and "memory" with the app.

        Raises:
            UsageError: a setting, a tool, the store or the model's name is wrong.
            StoreUnavailable: another process owns it and cannot be reached.
        """
        request = StartRequest(
            session_id=session_id,
            model=model,
            project_path=project_path,
            title=title,
            tools=tools,
            auto_approve=auto_approve,
            system_prompt=system_prompt,
            permission_mode=permission_mode,
            store=store,
            messages=messages,
            resume=resume,
            parent=parent,
            asking=asking,
        )
        return open_handle(self._host, await start(self._host, request, settings))

    async def fork_session(
        self,
        session_id: str,
        at: str | int | None = None,
        title: str | None = None,
        *,
        input_id: str | None = None,
    ) -> Session:
        """A new session that shares the history up to and including `at` (a message id or its
        index) by reference.

        Raises:
            SessionNotFound, AmbiguousId: no session, or several, have this id.
            UsageError: there is no such message.
            StaleInput: `input_id` made another fork of this session.
        """
        source = await self._registry.resolved(session_id)
        title = None if title is None else text_of("a title", title)
        if at is not None and not isinstance(at, str | int):
            raise UsageError(f"a message is named by its id or its index, not {at!r:.80}")
        forked, cause = self._named(input_id, ("fork", source), (at, title))
        # Two calls under one id must not both make it: the second finds the first one's.
        async with self._registry.alone(forked):
            if not await self._registry.was_made(forked, cause):
                await self._fork(source, forked, at, title, cause)
        return open_handle(self._host, await self._host.port(forked))

    def _named(
        self, input_id: str | None, names: tuple[str, ...], arguments: object
    ) -> tuple[SessionId, CommandCause | None]:
        """The id of a session to be made, and what is kept of the call that makes it.

        The id follows from the input id: a repeat finds what the first call made, after a crash and
        in another process too.
        """
        given = input_id_of(input_id)
        if given is None:
            return new_session_id(self._host.now()), None
        digest = sha256(msgspec.json.encode((names, arguments))).hexdigest()
        cause = CommandCause(input_id=given, digest=digest)
        return SessionId(derived_id("ses", *names, given)), cause

    async def _fork(
        self,
        source: SessionId,
        forked: SessionId,
        at: str | int | None,
        title: str | None,
        cause: CommandCause | None,
    ) -> None:
        from weft.session import node_at  # few sessions are forked

        state = await self._registry.state_of(source)
        node = state.tree.head if at is None else node_at(state, at)
        # A fork inherits settings: it has a title of its own, and is not hidden because its source
        # is.
        settings: dict[str, Any] = {"auto_title": False, "archived": False}
        if at is not None and state.settings.mode.startswith("loom"):
            # Begun at a node of a text tree it is a session like any other; without one it is the
            # tree once more.
            settings["mode"] = "normal"
        created = SessionCreated(
            project_path=state.about.known_path,
            project_id=state.about.project_id,
            title=title or f"{state.title} (fork)",
            model=state.settings.model,
            settings=settings,
            fork=ForkPoint(session_id=source, seq=state.seq, node=node),
        )
        # Before the next wait, in which the source may go on: the past ends at the `seq` above.
        past = state.fork(forked)
        self._registry.keep_tools(forked, self._registry.table_of(source))
        self._registry.granted[forked] = self._registry.granted_to_fork(source)
        store = await self._registry.store_of(source)
        await self._registry.create(forked, (created,), store=store, past=past, cause=cause)

    # -- finding

    async def get(self, session_id: str) -> Session:
        """The session of this id (or unique prefix), started if it is only stored; no model is
        called.

        Raises:
            SessionNotFound, AmbiguousId: no session, or several, have it.
        """
        resolved = await self._registry.resolved(session_id)
        return open_handle(self._host, await self._host.port(resolved))

    async def find_session(self, session_id: str) -> Session | None:
        """The running session of this id or unique prefix; None when none runs."""
        port = self._registry.running_with_prefix(text_of("the id of a session", session_id))
        return None if port is None else open_handle(self._host, port)

    async def resolve_id(self, session_id: str) -> SessionId:
        """The whole id for an id or a unique prefix, which may lack its `ses_`; nothing is started.

        Raises:
            SessionNotFound, AmbiguousId: no session, or several, have it.
        """
        return await self._registry.resolved(session_id)

    async def read_session(self, session_id: str) -> SessionRecord:
        """Messages and metadata of a stored session, without starting anything."""
        from weft.session import load_line, load_state  # for those who read: start-up time

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
        after: str | None = None,
    ) -> SavedSessions:
        """Stored sessions, last active first; `query` searches titles and what was said.

        Those of the app's own store, and of every other store that a session is open from.  `after`
        goes on behind an earlier page: hand over its `next`.

        Raises:
            UsageError: `after` is no page's `next`.
        """
        path = None
        if project_path is not None and project_path != "":
            path = absolute(path_of("folder", project_path))
        query = None if query is None else text_of("what is searched for", query)
        limit = number_of("the limit of a page", limit, least=0)
        known = await self._registry.project_known(path) if path else None
        rows = await self._registry.stores.rows(
            project_path=path,
            moved=known if known is not None and known.former else None,
            query=query,
            # One more tells whether there is a next page.
            limit=min(limit + 1, LARGEST_NUMBER),
            archived=archived,
            after=None if after is None else _place(text_of("a place in the list", after)),
        )
        page = SavedSessions(rows[:limit])
        if len(rows) > limit and page:
            page.next = f"{page[-1].last_active!r}:{page[-1].id}"
        at_work = [row.id for row in page if row.turn_open and await self._host.is_at_work(row.id)]
        page.working = frozenset(at_work)
        return page

    # -- files

    async def export_session(
        self,
        session_id: str,
        format: ExportFormat = "json",
        path: str | os.PathLike[str] | None = None,
        *,
        files: bool = False,
        missing: Callable[[tuple[str, ...]], None] | None = None,
    ) -> str:
        """The whole conversation as text; with `path` also written there (replacing what was),
        readable by its owner alone.

        `json` and `jsonl` are complete and can be imported; `md` and `html` are the present line,
        for reading.  With `files` the project's files at the end of each turn go along, secrets in
        them too; `missing` is called once with the names of those whose content is not stored, each
        with the reason.

        Raises:
            SessionNotFound, AmbiguousId: no session, or several, have this id.
            UsageError: there is no such format, the file cannot be written, or `files` are asked
                for and none are stored.
        """
        from weft.api.export_files import export  # only here: it costs start-up time

        resolved = await self._registry.resolved(session_id)
        async with self._registry.reading(resolved) as store:
            return await export(resolved, store, format, path, files=files, missing=missing)

    async def import_session(
        self, path: str | os.PathLike[str], *, input_id: str | None = None
    ) -> ImportReport:
        """A new session with the conversation of a json or jsonl export, on this app's project.

        An export is untrusted: only the conversation is taken over.  What the exported session had
        besides (grants, rules, queue, requests, file history, …) is named in `dropped`.  All of it
        is imported, or nothing.

        Raises:
            UsageError: the file cannot be read, or is no export.
            TooNew, Corrupt: a newer program wrote it; it is damaged.
            StaleInput: `input_id` imported another file.
        """
        from weft.api.export_files import read_export  # as above

        restored, content = await read_export(path_of("file", path))
        imported, cause = self._named(input_id, ("import",), content)
        async with self._registry.alone(imported):
            if not await self._registry.was_made(imported, cause):
                await self._import(imported, restored, cause)
        session = open_handle(self._host, await self._host.port(imported))
        return ImportReport(session=session, dropped=restored.dropped)

    async def _import(
        self, imported: SessionId, restored: RestoredFacts, cause: CommandCause | None
    ) -> None:
        created = SessionCreated(
            project_path=self._host.services.project_path,
            title=restored.title,
            model=restored.model,
            # Never the export's own mode: a file from elsewhere must not choose what may be done
            # without asking.
            settings={"permission_mode": self._host.services.config.get("permissions.mode")},
            imported=True,
            at=restored.created,
        )
        facts = (created, *restored.facts)
        await self._registry.create(imported, facts, restored.blobs, cause=cause)

    # -- ending

    async def stop_session(self, session_id: str) -> None:
        """End a session's life in this process; its record stays.  A turn that runs is aborted.

        Raises:
            SessionNotFound: no session has this id.
        """
        await self._host.stop(await self._registry.resolved(session_id))

    async def delete_session(self, session_id: str, *, input_id: str | None = None) -> None:
        """Remove a session for good, with all that worked for it.

        One that forks share is only hidden.  With an `input_id`, a session that is gone already is
        no error: nothing is left of one that could tell a repeat from a mistake.

        Raises:
            SessionNotFound, AmbiguousId: no session, or several, have this id.
            StaleInput: `input_id` deleted another session.
        """
        input_id = input_id_of(input_id)
        if input_id and (known := self._deleted.get(input_id)) is not None:
            if session_id not in known:
                raise StaleInput(input_id)
            return
        resolved = await self._to_delete(session_id, input_id)
        if self._registry.running(resolved) or await self._registry.is_stored(resolved):
            await self._host.delete(resolved)
        # Not before: a repeat of a deletion that failed has to delete.
        if input_id:
            self._deleted[input_id] = {session_id, resolved}
            while len(self._deleted) > DELETED_REMEMBERED:
                del self._deleted[next(iter(self._deleted))]

    async def _to_delete(self, session_id: str, input_id: str | None) -> SessionId:
        try:
            return await self._registry.resolved(session_id)
        except SessionNotFound:
            # Only where it can be no slip of the pen: a whole id, as we make them.
            if not input_id or not time_of(session_id):
                raise
            return SessionId(session_id)

    async def rename_session(
        self, session_id: str, title: str, *, input_id: str | None = None
    ) -> None:
        """Rename a session."""
        if not title.strip():
            raise UsageError("a title needs some text")
        await self._change(session_id, "title", title.strip(), input_id)

    async def archive_session(
        self, session_id: str, archived: bool = True, *, input_id: str | None = None
    ) -> None:
        """Take a session out of the usual lists (or, with False, back into them)."""
        await self._change(session_id, "archived", archived, input_id)

    async def _change(self, session_id: str, name: str, value: Any, input_id: str | None) -> None:
        port = await self._host.port(await self._registry.resolved(session_id))
        given = input_id_of(input_id)
        await port.call(ChangeSetting(name=name, value=value, input_id=given))

    async def unload_idle(self, older_than_seconds: float) -> int:
        """Unload sessions that are neither used nor watched; returns how many.

        They come back with the next call.
        """
        return await self._host.unload_idle(older_than_seconds)

    async def aclose(self) -> None:
        """Close every session of this process, side by side; their records stay.

        Turns that run are suspended: they are interrupted, and can go on.
        """
        await self._host.aclose()


def _place(after: str) -> RowPlace:
    """The place in the list that a page's `next` names."""
    last_active, _, session_id = after.partition(":")
    try:
        place = float(last_active), SessionId(session_id)
    except ValueError:
        place = math.nan, SessionId("")
    if not math.isfinite(place[0]) or not session_id:
        raise UsageError(f"{after!r} is no place in the list; hand over the `next` of a page")
    return place


def _info(port: SessionPort) -> SessionInfo:
    state = port.state
    return SessionInfo(
        id=port.session_id,
        status=port.status,
        title=state.title,
        model=state.settings.model,
        mode=state.settings.mode,
        project_path=state.about.project_path,
        last_active=max(state.about.last_message, state.about.created),
    )
