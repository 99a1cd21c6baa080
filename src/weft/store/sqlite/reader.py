"""The reader thread of a SQLite store, and its queries.

It has a read-only connection of its own: a reader that could write might be turned into a writer
half-way, which SQLite refuses at once.  Every query fetches all its rows: an open cursor keeps the
log file from being used again, and it grows.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import apsw
import msgspec

from weft.errors import Corrupt
from weft.ids import BlobId, NodeId, SessionId
from weft.sha256 import sha256
from weft.store import words
from weft.store.base import (
    NodePlace,
    Record,
    SearchHit,
    SessionRow,
    Snapshot,
    files_stream,
    path_of_files,
)
from weft.store.sqlite.appends import decode_row
from weft.store.sqlite.connect import BusyHandler, explained, open_reader
from weft.store.sqlite.query import fetch
from weft.store.threads import WorkerThread

if TYPE_CHECKING:  # only lists need it at run time
    from weft.store.session_rows import RowQuery

T = TypeVar("T")

_MATCHES = """
    (instr(title_words, ?) > 0 or stream_no in
        (select stream_no from said where said_no in
            (select rowid from said_words where said_words match ?)))
"""
FEW: Final = 16
"""Records that are read one by one."""
MOST_RANKED: Final = 20_000
"""Places of a search from which on they are not compared with each other."""
STREAMS_OF_PROJECT: Final = """
    select stream_no from sessions where project_path = ?1
    union select stream_no from streams where name = ?2
"""
"""The streams that name file history of a project."""
_HISTORY_BYTES = f"""
    select coalesce(sum(bytes), 0) from history_sums where stream_no in ({STREAMS_OF_PROJECT})
"""
DUE = """
    select sessions.id, row from waits join sessions using (stream_no)
    where wake_at <= ?1 and archived = 0 and is_child = 0
      and (?2 is null or project_path = ?2)
    order by wake_at, waits.id limit ?3
