"""`weft lsp`: the language servers that there are, and a restart of those that run."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec

from weft.app import App
from weft.cli.commands.table import print_table
from weft.cli.exit_codes import OK
from weft.cli.parse import ParsedArguments
from weft.cli.session_options import make_app
from weft.cli.stdio import tell, write_pretty


def run(arguments: ParsedArguments) -> int:
    """Carry out an `lsp` command."""
    app = make_app(arguments)
    if arguments.verb == "lsp restart":
        app.restart_language_servers()
        tell("language servers are started again when they are next needed")
        return OK
    return _status(app, arguments)


def _status(app: App, arguments: ParsedArguments) -> int:
    rows = anyio.run(app.language_servers)
    if arguments.flag("json"):
        write_pretty([msgspec.to_builtins(row) for row in rows])
        return OK
    if not app.config.get("lsp.enabled"):
        tell("language servers are switched off (lsp.enabled)")
    if not rows:
        tell("there is no language server on PATH; docs/language-servers.md lists the known ones")
        return OK
    head = ("server", "state", "files", "memory", "program")
    print_table([_cells(row, app.project_path) for row in rows], head=head)
    return OK


def _cells(row: Any, project: str) -> tuple[str, ...]:
    state = f"{row.state} ({row.why})" if row.why else row.state
    where = "" if row.project == project else f" in {row.project}"
    memory = f"{row.memory / 1e6:,.0f} MB" if row.memory else ""
    return (row.name, state + where, " ".join(row.suffixes), memory, row.program)
