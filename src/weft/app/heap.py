"""The heap of the C library, in which memory that was freed is not left lying about.

Values of up to 512 bytes live in pools of Python's own; everything larger is taken from the C
library.  glibc gives each thread an arena of its own, up to eight for each core, and returns freed
memory by itself only from an arena's end.  So a process with a dozen threads grows for hours, by as
much as each of them ever held at once, although it uses no more than before.  On macOS and with
musl both functions do nothing.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

MOST_ARENAS: Final = 1
"""Only one thread at a time runs Python, so that it hardly ever waits for another's block."""
_M_ARENA_MAX: Final = -8


def limit_arenas() -> None:
    """Have threads that start from now on share the arenas there are, or a few.

    It works while there are no more than eight.  What the user has set for the process stands.
    """
    is_set = "MALLOC_ARENA_MAX" in os.environ or "arena_max" in os.environ.get("GLIBC_TUNABLES", "")
    if not is_set and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        mallopt(_M_ARENA_MAX, MOST_ARENAS)


def trim() -> None:
    """Return the free pages of all arenas to the system.

    It takes some milliseconds, in which other threads may wait for memory.
    """
    if (malloc_trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        malloc_trim(0)
