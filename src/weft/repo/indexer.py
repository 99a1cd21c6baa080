"""The indexer: the program that keeps the index of one project current.

It runs beside a session's process, so that neither grammars nor parsing burden that one, at a lower
priority.  It ends with its parent: the parent holds a pipe to its standard input, and when that
closes without a word, because the parent died, the indexer stops before its next batch.  A parent
that closes in good order writes `FINISH` first: then what has been begun is finished, within a
bound, so that the next session finds an index.

Several parents may have one each; a lock lets one of them write at a time, and the others find
everything done.  None waits for its parent, which may be stopped, while it has the lock.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import anyio
import msgspec

from weft.errors import WeftError
from weft.repo.file_paths import FileListing, PlainFolders
from weft.repo.file_ranker import FileRanker
from weft.repo.freshness import (
    TICK_NS,
    UNSETTLED,
    ListedProject,
    has_new_head,
    has_new_rules,
    is_stale,
)
from weft.repo.index_cache import DAMAGE, FileStamp, IndexCache, remove_cache
from weft.repo.index_update import UpdateReport, update_index
from weft.repo.indexer_order import (
    CACHE,
    DAMAGED,
    FINISH,
    LOCK_FD,
    REBUILT,
    FileChanges,
    IndexOrder,
)
from weft.repo.indexer_process import take_lock
from weft.repo.past_commits import head_stamps, read_history_file, read_past
from weft.repo.project_files import list_project, rule_stamps
from weft.repo.project_watch import LookTimer, ProjectWatch
from weft.workspace import LocalRunner

FINISH_SECONDS: Final = 60.0
_LOCK_PAUSE_SECONDS: Final = 0.05
_NICE: Final = 10
_MOST_NAMED: Final = 1_000
"""Files that are named in one batch of changes."""
_PROJECT: Final = "project"
"""The file that says which project an index is of."""
_LOST_SECONDS: Final = 30 * 86_400.0
"""How long an index whose project is gone is kept: it may be on a disk that is not mounted now."""
_MOST_UNSAID: Final = 256 * 1024
_SAY_SECONDS: Final = 0.2
"""How often it is tried again to say what the parent does not take."""


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

    def wait(self, seconds: float, other: int | None = None) -> bool:
        """Wait until the other descriptor can be read; False when it cannot."""
        pipes = [fd for fd in (self._fd, other) if fd is not None]
        ready, _, _ = select.select(pipes, [], [], seconds)
        if self._fd in ready:
            assert self._fd is not None
            said = os.read(self._fd, 16)
            self._until = time.monotonic() + (FINISH_SECONDS if FINISH in said else 0.0)
            self._fd = None
            return len(ready) > 1
        return bool(ready)


class ChangeVoice:
    """Tells the parent what changes, and never waits for it.

    One that does not listen, because it is stopped, is told later that there was more.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._unsaid = b""
        self._is_cut = False

    @property
    def is_behind(self) -> bool:
        """Something is still to be said."""
        return bool(self._unsaid) or self._is_cut

    def say(self, changes: FileChanges) -> None:
        """Tell it, or keep it."""
        if len(self._unsaid) > _MOST_UNSAID:
            self._is_cut = True
        else:
            self._unsaid += msgspec.json.encode(changes) + b"\n"
        self.go_on()

    def go_on(self) -> None:
        """Say what is left, as far as it is taken."""
        try:
            while self._unsaid:
                taken = os.write(self._fd, self._unsaid)
                self._unsaid = self._unsaid[taken:]
                if not self._unsaid and self._is_cut:
                    self._is_cut = False
                    self._unsaid = msgspec.json.encode(FileChanges(is_partial=True)) + b"\n"
        except BlockingIOError:
            return
        except BrokenPipeError:  # gone: it does not listen
            self._unsaid, self._is_cut = b"", False


def main(argv: list[str]) -> int:
    """Bring the index that the order names up to date."""
    # By `json`: it takes paths that are no UTF-8, which msgspec does not.
    order = msgspec.convert(json.loads(argv[0]), IndexOrder)
    parent = ParentLink(sys.stdin.fileno())
    voice = private_voice()
    os.nice(_NICE)
    folder = Path(order.folder)
    lock = LOCK_FD if order.has_lock else _wait_for_lock(folder, parent)
    if lock is None:
        return 1
    _forget_lost(folder)
    (folder / _PROJECT).write_bytes(os.fsencode(order.project))
    try:
        return _keep(order, parent, lock, voice)
    except WeftError:
        return 1  # a history that cannot be read: the parent says so
    except DAMAGE:
        # Nothing in it is worth a repair: all is read again, once.
        (folder / DAMAGED).touch()
    lock = _wait_for_lock(folder, parent)
    return 1 if lock is None else _keep(order, parent, lock, voice)


def private_voice() -> int:
    """A descriptor for standard output that no one else writes to: what extractors of others print
    goes nowhere.
    """
    voice = os.dup(1)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
    os.set_blocking(voice, False)
    return voice


