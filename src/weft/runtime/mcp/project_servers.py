"""The MCP servers of one project: configured, agreed to, started once for all its sessions."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from weft.errors import FinalToolError, UsageError
from weft.mcp import (
    Answer,
    ConfiguredServer,
    ConfiguredServers,
    GivenServers,
    ProjectChoices,
    RecordFolder,
    ServerEntry,
    ServerRecord,
    configured_servers,
    expanded,
    variables_in,
)
from weft.mcp.tool_pins import ListedTool
from weft.runtime.mcp.mcp_terms import McpTerms
from weft.runtime.mcp.program_servers import NO_PROGRAM

if TYPE_CHECKING:  # loaded when a server is started: the first request does not wait for it
    from weft.mcp import McpServer, ServerLink
    from weft.mcp.issuer_address import AddressGuard
    from weft.mcp.server import Handlers, StartTask
    from weft.runtime.mcp.server_launcher import ServerLauncher

logger = logging.getLogger(__name__)

FOLDER: Final = "mcp"


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A server as the user sees it in lists."""

    name: str
    scope: str
    state: str
    why: str = ""
    shown: str = ""
    """What it runs or reaches, as it is written."""
    tools: int = 0
    pid: int = 0
    changed: tuple[str, ...] = ()
    """Tools that are not as the user knows them."""
    left_out: tuple[str, ...] = ()
    """Tools that cannot be offered, and why."""
    era: str = ""
    title: str = ""


class ServerQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What the user is asked about a server that a project names."""

    name: str
    shown: str
    variables: tuple[str, ...]
    """The values of these in the user's environment go to it."""
    environ: tuple[str, ...]
    """What is set for it."""
    headers: tuple[str, ...]
    """What it is sent with every request."""
    is_remote: bool
    """It is reached by an address, and not started."""
    network: bool
    is_sandboxed: bool
    had_answer: bool
    """There was an answer before it changed."""
    replaces_own: bool = False
    """The user has a server of this name, whose rules would hold for it."""
    digest: str = ""
    """Of the entry that is asked about."""


