"""The memory of the application's project and of its user, as programs use it."""

from __future__ import annotations

import anyio.to_thread

from weft.clock import Clock
from weft.project.memory import MemoryFiles, MemoryNote, MemoryScope, MemoryText


class AppMemory:
    """What the user asked to be remembered.  Sessions know of a change with their next message."""

    def __init__(self, project: str, files: MemoryFiles, clock: Clock) -> None:
        self._project = project
        self._files = files
        self._clock = clock

    async def list(self) -> list[MemoryNote]:
        """Everything that is remembered for this project, what counts in every project first.

        Raises:
            UsageError: a file is not to be read.
        """
        return await anyio.to_thread.run_sync(self._files.notes, self._project)

    async def add(self, text: str, scope: MemoryScope = "project") -> MemoryNote:
        """Remember something, in this project or in every one (`user`).  What looks like a secret
        is masked.

        Raises:
            UsageError: it is empty or too long, there is no room for it, or it cannot be written.
        """
        now = self._clock.now()
        return await anyio.to_thread.run_sync(self._files.add, self._project, text, scope, now)

    async def remove(self, note_id: str) -> MemoryNote:
        """Forget something; returns what it was.

        Raises:
            UsageError: there is nothing of this id, or the file cannot be changed.
        """
        return await anyio.to_thread.run_sync(self._files.remove, self._project, note_id)

    def path(self, scope: MemoryScope) -> str:
        """Where the file of a scope lies; empty while the project has none.  Blocks for a look."""
        path = self._files.path(self._project, scope)
        return "" if path is None else str(path)

    async def text(self) -> MemoryText:
        """What models are given of it, and what is wrong with the rest."""
        return await anyio.to_thread.run_sync(self._files.text, self._project)

    async def source(self, scope: MemoryScope) -> str:
        """The text of a file, for an editor.

        Raises:
            UsageError: it is not to be read.
        """
        return await anyio.to_thread.run_sync(self._files.source, self._project, scope)

    async def rewrite(self, scope: MemoryScope, before: str, after: str) -> str:
        """Put in place what an editor has made of `before`; what was remembered meanwhile is kept.
        Returns the path of the file; empty where nothing was changed.

        Raises:
            UsageError: the file cannot be changed.
        """

        def write() -> str:
            path = self._files.rewrite(
                self._project, scope, self._clock.now(), before=before, after=after
            )
            return "" if path is None else str(path)

        return await anyio.to_thread.run_sync(write)
