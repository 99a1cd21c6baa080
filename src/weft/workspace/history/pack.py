"""Pre-images: what files held before anything changed them, in one private file per project.

A command may change any file, and what a file held must be known *before* it does.  So before the
first command outside a sandbox every small file of the project is copied here, and again whenever
it has changed; a file that was only looked at is named without its content.  It is a store of what
could be needed, not history: what a command really changed is handed on and kept with the log.  It
may be deleted at any time when no process uses it.

The file only grows: a mark, then records, each a head (length, checksum, path and what the file
looked like) and the content.  A later record of a path replaces the earlier one.  A killed process
leaves at most a torn last record, which is cut off; content is believed only when it has the hash
that its head names.  When the file is full and much of it is out of date, what counts is written
anew.

One process uses the file at a time (it holds its lock); another one keeps a file without a name for
as long as it runs.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from binascii import crc32  # the one of zlib, without the rest of it: 260 KB
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from weft.ids import BlobId
from weft.sha256 import sha256

_MARK: Final = b"weft pre-images 2\n"
_FIRST_MARK: Final = b"weft pre-images 1\n"
"""Of a program that copies every file: it would take a file of ours for one that it has copied."""
_HEAD = struct.Struct("<III")  # length of the head, its checksum, length of the content
_BUFFERED = 1024 * 1024
_FORGET: Final = ".forget"
"""Ending of the empty file that asks for the removal of a pack."""
REMEMBERED: Final = 64
"""Commands whose changes are remembered after their end."""


class FileEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What was found at a path."""

    mode: int
    """As `lstat` has it, with the kind."""
    size: int = 0
    changed: int = 0
    """Stands for modification time, status change time and inode.

    0 when it must be read again to be sure.
    """
    hash: BlobId = BlobId("")
    """Of the content, of a link's target; empty when it was not read."""
    why_not: str = ""
    """Why the content is not kept; empty when it is."""
    offset: int = -1
    """Where the content is kept."""
    inode: int = 0
    links: int = 1


class RunRecord(msgspec.Struct, frozen=True, array_like=True):
    """A command began or, with its changes, ended."""

    label: str
    changes: tuple[PackChange, ...] | None = None


class PackChange(NamedTuple):
    """A path that differs; None: nothing is there."""

    path: str
    before: FileEntry | None
    after: FileEntry | None


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    """The head of a record: what is at a path (None: nothing any more), or a note about a
    command.
    """

    path: str
    entry: FileEntry | None = None
    noted: RunRecord | None = None


