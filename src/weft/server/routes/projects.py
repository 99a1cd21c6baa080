"""Operations on projects: files, the index, trust, settings, memory, language servers, blobs."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from weft.api import (
    Definition,
    IndexStatus,
    MemoryNote,
    ProjectFile,
    ServerStatus,
    Symbol,
    TrustQuestion,
)
from weft.errors import UsageError
from weft.messages import File, Image
from weft.server.bodies import TextAnswer
from weft.server.operation import ApiCall, ApiOperation, ChangeBody, Method, QueryFields
from weft.server.projects import ProjectInfo, project_key


class FolderBody(ChangeBody, frozen=True, kw_only=True):
    """A folder of this machine."""

    path: str


class FileQuery(QueryFields, frozen=True, kw_only=True):
    """A file, now or as it was when a message was done."""

    path: str
    at: str | None = None


class PathQuery(QueryFields, frozen=True, kw_only=True):
    """A file of the project."""

    path: str


class FindQuery(QueryFields, frozen=True, kw_only=True):
    """Letters of a path; all files without them."""

    text: str | None = None


class NameQuery(QueryFields, frozen=True, kw_only=True):
    """A name."""

    name: str


class MapQuery(QueryFields, frozen=True, kw_only=True):
    """What the map is for."""

    request: str = ""
    focus: str = ""
    """Files that are known already, with commas between them."""
    tokens: int = 1024


class TrustAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the user trusts a folder, and what to ask where something of it is withheld."""

    is_trusted: bool
    question: TrustQuestion | None


class TrustBody(ChangeBody, frozen=True, kw_only=True):
    """What the user decided."""

    trusted: bool


class SettingBody(ChangeBody, frozen=True, kw_only=True):
    """A setting as the user types it; null takes it out."""

    name: str
    value: str | None


class MemoryBody(ChangeBody, frozen=True, kw_only=True):
    """Something to remember."""

    text: str
    scope: Literal["user", "project"] = "project"


class ScopeQuery(QueryFields, frozen=True, kw_only=True):
    """Of which file."""

    scope: Literal["user", "project"] = "project"


class MemoryFileBody(ChangeBody, frozen=True, kw_only=True):
    """The file as it was read, and as it is to be."""

    before: str
    after: str
    scope: Literal["user", "project"] = "project"


async def _projects(call: ApiCall) -> list[ProjectInfo]:
    return await call.parts.projects.known()


async def _open(call: ApiCall) -> ProjectInfo:
    app = await call.parts.projects.for_start(None, call.body.path)
    key = project_key(app.project_path)
    return next(info for info in await call.parts.projects.known() if info.id == key)


async def _files(call: ApiCall) -> list[str]:
    index = (await call.app()).index
    text = call.query.text
    return await index.files() if text is None else await index.find(text)


async def _file(call: ApiCall) -> ProjectFile:
    path = call.query.path
    parts = await (await call.app()).attach_files([f"@{path}"])
    for part in parts:
        if isinstance(part, File):
            return ProjectFile(path=part.name, text=part.text, media_type=part.media_type)
        if isinstance(part, Image):
            data = msgspec.json.decode(msgspec.json.encode(part.data), type=bytes)
            return ProjectFile(path=part.name, text=None, data=data, media_type=part.media_type)
    raise UsageError(f"there is no file {path!r:.200} in this project")


async def _file_at(call: ApiCall) -> ProjectFile:
    return await (await call.session()).read_file(call.query.path, call.query.at)


async def _symbols(call: ApiCall) -> list[Symbol]:
    return await (await call.app()).index.symbols(call.query.name)


async def _outline(call: ApiCall) -> list[Definition]:
    return await (await call.app()).index.outline(call.query.path)


async def _map(call: ApiCall) -> TextAnswer:
    query: MapQuery = call.query
    focus = [each for each in query.focus.split(",") if each]
    text = await (await call.app()).index.map(query.request, focus, query.tokens)
    return TextAnswer(text=text)


async def _index(call: ApiCall) -> IndexStatus:
    return await (await call.app()).index.status()


async def _trust(call: ApiCall) -> TrustAnswer:
    app = await call.app()
    return TrustAnswer(is_trusted=await app.is_trusted(), question=await app.trust_question())


async def _set_trust(call: ApiCall) -> TrustAnswer:
    app = await call.app()
    if call.body.trusted:
        await app.trust()
    else:
        await app.forget_trust()
    return await _trust(call)


async def _config(call: ApiCall) -> dict[str, Any]:
    return (await call.app()).shown_settings()


async def _set_config(call: ApiCall) -> TextAnswer:
    note = await (await call.app()).change_setting(call.body.name, call.body.value)
    return TextAnswer(text=note)


async def _memory(call: ApiCall) -> list[MemoryNote]:
    return await (await call.app()).memory.list()


async def _remember(call: ApiCall) -> MemoryNote:
    return await (await call.app()).memory.add(call.body.text, call.body.scope)


async def _forget(call: ApiCall) -> MemoryNote:
    return await (await call.app()).memory.remove(call.path["note"])


async def _memory_file(call: ApiCall) -> TextAnswer:
    memory, scope = (await call.app()).memory, call.query.scope
    return TextAnswer(text=await memory.source(scope), path=memory.path(scope))


async def _rewrite_memory(call: ApiCall) -> TextAnswer:
    body: MemoryFileBody = call.body
    memory = (await call.app()).memory
    return TextAnswer(
        text=await memory.rewrite(body.scope, body.before, body.after), path=memory.path(body.scope)
    )


