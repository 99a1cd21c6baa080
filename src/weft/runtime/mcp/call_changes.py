"""What a call of an MCP server changed in the project: found out, judged, and put back where it was
not allowed.

A server lives for hours and works on the project itself: an overlay, as commands have it, would go
on showing it files that were replaced since.  So the project is watched while a call runs.  What
changed is judged as if a command had done it; a change that is not allowed is put back, if the file
is still as the call left it, and what stood in it is kept aside, for it may have been the user's.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import msgspec

from weft.errors import ToolError
from weft.ids import CallUid
from weft.mcp.private_file import replace_private
from weft.runtime.workspaces.file_history import FileHistoryRunner
from weft.runtime.workspaces.session_workspace import SessionWorkspace
from weft.session import FileNow
from weft.tools import ChangedFile, ToolOutcome
from weft.workspace.disk_threads import DiskThreads

MOST_NAMED: Final = 20


class CallChanges:
    """Watches the project of one session while calls run."""

    def __init__(self, files: FileHistoryRunner, workspace: SessionWorkspace, aside: Path) -> None:
        """`aside` is a folder for what was put back."""
        self._files = files
        self._workspace = workspace
        self._aside = aside

    async def run(
        self, call_uid: CallUid, work: Callable[[], Awaitable[ToolOutcome]]
    ) -> ToolOutcome:
        """The outcome of a call, with what it changed in the project.

        What a call that is cancelled has changed is told with the next result, and not judged.
        """
        known: set[str] = set()

        async def contained() -> ToolOutcome:
            # The project has been looked through by now.
            known.update(self._repositories())
            # What a call changed that failed is judged as well: a server chooses how it answers.
            try:
                return await work()
            except ToolError as error:
                return ToolOutcome(text=str(error), is_error=True)

        outcome, changes, left_out = await self._files.watched(call_uid, contained)
        if changes is None:
            return outcome
        judged = _Judged(remarks=list(left_out))
        # What lies deepest first: a folder is put back when it is empty.
        for change in sorted(changes, key=lambda each: each.path, reverse=True):
            await self._judge(change, judged)
        judged.kept.reverse()
        if made := sorted(self._repositories() - known):
            places = ", ".join(map(_folder_of, made[:MOST_NAMED]))
            judged.notes.append(
                f"A call of an MCP server made a git repository in {places}; look at its hooks and "
                "settings before you run git in it."
            )
        return judged.outcome(outcome)

    def _repositories(self) -> set[str]:
        """The `.git` of the project, and those of repositories in it: no history holds them."""
        left_out = (path.rstrip("/") for path in self._files.known_left_out())
        found = {path for path in left_out if os.path.basename(path) == ".git"}
        is_one = os.path.lexists(f"{self._workspace.workspace.root}/.git")
        return {*found, ".git"} if is_one else found

    async def _judge(self, change: ChangedFile, judged: _Judged) -> None:
        why = await self._why_not(change)
        if not why:
            judged.kept.append(change)
            return
        problem = await self._put_back(change)
        if problem:
            judged.kept.append(change)
            judged.stayed.append(f"{change.path}: {why}; it could not be put back: {problem}")
        else:
            judged.refused.append(f"{change.path}: {why}")

    async def _why_not(self, change: ChangedFile) -> str:
        workspace = self._workspace
        if why := workspace.forbids(change.path):
            return why
        boundaries = workspace.boundaries
        if boundaries.of(change.path) is None:
            return ""
        now = await self._content(change)
        try:
            moved = await boundaries.admit(change.path, change.data_before, now)
        except ToolError as error:
            return str(error)
        boundaries.moved(moved)
        return ""

    async def _content(self, change: ChangedFile) -> bytes | None:
        """What a file holds now; None where there is none, or it is too large."""
        if change.action == "deleted":
            return None
        found = await self._files.look(change.path)
        return None if found is None else found.data

    async def _put_back(self, change: ChangedFile) -> str:
        """Why a change could not be put back; empty when it was."""
        if change.missing:
            return f"what it held is not known ({change.missing})"
        if not change.is_certain:
            return "another program may have made it"
        before = after = None
        if change.action != "created":
            before = FileNow(
                mode=change.mode_before, content=change.before, data=change.data_before
            )
        if change.action != "deleted":
            after = FileNow(mode=change.mode_after, content=change.after)
        try:
            await self._keep_aside(change)
            await self._files.put_back(change.path, before, expected=after)
            for folder, mode in reversed(change.folders):
                await self._files.put_back(folder, None, expected=FileNow(mode=mode))
        except (ToolError, OSError) as error:
            return str(error)
        return ""

    async def _keep_aside(self, change: ChangedFile) -> None:
        data = await self._content(change)
        if data is None:
            return
        name = f"{change.after}-{os.path.basename(change.path)}"[:200]
        await DiskThreads().run(lambda: replace_private(self._aside / name, data))


class _Judged(msgspec.Struct):
    """What came of the changes of one call."""

    kept: list[ChangedFile] = msgspec.field(default_factory=list)
    refused: list[str] = msgspec.field(default_factory=list)
    stayed: list[str] = msgspec.field(default_factory=list)
    """What was not allowed and is there all the same."""
    remarks: list[str] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)

    def outcome(self, outcome: ToolOutcome) -> ToolOutcome:
        """The outcome of the call, with all of it."""
        said, notes = [outcome.text, *self.remarks], list(self.notes)
        if self.refused:
            listed = _listed(self.refused)
            said.append(f"These changes are not allowed and were put back:\n{listed}")
            notes.append(f"Changes of an MCP server that are not allowed were put back:\n{listed}")
        if self.stayed:
            listed = _listed(self.stayed)
            said.append(f"These changes are not allowed; ask the user what to do:\n{listed}")
            notes.append(f"An MCP server changed what it may not change:\n{listed}")
        return msgspec.structs.replace(
            outcome,
            text="\n".join(said),
            is_error=outcome.is_error or bool(self.refused or self.stayed),
            touched=(*outcome.touched, *self.kept),
            notes=(*outcome.notes, *notes),
        )


def _folder_of(repository: str) -> str:
    return os.path.dirname(repository) or "the project"


def _listed(found: list[str]) -> str:
    named = [f"- {line}" for line in found[:MOST_NAMED]]
    if len(found) > MOST_NAMED:
        named.append(f"- … and {len(found) - MOST_NAMED} more")
    return "\n".join(named)
