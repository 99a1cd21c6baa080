"""Access to the indexes of projects: opened for reading, and brought up to date by an indexer.

Loaded only where a project has an index or is about to get one: most of what is imported here costs
more than the start of a short run may.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
import msgspec

from weft.config.paths import WeftPaths
from weft.errors import RetryableToolError
from weft.repo.indexer_order import FileChanges, IndexOrder
from weft.repo.indexer_process import IndexerProcess, take_lock
from weft.repo.project_index import ProjectIndex, folder_with_history

if TYPE_CHECKING:  # loaded where a user types a path
    from weft.project.path_finder import PathFinder

logger = logging.getLogger(__name__)
_CHUNK: Final = 64 * 1024
_FIRST_PAUSE_SECONDS: Final = 0.2
_LONGEST_PAUSE_SECONDS: Final = 300.0
_LONG_SECONDS: Final = 60.0
"""What has lived so long did not die of the project's content."""
_PASSED: Final = ("PATH", "HOME", "XDG_CONFIG_HOME", "LANG", "LC_ALL", "TMPDIR")
"""What the indexer is given of our environment."""


class IndexAccess:
    """The indexes of the projects that an application works on."""

    def __init__(self, places: WeftPaths, environ: Mapping[str, str]) -> None:
        self._places = places
        self._environ = {name: environ[name] for name in _PASSED if name in environ}
        self._readers: dict[Path, ProjectIndex] = {}
        """By the folder that an index lies in, and so are the others."""
        self._indexers: dict[Path, IndexerProcess] = {}
        self._locks: dict[Path, anyio.Lock] = {}
        self._guard = Lock()
        """Updates are started by threads, and waited for by tasks."""
        self._watcher: IndexerProcess | None = None
        self.finders: dict[str, tuple[str, PathFinder]] = {}
        """By project, its listing and what finds paths in it."""

    def reader(self, project: str) -> ProjectIndex:
        """The index of a project as it is; without one it answers nothing."""
        return self._reader(project, self._places.index_of(project))

    def _reader(self, project: str, folder: Path) -> ProjectIndex:
        if folder not in self._readers:
            self._readers[folder] = ProjectIndex(project, folder)
        return self._readers[folder]

    async def ready(
        self, project: str, history: Path | None = None, seconds: float = math.inf
    ) -> ProjectIndex:
        """The index of a project, brought up to date first.

        A cancel lets the indexer finish without us, and so does the end of the time.

        Raises:
            UsageError: `history` cannot be read.
            RetryableToolError: there is no index that could be asked, it cannot be written, or it
                takes longer.
        """
        try:
            with anyio.fail_after(seconds):
                return await self._updated(project, history)
        except TimeoutError:
            raise RetryableToolError(
                "the index of this project is still being made, which goes on; use grep until then"
            ) from None

    async def _updated(self, project: str, history: Path | None) -> ProjectIndex:
        folder = self._places.index_of(project)
        if history is not None:
            folder = await anyio.to_thread.run_sync(folder_with_history, folder, project)
        async with self._locks.setdefault(folder, anyio.Lock()):
            reader = self._reader(project, folder)
            is_behind = partial(reader.is_behind, history)
            if not await anyio.to_thread.run_sync(is_behind, abandon_on_cancel=True):
                return reader
            # One that runs already may not have seen the last change, or knows another past.
            if (running := self._indexers.get(folder)) is not None and running.is_running():
                await running.ended()
                if not await anyio.to_thread.run_sync(is_behind, abandon_on_cancel=True):
                    return reader
            order = self._order(project, folder, history)
            is_done = await self._start(order).ended()
            if history is not None and not is_done:
                # The indexer has no voice: what it stumbled over is said here.
                from weft.repo.past_commits import read_history_file  # it loads git

                await anyio.to_thread.run_sync(read_history_file, history, "")
            # "There is nothing" would be a lie about the project.
            if not is_done or not await anyio.to_thread.run_sync(_is_there, reader):
                raise RetryableToolError(self._no_index(project))
            return reader

    def _no_index(self, project: str) -> str:
        return (
            f"the index of {project} could not be brought up to date: look whether the disk is "
            f"full, and whether {self._places.index_of(project)} can be written to"
        )

    def _start(self, order: IndexOrder) -> IndexerProcess:
        folder = Path(order.folder)
        with self._guard:
            if (earlier := self._indexers.get(folder)) is not None:
                earlier.release()  # one that a thread has started meanwhile: ours waits for it
            indexer = IndexerProcess(order)
            self._indexers[folder] = indexer
        return indexer

    def start_update(self, project: str) -> None:
        """Have an indexer bring an index up to date where something has changed.  Blocks for a look
        at each indexed file, never for the indexer.
        """
        folder = self._places.index_of(project)
        if self._is_updating(folder) or not self.reader(project).is_stale():
            return
        with self._guard:
            if self._is_updating(folder):
                return
            lock = take_lock(folder)
            if lock is not None:  # else an indexer of another process is at work
                order = self._order(project, folder)
                self._indexers[folder] = IndexerProcess(order, lock)

    def _is_updating(self, folder: Path) -> bool:
        """Whether an indexer of ours is at work."""
        running = self._indexers.get(folder)
        return running is not None and running.is_running()

    async def watch(self, project: str, told: Callable[[FileChanges], None]) -> None:
        """Have an indexer keep an index current, and hand on what it says has changed.

        One that ends, because it was killed or its index was deleted, is replaced by another, and
        it is told that anything may have changed.  A cancel ends it.
        """
        folder, pause = self._places.index_of(project), _FIRST_PAUSE_SECONDS
        order = msgspec.structs.replace(self._order(project, folder), watch=True)
        is_first = True
        while True:
            began = anyio.current_time()
            try:
                lock = await anyio.to_thread.run_sync(take_lock, folder)
                self._watcher = IndexerProcess(order, lock)
                await _hand_on(self._watcher, told, is_first=is_first)
                is_first = False
            except OSError:
                logger.warning("the project could not be watched", exc_info=True)
            finally:
                if self._watcher is not None:
                    self._watcher.release()
                    self._watcher = None
            if anyio.current_time() - began > _LONG_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            logger.warning("what watches the project has ended; another one is started")
            await anyio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def close(self) -> None:
        """Let go of everything; indexers finish what they have begun."""
        with self._guard:
            for indexer in self._indexers.values():
                indexer.release()
        for reader in self._readers.values():
            reader.close()

    def _order(self, project: str, folder: Path, history: Path | None = None) -> IndexOrder:
        return IndexOrder(
            project=project,
            folder=str(folder),
            environ=self._environ,
            history="" if history is None else str(history),
        )


def _is_there(reader: ProjectIndex) -> bool:
    return reader.status().is_there


async def _hand_on(
    indexer: IndexerProcess, told: Callable[[FileChanges], None], *, is_first: bool
) -> None:
    """Hand on what an indexer says, until it ends."""
    rest = b""
    while indexer.output is not None:
        await anyio.wait_readable(indexer.output)
        data = os.read(indexer.output, _CHUNK)
        if not data:
            return
        indexer.has_caught_up()  # its first line comes when it has
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            # What changed between the end of an earlier one and the first line of this one.
            told(FileChanges.read(line) if is_first else FileChanges(is_partial=True))
            is_first = True
