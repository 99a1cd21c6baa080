"""What a command changed that it should not have, where nothing could hold it back.

In the sandbox such a change never reaches the project.  A command that runs as it is has made it by
the time that we see it, and a change of the user's own in the meantime looks the same: so it is
never put back.  The model is told to ask, and the user gets a note.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import msgspec

from weft.errors import ToolError
from weft.tools import ChangedFile
from weft.workspace import FileState, ProcessCommand, Runner, RunResult, SessionBoundaries

if TYPE_CHECKING:  # loaded with the first command: it costs start-up time
    from weft.workspace.history.git_watch import GitWatch

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
        root: str = "",
    ) -> None:
        """`forbids` says why a path may not be changed by a command, `peek` reads a file of the
        project, `root` is its folder, whose repository is watched.
        """
        self._root = root
        self._watch: GitWatch | None = None
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
        # What goes on for hours is not watched: all that the user does with git meanwhile would be
        # taken for the command's.
        if command.only_reads or command.stop is not None or not self._root:
            return await self._reported(await self._inner.run(command, on_output), [])
        watch = self._watch_now()
        before = await watch.begin()
        result = await self._inner.run(command, on_output)
        loss = await watch.end(before)
        if loss.changes:
            changes = (*(result.changes or ()), *loss.changes)
            result = msgspec.structs.replace(result, changes=changes)
        return await self._reported(result, [f".git: {loss.why}"] if loss.why else [])

    async def _reported(self, result: RunResult, found: list[str]) -> RunResult:
        found += [
            f"{change.path}: {why}"
            for change in result.changes or ()
            if (why := await self._why_not(change))
        ]
        result = _with_gone(result)
        return _with_report(result, found) if found else result

    def _watch_now(self) -> GitWatch:
        if self._watch is None:
            from weft.workspace.history.git_watch import GitWatch  # with the first command

            self._watch = GitWatch(self._root, self._inner)
        return self._watch

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


def _with_gone(result: RunResult) -> RunResult:
    """Name the removed and the rewritten files that the history could not hold."""
    lost = [change for change in result.changes or () if change.missing]
    remarks = [
        f"{words}:\n{_listed(named)}"
        for action, words in _LOST.items()
        if (named := [f"{each.path} ({each.missing})" for each in lost if each.action == action])
    ]
    if not remarks:
        return result
    return msgspec.structs.replace(result, remarks=(*result.remarks, *remarks))


_LOST: Final = {
    "deleted": "These files were removed and nothing brings them back",
    "modified": "These files were rewritten and a rewind does not bring back what they held",
}


def _listed(found: list[str]) -> str:
    named = [f"- {line}" for line in found[:MOST_NAMED]]
    if len(found) > MOST_NAMED:
        named.append(f"- … and {len(found) - MOST_NAMED} more")
    return "\n".join(named)


def _with_report(result: RunResult, found: list[str]) -> RunResult:
    listed = _listed(found)
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
