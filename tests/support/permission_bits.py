"""Permission bits that hold for root, too: without the capabilities that pass them over."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_VERSION_3 = 0x20080522
_DAC = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
_SET_SECUREBITS = 28
_GET_SECUREBITS = 27
_NOROOT = 1


@contextmanager
def bits_that_hold() -> Iterator[None]:
    """Have this thread, threads that it makes and programs that it starts heed permission bits."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; and their higher halves
    _checked(libc.capget(header, sets))
    before = sets[0]
    secure = _checked(libc.prctl(_GET_SECUREBITS, 0, 0, 0, 0))
    # Else a program that root starts gets all of them back.
    _checked(libc.prctl(_SET_SECUREBITS, secure | _NOROOT, 0, 0, 0))
    sets[0] = before & ~_DAC
    _checked(libc.capset(header, sets))
    try:
        yield
    finally:
        sets[0] = before
        _checked(libc.capset(header, sets))
        _checked(libc.prctl(_SET_SECUREBITS, secure, 0, 0, 0))


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
