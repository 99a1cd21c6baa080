"""Commits that were made since a look at a repository: what its own record of HEAD, the reflog, has
got since then.  What a command prints says nothing of it.  Blocks.
"""

from __future__ import annotations

import os
import re
from typing import Final

import msgspec

from weft.errors import FinalToolError
from weft.workspace.git_repository import find_repository

MOST_BYTES: Final = 256 * 1024
"""What is read of a record that grew."""
MOST_COMMITS: Final = 100
_MADE: Final = re.compile(
    rb"^[0-9a-f]{40,64} ([0-9a-f]{40,64}) [^\n]*\t"
    rb"(?:commit\b|cherry-pick|revert|rebase[^:\n]*\((?:pick|reword|squash|fixup|edit)\)"
    rb"|merge [^:\n]*: Merge made|am:)",
    re.MULTILINE,
)


class HeadRecord(msgspec.Struct, frozen=True):
    """The record of a HEAD, and how long it was."""

    path: str
    size: int


def head_record(folder: str) -> HeadRecord | None:
    """What is to be compared; None where there is no repository."""
    try:
        repository = find_repository(folder)
    except (FinalToolError, OSError):
        return None
    if repository is None:
        return None
    path = f"{repository.records}/logs/HEAD"
    try:
        return HeadRecord(path, os.stat(path).st_size)
    except OSError:
        return HeadRecord(path, 0)


def commits_since(record: HeadRecord) -> list[str]:
    """The commits that were made since, the oldest first; checkouts and resets make none."""
    try:
        with open(record.path, "rb") as file:
            file.seek(record.size)
            grown = file.read(MOST_BYTES)
    except OSError:
        return []
    found = dict.fromkeys(commit.decode() for commit in _MADE.findall(grown))
    return list(found)[:MOST_COMMITS]
