"""A ballast file beside the database, removed when the disk is full so that small appends can go
on.

A full disk refuses even the note that it is full (measured: SQLite then fails every commit,
checkpoints included).  Freeing these 8 MiB leaves room to record what happened and to stop in
order.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from pathlib import Path

BYTES = 8 << 20
_LOOK_AGAIN_SECONDS = 30.0
_SPARE_FACTOR = 8

logger = logging.getLogger(__name__)


class BallastFile:
    """The spare room of one database; used by the writer thread only."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(f"{database.name}.ballast")
        self._next_look = 0.0

    def drop(self) -> bool:
        """Free the room; False when there was none to free."""
        self._next_look = time.monotonic() + _LOOK_AGAIN_SECONDS
        try:
            self.path.unlink()
        except OSError:
            return False
        logger.warning("the disk is full: the store removed its ballast file")
        return True

    def keep(self) -> None:
        """Put the file there when it is missing and there is plenty of room; looks rarely."""
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + _LOOK_AGAIN_SECONDS
        with contextlib.suppress(OSError):
            if not self.path.exists() and _free_bytes(self.path.parent) > BYTES * _SPARE_FACTOR:
                self._make()

    def _make(self) -> None:
        fd = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            # Really allocated: a sparse file would free nothing when it is removed.
            os.posix_fallocate(fd, 0, BYTES)
        except OSError:
            self.path.unlink(missing_ok=True)
            raise
        finally:
            os.close(fd)


def _free_bytes(folder: Path) -> int:
    space = os.statvfs(folder)
    return space.f_bavail * space.f_frsize
