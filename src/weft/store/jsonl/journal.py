"""The journal of a batch: appends to several files become atomic by being written here first.

The journal holds the lines and where they go.  From the moment it is durable the batch has
happened: the process that finds it there (the next one to take the lock) finishes it.  It is
emptied, durably, when all files have their lines.

When a file cannot be written (a full disk), the journal is overwritten with the way back, which is
shorter and so always has room; then the files are cut to what they were.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

import msgspec

from weft import faults
from weft.file_io import write_all
from weft.store.fsync import sync_folder
from weft.store.jsonl.paths import JsonlPaths

BEFORE_WRITE = faults.point("store.jsonl.before_write")
AFTER_WRITE = faults.point("store.jsonl.after_write")
AFTER_SYNC = faults.point("store.jsonl.after_sync")


class JournalEntry(msgspec.Struct, frozen=True):
    """Lines for one stream, and the size of its file before them."""

    stream: str
    offset: int
    lines: str = ""


class _Journal(msgspec.Struct, frozen=True, tag_field="journal"):
    entries: tuple[JournalEntry, ...]


class _Redo(_Journal, frozen=True, tag="redo"): ...


class _Undo(_Journal, frozen=True, tag="undo"): ...


_decoder = msgspec.json.Decoder(_Redo | _Undo)


def write(places: JsonlPaths, entries: Sequence[JournalEntry]) -> None:
    """Write the lines to their files, all of them or none, durably.

    Raises:
        OSError: the disk refused; the files are as they were.
    """
    if len(entries) == 1 and entries[0].lines.count("\n") == 1:
        # A line is whole or torn, and a torn one is cut off: one needs no journal.  Of two the
        # first could be left alone.
        _write_one(places, entries[0])
        return
    try:
        _put(places, _Redo(tuple(entries)))
    except OSError:
        _empty(places)
        raise
    try:
        for entry in entries:
            put_lines(places, entry)
    except OSError:
        # Written over the first journal and not beside it: a crash must find one of them, never
        # both.
        _put(places, _Undo(tuple(JournalEntry(entry.stream, entry.offset) for entry in entries)))
        recover(places)
        raise
    # All files have their lines, so the batch has happened; a journal that is left is finished
    # again without harm.
    with contextlib.suppress(OSError):
        _empty(places)


def recover(places: JsonlPaths) -> None:
    """Finish, or take back, the batch that a crash left in the journal."""
    try:
        data = places.journal.read_bytes()
    except FileNotFoundError:
        return
    if not data:
        return
    left = _decoded(data)
    for entry in left.entries if left is not None else ():
        if isinstance(left, _Redo):
            put_lines(places, entry)
        else:
            cut(places, entry)
    _empty(places)


def _decoded(data: bytes) -> _Redo | _Undo | None:
    """What a journal says; a torn one was never confirmed and says nothing."""
    first, end, _ = data.partition(b"\n")
    try:
        return _decoder.decode(first) if end else None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _write_one(places: JsonlPaths, entry: JournalEntry) -> None:
    try:
        put_lines(places, entry)
    except OSError:
        cut(places, entry)
        raise


def put_lines(places: JsonlPaths, entry: JournalEntry) -> None:
    """Have the lines stand at their offset.

    Where they do already, nothing is touched, nor what follows them.
    """
    path = places.log(entry.stream)
    data = entry.lines.encode()
    fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        if not entry.offset:
            # The name first, and also when an empty file is there already: its maker may have died
            # before this.
            sync_folder(path.parent)
        BEFORE_WRITE.hit()
        size = os.fstat(fd).st_size
        if size <= entry.offset or os.pread(fd, len(data), entry.offset) != data:
            # A crash left a part of the lines; what stands behind the offset was never confirmed.
            if size != entry.offset:
                os.ftruncate(fd, entry.offset)
            os.lseek(fd, entry.offset, os.SEEK_SET)
            write_all(fd, data)
        AFTER_WRITE.hit()
        os.fdatasync(fd)
        AFTER_SYNC.hit()
    finally:
        os.close(fd)


def cut(places: JsonlPaths, entry: JournalEntry) -> None:
    """Cut the file to what it was."""
    path = places.log(entry.stream)
    if not path.exists():
        return
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.ftruncate(fd, entry.offset)
        os.fdatasync(fd)
    finally:
        os.close(fd)


def _put(places: JsonlPaths, journal: _Journal) -> None:
    fd = os.open(places.journal, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        if not places.is_journal_named:
            sync_folder(places.folder)
            places.is_journal_named = True
        BEFORE_WRITE.hit()
        # The line end comes last, so a torn journal has none; what follows it is of an older,
        # longer one.
        write_all(fd, msgspec.json.encode(journal) + b"\n")
        AFTER_WRITE.hit()
        os.fdatasync(fd)
        AFTER_SYNC.hit()
    finally:
        os.close(fd)


def _empty(places: JsonlPaths) -> None:
    fd = os.open(places.journal, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.ftruncate(fd, 0)
        os.fdatasync(fd)
    finally:
        os.close(fd)