async def _problems(call: ApiCall) -> tuple[str, ...]:
    return await (await call.app()).project_problems()


async def _restart_servers(call: ApiCall) -> None:
    (await call.app()).restart_language_servers()


async def _servers(call: ApiCall) -> list[ServerStatus]:
    return await (await call.app()).language_servers()


async def _blob(call: ApiCall) -> bytes:
    return await (await call.app()).read_blob(call.path["blob"])


def _of_project(
    method: Method, path: str, name: str, says: str, run: Any, *calls: str, **more: Any
) -> ApiOperation:
    return ApiOperation(
        method=method,
        path=f"/projects/{{project}}{path}",
        name=name,
        says=says,
        run=run,
        calls=calls,
        remembers=method == "GET",
        **more,
    )


PROJECTS: tuple[ApiOperation, ...] = (
    ApiOperation(
        method="GET",
        path="/projects",
        name="projects",
        says="The projects that are known; `main` is the one that the server was started in.",
        run=_projects,
        answer=list[ProjectInfo],
    ),
    ApiOperation(
        method="POST",
        path="/projects",
        name="open_project",
        says="Open a folder of this machine as a project.",
        run=_open,
        body=FolderBody,
        answer=ProjectInfo,
        status=201,
        calls=("weft.open",),
        remembers=False,
    ),
    ApiOperation(
        method="GET",
        path="/sessions/{id}/file",
        name="read_file",
        says="A file of the session's project, now or at a message; secrets are masked.",
        run=_file_at,
        query=FileQuery,
        answer=ProjectFile,
        calls=("session.read_file",),
    ),
    _of_project(
        "GET",
        "/files",
        "files",
        "The files of a project, or those whose path is like `text`.",
        _files,
        "app.index.files",
        "app.index.find",
        query=FindQuery,
        answer=list[str],
    ),
    _of_project(
        "GET",
        "/file",
        "project_file",
        "A file of a project; secrets are masked.",
        _file,
        query=PathQuery,
        answer=ProjectFile,
    ),
    _of_project(
        "GET",
        "/symbols",
        "symbols",
        "The definitions of a name.",
        _symbols,
        "app.index.symbols",
        query=NameQuery,
        answer=list[Symbol],
    ),
    _of_project(
        "GET",
        "/outline",
        "outline",
        "What a file defines.",
        _outline,
        "app.index.outline",
        query=PathQuery,
        answer=list[Definition],
    ),
    _of_project(
        "GET",
        "/map",
        "map",
        "Files and definitions, those first that a request is about.",
        _map,
        "app.index.map",
        query=MapQuery,
        answer=TextAnswer,
    ),
    _of_project(
        "GET",
        "/index",
        "index_status",
        "What the index holds.",
        _index,
        "app.index.status",
        answer=IndexStatus,
    ),
    _of_project(
        "GET",
        "/trust",
        "trust_question",
        "Whether the user trusts the folder, and what it would do if they did.",
        _trust,
        "app.trust_question",
        answer=TrustAnswer,
    ),
    _of_project(
        "PUT",
        "/trust",
        "trust",
        "Say that the user trusts the folder as it is now, or no longer does.",
        _set_trust,
        "app.trust",
        body=TrustBody,
        answer=TrustAnswer,
    ),
    _of_project(
        "GET",
        "/config",
        "settings",
        "Every setting, its value and where that comes from; secrets are masked.",
        _config,
        "app.config.get",
        answer=dict[str, Any],
    ),
    _of_project(
        "PUT",
        "/config",
        "change_setting",
        "Set a setting in the user's own file.",
        _set_config,
        "app.config.set",
        body=SettingBody,
        answer=TextAnswer,
    ),
    _of_project(
        "GET",
        "/memory",
        "memory",
        "What the user asked to be remembered.",
        _memory,
        "app.memory.list",
        answer=list[MemoryNote],
    ),
    _of_project(
        "POST",
        "/memory",
        "remember",
        "Remember something.",
        _remember,
        "app.memory.add",
        body=MemoryBody,
        answer=MemoryNote,
        status=201,
    ),
    _of_project(
        "DELETE",
        "/memory/{note}",
        "forget",
        "Forget something.",
        _forget,
        "app.memory.remove",
        answer=MemoryNote,
    ),
    _of_project(
        "GET",
        "/memory/file",
        "memory_file",
        "The file of what is remembered, as it is.",
        _memory_file,
        "app.memory.source",
        "app.memory.path",
        query=ScopeQuery,
        answer=TextAnswer,
    ),
    _of_project(
        "PUT",
        "/memory/file",
        "rewrite_memory",
        "Put another text in its place, if it is still as it was read.",
        _rewrite_memory,
        "app.memory.rewrite",
        body=MemoryFileBody,
        answer=TextAnswer,
    ),
    _of_project(
        "GET",
        "/problems",
        "project_problems",
        "What the project brings along that is left out, and why.",
        _problems,
        "app.project_problems",
        answer=tuple[str, ...],
    ),
    _of_project(
        "POST",
        "/lsp/restart",
        "restart_language_servers",
        "Stop all language servers; they start again when they are needed.",
        _restart_servers,
        "app.restart_language_servers",
    ),
    _of_project(
        "GET",
        "/lsp",
        "language_servers",
        "The language servers for a project.",
        _servers,
        answer=list[ServerStatus],
    ),
    _of_project(
        "GET",
        "/blobs/{blob}",
        "read_blob",
        "The content that a fact or a part names by its SHA-256.",
        _blob,
        "app.read_blob",
        answer=bytes,
        media_type="application/octet-stream",
    ),
)