class ProjectMcpServers:
    """What serves one project."""

    def __init__(self, terms: McpTerms, project: str) -> None:
        """
        Raises:
            UsageError: what the command line brings cannot be read.
        """
        self.terms = terms
        self.project = project
        self.choices = ProjectChoices(terms.places.config)
        self.records = RecordFolder(terms.places.home / FOLDER)
        self._known_records: dict[str, ServerRecord] = {}
        self._running: dict[tuple[str, tuple[str, ...]], McpServer] = {}
        self._launchers: ServerLauncher | None = None
        self._guards: dict[str, AddressGuard] = {}
        """By address, of servers that are reached by one."""
        self._read: ConfiguredServers = ConfiguredServers()
        self.configured: ConfiguredServers = ConfiguredServers()
        """What counts: a server of the project is one for which the user has none of that name, or
        that they have agreed to."""
        self.switched_off: set[str] = set()
        """Names of servers that the program which drives us does not want now."""
        self.read_again()

    def read_again(self) -> None:
        """Take in the files as they are now."""
        terms = self.terms
        named = {} if terms.program is None else terms.program.entries
        given = GivenServers(
            texts=terms.given,
            is_strict=terms.is_strict,
            by_program=named,
            without_project=terms.without_project,
        )
        self._read = configured_servers(terms.places.config, self.project, given)
        self._settle()
        if terms.program is None and any(
            each.is_inside for each in self.configured.servers.values()
        ):
            raise UsageError(f"--mcp-config: {NO_PROGRAM}")
        for problem in self.configured.problems:
            logger.warning("MCP servers: %s", problem)

    def _settle(self) -> None:
        read = self._read
        servers = {
            name: read.covered[name] if name in read.covered and not self._agreed(each) else each
            for name, each in read.servers.items()
        }
        self.configured = msgspec.structs.replace(read, servers=servers)

    def _agreed(self, server: ConfiguredServer) -> bool:
        return self.choices.of(self.project, server) == "yes"

    # -- which may be used

    def why_unusable(self, server: ConfiguredServer) -> str:
        """Why a server may not be used; empty when it may."""
        if server.problem:
            return server.problem
        if server.entry.disabled or server.name in self.switched_off:
            return "off"
        if server.is_users:
            return ""
        match self.choices.of(self.project, server):
            case "yes":
                return ""
            case "no":
                return "you said no to it"
            case _:
                return _UNTRUSTED

    def usable(self) -> dict[str, ConfiguredServer]:
        """The servers that may be used, by name."""
        found = self.configured.servers
        return {name: each for name, each in found.items() if not self.why_unusable(each)}

    def questions(self) -> list[ServerQuestion]:
        """What the user has to be asked about servers that the project names."""
        return [
            ServerQuestion(
                name=server.name,
                shown=server.entry.shown,
                variables=variables_in(server.entry),
                environ=tuple(f"{key}={text}" for key, text in server.entry.env.items()),
                headers=tuple(f"{key}: {text}" for key, text in server.entry.headers.items()),
                is_remote=server.entry.transport != "stdio",
                network=server.entry.network,
                is_sandboxed=server.entry.is_sandboxed,
                had_answer=self.choices.knows(self.project, server.name),
                replaces_own=server.name in self._read.covered,
                digest=server.digest,
            )
            for server in self._read.servers.values()
            if self.why_unusable(server) == _UNTRUSTED
        ]

    def answer(self, name: str, answer: Answer, digest: str = "") -> None:
        """Remember what the user says about a server of the project, as it is now; `digest` is that
        of the question which they saw.

        Raises:
            UsageError: there is none, it is another than the user saw, or it cannot be written
                down.
        """
        server = self._read.servers.get(name)
        if server is None or server.is_users:
            raise UsageError(f"the project names no MCP server {name!r}")
        if digest and digest != server.digest:
            raise UsageError(
                f"the MCP server {name} is another now than you were shown; look again"
            )
        self.choices.keep(self.project, server, answer)
        self._settle()

    # -- their records and their lives

    def record(self, server: ConfiguredServer) -> ServerRecord:
        """What is known of a server."""
        if server.digest not in self._known_records:
            # What a program has inside itself lives as long as the program; it speaks the era of
            # the handshake.
            inside = ServerRecord(era=_HANDSHAKE)
            found = inside if server.is_inside else self.records.load(server.digest)
            self._known_records[server.digest] = found
        return self._known_records[server.digest]

    def _keep(self, server: ConfiguredServer) -> None:
        """Keep what is known of a server, as far as it may be kept."""
        if server.is_inside:
            # The program's word counts as the user's.
            self.record(server).agree_to_all()
        else:
            self.records.save(server.digest, self.record(server))

    def agree(self, server: ConfiguredServer, tool: ListedTool) -> None:
        """The user knows a tool as it was shown to them."""
        self.record(server).agree(tool)
        self._keep(server)

    def running(self, server: ConfiguredServer, unseen: Sequence[str] = ()) -> McpServer:
        """The server, which need not have been started; sessions that may not read the same files
        do not share one."""
        key = (server.digest, tuple(sorted(unseen)))
        if key not in self._running:
            from weft.mcp import McpServer  # see above

            terms = self.terms
            self._running[key] = McpServer(
                server.name,
                self.project,
                self.record(server),
                lambda handlers, start: self._opened(server, key[1], handlers, start),
                terms.supervisor.start,
                clock=terms.clock,
                changed=lambda: self._keep(server),
                mask=terms.redact.without_known,
            )
        return self._running[key]

    def started(self, server: ConfiguredServer) -> McpServer | None:
        """The server, where some session has asked for it."""
        found = [each for key, each in self._running.items() if key[0] == server.digest]
        return next((each for each in found if each.state == "ready"), next(iter(found), None))

    async def restart(self, name: str = "") -> list[str]:
        """Stop a server, or all, so that the next use starts it; returns which were stopped."""
        self.read_again()
        self._guards.clear()
        stopped = [each for each in self._running.values() if name in ("", each.name)]
        for each in stopped:
            await each.stop("")
        return sorted({each.name for each in stopped})

    async def _opened(
        self,
        server: ConfiguredServer,
        unseen: Sequence[str],
        handlers: Handlers,
        start_task: StartTask,
    ) -> ServerLink:
        # Asked again: the file that the command line names may have changed since.
        if why := self.why_unusable(server):
            raise FinalToolError(why)
        if server.is_inside and self.terms.program is not None:
            return self.terms.program.connect(server.name, handlers, start_task)
        entry = self._filled(server.entry)
        if entry.transport != "stdio":
            from weft.mcp.issuer_address import AddressGuard  # most are programs
            from weft.runtime.mcp.http_link import opened_link

            # Kept over its starts: a name must not lead elsewhere because the connection broke.
            guard = self._guards.setdefault(entry.url, AddressGuard(entry.url))
            return await opened_link(entry, self.terms, guard, handlers, start_task)
        from weft.mcp import ServerLink, StdioConnection

        program = await self._launcher().start(entry, server.digest[:16], unseen)
        return ServerLink(StdioConnection(program, handlers, start_task), program)

    def address_of(self, server: ConfiguredServer) -> ServerEntry:
        """The entry of a server that is reached by an address, with its variables filled in.

        Raises:
            UsageError: it is a program, or may not be used.
        """
        if why := self.why_unusable(server):
            hint = f": `weft mcp allow {server.name}` first" if why == _UNTRUSTED else f": {why}"
            raise UsageError(f"the MCP server {server.name} may not be used{hint}")
        if server.entry.transport in ("stdio", "sdk"):
            raise UsageError(f"the MCP server {server.name} is a program, which needs no login")
        return self._filled(server.entry)

    def _filled(self, entry: ServerEntry) -> ServerEntry:
        environ = self.terms.environ
        for name in variables_in(entry):
            if value := environ.get(name, ""):
                # It goes to a stranger, and may come back in a result.
                self._hide_value(name, value)
        for name, value in entry.env.items():
            self._hide_value(name, value)
        filled = expanded(entry, environ)
        for name, value in filled.headers.items():
            # `Bearer` and the like are no secret, and may stand anywhere.
            hidden_name = "TOKEN" if "authorization" in name.lower() else name
            self._hide_value(hidden_name, value.rpartition(" ")[2])
        return filled

    def _hide_value(self, name: str, value: str) -> None:
        from weft.workspace.process.environment import is_secret_name

        if len(value) >= 8 and not value.startswith("${") and is_secret_name(name):
            self.terms.redact.add(value)

    def _launcher(self) -> ServerLauncher:
        if self._launchers is None:
            from weft.runtime.mcp.server_launcher import ServerLauncher
            from weft.workspace.sandbox.machine import SandboxOptions

            terms, config = self.terms, self.terms.config
            hidden = [terms.places.home, terms.places.config, *terms.hidden]
            self._launchers = ServerLauncher(
                self.project,
                environ=terms.environ,
                hidden=[os.path.realpath(path) for path in hidden],
                options=SandboxOptions(
                    unix_sockets=config.get("sandbox.unix_sockets"),
                    shown=tuple(config.get("sandbox.show")),
                    passed=tuple(config.get("environment.pass")),
                ),
                mode=config.get("sandbox.mode") if terms.is_sandboxed else "off",
                downloads=terms.places.home / FOLDER / "downloads",
            )
        return self._launchers

    async def is_confined(self, server: ConfiguredServer) -> bool:
        """Whether a server runs in the sandbox."""
        if server.entry.transport != "stdio":
            return False
        return not await self._launcher().why_unconfined(server.entry)

    # -- lists

    def status(self) -> list[ServerStatus]:
        """All servers, as the user sees them."""
        return [self._status_of(server) for server in self.configured.servers.values()]

    def _status_of(self, server: ConfiguredServer) -> ServerStatus:
        record = self.record(server) if server.digest else ServerRecord()
        tools = record.tools()
        state, why = self._state_of(server)
        running = self.started(server)
        return ServerStatus(
            name=server.name,
            scope=server.scope,
            state=state,
            why=why,
            shown=server.entry.shown,
            tools=len(tools),
            pid=(running.pid or 0) if running is not None else 0,
            changed=tuple(name for name, tool in tools.items() if tool.state != "pinned"),
            left_out=tuple(running.left_out) if running is not None else (),
            era=record.era,
            title=record.title,
        )

    def _state_of(self, server: ConfiguredServer) -> tuple[str, str]:
        if why := self.why_unusable(server):
            if why in ("off", _UNTRUSTED):
                return why, ""
            return "failed" if server.problem else "off", why
        running = self.started(server)
        if running is None or running.state == "idle":
            return "not started", ""
        return running.state, running.why


_UNTRUSTED: Final = "needs_trust"
_HANDSHAKE: Final = "2025-11-25"