"""


class ReadConnection:
    """A read-only connection that opens itself; one thread at a time may look through it."""

    def __init__(self, path: Path, *, vfs: str | None, busy_seconds: float) -> None:
        self._path = path
        self._vfs = vfs
        self._patience = BusyHandler(busy_seconds)
        self._db: apsw.Connection | None = None
        self.is_full = False
        """Set where the disk has no room for what SQLite makes beside the file."""

    def run(self, query: Callable[[apsw.Connection], T], stream: str = "") -> T:
        """The answer to `query`; a connection that saw an error is not used again.

        Raises:
            StoreUnavailable, Corrupt: what SQLite said, in plain words.
            UsageError: a name in the question cannot be that of anything stored.
        """
        self._patience.start()
        try:
            if self._db is None:
                self._db = open_reader(
                    self._path, vfs=self._vfs, patience=self._patience, is_full=self.is_full
                )
            return query(self._db)
        except apsw.Error as error:
            # A failed statement may have left a read transaction open, which would show an old
            # state for ever.
            self.close()
            raise explained(error, self._path, stream=stream) from error
        except UnicodeEncodeError as error:
            from weft.store.text import unstorable  # few texts are: start-up time

            raise unstorable(error) from error

    def data_version(self) -> int:
        """A number that changes when any process commits."""
        return self.run(lambda db: int(fetch(db, "pragma data_version")[0][0]))

    def close(self) -> None:
        """Close the connection; the next question opens another."""
        db, self._db = self._db, None
        if db is not None:
            with contextlib.suppress(apsw.Error):
                db.close()


class ReaderThread:
    """A thread that reads."""

    def __init__(self, path: Path, *, vfs: str | None, busy_seconds: float, name: str) -> None:
        self.connection = ReadConnection(path, vfs=vfs, busy_seconds=busy_seconds)
        self._worker = WorkerThread(name)
        self.is_used = False
        """Whether it was asked anything: the thread and the connection begin with that."""

    def ask(self, query: Callable[[apsw.Connection], T], stream: str = "") -> asyncio.Future[T]:
        """Run `query` in the thread.  A cancelled wait lets it run and drops the answer."""
        self.is_used = True
        return self._worker.ask(lambda: self.connection.run(query, stream))

    def end(self) -> None:
        """Answer what was asked, then close the connection and end; not waited for."""
        if self.is_used:
            self._worker.tell(self.connection.close)
            self._worker.end()

    def join(self) -> None:
        """Wait, in another thread, until this one has ended."""
        self._worker.join()


def read(db: apsw.Connection, stream: str, after: int, limit: int) -> list[Record]:
    """A page of records; one that is missing between others is damage."""
    found = fetch(
        db,
        """select seq, at, kind, body from facts
           where stream_no = (select stream_no from streams where name = ?) and seq > ?
           order by seq limit ?""",
        (stream, after, limit),
    )
    # The numbers are unique and sorted, so two comparisons prove that none is missing.
    if found and (found[0][0] != after + 1 or found[-1][0] - found[0][0] != len(found) - 1):
        missing = next(n for n, row in enumerate(found, after + 1) if row[0] != n)
        raise Corrupt(stream, "this record is missing", seq=missing)
    return [Record(*row) for row in found]


def read_at(db: apsw.Connection, stream: str, seqs: Sequence[int]) -> list[Record]:
    """Exactly these records."""
    number = fetch(db, "select stream_no from streams where name = ?", (stream,))
    if number and len(seqs) >= FEW:
        return _read_many(db, stream, number[0][0], seqs)
    records = []
    for seq in seqs:
        found = number and fetch(
            db,
            "select seq, at, kind, body from facts where stream_no = ? and seq = ?",
            (number[0][0], seq),
        )
        if not found:
            raise Corrupt(stream, "there is no such record", seq=seq)
        records.append(Record(*found[0]))
    return records


def _read_many(
    db: apsw.Connection, stream: str, stream_no: int, seqs: Sequence[int]
) -> list[Record]:
    # One statement for all: a line of a tree may have thousands, and each one takes a while.
    found = fetch(
        db,
        """select seq, at, kind, body from facts
           where stream_no = ? and seq in (select value from json_each(?))""",
        (stream_no, msgspec.json.encode(list(seqs)).decode()),
    )
    by_seq = {row[0]: Record(*row) for row in found}
    for seq in seqs:
        if seq not in by_seq:
            raise Corrupt(stream, "there is no such record", seq=seq)
    return [by_seq[seq] for seq in seqs]


def last_seqs(db: apsw.Connection, streams: Sequence[str]) -> dict[str, int]:
    """The ends of several streams; unknown ones are left out."""
    ends = {}
    for stream in streams:
        found = fetch(db, "select last_seq from streams where name = ?", (stream,))
        if found:
            ends[stream] = int(found[0][0])
    return ends


def row(db: apsw.Connection, session_id: SessionId) -> SessionRow | None:
    """The row of one session."""
    found = fetch(db, "select id, row from sessions where id = ?", (session_id,))
    return decode_row(*found[0]) if found else None


def rows(db: apsw.Connection, wanted: RowQuery) -> list[SessionRow]:
    """The list of sessions, from one table and in the order of one index."""
    clauses, values = ["1"], list[object]()
    if wanted.project_path is not None:
        clauses.append("project_path = ?")
        values.append(wanted.project_path)
    if not wanted.archived:
        clauses.append("archived = 0")
    if not wanted.children:
        clauses.append("is_child = 0")
    if wanted.after is not None:
        clauses.append("(last_active, id) < (?, ?)")
        values.extend(wanted.after)
    for phrase in words.phrases(wanted.query or ""):
        # Each phrase may be in the title or in what was said; the whole query need not be in one of
        # them.
        clauses.append(_MATCHES)
        values.extend((f" {phrase}", _match(phrase)))
    found = fetch(
        db,
        f"""select id, row from sessions where {" and ".join(clauses)}
            order by last_active desc, id desc limit ?""",
        (*values, wanted.limit),
    )
    return [decode_row(*one) for one in found]


def due(
    db: apsw.Connection, before: float, project_path: str | None, limit: int
) -> list[SessionRow]:
    """Sessions whose wait is over by this time, from a table that holds no others."""
    # `put_row` keeps a damaged one out of the table; what is left is a row that cannot be read.
    rows = (decode_row(*one) for one in fetch(db, DUE, (before, project_path, limit)))
    return [row for row in rows if not row.damaged]


def ids_with_prefix(db: apsw.Connection, prefix: str, limit: int) -> list[SessionId]:
    """Ids that begin with `prefix`; compared byte by byte, so that no character is special."""
    # As blobs, because `substr` and `length` of a text end at the first NUL.
    found = fetch(
        db,
        """select id from sessions where id >= ?1 and substr(cast(id as blob), 1, ?2) = ?3
           order by id limit ?4""",
        (prefix, len(prefix.encode()), prefix.encode(), limit),
    )
    return [SessionId(one[0]) for one in found]


def nodes_with_prefix(db: apsw.Connection, prefix: str, limit: int) -> list[NodePlace]:
    """Messages whose ids begin with `prefix`, the newest first; one that is called so before all.

    Hidden logs too: they are the past of forks.
    """
    found = fetch(
        db,
        """select node, name from said join streams using (stream_no)
           where node >= ?1 and node < ?1 || char(0x10ffff)
             and substr(cast(node as blob), 1, ?2) = ?3
           group by node, stream_no order by node = ?1 desc, min(said_no) desc limit ?4""",
        (prefix, len(prefix.encode()), prefix.encode(), limit),
    )
    return [NodePlace(NodeId(node), SessionId(name)) for node, name in found]


def nodes_named(db: apsw.Connection, nodes: Collection[NodeId]) -> list[NodePlace]:
    """Messages of these ids, hidden logs too."""
    # One statement with one parameter: SQLite takes no more than some thousand of them.
    asked = msgspec.json.encode(list(nodes)).decode()
    found = fetch(
        db,
        """select distinct node, name from said join streams using (stream_no)
           where node in (select value from json_each(?))""",
        (asked,),
    )
    return [NodePlace(NodeId(node), SessionId(name)) for node, name in found]


def search(db: apsw.Connection, query: str, limit: int) -> list[SearchHit]:
    """Places where all the words were said, the best first; the newest, where there are very
    many.
    """
    phrases = words.phrases(query)
    if not phrases:
        return []
    match = " ".join(_match(phrase) for phrase in phrases)
    # To rank all places of a word that is everywhere takes as long as all else of a search, and
    # says little.
    [[places]] = fetch(
        db,
        "select count(*) from (select 1 from said_words where said_words match ? limit ?)",
        (match, MOST_RANKED),
    )
    order = "rank" if places < MOST_RANKED else "said_words.rowid desc"
    found = fetch(
        db,
        f"""select name, node, text from said_words
           join said on said_no = said_words.rowid join streams using (stream_no)
           where said_words match ? order by {order} limit ?""",
        (match, limit),
    )
    return [
        SearchHit(
            session_id=SessionId(name), node=NodeId(node), excerpt=words.excerpt(text, phrases)
        )
        for name, node, text in found
    ]


def blob(db: apsw.Connection, blob_id: BlobId) -> bytes | None:
    """The content of a blob, if it still is what its name says."""
    found = fetch(db, "select data from blobs where id = ?", (blob_id,))
    if not found:
        return None
    data = bytes(found[0][0])
    # SQLite does not check the content of pages; a flipped bit would be shown as the user's file.
    if sha256(data).hexdigest() != blob_id:
        raise Corrupt(f"blob {blob_id}", "its content is not what was stored")
    return data


_REFERRING = """
    with wanted as (select blob_no from blobs where id = ?)
    select name from streams where stream_no in (
        select stream_no from blob_refs where blob_no in wanted
        union select stream_no from history_refs where blob_no in wanted
    )
