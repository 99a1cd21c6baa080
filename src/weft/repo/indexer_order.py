"""What the indexer and the processes that start it have to agree on."""

from __future__ import annotations

from typing import Final

import msgspec

from weft.sha256 import sha256

CACHE: Final = "cache.db"
"""The name of an index in its folder."""
DAMAGED: Final = "damaged"
"""The name of a file beside it that says that it cannot be read: it is to be made anew."""
REBUILT: Final = "rebuilt"
"""What that file is called afterwards, with the time when it was done."""
FINISH: Final = b"f"
"""What a parent that closes in good order says: what was begun may be finished."""
LOCK: Final = "lock"
"""The file that is locked while an indexer writes."""
LOCK_FD: Final = 3
"""Where an indexer finds the lock that was taken for it."""


def history_mark(data: bytes) -> str:
    """By what the past from a file is known again."""
    return f"file:{sha256(data).hexdigest()}"


class IndexOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What an indexer is to do."""

    project: str
    folder: str
    """Where the index lies; other folders beside it hold those of other projects."""
    environ: dict[str, str] = {}
    """What git needs: where programs are, and where the user's ignore file is."""
    history: str = ""
    """A file that has the past of the project in place of git."""
    has_lock: bool = False
    """The lock was taken for the indexer."""
    watch: bool = False
    """Go on after the first update, and say on standard output what changes."""


class FileChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What an indexer that watches says: a line of JSON for each batch."""

    created: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    is_partial: bool = False
    """There are more than are named: anything may have changed."""

    @classmethod
    def read(cls, line: bytes) -> FileChanges:
        """What a line says; one that cannot be read may have said anything."""
        try:
            return msgspec.json.decode(line, type=cls)
        except (msgspec.MsgspecError, ValueError):
            return cls(is_partial=True)
