"""Operations on sessions: started, listed, read, forked, exported, ended."""

from __future__ import annotations

import tempfile
from pathlib import Path

import anyio
import msgspec

from weft.api import (
    AgentDefinition,
    BackgroundWork,
    ChildInfo,
    ComingBack,
    ExpandedCommand,
    FileDifference,
    MarkdownCommand,
    ModelInfo,
    Session,
    SessionInfo,
    SessionMetadata,
    SessionRecord,
    UsageReport,
)
from weft.app import App
from weft.errors import UsageError
from weft.events import Todo
from weft.ids import derived_id
from weft.server.bodies import (
    ExcerptQuery,
    ExportQuery,
    ForkBody,
    ImportBody,
    ImportedSession,
    MessagePage,
    MessageRow,
    PageQuery,
    QueuedPair,
    SaidExcerpts,
    SessionChange,
    SessionList,
    SessionListQuery,
    SessionView,
    StartBody,
    StatusAnswer,
)
from weft.server.gate import MOST_BODY_BYTES
from weft.server.operation import LARGE_BODY, ApiCall, ApiOperation, ChangeBody, session_call
from weft.server.projects import project_key
from weft.state import TouchedFile

MOST_MESSAGES = 200
"""Of one page."""
MOST_ROWS = 500
MOST_PLACES = 200
"""Of one search for excerpts."""


async def view_of(app: App, session: Session) -> SessionView:
    """A session for a screen."""
    row = await app.store.row(session.id)
    folder = row.project_path if row is not None and row.project_path else app.project_path
    return SessionView(
        id=session.id,
        project=project_key(folder),
        project_path=folder,
        snapshot=await session.editor_snapshot(),
    )


async def _list(call: ApiCall) -> SessionList:
    query: SessionListQuery = call.query
    projects = call.parts.projects
    path = None if query.project is None else (await projects.named(query.project)).project_path
    if not 0 < query.limit <= MOST_ROWS:
        raise UsageError(f"a page has from 1 to {MOST_ROWS} rows")
    rows = await projects.main.sessions.list_saved(
        path, query.q, query.limit, archived=query.archived, after=query.after
    )
    working = {str(each) for each in rows.working}
    for app in projects.apps:
        working |= {info.id for info in await app.sessions.list_active() if info.status in _WORK}
    return SessionList(
        rows=list(rows),
        next=rows.next,
        working=sorted(working & {row.id for row in rows}),
    )


async def _excerpts(call: ApiCall) -> SaidExcerpts:
    query: ExcerptQuery = call.query
    if not 0 < query.limit <= MOST_PLACES:
        raise UsageError(f"from 1 to {MOST_PLACES} places are looked at")
    hits = await call.parts.projects.main.store.search(query.q, limit=query.limit)
    # The best place of a session comes first.
    return SaidExcerpts(excerpts={hit.session_id: hit.excerpt for hit in reversed(hits)})


_WORK = ("thinking", "executing_tool", "awaiting_permission")


async def _active(call: ApiCall) -> list[SessionInfo]:
    return [info for app in call.parts.projects.apps for info in await app.sessions.list_active()]


async def _start(call: ApiCall) -> SessionView:
    body: StartBody = call.body
    fields = call.fields("input_id")
    if body.session_id is None and body.input_id:
        # A repeat finds the session that the first call made, after a restart too.
        fields["session_id"] = derived_id("ses", "start", body.input_id)
    app = await call.parts.projects.for_start(fields.get("session_id"), body.project_path)
    return await view_of(app, await app.sessions.start_session(**fields))


async def _get(call: ApiCall) -> SessionView:
    app, session = await call.parts.projects.session(call.path["id"])
    return await view_of(app, session)


async def _record(call: ApiCall) -> SessionRecord:
    app = await call.parts.projects.home_of(call.path["id"])
    return await app.sessions.read_session(call.path["id"])


async def _change(call: ApiCall) -> None:
    body: SessionChange = call.body
    sessions = (await call.parts.projects.home_of(call.path["id"])).sessions
    if body.title is None and body.archived is None:
        raise UsageError("give a title, or archived, or both")
    if body.title is not None:
        await sessions.rename_session(call.path["id"], body.title, input_id=body.input_id)
    if body.archived is not None:
        # Two calls, two ids: one that comes again finds both.
        second = f"{body.input_id}:archived" if body.input_id else None
        await sessions.archive_session(call.path["id"], body.archived, input_id=second)