"""


def sessions_with(db: apsw.Connection, blob_id: BlobId) -> list[SessionId]:
    """The sessions that refer to a blob, by streams of their own or by their project's files."""
    found: dict[str, None] = {}
    for (name,) in fetch(db, _REFERRING, (blob_id,)):
        path = path_of_files(name)
        of_project = "select id from sessions where project_path = ?"
        ids = [(name,)] if path is None else fetch(db, of_project, (path,))
        found |= dict.fromkeys(each for (each,) in ids)
    return [SessionId(name) for name in found]


_STORED = "select id from blobs where id in (select value from json_each(?1))"
_NAMED = f"""
    {_STORED} and (
        exists (select 1 from blob_refs r where r.stream_no = ?2 and r.blob_no = blobs.blob_no)
        or exists (
            select 1 from history_refs r where r.stream_no = ?2 and r.blob_no = blobs.blob_no
        )
    )
"""


def missing_blobs(
    db: apsw.Connection, blob_ids: Collection[BlobId], project_path: str | None
) -> set[BlobId]:
    """Those of these that are not stored, or not named by the files of a project."""
    # One statement with one parameter: SQLite takes no more than some thousand of them.
    asked = msgspec.json.encode(list(blob_ids)).decode()
    if project_path is None:
        found = fetch(db, _STORED, (asked,))
    else:
        stream = "select stream_no from streams where name = ?"
        known = fetch(db, stream, (files_stream(project_path),))
        found = fetch(db, _NAMED, (asked, known[0][0])) if known else []
    return set(blob_ids) - {BlobId(each) for (each,) in found}


def history_bytes(db: apsw.Connection, project_path: str) -> int:
    """How much file history the sessions of a project have together."""
    found = fetch(db, _HISTORY_BYTES, (project_path, files_stream(project_path)))
    return int(found[0][0])


def load_snapshot(db: apsw.Connection, stream: str, version: str) -> Snapshot | None:
    """The snapshot of this version of the fold."""
    found = fetch(
        db,
        """select seq, version, data from snapshots
           where stream_no = (select stream_no from streams where name = ?) and version = ?""",
        (stream, version),
    )
    return Snapshot(*found[0]) if found else None


def _match(phrase: str) -> str:
    """A phrase as the index wants it.

    Its tokens are letters and digits, so nothing in it is syntax.
    """
    return f'"{phrase}" *'
