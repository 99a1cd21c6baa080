"""What each of two branches took: files, lines, time, and how the commands ended that it ran."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import anyio.to_thread
import msgspec

from weft.api.file_changes.hunks import file_hunks
from weft.context import LineEntry
from weft.messages import ToolCall, ToolResult

MOST_COMMANDS = 40
LONGEST_COMMAND = 400
LONGEST_LOOKED_AT = 8192
"""Of a command, before secrets are masked: it may hold a whole file."""
LONGEST_LINE = 160

ChangedText: TypeAlias = tuple[str, str | None, str | None]
"""A changed file: its path, what it said where the branches part, and at the end of this one; None
is no text.
"""


class BranchCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command that a branch ran, as it ended the last time."""

    command: str
    exit_code: int | None = None
    """None where it did not come to its end."""
    last_line: str = ""
    """The last that it printed."""


class BranchFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One branch, from the message where it parts."""

    files: int = 0
    added: int = 0
    removed: int = 0
    """Lines, of all files that are text."""
    seconds: float = 0.0
    """How long models and tools worked, without the time in which it waited for the user."""
    model: str = ""
    """Of its last answer."""
    commands: tuple[BranchCommand, ...] = ()
    """Those of the shell, in the order in which they were first run."""


async def branch_facts(
    changed: Sequence[ChangedText], entries: Sequence[LineEntry], redact: Callable[[str], str]
) -> BranchFacts:
    """The facts of a branch that changed these files, and has these messages."""
    # In a thread: comparing may take seconds, in which no session could say a word.
    added, removed = await anyio.to_thread.run_sync(_lines, changed)
    models = [each.node.model for each in entries if each.node.model]
    return BranchFacts(
        files=len(changed),
        added=added,
        removed=removed,
        seconds=_worked(entries),
        model=models[-1] if models else "",
        commands=_commands(entries, redact),
    )


def _lines(changed: Sequence[ChangedText]) -> tuple[int, int]:
    """Lines that were added and removed, of files that are text."""
    added = removed = 0
    for path, before, after in changed:
        if before is None or after is None:
            continue
        for hunk in file_hunks(path, before, after):
            added, removed = added + hunk.added, removed + hunk.removed
    return added, removed


def _worked(entries: Sequence[LineEntry]) -> float:
    """Between a prompt and what followed it; what no time is known of counts nothing."""
    seconds = before = 0.0
    for entry in entries:
        until = max((entry.at, *entry.result_times.values()))
        if entry.node.role != "user" and before:
            seconds += max(0.0, until - before)
        before = until
    return seconds


def _commands(
    entries: Sequence[LineEntry], redact: Callable[[str], str]
) -> tuple[BranchCommand, ...]:
    found: dict[str, BranchCommand] = {}
    for entry in entries:
        for part in entry.node.parts:
            if isinstance(part, ToolCall) and part.name == "shell":
                command = str(part.args.get("command", "")).strip()[:LONGEST_LOOKED_AT]
                found[command] = _command(command, entry.results.get(part.call_uid), redact)
    return tuple(found.values())[-MOST_COMMANDS:]


def _command(
    command: str, result: ToolResult | None, redact: Callable[[str], str]
) -> BranchCommand:
    data = {} if result is None or result.status != "done" else result.data
    code = data.get("exit_code")
    text = "" if result is None else str(data.get("output") or result.text)
    printed = [line.strip() for line in text.splitlines() if line.strip()]
    # What the tool says in the place of output, or after it, is in brackets.
    printed = [line for line in printed if not line.startswith(("(exit code", "(no output"))]
    return BranchCommand(
        # Cut off after that: half of a secret is not known as one.
        command=redact(command)[:LONGEST_COMMAND],
        exit_code=code if isinstance(code, int) else None,
        last_line=redact(printed[-1])[:LONGEST_LINE] if printed else "",
    )
