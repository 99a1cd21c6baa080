"""A stream's file: one append, one line.

A line is an object with the end it was added to (`after`), its `records`, and whatever became
durable with them.  A record's body is a fact, which is JSON, and stands in the line as it is; other
bytes are written in base64.

The file is read once to learn where its lines are; after that only what was added.  What is wrong
with the *last* line is a torn write that was never confirmed: it is cut off, kept beside the file,
and reported.  What is wrong before it is damage.
"""

from __future__ import annotations

import bisect
import logging
import os
import re
import zlib
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from weft.errors import Corrupt
from weft.file_io import write_all
from weft.ids import BlobId, NodeId
from weft.store.base import Append, Record, SearchText, SessionRow

T = TypeVar("T")

_BLOB_NAME = re.compile(rb"[0-9a-f]{64}")

logger = logging.getLogger(__name__)


class StoredRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record as it stands in a line: `fact` when its body is JSON, else `raw`."""

    seq: int
    at: float
    kind: str
    fact: msgspec.Raw = msgspec.Raw(b"")
    raw: bytes = b""


class LogLine(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One append."""

    after: int
    records: tuple[StoredRecord, ...] = ()
    row: SessionRow | None = None
    said: tuple[SearchText, ...] = ()
    blobs: tuple[BlobId, ...] = ()
    history: tuple[BlobId, ...] = ()
    trees: tuple[BlobId, ...] = ()
    ends_drafts: tuple[NodeId, ...] = ()
    drop_draft: bool = False


class _Counted(msgspec.Struct, frozen=True):
    seq: int


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    """What the index needs of a line; the rest is passed over without being decoded."""

    after: int
    records: tuple[_Counted, ...] = ()
    row: msgspec.Raw = msgspec.Raw(b"")
    drop_draft: bool = False


class _Words(msgspec.Struct, frozen=True):
    said: tuple[SearchText, ...] = ()


class _Names(msgspec.Struct, frozen=True):
    blobs: tuple[BlobId, ...] = ()
    history: tuple[BlobId, ...] = ()
    trees: tuple[BlobId, ...] = ()


class _EndedDrafts(msgspec.Struct, frozen=True):
    ends_drafts: tuple[NodeId, ...] = ()


_encode = msgspec.json.Encoder().encode
_lines = msgspec.json.Decoder(LogLine)
_heads = msgspec.json.Decoder(_Head)
_words = msgspec.json.Decoder(_Words)
_names = msgspec.json.Decoder(_Names)
_ended = msgspec.json.Decoder(_EndedDrafts)
_raw = msgspec.json.Decoder(msgspec.Raw)


def encoded(append: Append) -> bytes:
    """An append as one line."""
    # An older program does not know `trees`: what this append brings is named one by one too.
    history = tuple(dict.fromkeys((*append.history, *append.tree_contents)))
    line = LogLine(
        after=append.expected_seq,
        records=tuple(_stored(record) for record in append.records),
        row=append.row,
        said=append.said,
        blobs=tuple(
            dict.fromkeys(
                (
                    *(blob.id for blob in append.blobs if blob.id not in history),
                    *append.names_blobs,
                )
            )
        ),
        history=history,
        trees=append.trees,
        ends_drafts=append.ends_drafts,
        drop_draft=append.drop_draft,
    )
    return _encode(line) + b"\n"


def _stored(record: Record) -> StoredRecord:
    if _stands_in_a_line(record.body):
        return StoredRecord(record.seq, record.at, record.kind, fact=msgspec.Raw(record.body))
    return StoredRecord(record.seq, record.at, record.kind, raw=record.body)


def _stands_in_a_line(body: bytes) -> bool:
    """True when the bytes are JSON on one line and come back exactly as they are."""
    if not body or b"\n" in body or b"\r" in body:
        return False
    try:
        body.decode()
        return bytes(_raw.decode(body)) == body
    except (UnicodeDecodeError, msgspec.DecodeError):
        return False


def _record(stored: StoredRecord) -> Record:
    return Record(stored.seq, stored.at, stored.kind, bytes(stored.fact) or stored.raw)