async def _delete(call: ApiCall) -> None:
    app = await call.parts.projects.home_of(call.path["id"])
    await app.sessions.delete_session(call.path["id"], input_id=call.body.input_id)


async def _stop(call: ApiCall) -> None:
    app = await call.parts.projects.home_of(call.path["id"])
    await app.sessions.stop_session(call.path["id"])


async def _fork(call: ApiCall) -> SessionView:
    app = await call.parts.projects.home_of(call.path["id"])
    session = await app.sessions.fork_session(call.path["id"], **call.fields())
    return await view_of(app, session)


async def _export(call: ApiCall) -> str:
    app = await call.parts.projects.home_of(call.path["id"])
    query: ExportQuery = call.query
    return await app.sessions.export_session(call.path["id"], query.format, files=query.files)


async def _import(call: ApiCall) -> ImportedSession:
    body: ImportBody = call.body
    app = await call.app()
    with tempfile.TemporaryDirectory(prefix="weft-import-") as folder:
        file = Path(folder) / "session.jsonl"
        await anyio.Path(file).write_text(body.content, encoding="utf-8")
        report = await app.sessions.import_session(file, input_id=body.input_id)
    return ImportedSession(session=await view_of(app, report.session), dropped=report.dropped)


async def _messages(call: ApiCall) -> MessagePage:
    query: PageQuery = call.query
    if not 0 < query.limit <= MOST_MESSAGES:
        raise UsageError(f"a page has from 1 to {MOST_MESSAGES} messages")
    session = await call.session()
    page = await session.line(query.before, query.after, query.limit)
    shown = {each for each, _ in page.items}
    return MessagePage(
        messages=[MessageRow(id=each, message=message) for each, message in page.items],
        previous=page.before,
        next=page.after,
        seq=page.seq,
        asides=tuple(each for each in await session.asides() if each.node in shown),
    )


async def _queue(call: ApiCall) -> QueuedPair:
    steering, follow_up = await (await call.session()).get_queued_messages()
    return QueuedPair(steering=steering, follow_up=follow_up)


async def _status(call: ApiCall) -> StatusAnswer:
    return StatusAnswer(value=await (await call.session()).get_status())


async def _provider(call: ApiCall) -> StatusAnswer:
    return StatusAnswer(value=await (await call.session()).get_provider())


class CommandList(msgspec.Struct, frozen=True, kw_only=True):
    """The slash commands of a session."""

    names: list[str]
    """All of them, with the slash."""
    markdown: list[MarkdownCommand]
    """Those from Markdown files."""


class CommandBody(ChangeBody, frozen=True, kw_only=True):
    """A line `/name arguments`."""

    text: str


async def _commands(call: ApiCall) -> CommandList:
    session = await call.session()
    return CommandList(names=await session.get_commands(), markdown=await session.list_commands())


