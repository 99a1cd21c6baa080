"""The indexer: the program that keeps the index of one project current.

It runs beside a session's process, so that neither grammars nor parsing burden that one, at a lower
priority.  It ends with its parent: the parent holds a pipe to its standard input, and when that
closes without a word, because the parent died, the indexer stops before its next batch.  A parent
that closes in good order writes `FINISH` first: then what has been begun is finished, within a
bound, so that the next session finds an index.

Several parents may have one each; a lock lets one of them write at a time, and the others find
everything done.
"""

from __future__ import annotations

import os
import select
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
import apsw
import msgspec

from weft.repo.file_paths import FileListing
from weft.repo.index_cache import IndexCache, remove_cache
from weft.repo.index_update import UpdateReport, update_index
from weft.repo.indexer_order import CACHE, FINISH, IndexOrder
from weft.repo.indexer_process import take_lock
from weft.repo.past_commits import PastRecord, read_history_file, read_past
from weft.repo.project_files import list_project
from weft.workspace import LocalRunner

FINISH_SECONDS: Final = 60.0
_LOCK_PAUSE_SECONDS: Final = 0.05
_NICE: Final = 10
_PROJECT: Final = "project"
"""The file that says which project an index is of."""


class ParentLink:
    """The pipe to the process that wants the index."""

    def __init__(self, fd: int | None) -> None:
        """`fd` is our end; None without a parent."""
        self._fd = fd
        self._until: float | None = None

    def is_wanted(self) -> bool:
        """Whether to go on; never waits."""
        self.wait(0)
        if self._until is None:
            return True
        return time.monotonic() < self._until

    @property
    def is_finishing(self) -> bool:
        """The parent has closed: nothing new is to be begun."""
        return self._until is not None

    def wait(self, seconds: float, *others: int) -> bool:
        """Wait until one of the other descriptors can be read; False when none can."""
        pipes = [] if self._fd is None else [self._fd]
        ready, _, _ = select.select([*pipes, *others], [], [], seconds)
        if self._fd in ready:
            assert self._fd is not None
            said = os.read(self._fd, 16)
            self._until = time.monotonic() + (FINISH_SECONDS if FINISH in said else 0.0)
            self._fd = None
            return len(ready) > 1
        return bool(ready)


def main(argv: list[str]) -> int:
    """Bring the index that the order names up to date."""
    order = msgspec.json.decode(argv[0], type=IndexOrder)
    parent = ParentLink(sys.stdin.fileno())
    os.nice(_NICE)
    folder = Path(order.folder)
    if not order.has_lock and not _wait_for_lock(folder, parent):
        return 1
    _forget_lost(folder)
    (folder / _PROJECT).write_text(order.project)
    cache = IndexCache(folder / CACHE, writes=True)
    try:
        index_project(cache, order, parent)
    except apsw.CorruptError:
        # Nothing in it is worth a repair: the next one begins anew.
        remove_cache(folder / CACHE)
        return 1
    finally:
        cache.close()
    return 0


def index_project(cache: IndexCache, order: IndexOrder, parent: ParentLink) -> UpdateReport:
    """Bring the whole index up to date: files, then the past."""
    runner, scratch = LocalRunner(order.environ), Path(order.folder)
    listing = anyio.run(list_project, runner, order.project, scratch)
    # Before the files: one that comes meanwhile makes its folder newer than what is written down.
    folders = folder_times(order.project, listing)
    report = update_index(
        cache, order.project, listing, go_on=parent.is_wanted, cores=os.cpu_count() or 1
    )
    if parent.is_wanted():
        cache.write_listing(listing.text, folders)
        if (past := _past(cache, order, runner)) is not None:
            cache.write_past(past.commits, past.head)
    return report


def _past(cache: IndexCache, order: IndexOrder, runner: LocalRunner) -> PastRecord | None:
    known = str(cache.note("past head") or "")
    if order.history:
        return read_history_file(Path(order.history), known)
    return anyio.run(read_past, runner, order.project, Path(order.folder), known)


def folder_times(project: str, listing: FileListing) -> dict[str, int]:
    """The folders that files lie in, each with its time; the project itself is the empty one."""
    folders = {""}
    for path in listing.paths():
        folder = path.rpartition("/")[0]
        while folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    found: dict[str, int] = {}
    for folder in folders:
        with suppress(OSError):
            found[folder] = os.stat(f"{project}/{folder}").st_mtime_ns
    return found


def _wait_for_lock(folder: Path, parent: ParentLink) -> bool:
    """Wait until no other indexer writes; the lock is held until the process ends."""
    while parent.is_wanted():
        if take_lock(folder) is not None:
            return True
        parent.wait(_LOCK_PAUSE_SECONDS)
    return False


def _forget_lost(folder: Path) -> None:
    """Remove the indexes of projects that are gone."""
    for other in folder.parent.iterdir():
        with suppress(OSError):
            if other != folder and not os.path.isdir((other / _PROJECT).read_text()):
                shutil.rmtree(other)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