def _keep(order: IndexOrder, parent: ParentLink, lock: int, voice: int) -> int:
    """Bring the index up to date, and keep it so if that is wanted; gives the lock back."""
    folder = Path(order.folder)
    watch = ProjectWatch(order.project) if order.watch else None
    try:
        if (folder / DAMAGED).exists():
            remove_cache(folder / CACHE)
            (folder / DAMAGED).replace(folder / REBUILT)
            os.utime(folder / REBUILT)
        cache = IndexCache(folder / CACHE, writes=True)
        try:
            listing, _ = index_project(cache, order, parent, watch)
            os.close(lock)
            lock = -1
            if watch is None:
                return 0
            return ProjectKeeper(cache, order, parent, watch, listing, ChangeVoice(voice)).run()
        finally:
            cache.close()
    finally:
        if lock >= 0:
            os.close(lock)
        if watch is not None:
            watch.close()


def index_project(
    cache: IndexCache, order: IndexOrder, parent: ParentLink, watch: ProjectWatch | None = None
) -> tuple[FileListing, UpdateReport]:
    """Bring the whole index up to date: files, then the past.

    `watch` follows the folders that have files from before these are read, so that no change is
    missed.
    """
    runner = LocalRunner(order.environ)
    state = _list(order, runner, parent)
    if not parent.is_wanted():
        return state.listing, UpdateReport()  # it may have been cut short
    folders = folder_times(order.project, state.listing, state.listed_at)
    if watch is not None:
        watch.follow(folders)
        # What came between the listing and the first look at its folder was told to no one.
        late = [folder for folder, ctime in folders.items() if ctime == UNSETTLED]
        known = ListedProject(order.project, state.listing, folders.keys(), state.rules.keys())
        if late and known.differs_in(late):
            watch.is_unsure = True
    report = update_index(
        cache, order.project, state.listing, go_on=parent.is_wanted, cores=usable_cores()
    )
    if parent.is_wanted():
        cache.write_listing(state.listing.text, folders, state.rules)
        read_new_past(cache, order, runner, parent)
        # Ranked here: a session's first message would wait for it, and it changes slowly.
        cache.keep_important(FileRanker(cache).important())
    return state.listing, report


class _ListedState(NamedTuple):
    listing: FileListing
    rules: dict[str, FileStamp]
    listed_at: int
    """When the listing was begun; by the clock that files have their times from."""


def _list(order: IndexOrder, runner: LocalRunner, parent: ParentLink) -> _ListedState:
    """The files, and the ignore files that they were listed by."""
    scratch, home = Path(order.folder), order.environ.get("HOME", "")
    for is_last in (False, False, True):
        listed_at = time.time_ns()
        found = anyio.run(list_project, runner, order.project, scratch, parent.is_wanted)
        listing = _without_gone(order.project, found)
        rules = rule_stamps(order.project, folders_of(listing), home)
        # One that was changed while files were listed: no one knows which of its states counted.
        late = [stamp for stamp in rules.values() if _is_since(listed_at, stamp.ctime)]
        if is_last or not late or not parent.is_wanted():
            break
        time.sleep(2 * TICK_NS / 1e9)
    return _ListedState(listing, rules, listed_at)


def _is_since(listed_at: int, at: int) -> bool:
    """Whether something may have changed since a listing was begun; a time that is yet to come
    tells nothing.
    """
    return listed_at - TICK_NS <= at <= time.time_ns()


