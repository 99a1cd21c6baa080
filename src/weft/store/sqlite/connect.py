"""Connections to SQLite: opening the file, and its error codes as sentences."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import apsw

from weft.errors import Corrupt, StoreError, StoreOutage, StoreUnavailable
from weft.store.fsync import make_durable_folder, sync_folder
from weft.store.liveness import is_suspended
from weft.store.sqlite.query import fetch
from weft.store.sqlite.schema import look, migrate

Synchronous = Literal["FULL", "NORMAL", "OFF"]

SUSPENDED_SECONDS = 5.0
"""How long a lock is waited for that a suspended process holds; it may be woken at once, or never.
"""
_LOOK_EVERY_SECONDS = 0.25
"""How often the holder of a lock is looked up; most waits are over long before the first time."""
WRITER_CACHE_KB: Final = 320
"""Pages that the writer holds.  A commit needs some thirty, of which most are needed again; SQLite
would keep all that a snapshot of many files looks up, up to 2 MB.
"""
BUSY_WRITER_CACHE_KB: Final = 2048
"""The same for many sessions at once: each brings pages of its own, which would be read again for
every commit.
"""
_WAL_LIMIT_BYTES = 16 << 20
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


_SHARED_BYTES = 32 * 1024
"""What the shared memory of SQLite takes at least; on a full disk it is left shorter."""


class StoreFull(StoreUnavailable):
    """There is no room left; dropping the ballast may help."""


class BusyHandler:
    """How long a locked file is waited for; the busy handler of a connection.

    Our own handler and not SQLite's, because its steps grow to 100 ms: a writer that waits beside a
    busy one would almost always sleep when the lock is free.
    """

    def __init__(self, seconds: float, path: Path | None = None) -> None:
        """With the path of the store, a suspended process that holds its lock is noticed."""
        self.seconds = seconds
        self._path = path
        self._deadline = 0.0
        self._look_at = 0.0
        self._suspended_seconds = SUSPENDED_SECONDS
        self._suspended: tuple[int, float] | None = None
        """A suspended process that holds the lock, and since when that is known."""

    def start(self, seconds: float | None = None, *, waits_for_suspended: bool = False) -> None:
        """A new wait begins, of the usual length or this one.

        With `waits_for_suspended`, it is as long where the lock is held by a suspended process.
        """
        now = time.monotonic()
        limit = self.seconds if seconds is None else seconds
        self._deadline = now + limit
        self._suspended_seconds = limit if waits_for_suspended else SUSPENDED_SECONDS
        self._look_at = now + _LOOK_EVERY_SECONDS

    def end(self) -> None:
        """What comes next is not waited for."""
        self._deadline = 0.0

    def __call__(self, tries: int) -> bool:
        """Sleep a little and say whether to try again."""
        now = time.monotonic()
        if now >= self._deadline or self._is_held_up(now):
            return False
        import random  # only where two writers meet: it costs start-up time

        # Random, so that two writers that wait for a third do not wake up in step for ever.
        time.sleep(random.uniform(0.0002, min(0.0005 * 2 ** min(tries, 5), 0.01)))
        return True

    def _is_held_up(self, now: float) -> bool:
        """True when a suspended process has held the lock for longer than we wait for one.

        Counted over all waits: what closes after such an error does not wait as long again.
        """
        if self._path is None or now < self._look_at:
            return False
        self._look_at = now + _LOOK_EVERY_SECONDS
        from weft.store.sqlite.lock_holder import lock_holder  # few locks are held so long

        pid = lock_holder(self._path)
        if pid is None or not is_suspended(pid):
            self._suspended = None
            return False
        if self._suspended is None or self._suspended[0] != pid:
            self._suspended = (pid, now)
        return now - self._suspended[1] >= self._suspended_seconds


def open_writer(
    path: Path, *, synchronous: Synchronous, vfs: str | None, patience: BusyHandler
) -> apsw.Connection:
    """The one connection that writes; makes the file and its tables when they are missing.

    Raises:
        TooNew, StoreUnavailable, Corrupt: with the connection closed, and nothing written.
    """
    patience.start()
    try:
        _make_file(path)
    except OSError as error:
        raise _not_made(error, path) from error
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
    except apsw.Error as error:
        raise explained(error, path) from error
    try:
        db.set_busy_handler(patience)
        _prepare(db, path, synchronous, patience)
    except apsw.Error as error:
        number = db.system_errno
        db.close()
        raise explained(error, path, number=number) from error
    except BaseException:
        db.close()
        raise
    return db


def open_reader(
    path: Path, *, vfs: str | None, patience: BusyHandler, is_full: bool = False
) -> apsw.Connection:
    """A connection that cannot write; `is_full`: there was no room to open the file for writing.

    Raises:
        StoreUnavailable: the file is gone or may not be read.
    """
    try:
        if vfs is None and (is_full or is_read_only(path)) and is_at_rest(path):
            from urllib.parse import quote  # only here: it costs start-up time

            flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
            db = apsw.Connection(f"file:{quote(str(path))}?immutable=1", flags=flags)
        else:
            db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY, vfs=vfs)
    except apsw.Error as error:
        raise explained(error, path) from error
    db.set_busy_handler(patience)
    return db


def is_read_only(path: Path) -> bool:
    """True for a store that is there and can be read, but in whose folder nothing can be written:
    a read-only disk, or another user's folder.
    """
    if not os.access(path, os.R_OK):
        return False
    # The folder too: SQLite makes its side files there.
    return not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def is_at_rest(path: Path) -> bool:
    """True for a store that was closed in order and that no process has open, so that its file
    holds everything.

    To read it in the usual way, SQLite would have to make the shared memory beside it.
    """
    return not _size(f"{path}-wal") and _size(f"{path}-shm") < _SHARED_BYTES


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _not_made(error: OSError, path: Path) -> StoreUnavailable:
    if error.errno in _NO_ROOM:
        return StoreFull(f"the disk is full, the store {path} cannot be made; make room there")
    if error.errno == errno.EROFS:
        return StoreUnavailable(
            f"cannot make the store {path}: the disk is read-only; set WEFT_HOME to a folder that "
            "can be written"
        )
    return StoreUnavailable(
        f"cannot make the store {path}: {error.strerror}; check the folder's permissions"
    )


def explained(error: apsw.Error, path: Path, *, stream: str = "", number: int = 0) -> StoreError:
    """What went wrong, in plain words; `number` is the system's own error, where it is known."""
    detail = str(error)
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return Corrupt(
            stream or str(path),
            f"{detail}; the file {path} was left as it is: put a copy of it back, or move it away "
            "to start anew",
        )
    if is_full(error, number):
        return StoreFull(f"the disk is full, nothing was written to {path}; make room there")
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return _locked(path)
    if isinstance(error, apsw.CantOpenError):
        return StoreUnavailable(f"cannot open the store {path}: it is missing or not readable")
    if isinstance(error, (apsw.ReadOnlyError, apsw.PermissionsError, apsw.AuthError)):
        return StoreUnavailable(f"may not write to the store {path}: check its permissions")
    if isinstance(error, apsw.IOError):
        return StoreUnavailable(f"the disk failed under {path} ({detail}), nothing was written")
    return StoreUnavailable(f"the store {path} failed: {detail}")


