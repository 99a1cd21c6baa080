"""The file of the write-ahead log: made longer before that is needed, and emptied when it is long.

A commit into a part of the file that is already there syncs only what it wrote; one that makes the
file longer waits for the file system's own records too, which more than doubles it (measured on
ext4: 0.26 ms against 0.11).  So whenever no job waits and the end is near, half a mebibyte of
nothing is written behind it.  SQLite takes that for what it is: frames whose checksums do not fit.

Only what lies behind the end of the file is written, and only under the write lock, so no frame of
any process can be there.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import apsw

from weft.store.sqlite.connect import BusyHandler
from weft.store.sqlite.query import fetch

EMPTIED_PAGES = 1000
"""As long as SQLite itself lets it grow before it moves the pages to the database."""
_STEP = 512 << 10
_LEAST = 64 << 10
_EMPTY_SECONDS = 0.25
_HEADER, _FRAME_HEADER = 32, 24
_NOTHING = [bytes(4 << 10)] * (_STEP >> 12)
"""One page many times over: a buffer of the whole step would stay in memory for good."""


class WriteAhead:
    """The log of one writer; used by its thread only."""

    def __init__(self, database: Path, patience: BusyHandler) -> None:
        self._path = f"{database}-wal"
        self._patience = patience
        self._pages = 0
        self._page_bytes = 0
        self._is_full = False
        self.holds_deleted = False
        """What was deleted is still in the log, or in pages that it would replace."""

    def attach(self, db: apsw.Connection) -> None:
        """Watch the commits of this connection from now on.

        It no longer empties the log by itself.
        """
        self._page_bytes = fetch(db, "pragma page_size")[0][0] + _FRAME_HEADER
        self._pages = 0
        db.set_wal_hook(self._committed)

    def tend(self, db: apsw.Connection, *, is_idle: bool) -> None:
        """After a commit: empty the log when it is long, else see to it that there is room.

        What fails is left for the next time.
        """
        with contextlib.suppress(apsw.Error, OSError):
            if self.holds_deleted:
                self.empty(db)
            elif self._pages >= EMPTIED_PAGES:
                # Passive: it moves what it can and waits for no reader.  The other modes would
                # block this thread, and so every append of the process, behind a slow reader.
                db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            elif is_idle and self._is_short():
                self._lengthen(db)

    def empty(self, db: apsw.Connection) -> None:
        """Move all pages to the database and cut the file to nothing.

        Raises:
            apsw.BusyError: a reader still needs the log; nothing of it was cut off.
        """
        # Bounded: appends wait behind this, and a reader in another process may take its time.
        self._patience.start(_EMPTY_SECONDS)
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self.holds_deleted = False
        self._pages = 0

    def _committed(self, db: apsw.Connection, name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    def _is_short(self) -> bool:
        if self._is_full or not self._pages:
            return False
        used = _HEADER + self._pages * self._page_bytes
        return os.stat(self._path).st_size - used < _LEAST

    def _lengthen(self, db: apsw.Connection) -> None:
        # No waiting here: this is spare-time work, and a commit of another process is more
        # important.
        self._patience.end()
        db.execute("begin immediate")
        try:
            fd = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                end = os.fstat(fd).st_size
                self._is_full = not _written(fd, end)
            finally:
                os.close(fd)
        finally:
            db.execute("rollback")


def _written(fd: int, end: int) -> bool:
    """Write nothing behind the end.

    False, and the file as it was, when there is no room: what is left is needed for commits.
    """
    with contextlib.suppress(OSError):
        if os.pwritev(fd, _NOTHING, end) == _STEP:
            # Synced now, so that the next commit does not pay for the new length.
            os.fdatasync(fd)
            return True
    os.ftruncate(fd, end)
    return False