class PreimagePack:
    """One file of pre-images; not for several threads at once."""

    def __init__(self, path: str | None, limit: int) -> None:
        self.limit = limit
        self._path: str | None = None
        self.begun: dict[str, dict[str, FileEntry | None]] = {}
        """Commands that an earlier process began and did not see the end of, with what paths were
        that are known to have changed since.
        """
        self.ended: dict[str, tuple[PackChange, ...]] = {}
        """What the last commands changed that an earlier process saw the end of."""
        self._live = 0
        """Bytes of the content that counts."""
        self._buffer = bytearray()
        self._fd = self._open(path)
        self._end = len(_MARK)
        self._loaded: dict[str, FileEntry] = {}
        self._load()

    @property
    def is_private(self) -> bool:
        """True when nothing of it outlives the process."""
        return self._path is None

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._end

    def loaded(self) -> dict[str, FileEntry]:
        """What an earlier process left; handed out once."""
        found, self._loaded = self._loaded, {}
        return found

    # -- writing

    def put(
        self, path: str, entry: FileEntry, data: bytes, replaces: FileEntry | None
    ) -> FileEntry:
        """Keep the content of a path.

        Returns the entry with its place, or with the reason when there is no room.
        """
        # A part is left for the names of files whose content has no room: their changes are
        # reported all the same. 512 bytes are room for the head of a record.
        if self._end + len(data) + 512 > self.limit - self.limit // 32:
            full = msgspec.structs.replace(entry, why_not="quota")
            self._record(path, full, b"", replaces)
            return full
        offset = self._record(path, entry, data, replaces)
        return msgspec.structs.replace(entry, offset=offset)

    def mention(self, path: str, entry: FileEntry | None, replaces: FileEntry | None) -> None:
        """Write down what is at a path without its content; None: nothing is there."""
        self._record(path, entry, b"", replaces)

    def begin(self, label: str) -> None:
        """A command begins; everything before is in the system's hands on return."""
        self._record("", None, b"", None, RunRecord(label))
        self.flush()

    def end(self, label: str, changes: Iterable[PackChange]) -> None:
        """A command has ended.

        What it changed is in the system's hands on return, for it may not be on record elsewhere
        yet.
        """
        self._record("", None, b"", None, RunRecord(label, tuple(changes)))
        self.flush()

    def _record(
        self,
        path: str,
        entry: FileEntry | None,
        data: bytes,
        replaces: FileEntry | None,
        noted: RunRecord | None = None,
    ) -> int:
        head = _encode(_Kept(path, entry, noted))
        self._buffer += _HEAD.pack(len(head), crc32(head), len(data))
        self._buffer += head
        self._buffer += data
        self._end += _HEAD.size + len(head) + len(data)
        self._live += len(data)
        if replaces is not None and replaces.offset >= 0:
            self._live -= replaces.size
        if len(self._buffer) >= _BUFFERED:
            self.flush()
        return self._end - len(data)

    def flush(self) -> None:
        """Hand everything to the system, so that a kill loses nothing of it."""
        start = self._end - len(self._buffer)
        view = memoryview(bytes(self._buffer))
        self._buffer.clear()
        while view:
            written = os.pwrite(self._fd, view, start)
            start += written
            view = view[written:]

    # -- reading

    def get(self, entry: FileEntry) -> bytes | None:
        """The content that belongs to an entry; None when it is not kept, or not what it was."""
        if entry.offset < 0:
            return None
        if entry.offset + entry.size > self._end - len(self._buffer):
            self.flush()
        parts: list[bytes] = []
        left, place = entry.size, entry.offset
        while left > 0:
            part = os.pread(self._fd, left, place)
            if not part:
                return None
            parts.append(part)
            left -= len(part)
            place += len(part)
        data = b"".join(parts)
        return data if sha256(data).hexdigest() == entry.hash else None

    # -- room

    @property
    def wants_compaction(self) -> bool:
        """True when it is nearly full and half of it is out of date."""
        return self._end > self.limit * 3 // 4 and self._live < self._end // 2

    def compact(self, entries: Mapping[str, FileEntry]) -> dict[str, FileEntry]:
        """Write anew what counts.

        Returns the entries with their new places.  Those of before are void.
        """
        self.flush()
        fresh = PreimagePack(None, self.limit)
        try:
            if self._path is not None:
                fresh._take_name(f"{self._path}.new")
            moved = {path: self._copied(path, entry, fresh) for path, entry in entries.items()}
            fresh.flush()
            if self._path is not None:
                # Not synced, on purpose: the pack can be made again from the project, and after a
                # power cut the hash of each content is compared anyway.
                os.rename(f"{self._path}.new", self._path)
        except BaseException:
            fresh.close()
            raise
        # Closing drops the lock of the old file; the new one is locked already, and has its name.
        os.close(self._fd)
        self._fd, self._end, self._live = fresh._fd, fresh._end, fresh._live
        return moved

    def _copied(self, path: str, entry: FileEntry, fresh: PreimagePack) -> FileEntry:
        data = self.get(entry)
        if data is not None:
            return fresh.put(path, entry, data, None)
        lost = "lost" if entry.offset >= 0 else entry.why_not
        plain = msgspec.structs.replace(entry, offset=-1, why_not=lost)
        fresh.mention(path, plain, None)
        return plain

    def _take_name(self, path: str) -> None:
        """Go on in a file with a name, instead of the one without.

        Its lock is held before another process can find it by its final name.
        """
        os.close(self._fd)
        with suppress(FileNotFoundError):
            os.unlink(path)
        self._fd = _open_named(path, os.O_EXCL)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.pwrite(self._fd, _MARK, 0)

    def close(self) -> None:
        """Write what is not written, and let go; a file that is to be forgotten is removed."""
        try:
            self.flush()
        finally:
            # Before the lock goes: a process that takes it next must find the file or none.
            if self._path is not None and os.path.exists(f"{self._path}{_FORGET}"):
                _remove(self._path)
            os.close(self._fd)

    # -- opening

    def _open(self, path: str | None) -> int:
        if path is not None:
            # A disk without locks, or read-only: then nothing outlives the process.
            with suppress(OSError):
                fd = _open_named(path)
                if _is_ours(fd, path):
                    self._path = path
                    return fd
                os.close(fd)
        import tempfile  # a megabyte, and most packs have a file of their own

        fd, name = tempfile.mkstemp(prefix="weft-")
        os.unlink(name)
        return fd

    def _load(self) -> None:
        size = os.fstat(self._fd).st_size
        mark = os.pread(self._fd, len(_MARK), 0)
        if size <= len(_MARK) or mark not in (_MARK, _FIRST_MARK):
            # An older version, or no pack at all: it is a cache of what is on disk, so it starts
            # empty.
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, _MARK, 0)
            return
        if mark == _FIRST_MARK:
            os.pwrite(self._fd, _MARK, 0)
        with mmap.mmap(self._fd, size, access=mmap.ACCESS_READ) as view:
            for kept, end in _records(view, size):
                self._take(kept, end)
        os.ftruncate(self._fd, self._end)  # a torn last record

    def _take(self, kept: _Kept, end: int) -> None:
        self._end = end
        if kept.noted is not None:
            self._take_note(kept.noted)
            return
        before = self._loaded.pop(kept.path, None)
        for since in self.begun.values():
            since.setdefault(kept.path, before)
        if before is not None and before.offset >= 0:
            self._live -= before.size
        if kept.entry is not None:
            offset = -1 if kept.entry.why_not or not kept.entry.hash else end - kept.entry.size
            self._loaded[kept.path] = msgspec.structs.replace(kept.entry, offset=offset)
            self._live += kept.entry.size if offset >= 0 else 0

    def _take_note(self, noted: RunRecord) -> None:
        if noted.changes is None:
            self.begun[noted.label] = {}
            return
        self.begun.pop(noted.label, None)
        self.ended.pop(noted.label, None)
        self.ended[noted.label] = noted.changes
        if len(self.ended) > REMEMBERED:
            del self.ended[next(iter(self.ended))]


