"""What a sandboxed command changed, read from the upper layer of its overlay.

The kernel keeps there exactly what the command wrote: files and links as they are now, a mark where
something was removed (a device 0:0), a flag on a folder that was made anew in the place of another
(`opaque`).  Nothing is guessed from times or compared.

Everything here blocks, and only looks; `overlay_apply` is what puts a change into the project.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal["file", "link", "folder", "gone", "special"]

OPAQUE = "user.overlay.opaque"
WHITEOUT = "user.overlay.whiteout"
_REFUSED = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
MOST = 200_000
"""Changes of one command that are carried over.

One that makes more gets an error, and none of them is.
"""
DEEPEST = 250
"""Folders in one another that are carried over."""
LONGEST = 3_000
"""Bytes of a path that is carried over: together with the project's own it must stay below what the
system takes.
"""


class OverlayChange(msgspec.Struct, frozen=True, kw_only=True):
    """One path that a command left different."""

    path: str
    """Relative to the folder that the overlay lay over."""
    kind: Kind
    """What is there now; `special` is a pipe, socket or device, which is not carried over."""
    mode: int = 0
    """As `lstat` has it."""
    size: int = 0
    is_opaque: bool = False
    """Of a folder: what the project has in it is gone."""


class TooMuch(Exception):
    """A command changed more than is carried over; the message says of what, for the model."""


def is_empty(upper: str) -> bool:
    """True when nothing was changed; quick."""
    with os.scandir(upper) as entries:
        return next(entries, None) is None


def changes(upper: str) -> list[OverlayChange]:
    """Everything in an upper layer, each folder before what is in it, in the order of the names.

    Raises:
        TooMuch: there is more than `MOST`, or it lies deeper than `DEEPEST`.
    """
    found: list[OverlayChange] = []
    for change in _walk(upper, "", 1):
        found.append(change)
        if len(found) > MOST:
            raise TooMuch(f"it changed more than {MOST:,} files")
    return found


def _walk(folder: str, prefix: str, depth: int) -> Iterator[OverlayChange]:
    # A command can nest folders without end by relative paths; no absolute path would reach them.
    if depth > DEEPEST or len(os.fsencode(prefix)) > LONGEST:
        raise TooMuch(f"it made folders more than {DEEPEST} deep, or with names as long")
    # Closed before the folders below are walked, or each level would hold a descriptor open.
    with _readable(folder), os.scandir(folder) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    for entry in listed:
        change = _change(entry, prefix + entry.name)
        yield change
        if change.kind == "folder":
            yield from _walk(entry.path, f"{prefix}{entry.name}/", depth + 1)


class _readable:  # noqa: N801 - a context manager, used like a function
    """A folder that the command left unreadable (`chmod 0`), readable for as long as we look."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._mode: int | None = None

    def __enter__(self) -> None:
        mode = stat.S_IMODE(os.lstat(self._folder).st_mode)
        if mode & 0o500 != 0o500:
            self._mode = mode
            os.chmod(self._folder, mode | 0o700)

    def __exit__(self, *_: object) -> None:
        if self._mode is not None:
            os.chmod(self._folder, self._mode)


def _change(entry: os.DirEntry[str], path: str) -> OverlayChange:
    about = entry.stat(follow_symlinks=False)
    mode = about.st_mode
    if _is_whiteout(entry.path, about):
        return OverlayChange(path=path, kind="gone")
    if stat.S_ISREG(mode):
        return OverlayChange(path=path, kind="file", mode=mode, size=about.st_size)
    if stat.S_ISLNK(mode):
        return OverlayChange(path=path, kind="link", mode=mode)
    if stat.S_ISDIR(mode):
        opaque = _flag(entry.path, OPAQUE) == b"y"
        return OverlayChange(path=path, kind="folder", mode=mode, is_opaque=opaque)
    return OverlayChange(path=path, kind="special", mode=mode)


def is_gone(upper: str, path: str) -> bool:
    """True when a command removed a path, or a folder above it."""
    names = path.split("/")
    for end in range(1, len(names) + 1):
        here = f"{upper}/{'/'.join(names[:end])}"
        try:
            about = os.lstat(here)
        except OSError:
            return False  # from here on down it is as it was
        if _is_whiteout(here, about):
            return True
    return False


def mark_gone(path: str) -> None:
    """Leave the mark of a removed name where nothing is.

    Raises:
        OSError: the disk takes none of the two marks.
    """
    try:
        os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))
        return
    except OSError as error:
        if error.errno not in _REFUSED:
            raise
    # Where devices are refused (a container, a filter of system calls), the mark of newer kernels,
    # which they look for in folders that say so.
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    os.setxattr(path, WHITEOUT, b"y")
    folder = os.path.dirname(path)
    if _flag(folder, OPAQUE) is None:
        os.setxattr(folder, OPAQUE, b"x")


def is_mark(path: str) -> bool:
    """True for the mark of a removed name."""
    return _is_whiteout(path, os.lstat(path))


def _is_whiteout(path: str, about: os.stat_result) -> bool:
    """True for the kernel's mark of a removed name; newer ones also know an empty file with an
    attribute.
    """
    if stat.S_ISCHR(about.st_mode):
        return about.st_rdev == 0
    is_empty_file = stat.S_ISREG(about.st_mode) and not about.st_size
    return is_empty_file and bool(_flag(path, WHITEOUT))


def _flag(path: str, name: str) -> bytes | None:
    with suppress(OSError):
        return os.getxattr(path, name, follow_symlinks=False)
    return None
