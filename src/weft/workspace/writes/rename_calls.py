"""Renames within a folder that refuse to replace, or that let two files change places."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import cache
from typing import Any, Final

_NOREPLACE: Final = 1
_EXCHANGE: Final = 2
_LACKING: Final = (errno.ENOSYS, errno.EINVAL, errno.EPERM)
"""What says that the kernel, the file system or a filter does not have the call."""


def rename_new(folder: int, old: str, new: str) -> None:
    """Rename within a folder; `FileExistsError` when the new name is taken."""
    code = _renamed(folder, old, new, _NOREPLACE)
    if code == 0:
        return
    if code not in _LACKING:
        raise OSError(code, os.strerror(code), new)
    # What follows has a gap between look and rename, and is the best that is left.
    try:
        os.stat(new, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)


def exchange(folder: int, one: str, other: str) -> bool:
    """Let two files of a folder change places, in one step; False where that cannot be done here.

    Raises:
        FileNotFoundError: one of them is gone.
    """
    code = _renamed(folder, one, other, _EXCHANGE)
    if code and code not in _LACKING:
        raise OSError(code, os.strerror(code), other)
    return code == 0


def _renamed(folder: int, old: str, new: str, flags: int) -> int:
    """Rename, and return the error number."""
    rename = _renameat2()
    if rename is None:
        return errno.ENOSYS
    return rename(folder, os.fsencode(old), folder, os.fsencode(new), flags)


@cache
def _renameat2() -> Callable[[int, bytes, int, bytes, int], int] | None:
    """The call of the C library, as a function that returns an error number.

    None where it has none.
    """
    import ctypes  # costs milliseconds, so it waits for the first file that is written

    try:
        function: Any = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return None
    function.argtypes = (
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_uint,
    )
    function.restype = ctypes.c_int

    def rename(old_folder: int, old: bytes, new_folder: int, new: bytes, flags: int) -> int:
        if function(old_folder, old, new_folder, new, flags) == 0:
            return 0
        return int(ctypes.get_errno())

    return rename