class LogFile:
    """Where the lines of one file are.  Used under the lock only."""

    def __init__(self, stream: str, path: Path) -> None:
        self.stream = stream
        self.path = path
        self.repairs: list[str] = []
        self._forget()

    def _forget(self) -> None:
        self.size = 0
        self.last_seq = 0
        self.row_at = -1
        """Where the newest line with a row begins."""
        self.dropped_at = -1
        """Where the newest line that ended a draft begins."""
        self._inode = 0
        self._changed = 0
        self._last_line = 0
        self._offsets = array("q")
        self._ends = array("q")

    def refresh(self) -> None:
        """Take in what was added since, by us or another process.

        A file that was deleted and made again may have the same number and be longer; so what was
        added is trusted only behind the last line that we know.

        Raises:
            Corrupt: a line that is not the last one cannot be read.
        """
        try:
            now = os.stat(self.path)
        except FileNotFoundError:
            self._forget()
            return
        if not self._goes_on(now):
            self._forget()
            self._inode = now.st_ino
        if now.st_size > self.size:
            self._read_on()
        # After reading: a cut-off torn end changes the time again.
        self._changed = os.stat(self.path).st_mtime_ns

    def _goes_on(self, now: os.stat_result) -> bool:
        if now.st_ino != self._inode or now.st_size < self.size:
            return False
        # Compared before the checksum, which has to read the file.
        if now.st_mtime_ns == self._changed:
            return True
        return now.st_size > self.size and self._last_line == self._checksum_of_last()

    def _checksum_of_last(self) -> int:
        if not self._offsets:
            return 0
        with self.path.open("rb") as file:
            start = self._offsets[-1]
            return zlib.crc32(os.pread(file.fileno(), self.size - start, start))

    def _read_on(self) -> None:
        fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        with os.fdopen(fd, "r+b") as file:
            # Its writer may have died before it was durable; what we show must be.
            os.fdatasync(fd)
            end = file.seek(0, os.SEEK_END)
            file.seek(self.size)
            for line in file:
                head = self._head(line)
                # Only the very last line can be a torn write; a bad line before it means that the
                # disk or another program changed the file, and nothing is cut off then.
                if head is None and self.size + len(line) < end:
                    number = len(self._offsets) + 1
                    raise Corrupt(self.stream, f"line {number} of {self.path} cannot be read")
                if head is None:
                    self._cut(file.fileno(), line)
                    return
                self._take(head, line)

    def _head(self, line: bytes) -> _Head | None:
        """What a line says, None when it is torn.

        One that does not follow on its neighbour is damage.
        """
        if not line.endswith(b"\n"):
            return None
        try:
            head = _heads.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None
        seqs = [record.seq for record in head.records]
        if head.after != self.last_seq or seqs != list(
            range(head.after + 1, head.after + 1 + len(seqs))
        ):
            raise Corrupt(
                self.stream,
                f"{self.path} does not go on from {self.last_seq}",
                seq=self.last_seq + 1,
            )
        return head

    def _take(self, head: _Head, line: bytes) -> None:
        if bytes(head.row):
            self.row_at = self.size
        if head.drop_draft:
            self.dropped_at = self.size
        self.last_seq = head.after + len(head.records)
        self._offsets.append(self.size)
        self._ends.append(self.last_seq)
        self._last_line = zlib.crc32(line)
        self.size += len(line)

    def _cut(self, fd: int, torn: bytes) -> None:
        """Keep the torn end beside the file, then cut it off."""
        beside = self.path.with_suffix(".torn")
        kept = os.open(beside, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            # Kept before it is cut off: if we are wrong, the user still has the bytes.
            write_all(kept, torn)
        finally:
            os.close(kept)
        os.ftruncate(fd, self.size)
        os.fdatasync(fd)
        sentence = (
            f"the last line of {self.path} was torn and never confirmed: "
            f"{len(torn)} bytes were cut off and kept in {beside.name}"
        )
        self.repairs.append(sentence)
        logger.warning("%s", sentence)

    def added(self, lines: Sequence[bytes]) -> None:
        """Lines that we wrote ourselves and that are durable now."""
        now = os.stat(self.path)
        self._inode, self._changed = now.st_ino, now.st_mtime_ns
        for line in lines:
            self._take(_heads.decode(line), line)

    # -- reading

    def read(self, after: int, limit: int) -> list[Record]:
        """Records behind `after`."""
        records: list[Record] = []
        number = bisect.bisect_right(self._ends, after)
        if number == len(self._ends):
            return records
        with self.path.open("rb") as file:
            while len(records) < limit and number < len(self._offsets):
                records += [r for r in self._records(file.fileno(), number) if r.seq > after]
                number += 1
        return records[:limit]

    def read_at(self, seqs: Sequence[int]) -> list[Record]:
        """Exactly these records; all of them are known to be there."""
        if not seqs:
            return []
        with self.path.open("rb") as file:
            found = []
            for seq in seqs:
                number = bisect.bisect_left(self._ends, seq)
                found += [r for r in self._records(file.fileno(), number) if r.seq == seq]
            return found

    def _records(self, fd: int, number: int) -> list[Record]:
        return [_record(stored) for stored in self._decoded(fd, number).records]

    def _decoded(self, fd: int, number: int) -> LogLine:
        start = self._offsets[number]
        is_last = number + 1 == len(self._offsets)
        end = self.size if is_last else self._offsets[number + 1]
        try:
            return _lines.decode(os.pread(fd, end - start, start))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Corrupt(
                self.stream, f"line {number + 1} of {self.path} cannot be read: {error}"
            ) from error

    def rewritten(self, records: Sequence[Record]) -> bytes:
        """The whole file with these in the place of the records with the same `seq`."""
        new = {record.seq: _stored(record) for record in records}
        lines: list[bytes] = []
        with self.path.open("rb") as file:
            for number in range(len(self._offsets)):
                line = self._decoded(file.fileno(), number)
                changed = tuple(new.get(stored.seq, stored) for stored in line.records)
                lines.append(_encode(msgspec.structs.replace(line, records=changed)) + b"\n")
        return b"".join(lines)

    def newest_row(self) -> SessionRow | None:
        """The row of the newest line that has one."""
        if self.row_at < 0:
            return None
        with self.path.open("rb") as file:
            return self._decoded(file.fileno(), bisect.bisect_left(self._offsets, self.row_at)).row


def _decoded_lines(
    path: Path, decoder: msgspec.json.Decoder[T], since: int = 0
) -> Iterator[tuple[int, bytes, T | None]]:
    """The lines from `since` on: where each begins, and what it says; None when it is torn."""
    with path.open("rb") as file:
        place = file.seek(since)
        for line in file:
            try:
                yield place, line, decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                yield place, line, None
            place += len(line)


def words_of(path: Path) -> list[SearchText]:
    """Everything that was said in a file, as far as it can be read.

    Nothing else in it is decoded.
    """
    found: list[SearchText] = []
    for _, _, words in _decoded_lines(path, _words):
        if words is None:
            break
        found += words.said
    return found


def ended_drafts(path: Path, since: int) -> dict[NodeId, int]:
    """The nodes whose drafts the lines from `since` on have ended, and where the last of these
    lines begins.
    """
    ended: dict[NodeId, int] = {}
    if not path.exists():
        return ended
    for place, _, line in _decoded_lines(path, _ended, since):
        # A torn last line was never acknowledged, and ends nothing.
        if line is not None:
            ended.update(dict.fromkeys(line.ends_drafts, place))
    return ended


class NamedBlobs(NamedTuple):
    """The blobs that a file names."""

    plain: set[BlobId]
    history: set[BlobId]
    """As file history."""
    trees: set[BlobId]
    """With all that they name."""


def blobs_of(path: Path) -> NamedBlobs:
    """Every blob that a file names.

    In a line that cannot be read, whatever looks like a name is one.
    """
    found = NamedBlobs(set(), set(), set())
    for _, line, names in _decoded_lines(path, _names):
        if names is None:
            found.plain.update(BlobId(name.decode()) for name in _BLOB_NAME.findall(line))
        else:
            found.plain.update(names.blobs)
            found.history.update(names.history)
            found.trees.update(names.trees)
    return found
