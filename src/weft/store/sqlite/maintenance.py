"""Care of a store file that may be in use: a copy of it, a check of every byte, and the room that
it does not need.

Each works beside processes that write.  A backup is what one moment had.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import apsw
import msgspec

from weft.errors import Corrupt, StoreUnavailable, UsageError
from weft.ids import BlobId
from weft.sha256 import sha256
from weft.store.base import Record
from weft.store.fsync import sync_folder
from weft.store.sqlite.connect import BusyHandler, explained, open_reader, open_writer
from weft.store.sqlite.delete import sweep_blobs
from weft.store.sqlite.query import fetch
from weft.store.sqlite.schema import check_version

PATIENCE_SECONDS: Final = 60.0
"""How long a lock of another process is waited for."""
_BLOB_PAGE: Final = 64
_NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
"""What file systems without hard links answer."""
_OF_SOURCE: Final = (apsw.CorruptError, apsw.NotADBError, apsw.BusyError, apsw.LockedError)

_LOST_BLOBS: Final = """
    select blob_no from (select blob_no from blob_refs union select blob_no from history_refs)
    where blob_no not in (select blob_no from blobs) order by blob_no limit 1000
"""
_FACTS: Final = """
    select seq, at, kind, body from facts
    where stream_no = (select stream_no from streams where name = ?) and seq > ?
    order by seq limit ?
"""


class VacuumReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a vacuum did."""

    bytes_before: int
    bytes_after: int
    unnamed_bytes: int
    """Of contents that no session names any more."""

    @property
    def freed(self) -> int:
        """Bytes that the file system has back; none where a reader of another process keeps the
        old file in use for longer than is waited for.
        """
        return max(0, self.bytes_before - self.bytes_after)


def backup(path: Path, target: Path) -> int:
    """Copy a store as one moment has it, while others write; returns the size of the copy.

    The copy is whole under its name, or not there.

    Raises:
        UsageError: there is something at the target.
        StoreUnavailable: it cannot be read, or the copy not be written.
    """
    if target.exists():
        raise UsageError(f"{target} exists; a backup overwrites nothing")
    new = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        _copy(path, new, target)
        _name(new, target)
    except OSError as error:
        raise StoreUnavailable(f"cannot write {target}: {error.strerror}") from error
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                new.with_name(new.name + end).unlink(missing_ok=True)
    sync_folder(target.parent)
    return target.stat().st_size


def _name(new: Path, target: Path) -> None:
    try:
        os.link(new, target)  # fails where something came there since
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Sticks and network drives: there, only a file that comes in this instant is replaced.
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
        os.rename(new, target)


def _copy(path: Path, new: Path, target: Path) -> None:
    descriptor = os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        with (
            closing(_opened(path)) as source,
            closing(apsw.Connection(str(new), flags=apsw.SQLITE_OPEN_READWRITE)) as copy,
        ):
            try:
                # In one step, which is one read transaction: writers go on, and none of what they
                # write gets in. In several, each of their commits would begin it anew.
                with copy.backup("main", source, "main") as work:
                    work.step(-1)
                copy.execute("pragma journal_mode = delete")
            except apsw.Error as error:
                # What can only be wrong with the store is told of it, all else of the copy: a full
                # disk is the one that was to take it.
                where = path if isinstance(error, _OF_SOURCE) else target
                raise explained(error, where, number=copy.system_errno) from error
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _opened(path: Path) -> apsw.Connection:
    """A connection that reads, and waits for locks from now on."""
    patience = BusyHandler(PATIENCE_SECONDS, path)
    patience.start()
    return open_reader(path, vfs=None, patience=patience)


def problems(path: Path) -> Iterator[str]:
    """What is wrong with a store file: its structure, the word index, every blob against its hash,
    and blobs that are named and not there; nothing when all is well.

    Raises:
        StoreUnavailable: it cannot be read at all, or is no store.
    """
    with closing(_opened(path)) as db:
        try:
            if not check_version(db, path):
                raise StoreUnavailable(f"{path} is no store: it is empty")
            yield from (
                f"the file: {said}"
                for (said,) in fetch(db, "pragma integrity_check")
                if said != "ok"
            )
            yield from _bad_blobs(db)
            for (number,) in fetch(db, _LOST_BLOBS):
                yield f"blob number {number}: it is named, and its content is missing"
        except (apsw.CorruptError, apsw.NotADBError, UnicodeDecodeError) as error:
            yield f"the file: {error}"


def _bad_blobs(db: apsw.Connection) -> Iterator[str]:
    last = 0
    page = "select blob_no, id, size, data from blobs where blob_no > ? order by blob_no limit ?"
    while found := fetch(db, page, (last, _BLOB_PAGE)):
        for number, blob_id, size, data in found:
            last = number
            if len(data) != size or sha256(bytes(data)).hexdigest() != BlobId(blob_id):
                yield f"blob {blob_id}: its content is not what its name says"


class RecordReader:
    """The logs of a store file as one moment has them, read without opening it as a store: nothing
    is written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db = _opened(path)
        # In one transaction: a log that is written to or deleted meanwhile would seem to be torn.
        self._db.execute("begin")

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    @property
    def blob_count(self) -> int:
        """How many blobs there are."""
        return int(self._fetch("select count(*) from blobs")[0][0])

    @property
    def streams(self) -> dict[str, int]:
        """The names of all logs, each with the number of its last fact."""
        names = "select name, last_seq from streams where last_seq > 0 order by stream_no"
        return {str(name): int(last) for name, last in self._fetch(names)}

    async def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[Record]:
        """Facts after a place, oldest first."""
        found = self._fetch(_FACTS, (stream, after, limit))
        return [
            Record(seq=seq, at=at, kind=kind, body=bytes(body)) for seq, at, kind, body in found
        ]

    def _fetch(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return fetch(self._db, sql, values)
        except apsw.Error as error:
            raise explained(error, self._path) from error
        except UnicodeDecodeError as error:
            raise Corrupt(str(self._path), f"a name is no text: {error}") from error

    async def load_snapshot(self, stream: str, version: str) -> None:
        """None: the log alone counts."""


def vacuum(path: Path) -> VacuumReport:
    """Drop what no session names, and write the file anew without the pages that are free.

    Appends of others wait meanwhile.

    Raises:
        StoreUnavailable: others have it locked all the time, or there is no room for the new file.
    """
    before = _size(path)
    patience = BusyHandler(PATIENCE_SECONDS, path)
    with closing(open_writer(path, synchronous="FULL", vfs=None, patience=patience)) as db:
        try:
            patience.start()
            with db:
                unnamed = sweep_blobs(db)
            patience.start()
            db.execute("vacuum")
            db.execute("pragma wal_checkpoint(truncate)")
        except apsw.Error as error:
            raise explained(error, path, number=db.system_errno) from error
    return VacuumReport(bytes_before=before, bytes_after=_size(path), unnamed_bytes=unnamed)


def _size(path: Path) -> int:
    beside = (path.with_name(path.name + end) for end in ("", "-wal"))
    return sum(each.stat().st_size for each in beside if each.exists())
