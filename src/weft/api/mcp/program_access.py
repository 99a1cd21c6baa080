"""MCP servers as a program that drives us sees them: its own ones, and the state of all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import anyio

from weft.errors import UsageError, did_you_mean
from weft.mcp import MOST_SERVERS, START_SECONDS, ConfiguredServer, checked_entry
from weft.runtime.mcp.program_connection import ProgramLine
from weft.runtime.mcp.program_servers import ProgramServers
from weft.runtime.mcp.project_servers import ProjectMcpServers, ServerStatus

if TYPE_CHECKING:  # loaded when a server asks something
    from weft.mcp.elicitation import ElicitationRequest

_SDK: Final = "sdk"
_INSIDE: Final = {"type": "stdio", "command": "inside"}
"""What an entry of a server inside the program is checked as: no file may have one."""


class ProgramMcp:
    """The MCP servers of a project, for the program that drives one of its sessions."""

    def __init__(self, own: ProgramServers, servers: ProjectMcpServers) -> None:
        self._own = own
        self._servers = servers

    def use(self, line: ProgramLine) -> None:
        """Speak to the servers inside the program over this."""
        self._own.use(line)

    def answer_servers(self, ask: Callable[[dict[str, Any]], Awaitable[Any]]) -> None:
        """Have what servers ask in the middle of a call be put to the program, in the words of the
        Agent SDK."""
        self._own.ask = lambda server, request: ask(_elicitation(server, request))

    def take(self, name: str, message: dict[str, Any]) -> None:
        """Take a message that a server inside the program sends by itself.

        Raises:
            UsageError: there is none that is connected.
        """
        if not self._own.take(name, message):
            raise UsageError(f"the MCP server {name!r} is not connected")

    def name_own(self, names: list[str]) -> None:
        """Take in servers that the program has inside itself.

        Raises:
            UsageError: a name cannot be one.
        """
        entries = {name: {"type": _SDK, "name": name} for name in names}
        for name, entry in entries.items():
            checked_entry(name, {**entry, **_INSIDE})
        _check_number(entries)
        self._change({**self._own.entries, **entries})

    def _change(self, entries: dict[str, Any]) -> None:
        self._own.entries = entries
        self._own.version += 1
        self._servers.read_again()

    async def ready(self) -> None:
        """Wait until the servers inside the program are listed, or have failed."""
        await self._reach([each for each in self._inside() if self._is_unasked(each)])

    def _is_unasked(self, server: ConfiguredServer) -> bool:
        running = self._servers.started(server)
        return running is None or running.state == "idle"

    def _inside(self) -> list[ConfiguredServer]:
        usable = self._servers.usable().values()
        return [each for each in usable if each.is_inside]

    async def _reach(self, servers: list[ConfiguredServer]) -> None:
        async with anyio.create_task_group() as group:
            for each in servers:
                group.start_soon(self._servers.running(each).ready_within, START_SECONDS)

    async def set_servers(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Have these servers, and none that the program has named before.

        Raises:
            UsageError: one of them is not right; nothing has changed.
        """
        _check_number(wanted)
        before = dict(self._own.entries)
        for name, entry in wanted.items():
            inside = isinstance(entry, dict) and entry.get("type") == _SDK
            checked_entry(name, {**entry, **_INSIDE} if inside else entry)
        removed = [name for name in before if name not in wanted]
        for name in removed:
            await self._servers.restart(name)
        self._change(dict(wanted))
        added = [name for name in wanted if name not in before]
        await self._reach([each for each in self._inside() if each.name in added])
        return {"added": added, "removed": removed, "errors": self._errors(added)}

    def _errors(self, names: list[str]) -> dict[str, str]:
        rows = {row.name: row for row in self._servers.status()}
        return {name: rows[name].why for name in names if rows[name].state == "failed"}

    async def reconnect(self, name: str) -> None:
        """End a server, and reach it anew.

        Raises:
            UsageError: there is none, or it cannot be reached.
        """
        server = self._named(name)
        await self._servers.restart(name)
        if why := self._servers.why_unusable(server):
            raise UsageError(f"the MCP server {name} may not be used: {why}")
        running = self._servers.running(server)
        if not await running.ready_within(START_SECONDS):
            raise UsageError(f"the MCP server {name} is not there: {running.why or running.state}")
        self._own.version += 1

    async def switch(self, name: str, *, on: bool) -> None:
        """Switch a server on or off, for as long as the program drives us.

        Raises:
            UsageError: there is none.
        """
        self._named(name)
        if on:
            self._servers.switched_off.discard(name)
        else:
            self._servers.switched_off.add(name)
            await self._servers.restart(name)
        self._own.version += 1

    def _named(self, name: str) -> ConfiguredServer:
        known = self._servers.configured.servers
        if name not in known:
            raise UsageError(f"there is no MCP server {name!r}{did_you_mean(name, known)}")
        return known[name]

    # -- what there is

    def status(self) -> list[dict[str, Any]]:
        """All servers, as the Agent SDK has them."""
        servers = self._servers.configured.servers
        return [self._row(row, servers[row.name]) for row in self._servers.status()]

    def _row(self, row: ServerStatus, server: ConfiguredServer) -> dict[str, Any]:
        found: dict[str, Any] = {"name": row.name, "status": sdk_state(row.state)}
        if row.title:
            name, _, version = row.title.partition(" ")
            found["serverInfo"] = {"name": name, "version": version}
        if row.why:
            found["error"] = row.why
        found["scope"] = "dynamic" if server.scope == "given" else server.scope
        found["config"] = _config(server)
        if found["status"] == "connected":
            known = self._servers.record(server).tools().values()
            found["tools"] = [_tool(tool.now.raw) for tool in known]
        return found


def _check_number(entries: Mapping[str, Any]) -> None:
    if len(entries) > MOST_SERVERS:
        raise UsageError(f"there may be {MOST_SERVERS} MCP servers, and not {len(entries):,}")


def _elicitation(server: str, request: ElicitationRequest) -> dict[str, Any]:
    asked: dict[str, Any] = {"mcp_server_name": server, "message": request.message}
    if request.mode == "url":
        asked |= {"mode": "url", "url": request.url}
    else:
        asked |= {"mode": "form", "requested_schema": request.schema or {}}
    return {**asked, **({"elicitation_id": request.identifier} if request.identifier else {})}


def _tool(raw: dict[str, Any]) -> dict[str, Any]:
    hints = raw.get("annotations")
    names = {"readOnlyHint": "readOnly", "destructiveHint": "destructive"}
    names["openWorldHint"] = "openWorld"
    told = hints if isinstance(hints, dict) else {}
    return {
        "name": str(raw.get("name", "")),
        "description": str(raw.get("description", "")),
        "annotations": {short: told[name] for name, short in names.items() if name in told},
    }


def _config(server: ConfiguredServer) -> dict[str, Any]:
    """What it runs or reaches; values of variables and headers stay where they are."""
    entry = server.entry
    match entry.transport:
        case "sdk":
            return {"type": _SDK, "name": server.name}
        case "stdio":
            return {"type": "stdio", "command": entry.command, "args": list(entry.args)}
        case transport:
            return {"type": transport, "url": entry.shown}


def sdk_state(state: str) -> str:
    """A state of a server, as readers of the Agent SDK know it."""
    words = {"ready": "connected", "failed": "failed", "needs_login": "needs-auth"}
    return words.get(state, "disabled" if state == "off" else "pending")
