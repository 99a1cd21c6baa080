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
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
import apsw
import msgspec

from weft.file_io import write_all
from weft.repo.file_paths import FileListing
from weft.repo.index_cache import IndexCache, remove_cache
from weft.repo.index_update import UpdateReport, update_index
from weft.repo.indexer_order import CACHE, FINISH, LOCK_FD, FileChanges, IndexOrder
from weft.repo.indexer_process import take_lock
from weft.repo.past_commits import PastRecord, read_history_file, read_past
from weft.repo.project_files import list_project
from weft.repo.project_watch import ProjectWatch
from weft.workspace import LocalRunner

FINISH_SECONDS: Final = 60.0
_LOCK_PAUSE_SECONDS: Final = 0.05
_NICE: Final = 10
_LOOK_SECONDS: Final = 10.0
_MOST_NAMED: Final = 1_000
"""Files that are named in one batch of changes."""
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
    lock = LOCK_FD if order.has_lock else _wait_for_lock(folder, parent)
    if lock is None:
        return 1
    _forget_lost(folder)
    (folder / _PROJECT).write_text(order.project)
    cache = IndexCache(folder / CACHE, writes=True)
    try:
        watch = _opened_watch(order)
        listing, _ = index_project(cache, order, parent, watch)
        os.close(lock)
        if watch is not None:
            ProjectKeeper(cache, order, parent, watch, listing).run()
    except apsw.CorruptError:
        # Nothing in it is worth a repair: the next one begins anew.
        remove_cache(folder / CACHE)
        return 1
    finally:
        cache.close()
    return 0


def index_project(
    cache: IndexCache, order: IndexOrder, parent: ParentLink, watch: ProjectWatch | None = None
) -> tuple[FileListing, UpdateReport]:
    """Bring the whole index up to date: files, then the past.

    `watch` follows the folders that have files from before these are read, so that no change is
    missed.
    """
    runner, scratch = LocalRunner(order.environ), Path(order.folder)
    listing = _without_gone(order.project, anyio.run(list_project, runner, order.project, scratch))
    # Before the files: one that comes meanwhile makes its folder newer than what is written down.
    folders = folder_times(order.project, listing)
    if watch is not None:
        watch.follow(folders)
    report = update_index(
        cache, order.project, listing, go_on=parent.is_wanted, cores=os.cpu_count() or 1
    )
    if parent.is_wanted():
        cache.write_listing(listing.text, folders)
        if (past := _past(cache, order, runner)) is not None:
            cache.write_past(past.commits, past.head)
    return listing, report


class ProjectKeeper:
    """Keeps the index of a project current while its files change."""

    def __init__(
        self,
        cache: IndexCache,
        order: IndexOrder,
        parent: ParentLink,
        watch: ProjectWatch,
        listing: FileListing,
    ) -> None:
        self._cache = cache
        self._order = order
        self._parent = parent
        self._watch = watch
        self._known = set(listing.paths())

    def run(self) -> None:
        """Until the parent wants no more."""
        say(FileChanges())  # all that was there is read: from here on changes are told
        while self._parent.is_wanted() and not self._parent.is_finishing:
            is_woken = self._parent.wait(_LOOK_SECONDS, self._watch.fd)
            if is_woken:
                self._watch.collect(self._known, self._parent.wait)
            # Folders that could not be watched are looked at now and then.
            if self._watch.is_unsure or (not self._watch.is_whole and not is_woken):
                self._locked(self._list_again)
            elif self._watch.changed:
                self._locked(self._read_changed)

    def _locked(self, work: Callable[[], FileChanges]) -> None:
        lock = _wait_for_lock(Path(self._order.folder), self._parent)
        if lock is None:
            return
        try:
            changes = work()
        finally:
            os.close(lock)
        if changes != FileChanges():
            say(changes)

    def _read_changed(self) -> FileChanges:
        changed = self._watch.take()
        there = {path for path in changed if os.path.lexists(f"{self._order.project}/{path}")}
        self._known -= changed - there
        changes = _limited(set(), there, changed - there)
        update_index(
            self._cache,
            self._order.project,
            changed,
            is_whole=False,
            written=lambda: say(changes),
        )
        return FileChanges()

    def _list_again(self) -> FileChanges:
        touched = self._watch.take()
        listing, report = index_project(self._cache, self._order, self._parent, self._watch)
        before, self._known = self._known, set(listing.paths())
        modified = (touched | {*report.parsed, *report.known}) & before & self._known
        return _limited(self._known - before, modified, before - self._known)


def _limited(created: set[str], modified: set[str], deleted: set[str]) -> FileChanges:
    kinds = (created, modified, deleted)
    return FileChanges(
        created=tuple(sorted(created)[:_MOST_NAMED]),
        modified=tuple(sorted(modified)[:_MOST_NAMED]),
        deleted=tuple(sorted(deleted)[:_MOST_NAMED]),
        is_partial=any(len(each) > _MOST_NAMED for each in kinds),
    )


def say(changes: FileChanges) -> None:
    """Tell the parent; one that is gone does not listen."""
    with suppress(BrokenPipeError):
        write_all(1, msgspec.json.encode(changes) + b"\n")


def _opened_watch(order: IndexOrder) -> ProjectWatch | None:
    if not order.watch:
        return None
    try:
        return ProjectWatch(order.project)
    except OSError:
        return None  # no inotify here: the parent looks from time to time


def _past(cache: IndexCache, order: IndexOrder, runner: LocalRunner) -> PastRecord | None:
    known = str(cache.note("past head") or "")
    if order.history:
        return read_history_file(Path(order.history), known)
    return anyio.run(read_past, runner, order.project, Path(order.folder), known)


def _without_gone(project: str, listing: FileListing) -> FileListing:
    """Without what is gone from the disk: git lists what it tracks all the same."""
    paths = listing.paths()
    there = [path for path in paths if os.path.lexists(f"{project}/{path}")]
    return listing if len(there) == len(paths) else FileListing.of(there)


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


def _wait_for_lock(folder: Path, parent: ParentLink) -> int | None:
    """Wait until no other indexer writes; None when the parent wants no more."""
    while parent.is_wanted():
        lock = take_lock(folder)
        if lock is not None:
            return lock
        parent.wait(_LOCK_PAUSE_SECONDS)
    return None


def _forget_lost(folder: Path) -> None:
    """Remove the indexes of projects that are gone."""
    for other in folder.parent.iterdir():
        with suppress(OSError):
            if other != folder and not os.path.isdir((other / _PROJECT).read_text()):
                shutil.rmtree(other)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
