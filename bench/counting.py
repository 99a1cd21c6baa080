"""Counters: of the appends that a store is asked for, and of the syncs of SQLite's
write-ahead log.
"""

from __future__ import annotations

import itertools
from typing import Any

import apsw

from weft.store import Append, Store

_numbers = itertools.count()


class CountingFiles(apsw.VFS):
    """The usual file system, with a count."""

    def __init__(self) -> None:
        self.name = f"counting{next(_numbers)}"
        self.syncs = 0
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> _CountingFile:  # noqa: N802  # apsw's name
        return _CountingFile(self, name, flags)


class _CountingFile(apsw.VFSFile):
    def __init__(self, files: CountingFiles, name: Any, flags: list[int]) -> None:
        self._files = files
        self._is_log = bool(flags[0] & apsw.SQLITE_OPEN_WAL)
        super().__init__("", name, flags)

    def xSync(self, flags: int) -> None:  # noqa: N802  # apsw's name
        if self._is_log:
            self._files.syncs += 1
        super().xSync(flags)


class CountingStore:
    """A store that counts its appends, and is otherwise the one it wraps."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.appends = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def append(self, *appends: Append) -> None:
        """Count, then append."""
        self.appends += 1
        await self._store.append(*appends)
