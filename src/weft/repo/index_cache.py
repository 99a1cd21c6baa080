"""The index of a project on disk: one file, `cache.db`, that all its sessions read.

Words lead to files by posting lists.  A list is one row of packed numbers, because a request asks
for a dozen words and each may be in thousands of files: rows of one file each would take ten times
as long to fetch.  A changed file gets a new number and a segment of its own; lists that still name
the old number are right until they are merged, because a number that has no row is skipped.

One process writes at a time; readers see whole batches.  Nothing here is worth a sync: what a power
cut takes is read again.
"""

from __future__ import annotations

import os
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw
import msgspec

from weft.repo.definitions import Definition, FileReading
from weft.repo.languages import is_aside, is_generated
from weft.repo.posting_lists import (
    SUBJECT,
    FileWords,
    PostingList,
    SegmentBuilder,
    marked,
    packed,
    unpacked,
)
from weft.repo.words import IDENTIFIER, parts_in

SCHEMA: Final = 4
VERSION_NOTE: Final = "reader version"
"""The note that says which version of our own readers has read the files."""
_IMPORTANT_NOTE: Final = "important"
"""The note with the paths of the files that matter most."""
_HEAD_NOTE: Final = "head stamps"
"""The note with the files that git keeps its head in."""
MOST_SEGMENTS: Final = 64
_READINGS_A_FILE: Final = 3
_BUSY_MS: Final = 2_000
_TABLES: Final = """
CREATE TABLE file (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    mtime INTEGER NOT NULL,
    ctime INTEGER NOT NULL,
    digest BLOB NOT NULL,
    language TEXT NOT NULL
);
CREATE TABLE lengths (
    id INTEGER PRIMARY KEY,
    ids BLOB, parts BLOB, whole BLOB, names BLOB, steps BLOB, aside BLOB
);
CREATE TABLE reading (
    digest BLOB PRIMARY KEY,
    definitions BLOB NOT NULL,
    words BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE posting (
    word TEXT NOT NULL,
    segment INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (word, segment)
) WITHOUT ROWID;
CREATE TABLE past (id INTEGER PRIMARY KEY, files BLOB NOT NULL);
CREATE TABLE folder (path BLOB PRIMARY KEY, mtime INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE rule (
    path BLOB PRIMARY KEY,
    size INTEGER NOT NULL,
    mtime INTEGER NOT NULL,
    ctime INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE listing (id INTEGER PRIMARY KEY, paths BLOB NOT NULL);
CREATE TABLE note (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
"""
_TABLE_NAMES: Final = (
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
)


class FileStamp(NamedTuple):
    """By what a file is known to be unchanged."""

    size: int
    mtime: int
    ctime: int = 0
    """Changes with every write, also where a program sets the other time back, as `cp -p` does."""

    @classmethod
    def of(cls, about: os.stat_result) -> FileStamp:
        """The stamp of a file as it is."""
        return cls(about.st_size, about.st_mtime_ns, about.st_ctime_ns)


ABSENT: Final = FileStamp(-1, -1, -1)
"""Of a file that there is none of."""
DAMAGE: Final = (
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.SQLError,
    apsw.ConstraintError,
    zlib.error,
    msgspec.MsgspecError,
    ValueError,
    LookupError,
    TypeError,
    OverflowError,
)
"""What a cache raises whose content is not what was written: blobs cut short, rows that are gone.
"""


class KnownFile(msgspec.Struct, frozen=True):
    """A file as it was when it was read."""

    stamp: FileStamp
    digest: bytes


class FileTable(NamedTuple):
    """What scores need to know of all files: a column for each, in the order of their numbers."""

    ids: array[int]
    parts: array[int]
    whole: array[int]
    names: array[int]
    steps: array[int]
    aside: array[int]
    """1 for tests, documents, examples and what programs generate."""


EMPTY_TABLE: Final = FileTable(*(array(code) for code in "IIIIIB"))


class FileEntry(msgspec.Struct, frozen=True):
    """A file to be written into the index."""

    path: str
    stamp: FileStamp
    language: str
    digest: bytes
    reading: FileReading


