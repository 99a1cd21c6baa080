"""What commands change in a project that they run in as they are, without a sandbox.

A command may change anything, so what files hold is copied before the first one runs (`pack`), and
the kernel tells afterwards which names to look at again (`inotify`, `index`).  A command that
changes three files of twenty thousand costs a look at three files.  Where the kernel has no watches
to give, or lost count, everything is compared, which costs tenths of a second.

Which command made a change can only be seen from when it happened: while this command ran, and no
other.  What was found after two ran at once, or after a process died with a command running, is
handed on as not certain.  What the user does in an editor while a command runs is taken for the
command's; only a sandbox knows better.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from weft.ids import BlobId
from weft.workspace.base import ChangedFile
from weft.workspace.history.birth_time import born
from weft.workspace.history.file_reader import NOT_COPIED, TOO_LARGE, differs
from weft.workspace.history.index import FileIndex, ScanAbandoned
from weft.workspace.history.inotify import (
    CLOSE_WRITE,
    CREATE,
    IGNORED,
    MODIFY,
    MOVED_TO,
    OVERFLOW,
    InotifyWatcher,
    events,
)
from weft.workspace.history.pack import REMEMBERED, FileEntry, PackChange, PreimagePack
from weft.workspace.history.project_tree import ProjectTree

MAX_CHANGES: Final = 10_000
"""Changes of one command that are handed on; more are counted and named."""
MAX_BYTES: Final = 128 * 1024 * 1024
"""Content that is handed on for one command."""
_QUEUED = 16 * 1024 * 1024
"""Bytes of events that are held; beyond, everything is compared instead."""
_WRITTEN = MODIFY | CLOSE_WRITE | CREATE | MOVED_TO
_TRY_AGAIN_SECONDS = 60.0
"""How long to go without watches before they are asked for again."""
_TICK_NS = 50_000_000
"""How far the clock of the disk may lie behind."""


class HistoryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is kept of a project."""

    quota: int = 1024 * 1024 * 1024
    """Bytes for all of it: half for what commands could change, half for what was changed."""
    max_file: int = 4 * 1024 * 1024
    """A larger file's content is not kept."""


class ChangeSet(msgspec.Struct, frozen=True):
    """What a command changed."""

    changes: tuple[ChangedFile, ...] = ()
    left_out: tuple[str, ...] = ()
    """What it changed besides, in sentences."""

    def __add__(self, other: ChangeSet) -> ChangeSet:
        return ChangeSet(self.changes + other.changes, self.left_out + other.left_out)


class ReadContents(NamedTuple):
    """What some files hold."""

    by_hash: dict[BlobId, bytes]
    changed: set[str]
    """The paths that were looked at and cannot be read as they were."""


class WatchedRun:
    """One command that is being watched.

    `label` is the id of its call, by which it is found after a crash.
    """

    def __init__(self, label: str = "") -> None:
        self.label = label
        self.changes: dict[str, PackChange] = {}
        self.unsure: set[str] = set()
        self.began = 0
        self.is_void = False

    def void(self) -> None:
        """The caller does not want the result any more.

        May be called from any thread, and the history lets go of it the next time.
        """
        self.is_void = True

    def take(self, changes: Iterable[PackChange], *, alone: bool) -> None:
        """Add changes that were found while it ran.

        Of two of one path the first before and the last after count.
        """
        for change in changes:
            earlier = self.changes.get(change.path)
            before = change.before if earlier is None else earlier.before
            self.changes[change.path] = PackChange(change.path, before, change.after)
            if not alone:
                self.unsure.add(change.path)


