"""`weft session …`: list, show, rename, fork, export, import, delete.

`moving` has the commands that move in one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from weft.app import App
from weft.cli.commands import session_tree as moving
from weft.cli.commands.confirmation import confirm
from weft.cli.commands.log_lines import remove_log_lines
from weft.cli.commands.table import money, print_table, when
from weft.cli.commands.with_app import with_app
from weft.cli.evidence import exclusion
from weft.cli.exit_codes import OK
from weft.cli.logs import log_path
from weft.cli.parse import ParsedArguments
from weft.cli.session_options import find_id, format_of
from weft.cli.stdio import tell, write, write_line, write_pretty
from weft.errors import UsageError
from weft.ids import SessionId

_ALL = 1_000_000
_NAMED = 5


def run(arguments: ParsedArguments) -> int:
    """Carry out a `session` command."""
    work = _COMMANDS[arguments.verb.removeprefix("session ")]
    return with_app(arguments, lambda app: work(app, arguments))


async def _list(app: App, arguments: ParsedArguments) -> int:
    folder = None if arguments.flag("all") else app.project_path
    query = " ".join(arguments.words) or None
    rows = await app.sessions.list_saved(
        project_path=folder,
        query=query,
        limit=arguments.whole("limit") or 50,
        archived=arguments.flag("archived"),
    )
    if arguments.flag("json"):
        shown = [{**msgspec.to_builtins(row), "working": row.id in rows.working} for row in rows]
        write_pretty(shown)
        return OK
    if not rows:
        where = "" if arguments.flag("all") else " in this folder (--all looks everywhere)"
        tell(f"no sessions{' with these words' if query else ''}{where}")
        return OK
    head = ("id", "last active", "messages", "cost", "title")
    is_all = arguments.flag("all")
    table = [_row(row, is_all=is_all, is_working=row.id in rows.working) for row in rows]
    print_table(table, head=head)
    return OK


def _row(row: Any, *, is_all: bool, is_working: bool) -> tuple[str, ...]:
    title = row.title or row.first_prompt
    if row.damaged:
        title = f"(damaged: {row.damaged})"
    elif row.waits:
        title = f"{title} (waiting)"
    elif row.turn_open:
        title = f"{title} ({'working' if is_working else 'interrupted'})"
    elif row.round_at is not None:
        title = f"{title} (scheduled {when(row.round_at)})"
    if is_all:
        title = f"{title}  [{row.project_path}]"
    return row.id, when(row.last_active), str(row.message_count), money(row.cost_usd), title


async def _show(app: App, arguments: ParsedArguments) -> int:
    record = await app.sessions.read_session(await find_id(app, _one(arguments, "ID")))
    if arguments.flag("json"):
        write_pretty({"session": record.row, "messages": record.messages})
        return OK
    if sys.stdout is None or not sys.stdout.isatty():
        write(await app.sessions.export_session(record.row.id, "md"))
        return OK
    from weft.cli.chat.paint.theme import theme_of  # only where it is drawn
    from weft.cli.chat.screens.render import BlockRenderer
    from weft.view import history_blocks

    theme = theme_of(
        os.environ,
        name=str(app.config.get("theme")),
        is_unicode=(sys.stdout.encoding or "").lower().startswith("utf"),
        folder=record.row.project_path,
    )
    painter = BlockRenderer(width=os.get_terminal_size(1).columns, theme=theme)
    for block in history_blocks(record.messages):
        # Painted text is fit for the terminal; cleaning it again would take its colours.
        sys.stdout.write(painter.paint(block))
    return OK


async def _rename(app: App, arguments: ParsedArguments) -> int:
    if len(arguments.words) < 2:
        raise UsageError("`weft session rename` needs an id and a title")
    given, *title = arguments.words
    await app.sessions.rename_session(await find_id(app, given), " ".join(title))
    return OK


async def _fork(app: App, arguments: ParsedArguments) -> int:
    source = await find_id(app, _one(arguments, "ID"))
    at = arguments.text("at")
    node = int(at) if at is not None and at.lstrip("-").isdecimal() else at
    forked = await app.sessions.fork_session(source, at=node, title=arguments.text("name"))
    write_line(forked.id)
    return OK


async def _export(app: App, arguments: ParsedArguments) -> int:
    session_id = await find_id(app, _one(arguments, "ID"))
    path = arguments.text("output")
    format_ = format_of(path, arguments.text("format"))
    text = await app.sessions.export_session(
        session_id, format_, path, files=arguments.flag("files"), missing=_tell_missing
    )
    if path is None:
        write(text)
    return OK


def _tell_missing(names: tuple[str, ...]) -> None:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    tell(f"not in the export, because they are not stored: {', '.join(names[:_NAMED])}{more}")


async def _import(app: App, arguments: ParsedArguments) -> int:
    report = await app.sessions.import_session(_one(arguments, "FILE"))
    if (title := arguments.text("name")) is not None:
        await app.sessions.rename_session(report.session.id, title)
    if report.dropped:
        dropped = ", ".join(f"{count} {name}" for name, count in report.dropped.items())
        tell(f"not imported, because an export is not trusted: {dropped}")
    write_line(report.session.id)
    return OK


async def _delete(app: App, arguments: ParsedArguments) -> int:
    if not arguments.words:
        raise UsageError("`weft session delete` needs at least one id")
    ids = [await find_id(app, given) for given in arguments.words]
    if not arguments.flag("yes"):
        _confirm(len(ids))
    for session_id in ids:
        rows = await app.store.rows(limit=_ALL, archived=True, children=True)
        row = await app.host.row(session_id)
        agents = {each.id: each.parent_id for each in rows if each.is_child}
        await app.sessions.delete_session(session_id)
        _tell_what_stays(
            session_id,
            [each.id for each in rows if each.parent_id == session_id and not each.is_child],
        )
        since = row.created if row is not None else 0.0
        remove_log_lines(log_path(), _with_agents(session_id, agents), since)
    # Files that commands removed are the user's, and in no other place.
    if kept := app.host.services.workspaces.kept_files():
        tell(kept)
    return OK


def _tell_what_stays(session_id: SessionId, forks: Sequence[SessionId]) -> None:
    """A fork shares the record of its parent instead of copying it."""
    if forks:
        are = "is" if len(forks) == 1 else "are"
        tell(f"{session_id}: its messages stay stored until {', '.join(forks)} {are} deleted too")


def _with_agents(
    session_id: SessionId, agents: Mapping[SessionId, SessionId | None]
) -> set[SessionId]:
    """The session and all that worked for it, at any depth; `agents` have those they work for."""
    found, waiting = {session_id}, [session_id]
    while waiting:
        parent = waiting.pop()
        new = {agent for agent, above in agents.items() if above == parent} - found
        found |= new
        waiting += new
    return found


def _confirm(count: int) -> None:
    what = "this session" if count == 1 else f"these {count} sessions"
    confirm(
        f"Delete {what} permanently?",
        unasked=f"deleting cannot be undone; add --yes to delete {what}",
        refused="nothing was deleted",
    )


def _one(arguments: ParsedArguments, what: str) -> str:
    if len(arguments.words) != 1:
        raise UsageError(f"`weft {arguments.verb}` needs exactly one {what}")
    return arguments.words[0]


_COMMANDS: dict[str, Callable[[App, ParsedArguments], Awaitable[int]]] = {
    "list": _list,
    "show": _show,
    "rename": _rename,
    "fork": _fork,
    "export": _export,
    "import": _import,
    "delete": _delete,
    "tree": moving.tree,
    "branch": moving.branch,
    "switch": moving.switch,
    "checkpoint": moving.checkpoint,
    "rewind": moving.rewind,
    "undo": moving.undo,
    "differences": moving.differences,
    "exclude": exclusion.exclude,
    "include": exclusion.include,
    "compact": moving.compact,
    "summarize": moving.summarize,
    "archive": moving.archive,
}
