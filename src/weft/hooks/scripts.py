"""Hook scripts of a project, by hash: trust is bound to their content."""

from __future__ import annotations

from typing import Final

from weft.errors import UsageError
from weft.sha256 import sha256
from weft.workspace import SourceFolder, read_small_file

LARGEST_SCRIPT: Final = 16 * 1024 * 1024
"""Bytes of all scripts together that the hooks of a project name."""
UNREADABLE: Final = "not read"
"""In place of the hash of a script that is too large or cannot be read; it is never run."""


def script_hash(folder: SourceFolder, name: str, most: int = LARGEST_SCRIPT) -> tuple[str, int]:
    """SHA-256 of a file that a hook's command names, and its size; or `UNREADABLE`."""
    try:
        found = read_small_file(folder, name, max(0, most))
    except UsageError:
        return UNREADABLE, 0
    # A script that is missing now must not run unseen when it appears later.
    if found is None:
        return UNREADABLE, 0
    return sha256(found.data).hexdigest(), len(found.data)