class PastCommit(msgspec.Struct, frozen=True):
    """A commit of the past: what it was for, and what it changed."""

    id: str
    at: int
    subject: str
    files: Sequence[str]


class IndexCache:
    """`cache.db`, open."""

    def __init__(self, path: Path, *, writes: bool = False) -> None:
        """Open the index of a project; one that writes makes it, and makes anew what it cannot
        read.

        Raises:
            apsw.Error: it is not there, or another version wrote it.
        """
        self._path = path
        if not writes:
            # Before it is opened: a file that takes its place in between counts as another one.
            self._file = _file_at(path)
            self._db = _connected(path, apsw.SQLITE_OPEN_READONLY)
            if self._version() != SCHEMA:
                self._db.close()
                raise apsw.SchemaChangeError("written by another version")
            return
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        self._db = _connected(path, flags)
        try:
            self._prepare()
        except (apsw.NotADBError, apsw.CorruptError):
            self._db.close()
            remove_cache(path)
            self._db = _connected(path, flags)
            self._prepare()
        self._file = _file_at(path)

    def is_replaced(self) -> bool:
        """Whether the file that is open is no longer the one by its name: it was deleted, or made
        anew.
        """
        return self._file != _file_at(self._path)

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    # -- reading

    def snapshot(self) -> AbstractContextManager[object]:
        """All reads inside see the same state."""
        return self._db

    @property
    def state(self) -> int:
        """Another number whenever another process has written."""
        return int(self._one("PRAGMA data_version"))

    def ids(self) -> dict[str, int]:
        """All files by path, each with its number."""
        return dict(self._db.execute("SELECT path, id FROM file"))

    def table(self) -> FileTable:
        """What scores need to know of all files."""
        sql = "SELECT ids, parts, whole, names, steps, aside FROM lengths"
        row = self._db.execute(sql).fetchone()
        table = FileTable(*(array(column.typecode) for column in EMPTY_TABLE))
        for column, data in zip(table, row or (), strict=False):
            column.frombytes(data)
        return table

    def known_files(self, paths: Iterable[str] | None = None) -> dict[str, KnownFile]:
        """By path, what the files were when they were read: all, or those of some paths."""
        sql = "SELECT path, digest, size, mtime, ctime FROM file"
        rows = self._db.execute(sql) if paths is None else self._rows_at(sql, paths)
        return {path: KnownFile(FileStamp(*stamp), digest) for path, digest, *stamp in rows}

    def _rows_at(self, sql: str, paths: Iterable[str]) -> Iterator[tuple[Any, ...]]:
        for path in paths:
            with suppress(UnicodeEncodeError):  # such a path is in no row
                yield from self._db.execute(f"{sql} WHERE path = ?", (path,))

    def stamps(self) -> Iterator[tuple[str, int, int, int]]:
        """Path, size and times of all files as they were when they were read."""
        return self._db.execute("SELECT path, size, mtime, ctime FROM file")

    def count(self) -> int:
        """How many files are in the index."""
        return int(self._one("SELECT count(*) FROM file"))

    def check(self) -> None:
        """See whether it is whole, as far as that costs next to nothing.

        Raises:
            apsw.CorruptError: it is not.
        """
        count = self.count()
        if any(len(column) != count for column in self.table()):
            raise apsw.CorruptError("there are other files than lengths")

    def languages(self) -> dict[str, int]:
        """How many files of each language are in the index."""
        return dict(self._db.execute("SELECT language, count(*) FROM file GROUP BY language"))

    def paths(self, ids: Iterable[int]) -> list[str]:
        """The paths of some files, in order; a number without a row has none."""
        return sorted(path for _, path in self.paths_by_id(ids))

    def paths_by_id(self, ids: Iterable[int]) -> Iterator[tuple[int, str]]:
        """Number and path of some files."""
        # As one value: a statement takes at most 32,766 of them.
        asked = msgspec.json.encode(list(ids)).decode()
        sql = "SELECT id, path FROM file WHERE id IN (SELECT value FROM json_each(?))"
        return self._db.execute(sql, (asked,))

    def folders(self) -> dict[str, int]:
        """The folders that files lie in, each with its time when it was listed."""
        rows = self._db.execute("SELECT path, mtime FROM folder")
        return {os.fsdecode(path): mtime for path, mtime in rows}

    def rules(self) -> dict[str, FileStamp]:
        """Where ignore files are or may be, absolute, with their stamps when files were listed."""
        rows = self._db.execute("SELECT path, size, mtime, ctime FROM rule")
        return {os.fsdecode(path): FileStamp(*stamp) for path, *stamp in rows}

    def listing(self) -> str:
        """The paths of all files as they were listed last, with a NUL behind each."""
        row = self._db.execute("SELECT paths FROM listing").fetchone()
        return "" if row is None else row[0].decode("utf-8", "surrogateescape")

    def digests(self) -> set[bytes]:
        """All content that was read before."""
        return {digest for (digest,) in self._db.execute("SELECT digest FROM reading")}

    def has_reading(self, digest: bytes) -> bool:
        """Whether this content was read before."""
        sql = "SELECT 1 FROM reading WHERE digest = ?"
        return self._db.execute(sql, (digest,)).fetchone() is not None

    def lists(self, kind: str, words: Iterable[str]) -> dict[str, PostingList]:
        """The lists of some words; a word that is nowhere has none."""
        keys = [kind + word for word in words]
        marks = ",".join("?" * len(keys))
        rows = self._db.execute(
            f"SELECT word, data FROM posting WHERE word IN ({marks}) ORDER BY word, segment", keys
        )
        # A word has a row for each segment.
        return {
            word[1:]: unpacked([data for _, data in group])
            for word, group in groupby(rows, key=itemgetter(0))
        }

    def definitions(self, path: str) -> list[Definition] | None:
        """What a file defines; None for one that is not in the index."""
        sql = "SELECT definitions FROM file JOIN reading USING (digest) WHERE path = ?"
        row = self._db.execute(sql, (path,)).fetchone()
        return None if row is None else _definitions.decode(zlib.decompress(row[0]))

    def reading(self, digest: bytes) -> FileReading | None:
        """What was read of this content before."""
        sql = "SELECT definitions, words FROM reading WHERE digest = ?"
        row = self._db.execute(sql, (digest,)).fetchone()
        if row is None:
            return None
        definitions, words = (zlib.decompress(each) for each in row)
        return FileReading(_definitions.decode(definitions), *_words_decoder.decode(words))

    def past(self, ids: Sequence[int]) -> Iterator[tuple[int, list[str]]]:
        """Number and files of some commits."""
        marks = ",".join("?" * len(ids))
        rows = self._db.execute(f"SELECT id, files FROM past WHERE id IN ({marks})", tuple(ids))
        return ((id, msgspec.msgpack.decode(files)) for id, files in rows)

    def past_of(self, paths: Sequence[str]) -> Iterator[list[str]]:
        """The files of each commit that changed one of these."""
        wanted = set(paths)
        for (data,) in self._db.execute("SELECT files FROM past"):
            files: list[str] = msgspec.msgpack.decode(data)
            if not wanted.isdisjoint(files):
                yield files

    def important(self) -> list[str] | None:
        """The files that matter most, as they were ranked last; None when they never were."""
        kept = self.note(_IMPORTANT_NOTE)
        if kept is None:
            return None
        return [path for path in str(kept).split("\0") if path]

    def head_stamps(self) -> dict[str, FileStamp]:
        """The files that say which commit is the head, absolute, with their stamps before the past
        was read; none where git has not told it.
        """
        kept = self.note(_HEAD_NOTE)
        if not isinstance(kept, bytes):
            return {}
        rows = msgspec.msgpack.decode(kept, type=list[tuple[bytes, FileStamp]])
        return {os.fsdecode(path): stamp for path, stamp in rows}

    def note(self, name: str) -> object:
        """A value kept by name."""
        row = self._db.execute("SELECT value FROM note WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    # -- writing

    def write(self, entries: Sequence[FileEntry], removed: Iterable[str] = ()) -> None:
        """Take files in, instead of what was known of them, and others out."""
        with self._db:
            table = self.table()
            for path in removed:
                self._forget(path, table)
            lists = SegmentBuilder()
            for entry in entries:
                self._db.execute(
                    "INSERT OR IGNORE INTO reading VALUES (?, ?, ?)",
                    (entry.digest, *_encoded(entry.reading)),
                )
                words = FileWords.of(entry.path, entry.reading)
                self._forget(entry.path, table)
                lists.add(self._insert(entry, words, table), *words)
            if entries:
                self._add_segment(lists)
            columns = (column.tobytes() for column in table)
            self._db.execute("INSERT OR REPLACE INTO lengths VALUES (1,?,?,?,?,?,?)", (*columns,))

    def write_past(self, commits: Sequence[PastCommit], head: str) -> None:
        """Replace what is known of the past."""
        with self._db:
            self._db.execute("DELETE FROM past")
            self._db.execute("DELETE FROM posting WHERE word >= 'h' AND word < 'i'")
            lists = SegmentBuilder()
            for number, commit in enumerate(commits):
                counts = parts_in(IDENTIFIER.findall(commit.subject))
                files = msgspec.msgpack.encode(list(commit.files))
                self._db.execute("INSERT INTO past VALUES (?, ?)", (number, files))
                lists.add(number, marked(SUBJECT, counts))
            rows = [(word, 0, data) for word, data in lists.rows()]
            self._db.executemany("INSERT INTO posting VALUES (?, ?, ?)", rows)
            self.keep("past commits", len(commits))
            self.keep("past head", head)

    def write_listing(
        self, paths: str, folders: Mapping[str, int], rules: Mapping[str, FileStamp] | None = None
    ) -> None:
        """Replace the listing of all files, and the times of the folders that they lie in; with
        `rules` also the stamps of the ignore files that were heeded.
        """
        data = paths.encode("utf-8", "surrogateescape")
        rows = [(os.fsencode(path), mtime) for path, mtime in folders.items()]
        with self._db:
            self._db.execute("DELETE FROM folder")
            self._db.executemany("INSERT INTO folder VALUES (?, ?)", rows)
            self._db.execute("INSERT OR REPLACE INTO listing VALUES (1, ?)", (data,))
            if rules is not None:
                self._db.execute("DELETE FROM rule")
                self._db.executemany(
                    "INSERT INTO rule VALUES (?, ?, ?, ?)",
                    [(os.fsencode(path), *stamp) for path, stamp in rules.items()],
                )

    def touch(self, stamps: Mapping[str, FileStamp]) -> None:
        """These files have a new time, and the content that they had."""
        with self._db:
            self._db.executemany(
                "UPDATE file SET size = ?, mtime = ?, ctime = ? WHERE path = ?",
                [(*stamp, path) for path, stamp in stamps.items()],
            )

    def _forget(self, path: str, table: FileTable) -> None:
        """Take a file out; lists that name its number are right all the same."""
        row = self._db.execute("SELECT id FROM file WHERE path = ?", (path,)).fetchone()
        if row is None:
            return
        self._db.execute("DELETE FROM file WHERE id = ?", row)
        # Numbers only grow, so the columns are sorted by them.
        place = bisect_left(table.ids, row[0])
        for column in table:
            del column[place]

    def _insert(self, entry: FileEntry, words: FileWords, table: FileTable) -> int:
        self._db.execute(
            "INSERT INTO file (path, size, mtime, ctime, digest, language)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (entry.path, *entry.stamp, entry.digest, entry.language),
        )
        number = self._db.last_insert_rowid()
        low = is_aside(entry.path) or is_generated(entry.reading.pieces)
        values = (number, *words.lengths(), int(low))
        for column, value in zip(table, values, strict=True):
            column.append(value)
        return number

    def _add_segment(self, lists: SegmentBuilder) -> None:
        segment = self._number("segment") + 1
        self._db.executemany(
            "INSERT INTO posting VALUES (?, ?, ?)",
            [(word, segment, data) for word, data in lists.rows()],
        )
        self.keep("segment", segment)

    def merge(self) -> bool:
        """Make one segment of many, where there are many; True when it was done.

        Numbers of files that are gone are left out, and so are readings of content that no file
        has any more, where they are most of all: a branch that is switched to and fro keeps its
        own.
        """
        if self._number("segment") - self._number("merged") < MOST_SEGMENTS:
            return False
        with self._db:
            alive = {id for (id,) in self._db.execute("SELECT id FROM file")}
            self._db.execute("CREATE TABLE merged AS SELECT * FROM posting WHERE 0")
            for word, listed in self._lists_by_word():
                living = _living(listed, alive)
                if living.ids:
                    row = (word, 0, packed(living))
                    self._db.execute("INSERT INTO merged VALUES (?, ?, ?)", row)
            self._db.execute("DELETE FROM posting WHERE word < 'h' OR word >= 'i'")
            self._db.execute("INSERT INTO posting SELECT * FROM merged")
            self._db.execute("DROP TABLE merged")
            self.keep("merged", self._number("segment"))
            self._forget_readings(len(alive))
        return True

    def _lists_by_word(self) -> Iterator[tuple[str, PostingList]]:
        sql = (
            "SELECT word, data FROM posting WHERE word < 'h' OR word >= 'i' ORDER BY word, segment"
        )
        rows = self._db.execute(sql)
        for word, group in groupby(rows, key=lambda row: str(row[0])):
            yield word, unpacked([data for _, data in group])

    def _forget_readings(self, files: int) -> None:
        kept = int(self._one("SELECT count(*) FROM reading"))
        if kept > _READINGS_A_FILE * files:
            self._db.execute("DELETE FROM reading WHERE digest NOT IN (SELECT digest FROM file)")

    def _number(self, name: str) -> int:
        return int(str(self.note(name) or 0))

    def keep_head_stamps(self, stamps: Mapping[str, FileStamp]) -> None:
        """Keep the stamps of the files that say which commit is the head."""
        # As bytes: a path need not be text.
        rows = [(os.fsencode(path), stamp) for path, stamp in stamps.items()]
        self.keep(_HEAD_NOTE, msgspec.msgpack.encode(rows))

    def keep_important(self, paths: Iterable[str]) -> None:
        """Keep the files that matter most, best first."""
        self.keep(_IMPORTANT_NOTE, "\0".join(paths))

    def keep(self, name: str, value: object) -> None:
        """Keep a value by name."""
        self._db.execute("INSERT OR REPLACE INTO note VALUES (?, ?)", (name, value))

    def _prepare(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = OFF")
        if self._version() != SCHEMA:
            with self._db:
                for (name,) in self._db.execute(_TABLE_NAMES).fetchall():
                    self._db.execute(f'DROP TABLE "{name}"')
                self._db.execute(_TABLES)
                self._db.execute(f"PRAGMA user_version = {SCHEMA}")

    def _version(self) -> int:
        return int(self._one("PRAGMA user_version"))

    def _one(self, sql: str) -> Any:
        return next(iter(self._db.execute(sql)))[0]


def remove_cache(path: Path) -> None:
    """Delete an index with all files that belong to it."""
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _file_at(path: Path) -> tuple[int, int] | None:
    try:
        about = os.stat(path)
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _connected(path: Path, flags: int) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=flags)
    connection.set_busy_timeout(_BUSY_MS)
    return connection


def _living(listed: PostingList, alive: Set[int]) -> PostingList:
    pairs = [pair for pair in zip(*listed, strict=True) if pair[0] in alive]
    return PostingList(array("I", [id for id, _ in pairs]), bytes(count for _, count in pairs))


_definitions: Final = msgspec.msgpack.Decoder(list[Definition])
_words_decoder: Final = msgspec.msgpack.Decoder(tuple[bytes, list[int]])


def _encoded(reading: FileReading) -> tuple[bytes, bytes]:
    # Apart: a map asks for the definitions of a dozen files, and their words are ten times as much.
    pieces = (reading.definitions, (reading.pieces, reading.counts))
    definitions, words = (zlib.compress(msgspec.msgpack.encode(each), 1) for each in pieces)
    return definitions, words
