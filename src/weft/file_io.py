"""File descriptors: the one way to write all of something to one, and to read all of it."""

from __future__ import annotations

import os

_CHUNK = 1024 * 1024
_SMALL = 4096


def write_all(fd: int, data: bytes) -> None:
    """Write every byte, or raise what stopped it.

    `os.write` may take fewer bytes than it was given, without an error: at the last free block of
    a disk, at a limit of the file's size, on a pipe, and above 2 GiB.  Only the next call says why.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def write_ready(fd: int, data: bytes) -> bytes:
    """Write what a descriptor that does not block takes at once; returns the rest."""
    try:
        return data[os.write(fd, data) :]
    except BlockingIOError:
        return data


def read_all(fd: int, most: int, size: int) -> bytes:
    """Read to the end, at most `most` bytes; `size` is what is probably there."""
    # A read takes memory for all that it is asked for: a megabyte for a small file is mapped and
    # given back each time, which costs more than the read.
    chunk = min(max(size + 1, _SMALL), _CHUNK)
    first = os.read(fd, min(most, chunk))
    chunks = [first]
    left = most - len(first)
    while chunks[-1] and left > 0:
        chunks.append(os.read(fd, min(left, chunk)))
        left -= len(chunks[-1])
    return b"".join(chunks)
