"""The heap of the C library, in which memory that was freed is not left lying about.

Values of up to 512 bytes live in pools of Python's own; everything larger is taken from the C
library.  glibc gives each thread an arena of its own, up to eight for each core, and returns freed
memory by itself only from an arena's end.  So a process with a dozen threads grows for hours, by as
much as each of them ever held at once, although it uses no more than before.

A large block is mapped by itself and goes back at once, but only at first: each one that is freed
raises the size from which blocks are mapped, to as much as 32 MB.  From then on the buffers of a
round come and go in the heap, small blocks that stay settle in the holes, and the next buffer needs
new room.  Twenty sessions used 14 MB of a heap that grew to 66 in six minutes.

On macOS and with musl all of this does nothing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Final

MOST_ARENAS: Final = 1
"""Only one thread at a time runs Python, so that it hardly ever waits for another's block."""
MAPPED_BYTES: Final = 128 * 1024
"""Blocks from this size on are mapped by themselves: what glibc begins with.

A mapped block has fresh pages: to read a megabyte takes 0.5 ms instead of 0.02, and to receive from
a socket, for which asyncio asks for 256 KB, 16 µs instead of 3.  Smaller ones cost what they did.
"""
_M_ARENA_MAX: Final = -8
_M_MMAP_THRESHOLD: Final = -3


def settle(environ: Mapping[str, str]) -> None:
    """Have threads that start from now on share the arenas there are, or a few, and large blocks
    always mapped by themselves.

    The first works while there are no more than eight arenas.  What the user has set for the
    process, in the environment that it was started with, stands.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    if not _is_set(environ, "MALLOC_ARENA_MAX", "arena_max"):
        mallopt(_M_ARENA_MAX, MOST_ARENAS)
    if not _is_set(environ, "MALLOC_MMAP_THRESHOLD_", "mmap_threshold"):
        # To set it at all is what counts: glibc then no longer raises it by itself.
        mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES)


def _is_set(environ: Mapping[str, str], variable: str, tunable: str) -> bool:
    return variable in environ or tunable in environ.get("GLIBC_TUNABLES", "")


def trim() -> None:
    """Return the free pages of all arenas to the system.

    It takes some milliseconds, in which other threads may wait for memory.
    """
    if (malloc_trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        malloc_trim(0)
