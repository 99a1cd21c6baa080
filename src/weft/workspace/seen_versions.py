"""Versions of files that a session has seen, to merge two changes from."""

from __future__ import annotations

MOST_BYTES = 16 * 1024 * 1024
MOST_OF_ONE = 1024 * 1024


class SeenVersions:
    """Versions of files that a session has seen, from which two changes of one can be merged.

    Only the last seen one of each is kept, only small ones, and the longest unseen go first.  An
    older version serves as well as the newest: what both sides have in common since then is one
    change.
    """

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}
        self._bytes = 0

    def saw(self, path: str, data: bytes) -> None:
        """This version went through the door."""
        self._bytes -= len(self._kept.pop(path, b""))
        if len(data) > MOST_OF_ONE:
            return
        self._kept[path] = data
        self._bytes += len(data)
        while self._bytes > MOST_BYTES:
            oldest = next(iter(self._kept))
            self._bytes -= len(self._kept.pop(oldest))

    def of(self, path: str) -> bytes | None:
        """The version that was seen last, None when none is kept."""
        return self._kept.get(path)
