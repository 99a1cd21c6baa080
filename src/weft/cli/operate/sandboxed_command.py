"""`weft sandbox`: a command of the user's in the sandbox; what it changed is shown before it is the
project's, and a session of its own keeps the record, so that a rewind takes it back.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any, Final

import anyio

from weft.api import Session
from weft.api.file_changes.reviewed_changes import (
    ReviewedChanges,
    ReviewedFile,
    RunResult,
    changed_lines,
)
from weft.app import App
from weft.cli.commands.with_app import with_app
from weft.cli.exit_codes import CommandExit
from weft.cli.parse import ParsedArguments
from weft.cli.sanitize import clean_line
from weft.cli.stdio import has_terminal, tell, write, write_line, write_pretty
from weft.cli.unattended.later_commands import INSIDE
from weft.errors import UsageError
from weft.ids import SessionId

MOST_NAMED: Final = 50
_TITLE: Final = 60


def run(arguments: ParsedArguments) -> int:
    """Run it; the exit code is the command's."""
    if os.environ.get(INSIDE):
        raise UsageError(
            "this runs inside a session's command, and what that changes is judged already"
        )
    command = command_of(arguments.words)
    return with_app(arguments, lambda app: _ran(app, arguments, command))


def command_of(words: tuple[str, ...]) -> str:
    """The command line that some words are: one is a line for the shell, several are a program.

    Raises:
        UsageError: there are none.
    """
    if not "".join(words).strip():
        raise UsageError("`weft sandbox` needs a command: weft sandbox -- make test")
    return words[0] if len(words) == 1 else shlex.join(words)


async def _ran(app: App, arguments: ParsedArguments, command: str) -> int:
    is_json = arguments.flag("json")
    session = await app.sessions.start_session(title=f"sandbox: {clean_line(command)[:_TITLE]}")
    sandboxed = SandboxedCommand(
        app, session, is_silent=is_json, asks=not is_json, is_yes=arguments.flag("yes")
    )
    result, is_kept = await sandboxed.run(command)
    if is_json:
        write_pretty(_as_json(command, result, sandboxed.changes, session.id if is_kept else None))
    else:
        for remark in result.remarks:
            tell(remark)
        if is_kept:
            tell(carried_sentence(session.id, result))
    return result.exit_code if result.exit_code >= 0 else 128 - result.exit_code


def carried_sentence(session_id: SessionId, result: RunResult) -> str:
    """What is said of changes that came over."""
    if not result.changes:
        return "carried over; no rewind takes it back, for it is all ignored files"
    return f"carried over; `weft session rewind {session_id} --to start` takes it back"


class SandboxedCommand:
    """One command, its output as it comes, and the question about what it changed."""

    def __init__(
        self, app: App, session: Session, *, is_silent: bool, asks: bool, is_yes: bool
    ) -> None:
        self._host, self._sessions, self._session = app.host, app.sessions, session
        self._is_silent = is_silent
        self._asks = asks and sys.stdin is not None and sys.stdin.isatty()
        self._is_yes = is_yes
        self._scope = anyio.CancelScope()
        self._broken: Exception | None = None
        self._is_mid_line = False
        self.changes = ReviewedChanges()

    async def run(self, command: str) -> tuple[RunResult, bool]:
        """Run it; gives how it ended, and whether anything reached the project."""
        is_kept = False
        try:
            with self._scope:
                result = await self._host.run_reviewed(
                    self._session.id, command, self._review, self._show
                )
                is_kept = bool(self.changes.files) and not result.is_declined
            if self._scope.cancelled_caught:
                raise self._broken or CommandExit(1)
        except anyio.get_cancelled_exc_class():
            if not self._is_silent:
                line = "stopped; nothing that it changed reached the project"
                tell(f"\n{line}" if has_terminal() else line)  # behind the ^C
            raise
        finally:
            if not is_kept:
                # Nothing is in the project, so there is nothing to take back: an empty session
                # would be listed for ever.
                with anyio.CancelScope(shield=True):
                    await self._sessions.delete_session(self._session.id)
        return result, is_kept

    def _show(self, text: str) -> None:
        if self._is_silent:
            return
        self._is_mid_line = not text.endswith("\n")
        try:
            write(text)
        except (OSError, CommandExit) as error:
            # Nobody reads any more, so the command ends, as it would by a signal of the pipe.
            self._broken = error
            self._scope.cancel()

    async def _review(self, changes: ReviewedChanges) -> bool:
        self.changes = changes
        if not changes.files:
            return True
        if not self._is_silent:
            if self._is_mid_line and has_same_screen():
                tell("")
            for row in change_rows(changes.files):
                tell(row)
        if self._is_yes:
            return True
        if self._asks:
            return await self._asked(changes)
        if not self._is_silent:
            tell("nothing was carried over: there is no terminal to ask on (--yes carries it over)")
        return False

    async def _asked(self, changes: ReviewedChanges) -> bool:
        for remark in changes.remarks:
            tell(remark)
        while True:
            sys.stderr.write("Carry it over into the project? [y/N/d shows the changes] ")
            sys.stderr.flush()
            # Not in a thread, which would hold the end of the program up after Ctrl-C.
            await anyio.wait_readable(sys.stdin.fileno())
            answer = sys.stdin.readline().strip().lower()
            if answer != "d":
                break
            for line in diff_lines(changes.files):
                write_line(line)
        if answer in ("y", "yes"):
            return True
        tell("nothing was carried over")
        return False


def has_same_screen() -> bool:
    """Whether output and notes go to a terminal, where they would stand on one line."""
    return sys.stdout is not None and sys.stdout.isatty()


# -- what it changed


_MARKS: Final = {"created": "+", "modified": "~", "deleted": "-"}


def change_rows(files: Sequence[ReviewedFile]) -> list[str]:
    """A line for each change; ignored files are counted."""
    own = [each for each in files if not each.is_ignored]
    rows = [f"{_MARKS[each.action]} {clean_line(each.path)}{_size(each)}" for each in own]
    if len(rows) > MOST_NAMED:
        rows[MOST_NAMED:] = [f"  and {len(rows) - MOST_NAMED} more"]
    if ignored := len(files) - len(own):
        rows.append(f"  and {ignored} ignored file{'' if ignored == 1 else 's'}")
    return rows


def _size(file: ReviewedFile) -> str:
    lines = changed_lines(file)
    if lines is None:
        return ""
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    return f"  +{added} -{removed}" if added or removed else ""


def diff_lines(files: Sequence[ReviewedFile]) -> list[str]:
    """The changes as a unified diff; of what is no text, its name alone."""
    shown: list[str] = []
    for file in files:
        if file.is_ignored:
            continue
        lines = changed_lines(file)
        name = clean_line(file.path)
        shown += [f"--- {name}", f"+++ {name}"]
        shown += lines or [f"({file.action}; not shown as text)"]
    return shown


def _as_json(
    command: str, result: RunResult, changes: ReviewedChanges, session: SessionId | None
) -> dict[str, Any]:
    return {
        "command": command,
        "exit_code": result.exit_code,
        "output": result.output,
        "changes": [
            {"path": each.path, "action": each.action, "ignored": each.is_ignored}
            for each in changes.files
        ],
        "carried_over": session is not None,
        "session_id": session,
        "remarks": list(result.remarks),
        "duration_ms": result.duration_ms,
    }