def usable_cores() -> int:
    """How many cores this process may run on; in a container they are fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


class ProjectKeeper:
    """Keeps the index of a project current while its files change."""

    def __init__(
        self,
        cache: IndexCache,
        order: IndexOrder,
        parent: ParentLink,
        watch: ProjectWatch,
        listing: FileListing,
        voice: ChangeVoice,
    ) -> None:
        self._cache = cache
        self._order = order
        self._parent = parent
        self._watch = watch
        self._known = set(listing.paths())
        self._voice = voice

    def run(self) -> int:
        """Until the parent wants no more; not 0 when another one has to begin anew."""
        self._voice.say(FileChanges())  # all that was there is read: from here on changes are told
        timer = LookTimer(time.monotonic())
        while self._parent.is_wanted() and not self._parent.is_finishing:
            left = timer.left(time.monotonic())
            pause = min(_SAY_SECONDS, left) if self._voice.is_behind else left
            is_told = not self._watch.is_unsure and self._parent.wait(pause, self._watch.fd)
            if is_told:
                self._watch.collect(self._known, self._parent.wait)
            self._voice.go_on()
            if self._cache.is_replaced():
                return 1  # deleted, or made anew by another
            if self._watch.is_unsure or self._watch.changed:
                self._locked(self._list_again if self._watch.is_unsure else self._read_changed)
                if is_told:
                    timer.changed(time.monotonic())
            elif not timer.left(began := time.monotonic()):
                self._look()
                timer.looked(began, time.monotonic(), is_watched=self._watch.is_whole)
        return 0

    def _look(self) -> None:
        """Look for what no watch tells of: ignore files outside of the project, commits, and
        everything where there is no watch.
        """
        if has_new_rules(self._cache):
            self._watch.read_rules()
        elif not self._watch.is_whole and is_stale(self._cache, self._order.project):
            self._watch.is_unsure = True
        elif has_new_head(self._cache):
            self._locked(self._read_past)

    def _locked(self, work: Callable[[], FileChanges]) -> None:
        lock = _wait_for_lock(Path(self._order.folder), self._parent)
        if lock is None:
            return
        try:
            changes = work()
        finally:
            os.close(lock)
        if changes != FileChanges():
            self._voice.say(changes)

    def _read_changed(self) -> FileChanges:
        changed = self._watch.take()
        there = {path for path in changed if os.path.lexists(f"{self._order.project}/{path}")}
        gone = changed - there
        changes = _limited(set(), there, gone)
        if gone:
            self._known -= gone
            self._write_listing(gone)
        update_index(
            self._cache,
            self._order.project,
            changed,
            is_whole=False,
            written=lambda: self._voice.say(changes),
        )
        return FileChanges()

    def _read_past(self) -> FileChanges:
        runner = LocalRunner(self._order.environ)
        read_new_past(self._cache, self._order, runner, self._parent)
        return FileChanges()

    def _write_listing(self, gone: Iterable[str]) -> None:
        """Write down that files are gone, and the times that their folders have by that."""
        listing = FileListing.of(sorted(self._known))
        times = self._cache.folders()
        left = folders_of(listing)
        for folder in {path.rpartition("/")[0] for path in gone} & left:
            # Unsettled: more may come at this moment, and is told later.
            times[folder] = UNSETTLED
        kept = {folder: ctime for folder, ctime in times.items() if folder in left}
        self._cache.write_listing(listing.text, kept)

    def _list_again(self) -> FileChanges:
        touched = self._watch.take()
        listing, report = index_project(self._cache, self._order, self._parent, self._watch)
        before, self._known = self._known, set(listing.paths())
        self._watch.leave_out(touched - self._known - before)
        modified = (touched | {*report.parsed, *report.known}) & before & self._known
        return _limited(self._known - before, modified, before - self._known)


def _limited(created: set[str], modified: set[str], deleted: set[str]) -> FileChanges:
    named, is_partial = [], False
    for kind in (created, modified, deleted):
        # JSON cannot name a path that is no UTF-8.
        paths = sorted(path for path in kind if path.isascii() or _is_text(path))
        is_partial |= len(paths) < len(kind) or len(paths) > _MOST_NAMED
        named.append(tuple(paths[:_MOST_NAMED]))
    return FileChanges(created=named[0], modified=named[1], deleted=named[2], is_partial=is_partial)


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_new_past(
    cache: IndexCache, order: IndexOrder, runner: LocalRunner, parent: ParentLink
) -> None:
    """Take in the past where it is another one than the one that is known."""
    # Looked at before: what is committed while git tells the past counts as not read.
    stamps = {} if order.history else head_stamps(order.project)
    known = str(cache.note("past head") or "")
    if order.history:
        past = read_history_file(Path(order.history), known)
    else:
        scratch = Path(order.folder)
        past = anyio.run(read_past, runner, order.project, scratch, known, parent.is_wanted)
    if not parent.is_wanted():
        return  # it may have been cut short
    if past is not None:
        cache.write_past(past.commits, past.head)
    cache.keep_head_stamps(stamps)


def _without_gone(project: str, listing: FileListing) -> FileListing:
    """Without what is gone from the disk: git lists what it tracks all the same."""
    paths, plain = listing.paths(), PlainFolders(project)
    there = [path for path in paths if plain.hold(path) and os.path.lexists(f"{project}/{path}")]
    return listing if len(there) == len(paths) else FileListing.of(there, listing.closed)


def folders_of(listing: FileListing) -> set[str]:
    """The folders that files lie in, and those that may not be looked into; the project itself is
    the empty one.
    """
    folders = {""}
    for path in chain(listing.paths(), (f"{folder}/" for folder in listing.closed)):
        folder = path.rpartition("/")[0]
        while folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return folders


def folder_times(project: str, listing: FileListing, listed_at: int) -> dict[str, int]:
    """The folders that files lie in, each with its time; `UNSETTLED` where something may have come
    since the listing was begun.
    """
    found: dict[str, int] = {}
    for folder in folders_of(listing):
        with suppress(OSError):
            ctime = os.stat(f"{project}/{folder}").st_ctime_ns
            found[folder] = UNSETTLED if _is_since(listed_at, ctime) else ctime
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
    """Remove the indexes of projects that have been gone for long."""
    for other in folder.parent.iterdir():
        with suppress(OSError, ValueError):
            if other == folder or not _is_lost(other):
                continue
            lock = take_lock(other)
            if lock is not None:  # else an indexer is at work there
                shutil.rmtree(other)
                os.close(lock)


def _is_lost(folder: Path) -> bool:
    """Whether the project of an index is gone, and nothing has been written for long."""
    project = os.fsdecode((folder / _PROJECT).read_bytes())
    try:
        os.stat(project)
        return False
    except (FileNotFoundError, NotADirectoryError):
        pass  # not: a folder that we may not enter, a disk that does not answer
    used = max(os.stat(folder / name).st_mtime for name in os.listdir(folder))
    return time.time() - used > _LOST_SECONDS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
