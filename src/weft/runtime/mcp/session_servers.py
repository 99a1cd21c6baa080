"""The MCP servers of one session: which of their tools its model has, and how.

The tools that a request names stay the same for the whole life of a session in a process, whatever
servers say meanwhile: their descriptions stand at the beginning of every request, which vendors
cache.  What changes is found by `tool_search`, and told in notes.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec

from weft.errors import FinalToolError
from weft.mcp import (
    PREFIX,
    START_SECONDS,
    ConfiguredServer,
    KnownTool,
    offered_names,
    server_of,
)
from weft.mcp.server_tool import ServerTool, ToolServer
from weft.mcp.tool_pins import ListedTool
from weft.mcp.tool_schema import has_plain_names
from weft.mcp.tool_search import CALL, SEARCH, ToolCallTool, ToolIndex, ToolSearchTool
from weft.runtime.mcp.project_servers import ProjectMcpServers
from weft.runtime.workspaces.read_guard import SessionReadGuard
from weft.tools import Tool, ToolContext, ToolOutcome

if TYPE_CHECKING:  # loaded when a server is started
    from weft.mcp import McpServer

MOST_DIRECT: Final = 20
"""Tools that a request names by themselves; with more, all of them are found by a search."""
MOST_SHARE: Final = 0.1
"""The part of a model's window that their descriptions may take."""
CALL_SECONDS: Final = 60.0
TOTAL_SECONDS: Final = 600.0
MOST_NOTE: Final = 8_000
"""Characters of the names that a model is told beside the conversation, with every request."""
_BYTES_PER_TOKEN: Final = 4


class SessionServer(ToolServer):
    """One server, as a session reaches it."""

    def __init__(self, servers: SessionServers, configured: ConfiguredServer) -> None:
        self._servers = servers
        self.configured = configured
        self.name = configured.name

    @property
    def _project(self) -> ProjectMcpServers:
        return self._servers.project

    @property
    def has_list(self) -> bool:
        """Whether its tools are known."""
        return self._project.record(self.configured).is_listed

    def tools(self) -> dict[str, KnownTool]:
        """Its tools as they are known now."""
        return self._project.record(self.configured).tools()

    def tool(self, name: str) -> KnownTool | None:
        return self.tools().get(name)

    @property
    def about(self) -> str:
        entry = self.configured.entry
        scope = f"{self.configured.scope} scope"
        if entry.transport == "sdk":
            return f"the MCP server {self.name}, {entry.shown}"
        if entry.transport != "stdio":
            return f"the MCP server {self.name} ({scope}) at {entry.shown}"
        where = "" if entry.is_sandboxed else ", without the sandbox"
        net = ", with the network" if entry.network else ""
        return f"the MCP server {self.name} ({scope}{where}{net}): {entry.shown}"

    def agree(self, tool: ListedTool) -> None:
        self._project.agree(self.configured, tool)

    async def why_exposed(self, context: ToolContext) -> str:
        guard = context.read_guard
        if guard is None or not guard.has_rules:
            return ""
        if self.configured.entry.transport != "stdio":
            return ""  # it is elsewhere
        is_sandboxed = await self._project.is_confined(self.configured)
        return await guard.why_exposed(is_sandboxed=is_sandboxed)

    async def running(self) -> McpServer:
        """The server for this session.

        Raises:
            FinalToolError: not all files can be hidden from it that the session may not read.
        """
        guard = self._servers.guard
        unseen = () if guard is None else await guard.hidden_files()
        if unseen and not await self._project.is_confined(self.configured):
            unseen = ()  # the user was asked, and allowed it (`why_exposed`)
        return self._project.running(self.configured, unseen)

    @property
    def start_seconds(self) -> float:
        """How long it may take to start; then it is late."""
        own, usual = self.configured.entry.startup_timeout, self._variable("MCP_TIMEOUT")
        return _seconds(own, usual, START_SECONDS)

    async def call(
        self, tool: KnownTool, args: dict[str, Any], context: ToolContext
    ) -> ToolOutcome:
        entry = self.configured.entry
        running = await self.running()
        from weft.mcp import CallTerms, outcome_of  # with the first call

        start_seconds = self.start_seconds
        await running.must_be_ready(start_seconds)
        self._must_be_known(tool)
        program = self._project.terms.program
        terms = CallTerms(
            idle_seconds=_seconds(entry.timeout, self._variable("MCP_TOOL_TIMEOUT"), CALL_SECONDS),
            total_seconds=TOTAL_SECONDS,
            ask=context.ask,
            ask_program=program.ask if program is not None else None,
            progress=lambda line: context.emit(f"{line}\n"),
        )
        raw = await running.call(tool.now.name, args, terms, start_seconds=start_seconds)
        try:
            return await outcome_of(raw, self.name, self._most_tokens())
        except ValueError as error:
            raise FinalToolError(
                f"The MCP server {self.name} is not understood: {error}"
            ) from error

    def _must_be_known(self, tool: KnownTool) -> None:
        """What was judged was the list of before the server was started."""
        now = self.tool(tool.now.name)
        if now is None:
            raise FinalToolError(f"The MCP server {self.name} has no tool {tool.now.name!r} now.")
        if now.now.digest != tool.now.digest:
            raise FinalToolError(
                f"The MCP server {self.name} describes {tool.now.name!r} in another way now. "
                "Nothing was called; with the next call the user is shown the difference."
            )

    def _variable(self, name: str) -> str:
        return self._project.terms.environ.get(name, "")

    def _most_tokens(self) -> int:
        given = self._variable("MAX_MCP_OUTPUT_TOKENS")
        return int(given) if given.isdecimal() and int(given) else 25_000


