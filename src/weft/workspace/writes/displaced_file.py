"""What a write has displaced, until it is known to be what the write was to replace.

No system call replaces a file only if it has a given content: between the last look at a file and
the rename, another program may write it.  So the new file and the old one change places, and what
was displaced is looked at afterwards, under a name that says whose it is.  Where it is not what was
expected, both change places again.

A kill can leave a displaced file behind.  Its name holds the hashes of what was to be replaced and
of what was to take its place: one that is either is of no more use to anyone, and is removed.  Any
other is somebody's change that we have displaced: it goes back where its place is free, and is kept
where it lies otherwise.  It is never removed.
"""

from __future__ import annotations

import fcntl
import logging
import os
import stat
from contextlib import suppress
from typing import Final

import msgspec

from weft.errors import RetryableToolError
from weft.ids import BlobId
from weft.sha256 import sha256
from weft.workspace.writes.rename_calls import rename_new

logger = logging.getLogger(__name__)

DISPLACED: Final = ".weft-old-"
"""How the names of displaced files begin."""
_HASH: Final = 16
"""Characters of a hash in a name."""
_LONGEST: Final = 255
"""Bytes of a name."""
_CHUNK: Final = 1024 * 1024


class DisplacedName(msgspec.Struct, frozen=True):
    """The name of a displaced file, read."""

    old: str
    """The beginning of the hash of what was to be replaced."""
    new: str
    """That of what was to take its place; empty for a removal."""
    place: str
    """The name that it had; empty where that was too long."""


def displaced_name(old: BlobId, new: BlobId | None, place: str) -> str:
    """A name for what a write will displace, that nobody can guess."""
    head = f"{DISPLACED}{os.urandom(8).hex()}-{old[:_HASH]}-{(new or '')[:_HASH]}-"
    name = head + place
    return name if len(os.fsencode(name)) <= _LONGEST else head


def read_name(name: str) -> DisplacedName | None:
    """What a name says; None for one that we did not make."""
    if not name.startswith(DISPLACED):
        return None
    parts = name.removeprefix(DISPLACED).split("-", 3)
    return DisplacedName(parts[1], parts[2], parts[3]) if len(parts) == 4 else None


def settle_displaced(folder: int, name: str) -> None:
    """Decide about a file that a killed write has left in a folder."""
    about = read_name(name)
    if about is None:
        return
    found = _hash_if_free(folder, name)
    if found is None:
        return
    if found[:_HASH] in (about.old, about.new):
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
        return
    if about.place:
        with suppress(OSError):
            rename_new(folder, name, about.place)
            return
    logger.warning("a write that was cut short has displaced a file, which is kept as %s", name)


def put_back(folder: int, name: str, place: str, shown: str) -> RetryableToolError:
    """Give a displaced file its name again; the error that says what has become of the write."""
    try:
        rename_new(folder, name, place)
    except FileNotFoundError:
        pass  # a sweep came by, and has done it
    except OSError:
        # Another program has put a file there since: neither may be lost.
        return RetryableToolError(
            f"{shown!r} was changed twice while it was written; what was there first is kept "
            f"beside it, as {name!r}.  Read it again"
        )
    return changed_meanwhile(shown)


def changed_meanwhile(shown: str) -> RetryableToolError:
    """The error of a write whose file is another than the one that was read."""
    return RetryableToolError(
        f"{shown!r} was changed since it was read; nothing was written.  Read it again"
    )


def _hash_if_free(folder: int, name: str) -> str | None:
    """The hash of a file that no living writer holds; None for any other."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, dir_fd=folder)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        hashed = sha256()
        while chunk := os.read(fd, _CHUNK):
            hashed.update(chunk)
        return hashed.hexdigest()
    except OSError:
        return None
    finally:
        os.close(fd)