class FileHistory:
    """One project's files as they were, and what happens to them.

    Its methods block; several threads may call them.
    """

    def __init__(
        self,
        root: str,
        *,
        pack: str | None = None,
        limits: HistoryLimits | None = None,
        skip: Iterable[str] = (),
        shown: str = "",
    ) -> None:
        self.root = root
        self._pack_path = pack
        self._limits = limits or HistoryLimits()
        self._skip = tuple(skip)
        self._shown = shown
        self._lock = threading.RLock()
        self._index: FileIndex | None = None
        self._has_told_tree = False
        """The tree was wanted: then it is after every command."""
        self._pack: PreimagePack | None = None
        self._runs: list[WatchedRun] = []
        self._raw: list[bytes] = []
        self._root_seen: tuple[int, int] | None = None
        """Device and inode of the project's folder at the last look."""
        self._is_lost = False
        """Events were lost, so everything has to be compared."""
        self._tried_to_watch = 0.0
        self._remembered: dict[str, WatchedRun] = {}
        """Commands that have ended, or were cut off with the process before, by label.

        The last ones.
        """

    # -- commands

    def begin(self, run: WatchedRun) -> None:
        """A command is about to run: everything that it could change is known on return.

        Raises:
            ScanAbandoned: it was made void meanwhile.
        """
        with self._lock:
            # Before the command starts, never after: what it overwrites is gone then.
            self._prepare(run, copies=True)
            self._settle(run, copies=True)
            if run.is_void:
                raise ScanAbandoned
            self._note_begin(run)
            run.began = time.time_ns()
            self._runs.append(run)

    def begin_quickly(self, run: WatchedRun) -> bool:
        """The same without waiting, where nothing happened since.

        False when it has to be done in a thread.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            index = self._index
            is_ready = index is not None and not index.lacks_copies and self._is_quiet()
            if is_ready:
                self.begin(run)
            return is_ready
        finally:
            self._lock.release()

    def end(self, run: WatchedRun) -> ChangeSet:
        """The command is over, with everything it started: what it changed."""
        with self._lock:
            self._settle(run)
            if self._has_told_tree and self._index is not None:
                self._index.tree()  # asked for next: then it need not be made in a thread again
            return self._ended(run)

    def end_quickly(self, run: WatchedRun) -> ChangeSet | None:
        """The same without waiting, where nothing happened.

        None when it has to be done in a thread.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._ended(run) if self._is_quiet() and not run.changes else None
        finally:
            self._lock.release()

    def _ended(self, run: WatchedRun) -> ChangeSet:
        self._runs.remove(run)
        self._note_end(run)
        return self._change_set(run)

    def interrupted(self, waiting: WatchedRun, labels: Iterable[str]) -> dict[str, ChangeSet]:
        """What commands changed whose end is not on record, by label; each is handed out once.

        What changed without an end on record, because the process died, is not certain: another
        program may have been there since.

        Raises:
            ScanAbandoned: `waiting` was made void meanwhile.
        """
        with self._lock:
            if self._index is None and not os.path.exists(self._pack_path or ""):
                return {}  # no command of this project was ever watched
            self._prepare(waiting, copies=True)
            found = {label: self._remembered.pop(label, None) for label in labels}
            return {label: self._change_set(run) for label, run in found.items() if run is not None}

    def not_handed_out(self, waiting: WatchedRun, labels: Iterable[str]) -> list[ChangedFile]:
        """What `interrupted` would hand out of these commands; it still will.

        Raises:
            ScanAbandoned: as `interrupted`.
        """
        with self._lock:
            if self._index is None and not os.path.exists(self._pack_path or ""):
                return []
            self._prepare(waiting, copies=True)
            runs = [self._remembered[label] for label in labels if label in self._remembered]
            return [change for run in runs for change in self._change_set(run).changes]

    # -- the tree

    def tree(self, waiting: WatchedRun) -> ProjectTree:
        """All files as they are now; what has not changed since the last look costs nothing.

        Raises:
            ScanAbandoned: `waiting` was made void meanwhile.
        """
        with self._lock:
            # Without copies: that is for commands which may change anything.  What a snapshot is
            # to store is read when it is, and most of it is stored already.
            self._prepare(waiting, copies=False)
            self._settle(waiting)
            assert self._index is not None
            self._has_told_tree = True
            return self._index.tree()

    def tree_quickly(self) -> ProjectTree | None:
        """The same without waiting, where nothing happened since; None when it has to be done in a
        thread.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            index = self._index
            is_known = index is not None and index.knows_tree and self._is_quiet()
            return index.tree() if index is not None and is_known else None
        finally:
            self._lock.release()

    @property
    def is_prepared(self) -> bool:
        """True when every file is known, so that a look costs what has changed."""
        return self._index is not None

    def contents(self, wanted: Iterable[tuple[str, str]], room: int) -> ReadContents:
        """What these paths hold, by hash; left out is one that holds something else by now, and
        what does not fit into so many bytes.
        """
        found: dict[BlobId, bytes] = {}
        changed: set[str] = set()
        with self._lock:
            for path, digest in wanted:
                entry = None if self._index is None else self._index.entry(path)
                if entry is None or entry.hash != digest or entry.size > room:
                    continue
                if entry.why_not == TOO_LARGE:
                    continue
                data = self._pack.get(entry) if self._pack is not None else None
                if data is None and self._index is not None:
                    data = self._index.read_again(path, entry)
                if data is not None:
                    found[entry.hash] = data
                    room -= len(data)
                else:
                    changed.add(path)
        return ReadContents(found, changed)

    def why_not_kept(self, paths: Iterable[str]) -> dict[str, str]:
        """Why the content of these paths is not kept, of those that have a reason."""
        with self._lock:
            known = {path: self._index.entry(path) for path in paths} if self._index else {}
        return {
            path: each.why_not
            for path, each in known.items()
            if each is not None and each.why_not and each.why_not != NOT_COPIED
        }

    # -- our own writes

    def refresh(self, path: str) -> None:
        """We ourselves have just put something at `path`, relative to the project: no
        command did.
        """
        with self._lock:
            # While none runs there is none to take it for its own: the next look finds it by its
            # event, and an edit need not wait for one.
            if self._index is not None and (self._runs or self._index.watcher is None):
                self._index.refresh(path)

    def left_out(self) -> dict[str, str]:
        """What is not in the history, with the reason: the first of it, as far as it is known."""
        return {f"{self._shown}{path}": why for path, why in self.left_out_here().items()}

    def left_out_here(self) -> dict[str, str]:
        """The same, with paths from this history's own root."""
        with self._lock:
            return {} if self._index is None else dict(self._index.left_out)

    def shown(self, change: ChangedFile) -> ChangedFile:
        """A change of a path from this history's own root, as it is reported."""
        return msgspec.structs.replace(change, path=f"{self._shown}{change.path}")

    # -- the queue

    @property
    def watch_fd(self) -> int | None:
        """What becomes readable when events are queued; None when nothing is watched."""
        index = self._index
        return None if index is None or index.watcher is None else index.watcher.fd

    def drain(self) -> None:
        """Take events out of the kernel's queue, which is short.

        Never waits, and decides nothing.
        """
        index = self._index
        if index is None or index.watcher is None:
            return
        # Runs on the event loop while a thread may hold the lock; it only appends to a list.
        raw = index.watcher.read()
        if raw and not self._is_lost:
            self._raw.append(raw)
            # Each portion counts as a full one, which overestimates and needs no adding up.
            if len(self._raw) * 64 * 1024 > _QUEUED:
                self.lose_track()

    def lose_track(self) -> None:
        """Events were lost: compare everything the next time."""
        self._is_lost = True
        self._raw.clear()

    def _is_quiet(self) -> bool:
        """True when nothing has happened since the last look; cheap."""
        self._check_root()
        if self._index is None or self._index.watcher is None or self._is_lost:
            return False
        self.drain()
        return not self._raw

    def _check_root(self) -> None:
        """Lose track where the project's folder is another one than before: it was removed or moved
        away, with its watch, and made anew.
        """
        try:
            about = os.stat(self.root)
            now: tuple[int, int] | None = (about.st_dev, about.st_ino)
        except OSError:
            now = None
        if self._root_seen is not None and now != self._root_seen:
            self.lose_track()
        self._root_seen = now or self._root_seen

    # -- looking

    def _prepare(self, run: WatchedRun, *, copies: bool) -> None:
        """Know every file, and with `copies` what it holds."""
        if self._index is not None:
            return
        pack = PreimagePack(self._pack_path, self._limits.quota // 2)
        try:
            index = self._index = FileIndex(
                self.root, pack, _watcher(), max_file=self._limits.max_file, skip=self._skip
            )
        except BaseException:
            pack.close()
            raise
        self._pack = pack
        self._tried_to_watch = time.monotonic()
        index.is_wanted = lambda: not run.is_void
        try:
            found = index.look_first(copies=copies)
        except BaseException:
            self.close()
            raise
        self._remember_what_was_left(found)

    def _remember_what_was_left(self, found: list[PackChange]) -> None:
        """Take in what the process before says about its commands.

        `found` is what changed since its last word.
        """
        pack, index = self._pack, self._index
        assert pack is not None
        assert index is not None
        for label, changes in pack.ended.items():
            self._remember(WatchedRun(label), changes, alone=True)
        changed = {change.path: change for change in found}
        for label, since in pack.begun.items():
            known = [PackChange(path, entry, index.entry(path)) for path, entry in since.items()]
            news = [change for path, change in changed.items() if path not in since]
            self._remember(WatchedRun(label), [*known, *news], alone=False)

    def _remember(
        self, run: WatchedRun, changes: Iterable[PackChange] = (), *, alone: bool = True
    ) -> None:
        run.take(changes, alone=alone)
        if run.label:
            self._remembered.pop(run.label, None)
            self._remembered[run.label] = run
        if len(self._remembered) > REMEMBERED:
            del self._remembered[next(iter(self._remembered))]

    def _settle(self, run: WatchedRun, *, copies: bool = False) -> None:
        """Look at what may have changed, and give it to the commands that run; with `copies`, keep
        what all files hold.
        """
        index = self._index
        assert index is not None
        index.is_wanted = lambda: True  # half a look would lose what it has found
        self._check_root()
        self._runs = [each for each in self._runs if each is run or not each.is_void]
        # What the command did last is in the kernel's queue and not in ours yet.
        while index.watcher is not None and (raw := index.watcher.read()):
            self._raw.append(raw)
        names = self._names(index)
        if names is None or index.watcher is None:
            self._is_lost = False
            self._try_to_watch(index)
            found = index.look_everywhere()
        else:
            found = index.look_at(names) if names else []
        self._hand_on(found)
        if copies and index.lacks_copies:
            # What it has found by then is handed on with the next look.
            index.is_wanted = lambda: not run.is_void
            self._hand_on(index.copy_contents())
        if not self._runs:
            self._make_room(index)

    def _hand_on(self, found: list[PackChange]) -> None:
        for each in self._runs:
            each.take(found, alone=len(self._runs) == 1)

    def _try_to_watch(self, index: FileIndex) -> None:
        """The kernel may have queues and watches to give again.

        Everything is about to be looked at, and is watched on the way.
        """
        now = time.monotonic()
        if index.watcher is None and now - self._tried_to_watch > _TRY_AGAIN_SECONDS:
            self._tried_to_watch = now
            index.watches.watcher = _watcher()

    def _names(self, index: FileIndex) -> dict[str, dict[str, bool]] | None:
        """The names that events speak of, by folder, and whether they may have been written to.

        None when some were lost.
        """
        portions, self._raw = self._raw, []
        if self._is_lost:
            return None
        names: dict[str, dict[str, bool]] = {}
        for portion in portions:
            for event in events(portion):
                # The kernel's queue was full (fs.inotify.max_queued_events): what was dropped is
                # not known.
                if event.mask & OVERFLOW:
                    return None
                if event.mask & IGNORED:
                    is_root = index.watches.folder_of(event.watch) == ""
                    index.watches.dropped(event.watch)
                    # No event of a folder above tells that the project is there again, and a new
                    # one may get the inode of the old.
                    if is_root:
                        return None
                folder = index.watches.folder_of(event.watch)
                if folder is not None and event.name:
                    below = names.setdefault(folder, {})
                    written = bool(event.mask & _WRITTEN)
                    below[event.name] = written or below.get(event.name, False)
        return names

    def _make_room(self, index: FileIndex) -> None:
        if self._pack is not None and self._pack.wants_compaction:
            index.move(self._pack.compact(index.entries()))

    def _note_begin(self, run: WatchedRun) -> None:
        if self._pack is not None:
            self._pack.begin(run.label)

    def _note_end(self, run: WatchedRun) -> None:
        if self._pack is not None:
            self._pack.end(run.label, run.changes.values())
        self._remember(run)

    # -- reporting

    def _change_set(self, run: WatchedRun) -> ChangeSet:
        differing = [
            change for change in run.changes.values() if differs(change.before, change.after)
        ]
        differing.sort()
        left_out: list[str] = []
        if len(differing) > MAX_CHANGES:
            left_out.append(
                f"{len(differing) - MAX_CHANGES:,} more files changed than the history "
                "takes of one command"
            )
        room = MAX_BYTES
        reported: list[ChangedFile] = []
        moved = {change.before.inode for change in differing if change.before is not None}
        for change in differing[:MAX_CHANGES]:
            is_certain = change.path not in run.unsure and not self._came_from_elsewhere(
                change, run.began, moved
            )
            touched = self._touched(change, room, is_certain=is_certain)
            room -= len(touched.data_before or b"")
            reported.append(touched)
        return ChangeSet(tuple(reported), tuple(left_out))

    def _came_from_elsewhere(self, change: PackChange, began: int, moved: set[int]) -> bool:
        """True for a file that is older than the command and was not one of ours: it was moved here
        from a place that is not watched.

        Removing it would remove the only copy.
        """
        after = change.after
        if after is None or after.inode in moved or after.inode == 0 or after.links > 1:
            return False
        made = born(f"{self.root}/{change.path}")
        return made is not None and made < began - _TICK_NS

    def _touched(self, change: PackChange, room: int, *, is_certain: bool) -> ChangedFile:
        before, after = change.before, change.after
        data, missing = self._content(before, room)
        return ChangedFile(
            path=f"{self._shown}{change.path}",
            action="created" if before is None else "deleted" if after is None else "modified",
            before=_stored_hash(before),
            after=_stored_hash(after),
            data_before=data,
            mode_before=before.mode if before is not None else 0,
            mode_after=after.mode if after is not None else 0,
            missing=missing,
            is_certain=is_certain,
        )

    def _content(self, entry: FileEntry | None, room: int) -> tuple[bytes | None, str]:
        """The content that was there, or why it is not at hand."""
        if entry is None or stat.S_ISDIR(entry.mode):
            return None, ""
        if entry.why_not:
            return None, entry.why_not
        if entry.size > room:
            return None, "too much at once"
        data = self._pack.get(entry) if self._pack is not None else None
        return data, "" if data is not None else "lost"

    def __del__(self) -> None:
        # Shared by all sessions of the project, so none of them can close it.  The kernel gives
        # each user only a few queues, so this one is given back with the last reference.
        with suppress(Exception):
            self.close()

    def close_if_idle(self) -> None:
        """Let go unless a command runs, whose changes would be lost."""
        with self._lock:
            if not any(not run.is_void for run in self._runs):
                self.close()

    def close(self) -> None:
        """Let go; the next command begins anew."""
        with self._lock:
            index, self._index = self._index, None
            pack, self._pack = self._pack, None
            self._raw.clear()
            self._is_lost = False
            if index is not None:
                if index.watcher is not None:
                    index.watcher.close()
                index.close()
            if pack is not None:
                pack.close()


def _stored_hash(entry: FileEntry | None) -> BlobId | None:
    """What a rewind may look for; nothing of what is too large, for it reads no such file."""
    return None if entry is None or entry.why_not == TOO_LARGE else entry.hash or None


def _watcher() -> InotifyWatcher | None:
    try:
        return InotifyWatcher()
    except OSError:
        return None
