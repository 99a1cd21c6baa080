"""Operations on the MCP servers of a project: how they stand, and what the user says about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from weft.server.operation import ApiCall, ApiOperation, ChangeBody, Method

McpScope: TypeAlias = Literal["local", "project", "user"]
T = TypeVar("T", bound=msgspec.Struct)


class McpServerRow(msgspec.Struct, frozen=True, kw_only=True):
    """An MCP server in a list."""

    name: str
    scope: str
    state: str
    why: str = ""
    shown: str = ""
    """What it runs or reaches, as it is written."""
    tools: int = 0
    changed: tuple[str, ...] = ()
    """Tools that are not as the user knows them."""
    left_out: tuple[str, ...] = ()
    """Tools that cannot be offered, and why."""
    era: str = ""
    title: str = ""


class McpQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What the user is asked about an MCP server that the project names."""

    name: str
    shown: str
    variables: tuple[str, ...] = ()
    """The values of these in the user's environment go to it."""
    environ: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    is_remote: bool = False
    network: bool = False
    is_sandboxed: bool = True
    had_answer: bool = False
    """There was an answer before it changed."""
    digest: str = ""
    """Of the entry that is asked about."""


class McpOverview(msgspec.Struct, frozen=True, kw_only=True):
    """The MCP servers of a project, and what is to be said about them first."""

    servers: list[McpServerRow]
    questions: list[McpQuestion] = []
    problems: tuple[str, ...] = ()
    """Files that could not be read, a sentence each."""


class McpServerDetails(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of an MCP server; names alone where values may be secrets."""

    name: str
    scope: str
    source: str
    """The file that it stands in."""
    state: str
    why: str = ""
    runs: str = ""
    transport: str = "stdio"
    sandbox: bool = True
    network: bool = False
    environment: list[str] = []
    headers: list[str] = []
    protocol: str = ""
    title: str = ""
    tools: list[str] = []
    changed: dict[str, str] = {}
    """For each tool that is not as the user knows it, the difference."""
    left_out: list[str] = []


class McpEntryBody(ChangeBody, frozen=True, kw_only=True):
    """An MCP server as it is written in a file."""

    entry: dict[str, Any]
    """`command`, `args` and `env`, or `type` and `url`."""
    scope: McpScope = "local"


class McpScopeBody(ChangeBody, frozen=True, kw_only=True):
    """From which file; null: the first that has it."""

    scope: McpScope | None = None


class McpAnswerBody(ChangeBody, frozen=True, kw_only=True):
    """Whether a server that the project names may be used."""

    allowed: bool
    digest: str = ""
    """Of the question that is answered: of another entry nothing is remembered."""


async def _overview(call: ApiCall) -> McpOverview:
    return await _seen(call)


async def _seen(call: ApiCall) -> McpOverview:
    found = (await call.app()).mcp
    rows = [msgspec.convert(each, McpServerRow, from_attributes=True) for each in found.status()]
    asked = [msgspec.convert(each, McpQuestion, from_attributes=True) for each in found.questions()]
    return await _shown(call, McpOverview(servers=rows, questions=asked, problems=found.problems))


async def _shown(call: ApiCall, found: T) -> T:
    """What a caller may see: who only reads, no secrets, which entries may hold.  Who answers for a
    server sees what is written, so that nothing of it is hidden from them.
    """
    if call.request.scope["weft.role"] != "viewer":
        return found
    redact = (await call.app()).host.services.redact
    return msgspec.convert(_masked(msgspec.to_builtins(found), redact), type(found))


def _masked(value: Any, redact: Callable[[str], str]) -> Any:
    match value:
        case str():
            return redact(value)
        case dict():
            return {key: _masked(each, redact) for key, each in value.items() if key != "digest"}
        case list() | tuple():
            return [_masked(each, redact) for each in value]
    return value


async def _details(call: ApiCall) -> McpServerDetails:
    found = (await call.app()).mcp.described(call.path["server"])
    return await _shown(call, msgspec.convert(found, McpServerDetails))


async def _add(call: ApiCall) -> McpOverview:
    app = await call.app()
    app.mcp.add(call.path["server"], call.body.entry, call.body.scope)
    return await _seen(call)


async def _remove(call: ApiCall) -> McpOverview:
    app = await call.app()
    app.mcp.remove(call.path["server"], call.body.scope)
    return await _seen(call)


async def _answer(call: ApiCall) -> McpOverview:
    app = await call.app()
    body: McpAnswerBody = call.body
    app.mcp.answer(call.path["server"], "yes" if body.allowed else "no", body.digest)
    return await _seen(call)


async def _restart(call: ApiCall) -> McpOverview:
    app = await call.app()
    await app.mcp.restart(call.path["server"])
    return await _seen(call)


async def _logout(call: ApiCall) -> McpOverview:
    app = await call.app()
    app.mcp.logout(call.path["server"])
    return await _seen(call)


def _on_server(
    method: Method, path: str, name: str, says: str, run: Any, **more: Any
) -> ApiOperation:
    return ApiOperation(
        method=method,
        path=f"/projects/{{project}}/mcp{path}",
        name=name,
        says=says,
        run=run,
        remembers=method == "GET",
        **{"answer": McpOverview, **more},
    )


MCP_SERVERS: tuple[ApiOperation, ...] = (
    _on_server(
        "GET",
        "",
        "mcp_servers",
        "The MCP servers of a project, how they stand, and what is to be answered first.",
        _overview,
        calls=("app.mcp", "app.mcp_servers"),
    ),
    _on_server(
        "GET",
        "/{server}",
        "mcp_server",
        "All that is known of an MCP server: its tools, and how those differ from what was agreed.",
        _details,
        answer=McpServerDetails,
    ),
    _on_server(
        "PUT",
        "/{server}",
        "add_mcp_server",
        "Write an MCP server down; it is started with the next conversation.",
        _add,
        body=McpEntryBody,
    ),
    _on_server(
        "DELETE",
        "/{server}",
        "remove_mcp_server",
        "Take an MCP server out of the file that it stands in.",
        _remove,
        body=McpScopeBody,
    ),
    _on_server(
        "POST",
        "/{server}/answer",
        "answer_mcp_server",
        "Say whether an MCP server that the project names may be used, as it is now.",
        _answer,
        body=McpAnswerBody,
    ),
    _on_server(
        "POST",
        "/{server}/restart",
        "restart_mcp_server",
        "Stop an MCP server, so that its next use starts it.",
        _restart,
    ),
    _on_server(
        "POST",
        "/{server}/logout",
        "logout_mcp_server",
        "Forget the login to an MCP server.",
        _logout,
    ),
)