SESSIONS: tuple[ApiOperation, ...] = (
    ApiOperation(
        method="GET",
        path="/sessions",
        name="list_saved",
        says="Stored sessions, last active first; `q` searches titles and messages.",
        run=_list,
        query=SessionListQuery,
        answer=SessionList,
        calls=("sessions.list_saved",),
    ),
    ApiOperation(
        method="GET",
        path="/sessions/excerpts",
        name="said_excerpts",
        says="Around which words stored sessions say those of `q`.",
        run=_excerpts,
        query=ExcerptQuery,
        answer=SaidExcerpts,
    ),
    ApiOperation(
        method="GET",
        path="/sessions/active",
        name="list_active",
        says="The sessions that run in this server.",
        run=_active,
        answer=list[SessionInfo],
        calls=("sessions.list_active", "sessions.find_session"),
    ),
    ApiOperation(
        method="POST",
        path="/sessions",
        name="start_session",
        says="Start a session, or resume the one with `session_id`.",
        run=_start,
        body=StartBody,
        answer=SessionView,
        status=201,
        calls=("sessions.start_session",),
        remembers=False,
        most_bytes=LARGE_BODY,
    ),
    ApiOperation(
        method="POST",
        path="/sessions/import",
        name="import_session",
        says="Make a session of an export; only its conversation is taken over.",
        run=_import,
        body=ImportBody,
        answer=ImportedSession,
        status=201,
        calls=("sessions.import_session",),
        most_bytes=MOST_BODY_BYTES,
    ),
    ApiOperation(
        method="GET",
        path="/sessions/{id}",
        name="editor_snapshot",
        says="All that a screen needs to draw a session; it is started, and no model is called.",
        run=_get,
        answer=SessionView,
        calls=("session.editor_snapshot", "sessions.get"),
    ),
    ApiOperation(
        method="GET",
        path="/sessions/{id}/record",
        name="read_session",
        says="Messages and metadata of a stored session; nothing is started.",
        run=_record,
        answer=SessionRecord,
        calls=("sessions.read_session",),
    ),
    ApiOperation(
        method="PATCH",
        path="/sessions/{id}",
        name="change_session",
        says="Rename a session, archive it, or put it back.",
        run=_change,
        body=SessionChange,
        calls=("sessions.rename_session", "sessions.archive_session"),
    ),
    ApiOperation(
        method="DELETE",
        path="/sessions/{id}",
        name="delete_session",
        says="Delete a session for good.",
        run=_delete,
        calls=("sessions.delete_session",),
    ),
    ApiOperation(
        method="POST",
        path="/sessions/{id}/stop",
        name="stop_session",
        says="Stop a session; its record stays.",
        run=_stop,
        calls=("sessions.stop_session", "session.stop"),
        remembers=False,
    ),
    ApiOperation(
        method="POST",
        path="/sessions/{id}/fork",
        name="fork_session",
        says="A new session that shares the history up to and including `at`.",
        run=_fork,
        body=ForkBody,
        answer=SessionView,
        status=201,
        calls=("sessions.fork_session",),
    ),
    ApiOperation(
        method="GET",
        path="/sessions/{id}/export",
        name="export_session",
        says="The whole conversation as text.",
        run=_export,
        query=ExportQuery,
        answer=str,
        media_type="text/plain",
        calls=("sessions.export_session",),
    ),
    ApiOperation(
        method="GET",
        path="/sessions/{id}/messages",
        name="messages",
        says="A page of the present line, oldest first: the end of it, or before or after an id.",
        run=_messages,
        query=PageQuery,
        answer=MessagePage,
        calls=(
            "session.messages",
            "session.get_history",
            "session.messages_with_ids",
            "session.line",
        ),
    ),
    ApiOperation(
        method="GET",
        path="/sessions/{id}/status",
        name="get_status",
        says="What the session does.",
        run=_status,
        answer=StatusAnswer,
        calls=("session.get_status",),
    ),
    ApiOperation(
        method="GET",
        path="/sessions/{id}/provider",
        name="get_provider",
        says="The provider of the session's model.",
        run=_provider,
        answer=StatusAnswer,
        calls=("session.get_provider",),
    ),
    ApiOperation(
        method="GET",
        path="/sessions/{id}/queue",
        name="get_queued_messages",
        says="Both queues.",
        run=_queue,
        answer=QueuedPair,
        calls=("session.get_queued_messages",),
    ),
    ApiOperation(
        method="GET",
        path="/sessions/{id}/commands",
        name="get_commands",
        says="The slash commands: all names, and those from Markdown files.",
        run=_commands,
        answer=CommandList,
        calls=("session.get_commands", "session.list_commands"),
    ),
    session_call(
        "POST",
        "/commands",
        "expand_command",
        "What a command from a Markdown file stands for; send its content with its options.",
        body=CommandBody,
        answer=ExpandedCommand,
        takes_input_id=False,
    ),
    session_call(
        "GET",
        "/metadata",
        "metadata",
        "Title, model, counts, cost and status.",
        answer=SessionMetadata,
    ),
    session_call("GET", "/usage", "usage", "Tokens and cost.", answer=UsageReport),
    session_call(
        "GET",
        "/touched",
        "touched_files",
        "The files that tools changed, newest first.",
        answer=list[TouchedFile],
    ),
    session_call(
        "GET",
        "/differences",
        "differences",
        "The files that are not what the log tells of, and whose change that is.",
        answer=list[FileDifference],
    ),
    session_call(
        "GET",
        "/coming-back",
        "coming_back",
        "Whether a crash has cut off a turn, what goes on by choice, and what that costs.",
        answer=ComingBack,
    ),
    session_call("GET", "/todos", "todos", "The to-do list.", answer=tuple[Todo, ...]),
    session_call(
        "GET",
        "/background",
        "background_commands",
        "Background agents and commands.",
        answer=list[BackgroundWork],
    ),
    session_call(
        "GET", "/children", "children", "The sessions that work for it.", answer=list[ChildInfo]
    ),
    session_call(
        "GET",
        "/agents",
        "list_agents",
        "The kinds of agents that it can start.",
        answer=list[AgentDefinition],
    ),
    session_call(
        "GET",
        "/models",
        "get_available_models",
        "Every model that could be used.",
        answer=list[ModelInfo],
    ),
)
