"""The folder lock: one thread of one process at a time touches the files.

Between processes it is a POSIX record lock on the file `lock`.  Those locks do not conflict inside
one process, and closing any descriptor of the file drops them; so all stores of a process on one
folder share one descriptor and an ordinary lock.

Reading takes it too: without it a reader could see a line that is written and not yet durable, or
half of a batch.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from weft.errors import StoreOutage

_LOCKS: dict[tuple[int, Path], FolderLock] = {}
_LOCKS_GUARD = threading.Lock()


class FolderLock:
    """The lock of one folder in this process; got by `open_lock`, given back by `close`."""

    def __init__(self, key: tuple[int, Path]) -> None:
        self._key = key
        self._path = key[1]
        self._users = 0
        self._here = threading.Lock()
        self._fd = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)

    @contextlib.contextmanager
    def entered(self, busy_seconds: float) -> Iterator[None]:
        """Be the only one.

        Raises:
            StoreOutage: another process kept the lock for longer than `busy_seconds`.
        """
        # The thread lock first: inside one process the record lock would be granted a second time.
        with self._here:
            self._lock(time.monotonic() + busy_seconds)
            try:
                yield
            finally:
                fcntl.lockf(self._fd, fcntl.LOCK_UN)

    def _lock(self, deadline: float) -> None:
        while True:
            try:
                # Polled, because a blocking `lockf` cannot be given a deadline.
                fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError) as error:
                if time.monotonic() >= deadline:
                    raise StoreOutage(
                        f"{self._path} stayed locked by another process, nothing was written; "
                        "try again later"
                    ) from error
                time.sleep(random.uniform(0.0002, 0.003))
            else:
                return

    def close(self) -> None:
        """Give it back; the last user closes the file."""
        with _LOCKS_GUARD:
            self._users -= 1
            if self._users == 0:
                del _LOCKS[self._key]
                os.close(self._fd)


def open_lock(lock_file: Path) -> FolderLock:
    """The lock of a folder, shared by all stores of this process."""
    # With the process number: a child made by fork inherits this table, and no record lock.
    key = (os.getpid(), lock_file.resolve())
    with _LOCKS_GUARD:
        lock = _LOCKS.get(key)
        if lock is None:
            lock = _LOCKS[key] = FolderLock(key)
        lock._users += 1
        return lock
