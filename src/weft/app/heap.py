"""The heap of the C library, in which memory that was freed is not left lying about.

Values of up to 512 bytes live in pools of Python's own, which go back to the system; everything
larger is taken from the C library.  glibc gives each thread an arena of its own, up to eight for
each core, and returns freed memory by itself only from an arena's end.  So a process with a dozen
threads grows for hours, by as much as each of them ever held at once, although it uses no more than
before.
"""

from __future__ import annotations

import ctypes


def trim() -> None:
    """Return the free pages of all arenas to the system; on macOS and with musl, do nothing.

    It takes some milliseconds, in which other threads may wait for memory.
    """
    if (malloc_trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        malloc_trim(0)
