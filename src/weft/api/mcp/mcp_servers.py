"""MCP servers as the user sees them: listed, written down, allowed, forgotten."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from weft.errors import UsageError, did_you_mean
from weft.mcp import (
    Answer,
    ConfiguredServer,
    ProjectServers,
    ServerEntry,
    UserServers,
    checked_entry,
    pin_diff,
)
from weft.runtime.mcp.project_servers import ProjectMcpServers, ServerQuestion, ServerStatus

if TYPE_CHECKING:  # loaded for those who have servers elsewhere
    from weft.api.mcp.foreign_entries import ForeignEntry

SCOPES: Final = ("local", "project", "user")


class AppMcp:
    """The MCP servers of one project."""

    def __init__(self, servers: ProjectMcpServers) -> None:
        self._servers = servers
        self._project = servers.project
        self._config = servers.terms.places.config

    # -- looking

    def status(self) -> list[ServerStatus]:
        """All servers that are configured here."""
        return self._servers.status()

    @property
    def problems(self) -> tuple[str, ...]:
        """Files that could not be read, a sentence each."""
        return self._servers.configured.problems

    def questions(self) -> list[ServerQuestion]:
        """What the user has to be asked before servers of the project may be used."""
        return self._servers.questions()

    def described(self, name: str) -> dict[str, Any]:
        """All that is known of a server.

        Raises:
            UsageError: there is none of that name.
        """
        server = self._named(name)
        status = next(each for each in self.status() if each.name == name)
        tools = self._servers.record(server).tools().values()
        return {
            "name": name,
            "scope": server.scope,
            "source": server.source,
            "state": status.state,
            "why": status.why,
            "runs": server.entry.shown,
            **_about_entry(server.entry),
            "protocol": status.era,
            "title": status.title,
            "tools": [tool.now.name for tool in tools],
            "changed": {tool.now.name: pin_diff(tool) for tool in tools if tool.state != "pinned"},
            "left_out": list(status.left_out),
        }

    def _named(self, name: str) -> ConfiguredServer:
        known = self._servers.configured.servers
        if name not in known:
            hint = did_you_mean(name, known) or "; `weft mcp list` shows those there are"
            raise UsageError(f"there is no MCP server {name!r}{hint}")
        return known[name]

    # -- changing

    def add(self, name: str, entry: dict[str, Any], scope: str) -> str:
        """Write a server down; returns the file.

        Raises:
            UsageError: the entry is not right, the name is taken, or the file cannot be written.
        """
        checked_entry(name, entry)
        taken = self._servers.configured.servers.get(name)
        if taken is not None and taken.scope == scope:
            raise UsageError(
                f"there is an MCP server {name!r} in {taken.source}; `weft mcp remove {name}` first"
            )
        if scope == "project":
            file = ProjectServers(self._project)
            file.put(name, entry)
            self._servers.read_again()
            # The user wrote it down themselves.
            self._servers.answer(name, "yes")
            return str(file.path)
        own = UserServers(self._config)
        own.put(name, entry, self._project if scope == "local" else "")
        self._servers.read_again()
        return str(own.path)

    def remove(self, name: str, scope: str | None) -> str:
        """Take a server out of the file that it stands in; returns the file.

        Raises:
            UsageError: there is none, or the file cannot be written.
        """
        for each in SCOPES if scope is None else (scope,):
            if each == "project":
                file = ProjectServers(self._project)
                if file.path.exists() and file.remove(name):
                    break
                continue
            own = UserServers(self._config)
            if own.path.exists() and own.remove(name, self._project if each == "local" else ""):
                break
        else:
            self._named(name)
            raise UsageError(f"the MCP server {name!r} does not stand in the scope {scope}")
        self._servers.read_again()
        return str(ProjectServers(self._project).path if each == "project" else own.path)

    def answer(self, name: str, answer: Answer, digest: str = "") -> None:
        """Remember what the user says about a server that the project names; `digest` is that of
        the question which they saw.

        Raises:
            UsageError: there is none, or it is another than the user saw.
        """
        self._named(name)
        self._servers.answer(name, answer, digest)

    def reset_choices(self) -> int:
        """Forget what the user said about servers of this project; returns how many there were."""
        return self._servers.choices.forget(self._project)

    async def restart(self, name: str = "") -> list[str]:
        """Stop servers, so that their next use starts them; returns which."""
        if name:
            self._named(name)
        return await self._servers.restart(name)

    async def login(
        self,
        name: str,
        *,
        show: Callable[[str], None],
        paste: Callable[[], Awaitable[str | None]],
        client_id: str = "",
        client_secret: str = "",
        port: int = 0,
    ) -> str:
        """Log in to a server in the user's browser; returns who gave the login.

        `show` is given the address to open; `paste` may bring the one at which the browser ended.
        `client_id` and `client_secret` are those of a program that the user has registered, and
        `port` is the one that was registered for it.

        Raises:
            UsageError: there is no such server, it wants no login, or there is none to be had.
        """
        from weft.mcp.issuer_address import AddressGuard  # only for those who log in
        from weft.mcp.oauth_tokens import LoginFile
        from weft.runtime.mcp.http_link import http_client
        from weft.runtime.mcp.oauth_login import LoginOptions, OAuthLogin

        entry = self._servers.address_of(self._named(name))
        terms = self._servers.terms
        options = LoginOptions(
            url=entry.url,
            headers=entry.headers,
            client_id=client_id,
            client_secret=client_secret,
            port=port,
            show=show,
            paste=paste,
        )
        guard = AddressGuard(entry.url)
        client = await http_client(entry.url, terms, guard)
        try:
            login = OAuthLogin(options, LoginFile(self._config), client, terms.clock, guard)
            return (await login.run()).issuer or entry.url
        finally:
            await client.aclose()

    def logout(self, name: str) -> bool:
        """Forget the login to a server; False when there was none.

        Raises:
            UsageError: there is no such server.
        """
        from weft.mcp.oauth_tokens import LoginFile  # as above

        entry = self._servers.address_of(self._named(name))
        return LoginFile(self._config).forget(entry.url)

    def importable(self, path: str) -> list[ForeignEntry]:
        """The servers in a file of another agent, as entries of ours.

        Raises:
            UsageError: it cannot be read.
        """
        from weft.api.mcp.foreign_entries import entries_in  # few do

        return [_judged(each) for each in entries_in(self._place(path), self._project)]

    def import_files(self, source: str) -> tuple[str, ...]:
        """The files in which an agent has its servers, as far as they are there; `source` is its
        name, or a file.

        Raises:
            UsageError: there is none.
        """
        from weft.api.mcp.foreign_entries import FILES  # few do

        files = FILES.get(source, (source,))
        places = list(map(self._place, files))
        there = tuple(path for path in places if os.path.exists(path))
        if not there:
            raise UsageError(f"there is nothing to import: no {' and no '.join(files)}")
        return there

    def _place(self, path: str) -> str:
        """Where a file is: below the user's home, or the project."""
        if path.startswith("~/"):
            return str(self._servers.terms.places.user / path[2:])
        return os.path.join(self._project, path)


def _judged(found: ForeignEntry) -> ForeignEntry:
    """What another agent has, with what keeps it from being taken over."""
    if found.problem:
        return found
    try:
        checked_entry(found.name, found.entry)
    except UsageError as error:
        return msgspec.structs.replace(found, problem=str(error))
    return found


def _about_entry(entry: ServerEntry) -> dict[str, Any]:
    """What else an entry says; names alone where values may be secrets."""
    if entry.transport != "stdio":
        return {"transport": entry.transport, "headers": sorted(entry.headers)}
    return {
        "transport": "stdio",
        "sandbox": entry.is_sandboxed,
        "network": entry.network,
        "environment": sorted(entry.env),
    }
