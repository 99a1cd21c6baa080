"""Comparison of two files that may be larger than can be read while a user waits.

Up to some megabytes all of it is compared; of larger ones their ends, and other pieces that nobody
can foresee.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_PIECE: Final = 64 * 1024
_PIECES: Final = 62
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def looks_same(path: str, other: str) -> bool:
    """True when two files hold the same, as far as the pieces tell."""
    try:
        with _opened(path) as one, _opened(other) as two:
            size = os.fstat(one).st_size
            return size == os.fstat(two).st_size and _agree(one, two, size)
    except OSError:
        return False


def begins_with(path: str, other: str) -> bool:
    """True when a file begins with all that another holds, as far as the pieces tell."""
    try:
        with _opened(path) as longer, _opened(other) as shorter:
            size = os.fstat(shorter).st_size
            return size <= os.fstat(longer).st_size and _agree(longer, shorter, size)
    except OSError:
        return False


@contextmanager
def _opened(path: str) -> Iterator[int]:
    fd = os.open(path, _READ)
    try:
        yield fd
    finally:
        os.close(fd)


def _agree(one: int, two: int, size: int) -> bool:
    return all(
        os.pread(one, min(_PIECE, size - at), at) == os.pread(two, min(_PIECE, size - at), at)
        for at in _places(size)
    )


def _places(size: int) -> set[int]:
    """Where the pieces begin."""
    if size <= _PIECE * _PIECES:
        return set(range(0, size, _PIECE))
    last = size - _PIECE
    import random  # few files are so large

    chance = random.SystemRandom()
    return {0, last, *(chance.randrange(last + 1) for _ in range(_PIECES))}
