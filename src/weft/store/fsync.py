"""Folders whose names outlive a power cut.

A file that is synced is lost all the same when the name of its folder, or of a folder above, was
never written.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def make_durable_folder(folder: Path) -> None:
    """Make a folder that only its owner may look into, with those above it.

    Every new name is durable.
    """
    if folder.is_dir():
        return
    if folder.parent != folder:
        # From the top down: a name below a folder whose own name was lost is lost as well.
        make_durable_folder(folder.parent)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not folder.is_dir():
            raise
    # A folder that may be written to and not read cannot be synced; the name is as good as it gets.
    with contextlib.suppress(PermissionError):
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
