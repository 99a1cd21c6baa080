"""File descriptors: the one way to write all of something to one."""

from __future__ import annotations

import os


def write_all(fd: int, data: bytes) -> None:
    """Write every byte, or raise what stopped it.

    `os.write` may take fewer bytes than it was given, without an error: at the last free block of
    a disk, at a limit of the file's size, on a pipe, and above 2 GiB.  Only the next call says why.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
