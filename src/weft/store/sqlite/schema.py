"""The SQLite schema: the tables, and how an old file is migrated.

`user_version` is the schema's version.  A migration is a list of statements; all that are missing
run in one transaction, so that a crash leaves the old file or the new one.  Each table and column
is described in `docs/formats/store.md`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import apsw

from weft.errors import StoreUnavailable, TooNew
from weft.store.sqlite.query import fetch

APPLICATION_ID = 0x57656674
"""Says in the file's header that it is ours: "Weft"."""
UNSCRUBBED = "unscrubbed"
"""In `meta` from a delete until the file was written anew."""

_FIRST = (
    "create table meta (key text primary key, value any) strict, without rowid",
    "insert into meta values ('reopened', 0)",
    """create table processes (
        process_id text primary key, pid integer not null, started real not null,
        host text not null, boot_id text not null, socket text not null
    ) strict, without rowid""",
    """create table streams (
        stream_no integer primary key, name text not null unique,
        last_seq integer not null default 0, fence integer not null default 0,
        process_id text, taken real not null default 0,
        is_hidden integer not null default 0, hidden_parent text
    ) strict""",
    "create index streams_held on streams (process_id) where process_id is not null",
    "create index streams_hidden on streams (hidden_parent) where is_hidden",
    """create table facts (
        stream_no integer not null, seq integer not null, at real not null,
        kind text not null, body blob not null, primary key (stream_no, seq)
    ) strict, without rowid""",
    """create table sessions (
        stream_no integer primary key, id text not null unique, parent_id text,
        project_path text not null, last_active real not null,
        is_child integer not null, archived integer not null, min_reader integer not null,
        title_words text not null, row blob not null
    ) strict""",
    """create index sessions_listed
        on sessions (last_active desc, id desc, is_child, archived, project_path)""",
    "create index sessions_forks on sessions (parent_id) where parent_id is not null",
    """create table said (
        said_no integer primary key, stream_no integer not null, node text not null,
        text text not null
    ) strict""",
    "create index said_by_stream on said (stream_no)",
    # The words come ready from `weft.store.search_text`, so the plainest tokenizer does; the text
    # itself is in `said`.
    """create virtual table said_words
        using fts5 (words, content='', contentless_delete=1, tokenize='ascii')""",
    """create table blobs (
        blob_no integer primary key, id text not null unique, size integer not null,
        data blob not null
    ) strict""",
    """create table blob_refs (
        stream_no integer not null, blob_no integer not null, primary key (stream_no, blob_no)
    ) strict, without rowid""",
    "create index blob_refs_by_blob on blob_refs (blob_no)",
    """create table drafts (
        stream_no integer not null, chunk_no integer not null, node text not null,
        part text not null, chunk text not null, primary key (stream_no, chunk_no)
    ) strict, without rowid""",
    """create table snapshots (
        stream_no integer primary key, seq integer not null, version text not null,
        data blob not null
    ) strict""",
)

_FILE_HISTORY = (
    # Blobs that are named as file history only; the number tells the oldest.
    """create table history_refs (
        kept_no integer primary key, stream_no integer not null, blob_no integer not null,
        unique (stream_no, blob_no)
    ) strict""",
    "create index history_refs_by_blob on history_refs (blob_no)",
)

_HISTORY_SUMS = (
    # By triggers, so that no statement can forget it. A blob that several streams of a project name
    # counts once for each: the sum is never too small.
    """create table history_sums (
        stream_no integer primary key, bytes integer not null
    ) strict""",
    """insert into history_sums
        select stream_no, sum(size) from history_refs join blobs using (blob_no)
        group by stream_no""",
    """create trigger history_named after insert on history_refs begin
        insert into history_sums
            values (new.stream_no, (select size from blobs where blob_no = new.blob_no))
            on conflict (stream_no) do update set bytes = bytes + excluded.bytes;
    end""",
    """create trigger history_dropped after delete on history_refs begin
        update history_sums
            set bytes = bytes - (select size from blobs where blob_no = old.blob_no)
            where stream_no = old.stream_no;
    end""",
)

_WAITS = (
    # Not a column of `sessions`: programs of the third schema that have the file open insert there
    # without naming columns, and one more would fail each of their appends. It holds those that
    # wait alone: it is asked every few seconds, and most sessions never wait.
    """create table waits (
        stream_no integer primary key, id text not null, wake_at real not null
    ) strict""",
    "create index waits_due on waits (wake_at, id)",
    # By triggers, because those programs do not know the table: with a row of theirs no turn waits.
    """create trigger wait_rewritten after update of row on sessions begin
        delete from waits where stream_no = new.stream_no;
    end""",
    """create trigger wait_deleted after delete on sessions begin
        delete from waits where stream_no = old.stream_no;
    end""",
)

_NODES = (
    # A message is found by its id, or the beginning of it, without its session being known.
    "create index said_by_node on said (node)",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST, _FILE_HISTORY, _HISTORY_SUMS, _WAITS, _NODES)
"""What takes a file from version n to n + 1, at place n."""

VERSION = len(MIGRATIONS)
"""The schema this program reads and writes."""


def check_version(db: apsw.Connection, path: Path) -> int:
    """The version of the file; writes nothing.

    Call it inside a transaction: another process may be making the tables, and half an answer from
    before and half from after looks like a stranger's file.

    Raises:
        TooNew: a newer program made it.
        StoreUnavailable: another program's database.
    """
    version, application = _pragma(db, "user_version"), _pragma(db, "application_id")
    if application != APPLICATION_ID and (version or application or _has_tables(db)):
        raise StoreUnavailable(f"{path} is the database of another program; choose another place")
    if version > VERSION:
        raise TooNew(
            f"{path} was written by a newer Weft (its schema is {version}, this one knows "
            f"{VERSION}); update Weft, nothing was changed"
        )
    return version


def look(db: apsw.Connection, path: Path) -> int:
    """The version of the file, seen at one instant; writes nothing.

    Raises:
        TooNew, StoreUnavailable: as `check_version`.
    """
    with _transaction(db, "begin"):
        return check_version(db, path)


def migrate(db: apsw.Connection, path: Path) -> None:
    """Bring the file up to `VERSION`, all or nothing.

    Other processes may do the same at this moment.
    """
    # Nearly always; it takes no write lock, so that starting does not wait for another writer.
    if look(db, path) == VERSION:
        return
    with _transaction(db, "begin immediate"):
        # Asked again under the write lock: another process may have migrated in between.
        for statements in MIGRATIONS[check_version(db, path) :]:
            for statement in statements:
                db.execute(statement)
        db.execute(f"pragma application_id = {APPLICATION_ID}")
        db.execute(f"pragma user_version = {VERSION}")


@contextlib.contextmanager
def _transaction(db: apsw.Connection, begin: str) -> Iterator[None]:
    db.execute(begin)
    try:
        yield
        db.execute("commit")
    except BaseException:
        if db.in_transaction:
            db.execute("rollback")
        raise


def _pragma(db: apsw.Connection, name: str) -> int:
    return int(next(iter(fetch(db, f"pragma {name}")))[0])


def _has_tables(db: apsw.Connection) -> bool:
    return bool(fetch(db, "select 1 from sqlite_schema limit 1"))
