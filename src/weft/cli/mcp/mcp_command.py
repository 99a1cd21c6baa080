"""`weft mcp`: the MCP servers that are configured, added, allowed and taken away."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

from weft.cli.commands.table import print_table
from weft.cli.exit_codes import OK
from weft.cli.parse import ParsedArguments
from weft.cli.sanitize import clean_line, visible
from weft.cli.session_options import make_app
from weft.cli.stdio import tell, write_pretty
from weft.errors import UsageError

if TYPE_CHECKING:
    from weft.api.mcp.mcp_servers import AppMcp


def run(arguments: ParsedArguments) -> int:
    """Carry out an `mcp` command."""
    if arguments.verb == "mcp serve":
        from weft.cli.mcp.serve_command import run_server  # few do

        return run_server(make_app(arguments))
    servers = make_app(arguments).mcp
    match arguments.verb:
        case "mcp add":
            return _add(servers, arguments)
        case "mcp add-json":
            return _add_json(servers, arguments)
        case "mcp get":
            return _get(servers, arguments)
        case "mcp remove":
            path = servers.remove(_name(arguments), arguments.text("scope"))
            tell(f"removed {_name(arguments)} from {path}")
        case "mcp allow" | "mcp refuse":
            is_allowed = arguments.verb == "mcp allow"
            servers.answer(_name(arguments), "yes" if is_allowed else "no")
            tell(f"{_name(arguments)} {'may' if is_allowed else 'may not'} be started here")
        case "mcp reset-project-choices":
            tell(f"forgot {servers.reset_choices()} answers about servers of this project")
        case "mcp login":
            return _login(servers, arguments)
        case "mcp logout":
            if not servers.logout(_name(arguments)):
                raise UsageError(f"there is no login to {_name(arguments)}")
            tell(f"forgot the login to {_name(arguments)}")
        case "mcp import":
            return _import(servers, arguments)
        case _:
            return _list(servers, arguments)
    return OK


def _name(arguments: ParsedArguments) -> str:
    if len(arguments.words) != 1:
        raise UsageError(f"name one server: `weft {arguments.verb} NAME`")
    return arguments.words[0]


# --- looking -------------------------------------------------------------------------------


def _list(servers: AppMcp, arguments: ParsedArguments) -> int:
    rows = servers.status()
    if arguments.flag("json"):
        write_pretty([_plain(row) for row in rows])
        return OK
    for problem in servers.problems:
        tell(clean_line(problem))
    if not rows:
        tell("no MCP server is configured; `weft mcp add NAME -- COMMAND` adds one")
        return OK
    print_table(list(map(_cells, rows)), head=("server", "state", "scope", "tools", "runs"))
    for row in rows:
        for name in row.changed:
            tell(f"{row.name}: {clean_line(name)} is not as you know it; a call of it asks first")
        if row.state == "needs_trust":
            tell(
                f"{row.name}: this project names it; `weft mcp allow {row.name}` lets it be started"
            )
    return OK


def _cells(row: Any) -> tuple[str, ...]:
    state = f"{row.state} ({clean_line(row.why)})" if row.why else row.state
    tools = str(row.tools) if row.tools else ""
    return (clean_line(row.name), state, row.scope, tools, clean_line(row.shown))


def _plain(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__struct_fields__}


def _get(servers: AppMcp, arguments: ParsedArguments) -> int:
    found = servers.described(_name(arguments))
    if arguments.flag("json"):
        write_pretty(found)
        return OK
    changed = found.pop("changed")
    print_table(
        [(key, clean_line(_shown(value))) for key, value in found.items() if value not in ("", [])]
    )
    for name, diff in changed.items():
        tell(f"\n{clean_line(name)} is not as you know it:\n{visible(diff)}")
    return OK


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


# --- changing ------------------------------------------------------------------------------


def _add(servers: AppMcp, arguments: ParsedArguments) -> int:
    if len(arguments.words) < 2:
        raise UsageError(
            "write `weft mcp add NAME URL` or `weft mcp add NAME -- COMMAND ARGUMENTS`"
        )
    name, first, *rest = arguments.words
    is_address = first.startswith(("http://", "https://"))
    if "://" in first and not is_address:
        raise UsageError(f"a server is reached by http:// or https://, not by {first!r}")
    transport = arguments.text("transport") or ("http" if is_address else "stdio")
    if transport != "stdio":
        return _added(servers, name, _remote(transport, first, rest, arguments), arguments)
    if arguments.many("header"):
        raise UsageError("-H is for servers that are reached by an address")
    entry: dict[str, Any] = {"type": "stdio", "command": first, "args": rest}
    if pairs := arguments.many("env"):
        entry["env"] = dict(map(_pair, pairs))
    if arguments.flag("no_sandbox"):
        entry["sandbox"] = "off"
    if arguments.flag("no_network"):
        entry["network"] = False
    return _added(servers, name, entry, arguments)


def _remote(
    transport: str, url: str, rest: list[str], arguments: ParsedArguments
) -> dict[str, Any]:
    if rest or any(arguments.values.get(name) for name in ("env", "no_sandbox", "no_network")):
        raise UsageError("a server that is reached by an address takes -H and no arguments")
    entry: dict[str, Any] = {"type": transport, "url": url}
    if lines := arguments.many("header"):
        entry["headers"] = dict(map(_header, lines))
    return entry


def _header(text: str) -> tuple[str, str]:
    name, has_value, value = text.partition(":")
    if not has_value or not name.strip():
        raise UsageError(f"-H takes 'NAME: VALUE', not {text!r}")
    return name.strip(), value.strip()


def _pair(text: str) -> tuple[str, str]:
    name, has_value, value = text.partition("=")
    if not has_value or not name.strip():
        raise UsageError(f"-e takes NAME=VALUE, not {text!r}")
    return name.strip(), value


def _add_json(servers: AppMcp, arguments: ParsedArguments) -> int:
    if len(arguments.words) != 2:
        raise UsageError("write `weft mcp add-json NAME JSON`")
    name, text = arguments.words
    try:
        entry = json.loads(text)
    except ValueError as error:
        raise UsageError(f"this is not JSON: {error}") from error
    if not isinstance(entry, dict):
        raise UsageError("an entry is a JSON object")
    return _added(servers, name, entry, arguments)


def _added(servers: AppMcp, name: str, entry: dict[str, Any], arguments: ParsedArguments) -> int:
    scope = arguments.text("scope") or "local"
    path = servers.add(name, entry, scope)
    tell(f"added {name} to {path} ({scope} scope); it is started with the next conversation")
    command = str(entry.get("command", ""))
    # One with a `/` is looked for in the project, and a variable is filled in at its start.
    if command and not {"/", "$"} & set(command) and shutil.which(command) is None:
        tell(f"there is no program {clean_line(command)!r} on PATH: install it, or name its path")
    return OK


# --- logins --------------------------------------------------------------------------------


def _login(servers: AppMcp, arguments: ParsedArguments) -> int:
    import anyio  # only here

    name = _name(arguments)

    async def log_in() -> str:
        return await servers.login(
            name,
            show=_show_address,
            paste=_pasted,
            client_id=arguments.text("client_id") or "",
            client_secret=os.environ.get("MCP_CLIENT_SECRET", ""),
            port=arguments.whole("callback_port") or 0,
        )

    issuer = anyio.run(log_in)
    tell(f"logged in to {name} by {clean_line(issuer)}; only you can read the login")
    return OK


def _show_address(address: str) -> None:
    tell(f"open this address in your browser:\n{clean_line(address)}")
    if sys.stdin is not None and sys.stdin.isatty():
        tell("if the browser is on another machine, paste the address at which it ended:")


async def _pasted() -> str | None:
    """The address that the user types; none where there is no terminal."""
    import anyio  # as above

    if sys.stdin is None or not sys.stdin.isatty():
        await anyio.sleep_forever()
    # Waited for before it is read: a thread that reads could not be ended when the browser comes.
    await anyio.wait_readable(sys.stdin)
    return sys.stdin.readline()


def _import(servers: AppMcp, arguments: ParsedArguments) -> int:
    from weft.api.mcp.foreign_entries import AGENTS  # only here

    if len(arguments.words) != 1:
        raise UsageError(f"say from where: a file, or {', '.join(AGENTS)}")
    (source,) = arguments.words
    files = servers.import_files(source)
    # Of two with one name the nearest counts.
    found = {each.name: each for path in files for each in servers.importable(path)}
    if not found:
        tell("no MCP server stands there")
        return OK
    for each in found.values():
        _show_import(each)
    if not arguments.flag("yes"):
        for each in found.values():
            if each.problem:
                name = clean_line(each.name)
                tell(f"{name}: it would be left out: {clean_line(each.problem)}")
        tell(f"`weft mcp import {source} --yes` writes them into your own file")
        return OK
    for name, each in found.items():
        try:
            if each.problem:
                raise UsageError(each.problem)
            tell(f"added {clean_line(name)} to {servers.add(name, each.entry, 'user')}")
        except UsageError as error:
            tell(f"left out {clean_line(name)}: {clean_line(str(error))}")
    return OK


def _show_import(found: Any) -> None:
    name = clean_line(found.name)
    tell(f"{name}: {clean_line(found.shown)}")
    if found.unused:
        does = "does" if len(found.unused) == 1 else "do"
        tell(f"{name}: {clean_line(', '.join(found.unused))} {does} nothing here")
    if found.variables:
        tell(f"{name}: it needs the variables {', '.join(found.variables)}")
