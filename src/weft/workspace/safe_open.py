"""Safe open: a name below a folder is opened so that no link can lead elsewhere.

`open_beneath` follows no symbolic link at all, in no part of the name: what it opens is what the
name says, whatever is swapped underneath meanwhile.  Links are followed one layer up, by asking for
the real name first and opening *that* here: a link that changes in between makes the open fail,
never lead elsewhere.

On Linux one `openat2` call does it.  Where the kernel (or an old seccomp filter) does not have it,
the name is walked part by part, each opened relative to the one before, which is as strict and a
little slower.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import TypeAlias

_SYS_OPENAT2 = 437
"""The same number on every Linux architecture that Python runs on."""
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_O_PATH: int = getattr(os, "O_PATH", os.O_RDONLY)
_O_TMPFILE: int = getattr(os, "O_TMPFILE", 0)
_TRIES = 8

Opener: TypeAlias = Callable[[int, str, int, int], int]


def open_folder(path: str) -> int:
    """Open the folder to stand on; its own path is trusted and may hold links."""
    return os.open(path, _O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def open_beneath(folder_fd: int, name: str, flags: int, mode: int = 0) -> int:
    """Open `name`, relative and without `..`, below the open folder; `.` is the folder itself.

    Raises:
        OSError: as `os.open` does; `ELOOP` when any part of the name is a symbolic link, `EXDEV`
            when it would lead out.
    """
    _refuse_what_c_would_misread(name)
    # Without O_NOFOLLOW: with it, an O_PATH open of a link would give the link itself instead of
    # ELOOP.
    return _opener()(folder_fd, name, flags | os.O_CLOEXEC, mode)


def make_folders(folder_fd: int, name: str, made: list[tuple[str, int]] | None = None) -> int:
    """Open the folder `name` below the open one, making what is missing; each new one is made
    durable in its parent.

    Returns a descriptor that can be synced; the names and modes of the new folders are added to
    `made`.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY
    # A descriptor of our own, since each step closes the one before; the caller keeps `folder_fd`.
    here = open_beneath(folder_fd, ".", flags)
    parts = name.split("/")
    try:
        for number, part in enumerate(parts, start=1):
            below, is_new = _enter(here, part, flags)
            if is_new and made is not None:
                made.append(("/".join(parts[:number]), os.fstat(below).st_mode))
            os.close(here)
            here = below
    except BaseException:
        os.close(here)
        raise
    return here


def _enter(folder_fd: int, part: str, flags: int) -> tuple[int, bool]:
    """Open one folder, and say whether it was made for that."""
    try:
        return _open_part(folder_fd, part, flags), False
    except FileNotFoundError:
        pass
    is_new = False
    with suppress(FileExistsError):  # another process made it first: open that, as strictly
        os.mkdir(part, dir_fd=folder_fd)
        is_new = True
    # Also for a folder that another process has just made: it may not be durable yet, and what is
    # written below it would be lost with it.
    os.fsync(folder_fd)
    return _open_part(folder_fd, part, flags), is_new


def _refuse_what_c_would_misread(name: str) -> None:
    """A C string ends at NUL, so `a\\0b` would open `a`.

    An empty name and `..` are never asked for.
    """
    parts = name.split("/")
    if "\0" in name or not name or name.startswith("/") or ".." in parts:
        raise ValueError(f"not a name below a folder: {name!r}")


# --- the two ways ----------------------------------------------------------------------------


@cache
def _opener() -> Opener:
    """The way this machine opens; found out once, by trying it."""
    try:
        opener = _openat2()
        probe = os.open("/", _O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # Tried and not looked up by version: a container's seccomp filter can refuse the call
            # on a kernel that has it.
            os.close(opener(probe, ".", _O_PATH | os.O_CLOEXEC, 0))
        finally:
            os.close(probe)
    except (OSError, AttributeError, ImportError):
        return walk
    return opener


def _openat2() -> Opener:
    # Loading ctypes costs milliseconds, so it waits until the first file is opened.
    import ctypes

    class OpenHow(ctypes.Structure):
        _fields_ = (
            ("flags", ctypes.c_uint64),
            ("mode", ctypes.c_uint64),
            ("resolve", ctypes.c_uint64),
        )

    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    syscall.argtypes = (
        ctypes.c_long,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_void_p,
        ctypes.c_size_t,
    )
    size = ctypes.sizeof(OpenHow)
    # openat2(2): BENEATH refuses magic links today, and callers that rely on it have to name
    # NO_MAGICLINKS too, because that may change.
    resolve = _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS | _RESOLVE_NO_SYMLINKS

    def openat2(folder_fd: int, name: str, flags: int, mode: int) -> int:
        raw = os.fsencode(name)
        # The kernel refuses a mode when nothing can be created.
        how = OpenHow(flags, mode if _creates(flags) else 0, resolve)
        error = errno.EAGAIN
        for _ in range(_TRIES):  # EAGAIN: a rename raced with the lookup
            fd: int = syscall(_SYS_OPENAT2, folder_fd, raw, ctypes.byref(how), size)
            if fd >= 0:
                return fd
            error = ctypes.get_errno()
            if error not in (errno.EAGAIN, errno.EINTR):
                break
        raise OSError(error, os.strerror(error), name)

    return openat2


def _creates(flags: int) -> bool:
    # O_TMPFILE contains O_DIRECTORY, so one shared bit proves nothing.
    return bool(flags & os.O_CREAT) or (_O_TMPFILE != 0 and flags & _O_TMPFILE == _O_TMPFILE)


def walk(folder_fd: int, name: str, flags: int, mode: int) -> int:
    """Open part by part; public for its tests."""
    *folders, leaf = name.split("/")
    here = folder_fd
    try:
        for part in folders:
            below = _open_part(here, part, _O_PATH | os.O_DIRECTORY)
            if here != folder_fd:
                os.close(here)
            here = below
        return _open_part(here, leaf, flags, mode)
    finally:
        if here != folder_fd:
            os.close(here)


def _open_part(folder_fd: int, part: str, flags: int, mode: int = 0o777) -> int:
    """Open one part; a link is `ELOOP`, however the system calls it."""
    try:
        fd = os.open(part, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=folder_fd)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(part, dir_fd=folder_fd, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), part) from None
        raise
    # With O_PATH, O_NOFOLLOW does not refuse a link: it opens the link itself.
    if flags & _O_PATH and stat.S_ISLNK(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), part)
    return fd
