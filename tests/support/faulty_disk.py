"""A disk that fails on demand: an apsw VFS whose writes and syncs can be made to fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw


class DiskFaults:
    """What fails from now on.

    `full` and `broken` name operations that fail, "write" or "sync"; `syncs_to_fail` is how many of
    the next syncs fail.
    """

    def __init__(self) -> None:
        self.full: set[str] = set()
        self.full_while: Path | None = None
        """While there is a file of this name, writes find no room."""
        self.broken: set[str] = set()
        self.syncs_to_fail = 0
        self.failures = 0

    def check(self, operation: str) -> None:
        """Fail, if this operation is to fail."""
        has_ballast = self.full_while is not None and self.full_while.exists()
        if operation in self.full or (operation == "write" and has_ballast):
            self.failures += 1
            raise apsw.FullError("the test's disk is full")
        if operation == "sync" and self.syncs_to_fail:
            self.syncs_to_fail -= 1
            self._break()
        if operation in self.broken:
            self._break()

    def _break(self) -> None:
        self.failures += 1
        raise apsw.IOError("the test's disk is broken")


class _FaultyFile(apsw.VFSFile):
    def __init__(self, faults: DiskFaults, filename: Any, flags: list[int]) -> None:
        self._faults = faults
        super().__init__("", filename, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802  # SQLite's name
        self._faults.check("write")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802  # SQLite's name
        self._faults.check("sync")
        super().xSync(flags)


class _FaultyVFS(apsw.VFS):
    def __init__(self, name: str, faults: DiskFaults) -> None:
        self._faults = faults
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802  # SQLite's name
        return _FaultyFile(self._faults, name, flags)


@contextmanager
def faulty_disk(name: str) -> Iterator[DiskFaults]:
    """A VFS called `name`, and the faults that it has."""
    faults = DiskFaults()
    vfs = _FaultyVFS(name, faults)
    try:
        yield faults
    finally:
        vfs.unregister()