def _seconds(own: float | None, variable: str, usual: float) -> float:
    """A limit that is written in milliseconds: the entry's, the environment's, or the usual."""
    if own is not None and own > 0:
        return own / 1000
    return int(variable) / 1000 if variable.isdecimal() and int(variable) else usual


class SessionServers(ToolIndex):
    """What one session has of the servers of its project."""

    def __init__(self, project: ProjectMcpServers) -> None:
        self.project = project
        self.guard: SessionReadGuard | None = None
        """What keeps files from being read; known with the first turn."""
        self._servers: dict[str, SessionServer] = {}
        self._offered: dict[str, Tool] | None = None
        self._is_deferred = False
        self._is_warm = False
        self._version = 0
        """Of what the program that drives us has named, when the tools were found."""
        self._renew()

    def _renew(self) -> None:
        """Take in servers that were agreed to since."""
        usable = self.project.usable()
        for name in [name for name in self._servers if name not in usable]:
            del self._servers[name]
        for name, configured in usable.items():
            known = self._servers.get(name)
            if known is None or known.configured != configured:
                self._servers[name] = SessionServer(self, configured)

    # -- what models are told

    def tools(self, wanted: Any, window: int) -> dict[str, Tool]:
        """The tools of a request; `wanted` is "all", or names and patterns.  Found once."""
        program = self.project.terms.program
        if self._offered is None or (program is not None and program.version != self._version):
            self._version = 0 if program is None else program.version
            self._offered = self._found(window)
        if wanted == "all":
            return dict(self._offered)
        patterns = [name for name in wanted if name.startswith(PREFIX) or name in (SEARCH, CALL)]
        found = {
            name: tool
            for name, tool in self._offered.items()
            if any(_fits(name, pattern) for pattern in patterns)
        }
        if self._is_deferred or set(self._offered) & {SEARCH, CALL}:
            # The names that are wanted may be among those that are found by a search.
            found |= {name: tool for name, tool in self._offered.items() if name in (SEARCH, CALL)}
        return found

    def _found(self, window: int) -> dict[str, Tool]:
        known = self.all_tools()
        # One that vendors take no request with is called by way of a search.
        direct = {name: tool for name, tool in known.items() if has_plain_names(tool.schema)}
        size = sum(_size(tool) for tool in direct.values()) // _BYTES_PER_TOKEN
        most = window * MOST_SHARE if window else float("inf")
        self._is_deferred = len(direct) > MOST_DIRECT or size > most
        offered: dict[str, Tool] = {} if self._is_deferred else dict(direct)
        is_complete = all(server.has_list for server in self._servers.values())
        is_whole = is_complete and len(direct) == len(known)
        if self._is_deferred or (self._servers and not is_whole):
            offered |= {SEARCH: ToolSearchTool(self), CALL: ToolCallTool(self)}
        return offered

    def note(self) -> str:
        """What a model is told beside the conversation; empty when nothing is."""
        if self._offered is None or SEARCH not in self._offered:
            return ""
        self._renew()
        known = [name for name in self.all_tools() if name not in self._offered]
        starting = [name for name, server in self._servers.items() if not server.has_list]
        said = []
        if known:
            said.append(
                "Tools of MCP servers, to be looked up with tool_search and called with "
                f"tool_call: {_named_in_note(known)}"
            )
        if starting:
            said.append(
                "MCP servers whose tools are not known yet (tool_search waits for them): "
                f"{', '.join(starting)}"
            )
        return "\n".join(said)

    # -- the index

    def all_tools(self) -> Mapping[str, ServerTool]:
        self._renew()
        found = {
            (name, tool.now.name): (server, tool)
            for name, server in self._servers.items()
            for tool in server.tools().values()
        }
        names = offered_names(found)
        made = [
            ServerTool(names[key], server, tool, only_reads=_only_reads(server, tool))
            for key, (server, tool) in found.items()
        ]
        return {tool.name: tool for tool in sorted(made, key=lambda each: each.name)}

    async def settled(self) -> str:
        self._renew()
        waiting = [server for server in self._servers.values() if not server.has_list]
        problems: dict[str, str] = {}

        async def wait(server: SessionServer) -> None:
            try:
                await (await server.running()).must_be_ready(server.start_seconds)
            except Exception as error:  # of one server; the others are there
                problems[server.name] = str(error)

        async with anyio.create_task_group() as group:
            for each in waiting:
                group.start_soon(wait, each)
        return "\n".join(problems[name] for name in sorted(problems))

    def instructions(self, server: str) -> str:
        known = self._servers.get(server)
        if known is None:
            return ""
        return self.project.record(known.configured).pinned_instructions[:2_000]

    # -- starting

    def warm_up(self) -> None:
        """Have the servers started in the background; called when a request is on its way, which
        they would slow down."""
        if self._is_warm or not self._servers:
            return
        self._is_warm = True
        self.project.terms.supervisor.start(self._start_all, "start MCP servers")

    async def _start_all(self) -> None:
        for server in list(self._servers.values()):
            try:
                running = await server.running()
            except FinalToolError:
                continue  # the first call says it
            # One inside the program that drives us was asked before the request already.
            if not (server.configured.is_inside and running.state == "failed"):
                running.start()


