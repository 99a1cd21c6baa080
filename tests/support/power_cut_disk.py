"""A disk that loses power: an apsw VFS that knows what would survive.

The files are real, and everything SQLite does to them happens.  Beside that the model keeps, for
each file, what is certain (its content at the last sync) and what is only in flight since; and for
the directory, which names are certain.  A cut freezes the model at one operation.  `survivor` then
makes one of the directories that the machine might find after it: every write in flight is lost,
kept, or torn into sectors of which each is lost or kept by itself, whatever the order they were
made in; truncations and names likewise.  Sectors are atomic, as SQLite assumes by default
(`POWERSAFE_OVERWRITE`).
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import apsw

SECTOR = 512


class PowerCutFile:
    """What is certain about one file, and what is in flight."""

    def __init__(self, content: bytes) -> None:
        self.certain = content
        self.in_flight: list[tuple[int, bytes] | int] = []
        """Writes as (offset, data) and truncations as a size, in order."""

    def sync(self) -> None:
        """All of it is on the disk now."""
        self.certain = self.replayed(None)
        self.in_flight.clear()

    def replayed(self, dice: random.Random | None) -> bytes:
        """The content with everything in flight, or with what the dice leave of it."""
        content = bytearray(self.certain)
        for operation in self.in_flight:
            if isinstance(operation, int):
                if dice is None or dice.random() < 0.5:
                    _resize(content, operation)
                continue
            offset, data = operation
            for start, piece in _survivors(offset, data, dice):
                _resize(content, max(len(content), start + len(piece)))
                content[start : start + len(piece)] = piece
        return bytes(content)


def _resize(content: bytearray, size: int) -> None:
    del content[size:]
    content.extend(bytes(size - len(content)))


def _survivors(offset: int, data: bytes, dice: random.Random | None) -> list[tuple[int, bytes]]:
    fate = "kept" if dice is None else dice.choice(("lost", "kept", "torn"))
    if fate == "lost":
        return []
    if fate == "kept" or dice is None:
        return [(offset, data)]
    pieces = []
    position = 0
    while position < len(data):
        end = min(len(data), position + SECTOR - (offset + position) % SECTOR)
        if dice.random() < 0.5:
            pieces.append((offset + position, data[position:end]))
        position = end
    return pieces


class PowerCutDisk:
    """The model of one directory.

    `cut_at` is the number of the operation at which the power goes.
    """

    def __init__(self, cut_at: int) -> None:
        self.is_cut = False
        self.operations = 0
        self._cut_at = cut_at
        self._files: dict[str, PowerCutFile] = {}
        self._names: dict[str, PowerCutFile] = {}
        """The names that are certain."""

    def passes(self) -> bool:
        """Count one operation; False when the power is gone."""
        self.operations += 1
        if self.operations >= self._cut_at:
            self.is_cut = True
        return not self.is_cut

    def opened(self, path: str, *, existed: bool) -> None:
        """A file is used for the first time; one that was there before is certain."""
        if path not in self._files:
            self._files[path] = PowerCutFile(Path(path).read_bytes() if existed else b"")
            if existed:
                self._names[path] = self._files[path]

    def wrote(self, path: str, offset: int, data: bytes) -> None:
        """Bytes are in flight."""
        self._files[path].in_flight.append((offset, data))

    def truncated(self, path: str, size: int) -> None:
        """A truncation is in flight."""
        self._files[path].in_flight.append(size)

    def synced(self, path: str) -> None:
        """The file is certain."""
        self._files[path].sync()

    def synced_names(self) -> None:
        """The directory is certain."""
        self._names = dict(self._files)

    def deleted(self, path: str) -> None:
        """The name goes; certainly only when the directory is synced."""
        self._files.pop(path, None)

    def survivor(self, place: Path, dice: random.Random) -> None:
        """Write into `place` one of the directories that the cut may have left."""
        place.mkdir(parents=True)
        for path in {**self._names, **self._files}:
            now, before = self._files.get(path), self._names.get(path)
            if now is before is not None:
                found: PowerCutFile | None = now
            else:
                found = dice.choice((now, before))
            if found is not None:
                (place / Path(path).name).write_bytes(found.replayed(dice))


class _OpenFile(apsw.VFSFile):
    def __init__(self, disk: PowerCutDisk, filename: Any, flags: list[int]) -> None:
        self._disk = disk
        name = filename if isinstance(filename, str) else filename.filename()
        self._path = str(name)
        existed = os.path.exists(self._path)
        self._has_new_name = not existed and bool(
            flags[0] & (apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL)
        )
        super().__init__("", filename, flags)
        if not disk.is_cut:
            disk.opened(self._path, existed=existed)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802  # SQLite's name
        if self._disk.passes():
            self._disk.wrote(self._path, offset, bytes(data))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802  # SQLite's name
        if self._disk.passes():
            self._disk.truncated(self._path, newsize)
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802  # SQLite's name
        super().xSync(flags)
        if self._disk.passes():
            self._disk.synced(self._path)
            # SQLite's own VFS syncs the directory with the first sync of a new journal or log.
            if self._has_new_name:
                self._has_new_name = False
                self._disk.synced_names()


class PowerCutVFS(apsw.VFS):
    """The VFS that tells a `PowerCutDisk` what SQLite does; `unregister` it in the end."""

    def __init__(self, name: str, disk: PowerCutDisk) -> None:
        self._disk = disk
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802  # SQLite's name
        if name is None:
            return super().xOpen(name, flags)  # a temporary file: nothing depends on it
        return _OpenFile(self._disk, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802  # SQLite's name
        super().xDelete(filename, syncdir)
        if self._disk.passes():
            self._disk.deleted(filename)
            if syncdir:
                self._disk.synced_names()
