"""What a write has displaced, until it is known to be what the write was to replace.

No system call replaces a file only if it has a given content: between the last look at a file and
the rename, another program may write it.  So the new file and the old one change places, and what
was displaced is looked at afterwards, under a name that says whose it is.  Where it is not what was
expected, both change places again.

A kill can leave a displaced file behind.  Its name holds the hashes of what was to be replaced and
of what was to take its place: one that is either is of no more use to anyone, and is removed.  Any
other is somebody's change that we have displaced: it is kept where it lies, and never removed.  Nor
is it put back by itself: a repository or a command can make a file of such a name, and what it then
brought into place would have passed no rule (`.git`, `.envrc`).
"""

from __future__ import annotations

import fcntl
import logging
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

import msgspec

from weft import faults
from weft.errors import RetryableToolError
from weft.sha256 import sha256
from weft.workspace.writes.rename_calls import exchange, rename_new

logger = logging.getLogger(__name__)

DISPLACED: Final = ".weft-old-"
"""How the names of displaced files begin."""
_HASH: Final = 16
"""Characters of a hash in a name."""
_LONGEST: Final = 255
"""Bytes of a name."""
_CHUNK: Final = 1024 * 1024
_MOST_READ: Final = 1024 * 1024 * 1024
"""A larger one stays: to know it would hold up the write that found it."""
_BEFORE_EXCHANGE: Final = faults.point("workspace.displaced.before_exchange")
_EXCHANGED: Final = faults.point("workspace.displaced.exchanged")
_MOVED_ASIDE: Final = faults.point("workspace.displaced.aside")


class DisplacedName(msgspec.Struct, frozen=True):
    """The name of a displaced file, read."""

    old: str
    """The beginning of the hash of what was to be replaced."""
    new: str
    """That of what was to take its place; empty for a removal."""
    place: str
    """The name that it had; empty where that was too long."""


def displaced_name(old: str | None, new: str | None, place: str) -> str:
    """A name for what a write will displace, that nobody can guess."""
    head = f"{DISPLACED}{os.urandom(8).hex()}-{(old or '')[:_HASH]}-{(new or '')[:_HASH]}-"
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
    logger.warning("a write that was cut short has displaced a file, which is kept as %r", name)


class DisplacedPlace(msgspec.Struct, frozen=True):
    """A place in an open folder, and how to know what lies there."""

    folder: int
    leaf: str
    is_old: Callable[[str], bool]
    """Whether what has this name in the folder is what is to be replaced."""
    is_new: Callable[[str], bool] = lambda name: False
    """Whether it is what takes its place."""

    def exchange(self, spare: str) -> None:
        """Put what has the name `spare` in place, and remove what was there.

        It may be a path on the same file system.

        Raises:
            FileNotFoundError: there is nothing to be replaced.
            DisplacedChange: something else is there, and stays.
        """
        _BEFORE_EXCHANGE.hit()
        if not exchange(self.folder, spare, self.leaf):
            # The best that is left has a gap behind the last look.
            os.rename(spare, self.leaf, src_dir_fd=self.folder, dst_dir_fd=self.folder)
            return
        _EXCHANGED.hit()
        if self._was_old(spare):
            self._remove(spare)
            return
        try:
            exchange(self.folder, spare, self.leaf)
        except FileNotFoundError:
            self._give_back(spare)
        if self.is_new(spare):
            raise DisplacedChange
        # Another program has changed even the new file: the newest one stays in place.
        exchange(self.folder, spare, self.leaf)
        self._give_back(spare)

    def remove(self, aside: str) -> None:
        """Remove what is there, by way of the name `aside`.

        Raises:
            FileNotFoundError: there is nothing.
            DisplacedChange: something else is there, and stays.
        """
        rename_new(self.folder, self.leaf, aside)
        _MOVED_ASIDE.hit()
        if self._was_old(aside):
            self._remove(aside)
        else:
            self._give_back(aside)

    def _was_old(self, name: str) -> bool:
        """Whether what was displaced is what was to be replaced."""
        try:
            os.stat(name, dir_fd=self.folder, follow_symlinks=False)
            return self.is_old(name)
        except FileNotFoundError:
            return True  # a sweep removes nothing else

    def _remove(self, name: str) -> None:
        with suppress(FileNotFoundError):  # as above
            os.unlink(name, dir_fd=self.folder)

    def _give_back(self, name: str) -> NoReturn:
        try:
            rename_new(self.folder, name, self.leaf)
        except FileNotFoundError:
            pass  # its owner has taken it away
        except OSError:
            # Another program has put a file there since: neither may be lost.
            raise DisplacedChange(name) from None
        raise DisplacedChange


class DisplacedChange(Exception):
    """What was to be replaced was changed by another program, and is there as it was.

    Its text is the name of a version that is kept beside it, where there were two.
    """

    def explained(self, shown: str) -> RetryableToolError:
        """The error of the tool."""
        if kept := str(self):
            return RetryableToolError(
                f"{shown!r} was changed twice while it was written; what was there first is kept "
                f"beside it, as {kept!r}.  Read it again"
            )
        return RetryableToolError(
            f"{shown!r} was changed since it was read; nothing was written.  Read it again"
        )


def _hash_if_free(folder: int, name: str) -> str | None:
    """The hash of a file that no living writer holds; None for any other."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, dir_fd=folder)
    except OSError:
        return _hash_of_link(folder, name)
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_size > _MOST_READ:
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


def _hash_of_link(folder: int, name: str) -> str | None:
    try:
        return sha256(os.fsencode(os.readlink(name, dir_fd=folder))).hexdigest()
    except OSError:
        return None
