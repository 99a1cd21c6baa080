"""Which process holds the write lock of a store.

Looked up in `/proc/locks`, and never by opening the locked file: closing any descriptor of a file
drops all POSIX locks that this process has on it, SQLite's own among them.  Where there is no
`/proc/locks`, the holder is not known.
"""

from __future__ import annotations

import os
from pathlib import Path

_WRITE_LOCK, _RECOVERY_LOCK = 120, 122
"""The first and the last byte of the shared memory that a writer, a checkpoint or a recovery locks;
those after them are readers'.
"""


def lock_holder(database: Path) -> int | None:
    """The process that holds the write lock; None when there is none, or it is not known."""
    try:
        inode = os.stat(f"{database}-shm").st_ino
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        # `1: POSIX  ADVISORY  WRITE 4711 08:01:131090 120 120`; with `->` after the number, it is
        # one that waits.
        words = line.split()
        if len(words) != 8 or words[1] != "POSIX" or words[3] != "WRITE":
            continue
        pid, place, first, last = words[4:]
        if place.rpartition(":")[2] == str(inode) and _covers(first, last) and pid.isdigit():
            return int(pid)
    return None


def _covers(first: str, last: str) -> bool:
    if not first.isdigit() or not (last == "EOF" or last.isdigit()):
        return False
    return int(first) <= _RECOVERY_LOCK and (last == "EOF" or int(last) >= _WRITE_LOCK)
