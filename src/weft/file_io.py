"""File descriptors: the one way to write all of something to one, and to read all of it."""

from __future__ import annotations

import os

_CHUNK = 1024 * 1024


def write_all(fd: int, data: bytes) -> None:
    """Write every byte, or raise what stopped it.

    `os.write` may take fewer bytes than it was given, without an error: at the last free block of
    a disk, at a limit of the file's size, on a pipe, and above 2 GiB.  Only the next call says why.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read_all(fd: int, most: int) -> bytes:
    """Read to the end, at most `most` bytes."""
    first = os.read(fd, min(most, _CHUNK))
    chunks = [first]
    left = most - len(first)
    while chunks[-1] and left > 0:
        chunks.append(os.read(fd, min(left, _CHUNK)))
        left -= len(chunks[-1])
    return b"".join(chunks)
