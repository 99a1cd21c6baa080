"""`weft blame FILE:LINE`: what wrote a line, and why.

On a terminal Enter opens the tree at that message and the files as they were then: a shell in a
folder that is removed with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

import anyio.to_thread
import msgspec

from weft.api import Session
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
from weft.errors import UsageError
from weft.evidence import Blame, allowed_words
from weft.view import blame_rows

NOTES: Final = "weft"
"""Notes are kept below `refs/notes/weft`."""


def run(arguments: ParsedArguments) -> int:
    """Show it."""
    if len(arguments.words) != 1:
        raise UsageError("`weft blame` takes a file and a line of it: weft blame src/app.py:12")
    if arguments.flag("notes") and os.environ.get("WEFT_RUN"):
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
        await anyio.to_thread.run_sync(_note, app.project_path, found, arguments.flag("yes"))
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


def trailers_of(found: Blame) -> Sequence[str]:
    """The trailers for a commit of this line.

    Raises:
        UsageError: no session wrote it.
    """
    if found.turn is None:
        raise UsageError(f"{found.path}:{found.line} was written by no session: no trailers")
    return [f"Weft-Session: {found.turn.session_id}", f"Weft-Turn: {found.turn.turn_id}"]


def _note(project: str, found: Blame, is_sure: bool) -> None:
    """Write the trailers as a note on the commit of the line.  Blocks."""
    text = "\n".join(trailers_of(found))
    if found.commit is None:
        raise UsageError(f"{found.path}:{found.line} is in no commit yet: nothing to put a note on")
    commit = found.commit.commit
    if not is_sure:
        confirm(
            f"Write a note on commit {commit[:12]} (refs/notes/{NOTES})?",
            unasked="a note is written after a yes; --yes gives it",
            refused="no note was written",
        )
    # Settings of the repository start no program: hooks and monitors are off.
    quiet = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0")
    command = ["git", *quiet, "notes", f"--ref={NOTES}", "append", "-m", text, commit]
    try:
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"git cannot be started: {error.strerror}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it does not say why"]
        raise UsageError(f"git wrote no note: {clean_line(said[0])}")
    tell(f"noted on {commit[:12]}; `git log --notes={NOTES}` shows it")