def _named_in_note(names: list[str]) -> str:
    """The names of tools, sorted; where they are too many, an equal share of each server's."""
    if len(whole := ", ".join(names)) <= MOST_NOTE:
        return whole
    by_server = {server: list(found) for server, found in groupby(names, key=server_of)}
    share = MOST_NOTE // len(by_server)
    said = []
    for server, found in by_server.items():
        kept = found[: max(1, share // (max(map(len, found)) + 2))]
        said += kept
        if len(found) > len(kept):
            said.append(f"and {len(found) - len(kept)} more of {server}")
    return ", ".join(said)


def _fits(name: str, pattern: str) -> bool:
    """Whether a name is meant; `mcp__server` alone means all tools of that server."""
    is_server = pattern.startswith(PREFIX) and "__" not in pattern[len(PREFIX) :]
    return fnmatchcase(name, pattern) or (is_server and fnmatchcase(name, f"{pattern}__*"))


def _size(tool: Tool) -> int:
    return len(tool.name) + len(tool.description) + len(msgspec.json.encode(tool.schema))


def _only_reads(server: SessionServer, tool: KnownTool) -> bool:
    """Whether a tool counts as one that changes nothing: only where the user takes its word."""
    configured = server.configured
    is_trusted = configured.entry.trust_hints and configured.scope in ("user", "local")
    return is_trusted and tool.state == "pinned" and tool.now.only_reads
