"""`weft blame FILE:LINE`: what wrote a line, and why.

On a terminal Enter opens the tree at that message and the files as they were then: a shell in a
folder that is removed with it.
"""

from __future__ import annotations

import os
import sys

import anyio.to_thread
import msgspec

from weft.api import Session
from weft.api.evidence.blame_note import note_blame, noted_commit, trailers_of
from weft.app import App
from weft.cli.commands.confirmation import confirm
from weft.cli.commands.fan_table.live_table import TerminalKeys, is_interactive
from weft.cli.commands.table import print_table, when
from weft.cli.commands.with_app import with_app
from weft.cli.evidence.past_shell import past_copy, place_of, run_shell, tree_rows
from weft.cli.exit_codes import OK
from weft.cli.parse import ParsedArguments
from weft.cli.sanitize import clean_line
from weft.cli.stdio import tell, write_line, write_pretty
from weft.cli.unattended.later_commands import INSIDE
from weft.errors import UsageError
from weft.evidence import Blame, allowed_words
from weft.view import blame_rows


def run(arguments: ParsedArguments) -> int:
    """Show it."""
    if len(arguments.words) != 1:
        raise UsageError("`weft blame` takes a file and a line of it: weft blame src/app.py:12")
    if arguments.flag("notes") and os.environ.get(INSIDE):
        raise UsageError(
            "this runs inside a session's command: a model writes no notes into the repository"
        )
    path, line = place_of(arguments.words[0])
    return with_app(arguments, lambda app: _blamed(app, arguments, path, line))


async def _blamed(app: App, arguments: ParsedArguments, path: str, line: int) -> int:
    found = await app.blame(path, line)
    if arguments.flag("json"):
        write_pretty(msgspec.to_builtins(found))
    elif arguments.flag("trailers"):
        for trailer in trailers_of(found):
            write_line(trailer)
    else:
        show_blame(found)
    if arguments.flag("notes"):
        await _note(app, found, is_sure=arguments.flag("yes"))
    elif is_interactive() and not (arguments.flag("json") or arguments.flag("trailers")):
        await _offer(app, found)
    return OK


def show_blame(found: Blame) -> None:
    """Write a blame down."""
    write_line(clean_line(f"{found.path}:{found.line}: {found.sentence}"))
    allowed = "" if found.call is None else allowed_words(found.call)
    rows = blame_rows(found, when, allowed)
    print_table([(name, clean_line(text)) for name, text in rows])


# -- the past


async def _offer(app: App, found: Blame) -> None:
    if found.open_node is None or found.open_session is None:
        return
    tell("Enter opens the tree and the files as they were then; any other key leaves it")
    keys = TerminalKeys(sys.stdin.fileno())
    with keys.taken():
        key = await keys.read()
    if key in ("\n", "\r"):
        session = await app.sessions.get(found.open_session)
        await open_past(session, found.open_node)


async def open_past(session: Session, node: str) -> None:
    """The tree around a message, and a shell in the files as they were when it was done."""
    for row in await tree_rows(session, node):
        tell(row)
    async with past_copy(session, node) as (folder, said):
        for each in said:
            tell(each)
        await anyio.to_thread.run_sync(run_shell, str(folder))


# -- what goes into the repository


async def _note(app: App, found: Blame, *, is_sure: bool) -> None:
    """Write the trailers as a note on the commit of the line, after a yes."""
    commit = noted_commit(found)
    if not is_sure:
        await anyio.to_thread.run_sync(_confirm_note, commit)
    await note_blame(app.host, found)
    tell(f"noted on {commit[:12]}; `git log --notes=weft` shows it")


def _confirm_note(commit: str) -> None:
    confirm(
        f"Write a note on commit {commit[:12]} (refs/notes/weft)?",
        unasked="a note is written after a yes; --yes gives it",
        refused="no note was written",
    )
