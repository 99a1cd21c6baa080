"""A session's work on files beyond its tools: what commands changed, and putting things back.

Nothing of it is loaded before the first command or rewind: a session that only reads and edits
needs none of it.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from weft.events import Fact
from weft.ids import CallUid
from weft.loop import Commit, touched_facts
from weft.session import FileNow, FileRestorer
from weft.tools import ChangedFile
from weft.workspace import FileImage, ProcessCommand, Runner, RunResult
from weft.workspace.disk_threads import DiskThreads

if TYPE_CHECKING:
    from weft.ids import BlobId
    from weft.workspace.history.history import FileHistory
    from weft.workspace.history.restore import PathRestorer
    from weft.workspace.history.runner import WatchedRunner


T = TypeVar("T")


class HistoryPlaces(msgspec.Struct, frozen=True, kw_only=True):
    """Where the file history of a project is kept, and how much of it."""

    quota: int
    """Bytes; 0 switches it off."""
    max_file: int
    folder: Path | None = None
    """Where what files held may outlive the process."""
    skip: tuple[str, ...] = ()
    """Folders that are Weft's own."""
    unwatched: str = ""
    """Why commands are not watched in this project; empty when they are."""


class FileHistoryRunner(FileRestorer, Runner):
    """The files of one session's project: a Runner that tells what its commands changed, and the
    way back.
    """

    def __init__(
        self,
        project: str,
        added: Sequence[str],
        runner: Callable[[], Runner],
        places: HistoryPlaces,
    ) -> None:
        self._project = project
        self._added = tuple(added)
        self._make_runner = runner
        self._places = places
        self._threads = DiskThreads.of(project)
        self._opening = threading.Lock()
        self._watched: WatchedRunner | None = None
        self._restorer_now: PathRestorer | None = None

    @property
    def unknown(self) -> str:
        """Why what commands changed is not known; empty when it is."""
        return "" if self._watches else self._places.unwatched or "history.quota is 0"

    @property
    def quota(self) -> int:
        """Bytes of history that the project may have."""
        return self._places.quota

    def history(self) -> FileHistory:
        """The project's own history; blocks for a moment the first time, in any thread."""
        # The runner is left alone: a session that only edits never loads what runs commands.
        with self._opening:
            return self._histories[0]

    @property
    def kept_bytes(self) -> int:
        """History that the log may hold.

        The other half of the quota is for what commands could change.
        """
        return self._places.quota // 2

    # -- running

    @cached_property
    def _runner(self) -> Runner:
        return self._make_runner()

    def which(self, program: str, *, not_below: str = "") -> str | None:
        return self._runner.which(program, not_below=not_below)

    async def run(
        self, command: ProcessCommand, on_output: Callable[[str], None] | None = None
    ) -> RunResult:
        # A runner that reports changes itself is not watched as well: each would be recorded twice.
        if command.only_reads or not self._watches or self._runner.knows_changes(command):
            return await self._runner.run(command, on_output)
        return await self._watching().run(command, on_output)

    async def watched(
        self, label: str, work: Callable[[], Awaitable[T]]
    ) -> tuple[T, tuple[ChangedFile, ...] | None, tuple[str, ...]]:
        """What `work` gives, what changed in the project meanwhile (None when that is not known),
        and what of it the history does not hold, in sentences.
        """
        if not self._watches:
            return await work(), None, ()
        result, found = await self._watching().watch(label, work)
        return result, found.changes, found.left_out

    def knows_changes(self, command: ProcessCommand) -> bool:
        return self._watches or self._runner.knows_changes(command)

    def unreported_changes(self) -> tuple[ChangedFile, ...]:
        """What commands changed that were cancelled before they could report it; reported once."""
        return () if self._watched is None else self._watched.unreported_changes().changes

    @property
    def _watches(self) -> bool:
        return self._places.quota > 0 and not self._places.unwatched

    def _watching(self) -> WatchedRunner:
        # A thread that begins to look and a command that begins to run may both be the first.
        with self._opening:
            return self._watched_runner()

    def _watched_runner(self) -> WatchedRunner:
        if self._watched is None:
            from weft.workspace.history.runner import WatchedRunner

            self._watched = WatchedRunner(self._runner, self._histories)
        return self._watched

    @cached_property
    def _histories(self) -> list[FileHistory]:
        """The project's, and those of the folders added to it."""
        from weft.workspace.history.history import HistoryLimits
        from weft.workspace.history.shared_histories import histories_of

        places = self._places
        return histories_of(
            self._project,
            self._added,
            folder=None if places.folder is None else str(places.folder),
            limits=HistoryLimits(quota=places.quota, max_file=places.max_file),
            skip=places.skip,
        )

    # -- looking back

    async def look(self, path: str) -> FileNow | None:
        image = await self._restorer().look(path)
        return None if image is None else _now(image)

    async def put_back(
        self, path: str, wanted: FileNow | None, *, expected: FileNow | None
    ) -> None:
        await self._restorer().put_back(path, _image(wanted), expected=_image(expected))

    def known_left_out(self) -> Mapping[str, str]:
        """What the history does not hold, with the reason, as far as the watcher has met it."""
        return {} if self._watched is None else self._watched.left_out()

    async def left_out(self) -> Mapping[str, str]:
        if self.unknown:
            return {".": f"what commands changed is not known: {self.unknown}"}
        if known := self._watching().left_out():
            return known
        # No command was watched, for all of them ran in the sandbox.
        from weft.workspace.ignore import ignored_in

        return await self._threads.run(lambda: ignored_in(self._project))

    async def kill_orphans(self) -> None:
        from weft.workspace import kill_orphans  # where something was left behind

        await self._threads.run(kill_orphans)

    async def interrupted(self, calls: Sequence[CallUid]) -> Commit:
        if not self._watches:
            return Commit(facts=())
        blobs: dict[BlobId, bytes] = {}
        facts: list[Fact] = [*touched_facts(self.unreported_changes(), None, blobs)]
        for label, found in (await self._watching().interrupted(calls)).items():
            facts += touched_facts(found.changes, CallUid(label), blobs)
        return Commit(facts=tuple(facts), blobs=blobs)

    def _restorer(self) -> PathRestorer:
        if self._restorer_now is None:
            from weft.workspace.history.restore import PathRestorer

            self._restorer_now = PathRestorer(
                self._project, self._added, max_file=self._places.max_file
            )
        return self._restorer_now


def _now(image: FileImage) -> FileNow:
    return FileNow(mode=image.mode, content=image.hash, data=image.data, names=image.names)


def _image(now: FileNow | None) -> FileImage | None:
    if now is None:
        return None
    return FileImage(mode=now.mode, hash=now.content, data=now.data, names=now.names)