def mark_for_removal(path: str) -> None:
    """Have the file of pre-images removed by the process that uses it, when it lets go."""
    if os.path.exists(path):
        os.close(_open_named(f"{path}{_FORGET}"))


def remove_unused(path: str) -> None:
    """Remove the file of pre-images, unless a process uses it."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if _is_ours(fd, path):
            _remove(path)
    finally:
        os.close(fd)


def _remove(path: str) -> None:
    # The mark goes last: a kill in between leaves it, and the next one to let go finishes this.
    for ending in (".new", "", _FORGET):
        with suppress(FileNotFoundError):
            os.unlink(f"{path}{ending}")


def _records(view: mmap.mmap, size: int) -> Iterator[tuple[_Kept, int]]:
    """The records that are whole, each with the place after it."""
    place = len(_MARK)
    while place + _HEAD.size <= size:
        length, checksum, content = _HEAD.unpack_from(view, place)
        start = place + _HEAD.size
        place = start + length + content
        if place > size:
            return
        head = view[start : start + length]
        # Only the head is summed: the content has its hash, and is read when it is needed.
        if crc32(head) != checksum:
            return
        try:
            kept = _decoder.decode(head)
        except msgspec.MsgspecError:
            return
        has_content = kept.entry is not None and bool(kept.entry.hash) and not kept.entry.why_not
        if content != (kept.entry.size if kept.entry is not None and has_content else 0):
            return
        yield kept, place


def _open_named(path: str, flags: int = 0) -> int:
    flags |= os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, 0o600)


def _is_ours(fd: int, path: str) -> bool:
    """True when we hold the lock, and the file is still the one with that name."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        named = os.stat(path, follow_symlinks=False)
    except OSError:
        return False
    mine = os.fstat(fd)
    return (named.st_dev, named.st_ino) == (mine.st_dev, mine.st_ino)


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(_Kept)
