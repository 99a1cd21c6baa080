"""Files of the user's that decide what may run: read only where nobody else can write them, and
replaced as a whole.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

LARGEST: Final = 16 * 1024 * 1024


def read_private(path: Path) -> bytes | None:
    """What stands in a file of ours; None where there is none.

    Raises:
        PermissionError: others could have written it, or it is no plain file.
        OSError: it cannot be read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        # Of the opened file, not of the path: another could take its place between two looks.
        about = os.fstat(handle)
        is_ours = about.st_uid == os.geteuid() and not about.st_mode & 0o022
        if not is_ours or not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST:
            raise PermissionError(f"{path} is not private to this user")
        return file.read()


def replace_private(path: Path, data: bytes) -> None:
    """Replace a file in one step; it is private from its first byte on.

    Raises:
        OSError: it cannot be written; the old one is still there.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    passing = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        handle = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            # Before the rename: after a crash the name would otherwise lead to an empty file.
            os.fsync(handle)
        os.replace(passing, path)
    except OSError:
        with suppress(OSError):
            passing.unlink()
        raise


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Meanwhile no other process changes this file by the same way."""
    import fcntl  # only where something is changed

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A file of its own: the other is replaced by a rename, and a lock on it would be one on the
    # old one.
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
