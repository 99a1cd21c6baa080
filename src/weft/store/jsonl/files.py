"""Writing files so that a crash leaves the old content or the new one, and errors in plain
words.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from weft.errors import StoreUnavailable
from weft.file_io import write_all
from weft.store.fsync import make_durable_folder, sync_folder

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def explained(what: Path) -> Iterator[None]:
    """Turn an error of the system into a sentence for the user."""
    try:
        yield
    except OSError as error:
        raise unavailable(error, what) from error


def unavailable(error: OSError, what: Path) -> StoreUnavailable:
    """The sentence for one system error."""
    where = error.filename or what
    if error.errno in _NO_ROOM:
        return StoreUnavailable(
            f"the disk is full, nothing was written to {where}; make room there"
        )
    return StoreUnavailable(
        f"the store cannot use {where}: {error.strerror or error}, nothing was written"
    )


def replace(path: Path, data: bytes, *, durable: bool, written_ns: int | None = None) -> None:
    """Give `path` a new content, whole or not at all; `written_ns` is the time that it carries, in
    place of the kernel's.
    """
    make_durable_folder(path.parent)
    new = path.with_name(f"{path.name}.new")
    fd = os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, data)
        if written_ns is not None:
            os.utime(fd, ns=(written_ns, written_ns))
        if durable:
            # Before the rename: otherwise a power cut can leave the new name with no content.
            os.fdatasync(fd)
    finally:
        os.close(fd)
    os.replace(new, path)
    if durable:
        sync_folder(path.parent)


def scribble(path: Path, data: bytes) -> None:
    """Overwrite a file that may be torn by a crash, because its reader notices and makes
    it again.
    """
    make_durable_folder(path.parent)
    fd = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)


def content(path: Path) -> bytes | None:
    """All bytes of a file, None when there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def remove(path: Path, *, durable: bool = False) -> None:
    """Remove a file, if it is there."""
    path.unlink(missing_ok=True)
    if durable and path.parent.exists():
        sync_folder(path.parent)
