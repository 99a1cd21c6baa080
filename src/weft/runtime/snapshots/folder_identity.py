"""What tells a folder from all others of its path, on whichever host that is.

Two hosts that share a file system see the same inode and birth time in it; a folder of the same
path on a disk of its own has others.  Device numbers are each host's own.
"""

from __future__ import annotations

import os

from weft.workspace.history.birth_time import born


def identity_of(folder: str) -> str:
    """Its identity; empty where there is no folder, or its disk knows no birth times.  Blocks."""
    try:
        about = os.stat(folder)
    except OSError:
        return ""
    birth = born(folder)
    return f"{about.st_ino}:{birth}" if birth else ""
