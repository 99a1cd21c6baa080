"""Birth time: when a file was created, which `stat` does not tell and a rename does not change."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache

_AT_FDCWD = -100
_NO_FOLLOW = 0x100
_BIRTH = 0x800
_SECONDS_AT = 80
_SIZE = 256


def born(path: str) -> int | None:
    """Nanoseconds since the epoch; None where the system or the disk does not know."""
    ask = _statx()
    return None if ask is None else ask(os.fsencode(path))


@cache
def _statx() -> Callable[[bytes], int | None] | None:
    import ctypes  # costs milliseconds, so it waits for the first file that has to be asked about

    try:
        statx = ctypes.CDLL(None, use_errno=True).statx
    except (AttributeError, OSError):
        return None
    statx.argtypes = (
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_uint,
        ctypes.c_void_p,
    )

    def ask(path: bytes) -> int | None:
        found = ctypes.create_string_buffer(_SIZE)
        if statx(_AT_FDCWD, path, _NO_FOLLOW, _BIRTH, found) != 0:
            return None
        if not int.from_bytes(found.raw[:4], "little") & _BIRTH:
            return None
        seconds = int.from_bytes(found.raw[_SECONDS_AT : _SECONDS_AT + 8], "little", signed=True)
        rest = int.from_bytes(found.raw[_SECONDS_AT + 8 : _SECONDS_AT + 12], "little")
        return seconds * 1_000_000_000 + rest

    return ask
