"""The door of one session: the project's files and programs, with the session's boundaries on them.

Everything that a tool of a session does to the machine goes through here: the workspace that tools write to, and the runner that commands
go through.  What moved on the way is handed to the append that records the result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from weft.errors import ToolError, UsageError
from weft.events import BoundaryChanged
from weft.ids import BlobId
from weft.loop import Commit
from weft.session import FoundFile
from weft.state import SessionState
from weft.workspace import Bound, Boundaries, BoundedWorkspace, LineRange, Workspace, lines_of
from weft.workspace.boundaries_door import MAX_BYTES


class Door:
    """What one session goes through to the machine."""

    def __init__(
        self, workspace: Workspace, load: Callable[[BlobId], Awaitable[bytes | None]]
    ) -> None:
        self._inner = workspace
        self._state: Callable[[], SessionState | None] = lambda: None
        self.boundaries = Boundaries(self._in_force, load)
        self.workspace: Workspace = BoundedWorkspace(workspace, self.boundaries)

    def follow(self, state: Callable[[], SessionState]) -> None:
        """Hold to the boundaries of this state from now on."""
        self._state = state

    def beside(self) -> Commit:
        """The ranges that moved since the last time, as facts."""
        moved = self.boundaries.take()
        facts = [
            BoundaryChanged(
                path=each.path,
                first=each.bound.lines.first,
                last=each.bound.lines.last,
                base=each.bound.base,
                moves=each.bound.name,
            )
            for each in moved
        ]
        return Commit(facts=tuple(facts), blobs={each.bound.base: each.data for each in moved})

    async def find_file(self, path: str) -> FoundFile:
        """A file that is to be bounded, by the path that somebody wrote.

        Raises:
            UsageError: it is no file of the project, or too large.
        """
        try:
            real = await self._inner.resolve(path)
            if self._inner.is_outside(real):
                raise UsageError(f"{path!r} is outside the project; only files in it are bounded")
            found = await self._inner.peek(real, limit=MAX_BYTES)
        except ToolError as error:
            raise UsageError(str(error)) from error
        if found is None:
            return FoundFile(path=real)
        if found.truncated:
            raise UsageError(f"{real!r} is too large to be bounded ({found.size:,} bytes)")
        return FoundFile(path=real, lines=len(lines_of(found.data)), data=found.data)

    def _in_force(self) -> Mapping[str, Bound]:
        state = self._state()
        if state is None or not state.boundaries.held:
            return _NONE
        return {
            path: Bound(
                lines=LineRange(boundary.first, boundary.last),
                base=boundary.base or BlobId(""),
                name=boundary.name,
            )
            for path, boundary in state.boundaries.held.items()
        }


_NONE: Mapping[str, Bound] = {}