def _locked(path: Path) -> StoreUnavailable:
    from weft.store.sqlite.lock_holder import lock_holder  # as above

    pid = lock_holder(path)
    if pid is None:
        return StoreOutage(
            f"{path} stayed locked by another process, nothing was written; try again later"
        )
    if is_suspended(pid):
        return StoreUnavailable(
            f"{path} is locked by process {pid}, which is suspended; nothing was written; "
            f"resume it (fg, or kill -CONT {pid}) or end it, and try again"
        )
    return StoreOutage(
        f"{path} stayed locked by process {pid}, nothing was written; try again later"
    )


def is_full(error: Exception, number: int) -> bool:
    """True when there is no room left, in whatever words SQLite says it."""
    return isinstance(error, apsw.FullError) or (
        isinstance(error, apsw.IOError) and number in _NO_ROOM
    )


def _make_file(path: Path) -> None:
    """Make the empty file ourselves, for its mode; SQLite gives its side files the same one.

    Only ever with O_EXCL: to open and close an existing file here would drop the locks that another
    connection of this process has on it, and corrupt it.
    """
    make_durable_folder(path.parent)
    try:
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    os.close(fd)
    sync_folder(path.parent)


def _prepare(
    db: apsw.Connection, path: Path, synchronous: Synchronous, patience: BusyHandler
) -> None:
    # The order matters: a newer file is refused before anything that could write.
    _retried(lambda: look(db, path), patience)
    # On a brand-new file this one pragma fails at once, without the busy handler, when two
    # processes race for it.
    _retried(lambda: _use_wal(db, path), patience)
    # FULL syncs the log at every commit.  NORMAL syncs it only at checkpoints: after a power cut
    # commits that were confirmed would be gone.
    fetch(db, f"pragma synchronous = {synchronous}")
    fetch(db, f"pragma journal_size_limit = {_WAL_LIMIT_BYTES}")
    hold_pages(db, WRITER_CACHE_KB)
    # What is deleted or replaced is overwritten with zeros, also pages that become free.  Set for
    # every write and not for deletes alone: a draft that was dropped earlier leaves pages too.
    fetch(db, "pragma secure_delete = on")
    # The file may come from another machine: its schema must not call functions with side effects.
    fetch(db, "pragma trusted_schema = off")
    _retried(lambda: migrate(db, path), patience)


def hold_pages(db: apsw.Connection, kilobytes: int) -> None:
    """Let a connection keep so many pages in memory."""
    fetch(db, f"pragma cache_size = -{kilobytes}")


def _use_wal(db: apsw.Connection, path: Path) -> None:
    mode = fetch(db, "pragma journal_mode = wal")[0][0]
    if mode != "wal":
        raise StoreUnavailable(
            f"{path} lies on a file system that processes cannot share memory on "
            f"(journal mode {mode!r}); choose a local one"
        )


def _retried(step: Callable[[], object], patience: BusyHandler) -> None:
    for tries in range(1 << 30):
        try:
            step()
        except apsw.BusyError:
            if not patience(tries):
                raise
        else:
            return
