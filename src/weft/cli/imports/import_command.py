"""`weft import --from AGENT`: what another agent has, shown first, then taken over."""

from __future__ import annotations

import os

import msgspec

from weft.api.imports.agent_import import AgentImport
from weft.app import App
from weft.cli.commands.confirmation import confirm
from weft.cli.commands.table import print_table
from weft.cli.commands.with_app import with_app
from weft.cli.exit_codes import FAILED, OK
from weft.cli.parse import ParsedArguments
from weft.cli.sanitize import clean_line
from weft.cli.stdio import tell, write_pretty
from weft.cli.unattended.later_commands import INSIDE
from weft.errors import UsageError
from weft.view import import_problems, import_rows, import_summary, setup_rows

AGENTS = "claude, codex, pi, opencode"


def run(arguments: ParsedArguments) -> int:
    """Show what would be imported; after a yes, do it."""
    if arguments.text("from") is None:
        raise UsageError(
            f"say from which agent: `weft import --from` {AGENTS}; an export of Weft is imported "
            "with `weft session import FILE`"
        )
    if os.environ.get(INSIDE):
        raise UsageError(
            "this runs inside a session's command: a model does not import sessions or set-up"
        )
    if len(arguments.words) > 1:
        raise UsageError("`weft import` takes one file or id; without one, what this folder has")
    return with_app(arguments, lambda app: _import(app, arguments))


async def _import(app: App, arguments: ParsedArguments) -> int:
    found = await _run(app, arguments, preview=True)
    if not arguments.flag("json"):
        _show(found)
    if found.has_more and not arguments.flag("dry_run") and _agreed(arguments):
        found = await _run(app, arguments, preview=False)
        if not arguments.flag("json"):
            _show(found)
    if arguments.flag("json"):
        write_pretty(msgspec.to_builtins(found))
    is_lost = arguments.words and all(each.state == "left out" for each in found.sessions)
    return FAILED if is_lost else OK


async def _run(app: App, arguments: ParsedArguments, *, preview: bool) -> AgentImport:
    path = arguments.words[0] if arguments.words else None
    setup = False if arguments.flag("no_setup") else None
    agent = arguments.text("from") or ""
    return await app.import_from(agent, path, preview=preview, setup=setup)


def _agreed(arguments: ParsedArguments) -> bool:
    if not arguments.flag("yes"):
        confirm(
            "Take over what is new?",
            unasked="nothing is taken over yet; --yes takes what is new",
            refused="nothing was taken over",
        )
    return True


def _show(found: AgentImport) -> None:
    if rows := import_rows(found.sessions):
        print_table(rows, head=("", "title", "messages", "calls", "branches", "session"))
    # Said once, before anything is done.
    for problem in import_problems(found.sessions) if found.is_preview else ():
        tell(clean_line(problem))
    if rows := setup_rows(found.setup):
        print_table(rows, head=("", "set-up", "name", "from, or why not"))
    tell(import_summary(found.sessions, found.setup))
