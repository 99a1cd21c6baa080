"""What a command changed that it should not have, where nothing could hold it back.

In the sandbox such a change never reaches the project.  A command that runs as it is has made it by
the time that we see it, and a change of the user's own in the meantime looks the same: so it is
never put back.  The model is told to ask, and the user gets a note.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from weft.errors import ToolError
from weft.tools import ChangedFile
from weft.workspace import FileState, ProcessCommand, Runner, RunResult, SessionBoundaries

MOST_NAMED = 20
"""Paths that are named."""


class ViolationReportingRunner(Runner):
    """Runs commands as they are, and tells what they changed beyond what they may."""

    def __init__(
        self,
        inner: Runner,
        *,
        forbids: Callable[[str], str],
        boundaries: SessionBoundaries,
        peek: Callable[[str], Awaitable[FileState | None]],
    ) -> None:
        """`forbids` says why a path may not be changed by a command, `peek` reads a file of the
        project.
        """
        self._inner = inner
        self._forbids = forbids
        self._boundaries = boundaries
        self._peek = peek

    def which(self, program: str, *, not_below: str = "") -> str | None:
        return self._inner.which(program, not_below=not_below)

    def knows_changes(self, command: ProcessCommand) -> bool:
        return self._inner.knows_changes(command)

    async def run(
        self, command: ProcessCommand, on_output: Callable[[str], None] | None = None
    ) -> RunResult:
        result = await self._inner.run(command, on_output)
        if not result.changes:
            return result
        found = [
            f"{change.path}: {why}"
            for change in result.changes
            if (why := await self._why_not(change))
        ]
        return _with_report(result, found) if found else result

    async def _why_not(self, change: ChangedFile) -> str:
        if why := self._forbids(change.path):
            return why
        if self._boundaries.of(change.path) is None:
            return ""
        now = await self._content(change.path)
        try:
            moved = await self._boundaries.admit(change.path, change.data_before, now)
        except ToolError as error:
            # The range moves along with the change; otherwise later edits would be judged by lines
            # that are elsewhere now.
            await self._boundaries.noticed(change.path, now)
            return str(error)
        self._boundaries.moved(moved)
        return ""

    async def _content(self, path: str) -> bytes | None:
        try:
            found = await self._peek(path)
        except ToolError:
            return None
        return None if found is None else found.data


def _with_report(result: RunResult, found: list[str]) -> RunResult:
    named = [f"- {line}" for line in found[:MOST_NAMED]]
    if len(found) > MOST_NAMED:
        named.append(f"- … and {len(found) - MOST_NAMED} more")
    listed = "\n".join(named)
    remark = (
        "While this command ran, files changed that a command may not change. It ran "
        "without the sandbox, so nothing was held back and "
        f"nothing was put back. Ask the user whether this may stay:\n{listed}"
    )
    note = (
        "A command without the sandbox changed files that it may not change. Nothing was "
        "put back; look at them, and rewind if they should "
        f"not stay:\n{listed}"
    )
    return msgspec.structs.replace(
        result,
        remarks=(*result.remarks, remark),
        notes=(*result.notes, note),
        has_violations=True,
    )
