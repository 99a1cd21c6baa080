"""Deleting sessions and sweeping blobs; run by the writer inside its transaction.

What was deleted must not be readable in the file either.  `secure_delete` overwrites rows and free
pages with zeros, but three things escape it.  The index of words keeps a deleted text until its
segments are merged (`merge_words`).  The write-ahead log keeps older pages until it is emptied.
And where SQLite moves rows from one page to another, a copy stays in the unused middle of the
first one, which nothing but writing the file anew removes (`rewrite`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import apsw
import msgspec

from weft.errors import Corrupt
from weft.ids import BlobId, SessionId
from weft.store.base import KeptContent, Owner, Record, files_stream
from weft.store.history_rows import HistoryRow, newest_first, oldest_beyond
from weft.store.sqlite.appends import find
from weft.store.sqlite.leases import check_free
from weft.store.sqlite.query import fetch
from weft.store.sqlite.reader import STREAMS_OF_PROJECT
from weft.store.sqlite.schema import UNSCRUBBED
from weft.store.tree_names import named_by_trees

MERGED_PAGES = 500
"""Pages of the index of words that are merged in one transaction."""
_MOST_REWRITTEN_BYTES = 1 << 30
"""A larger file is not written anew: that would hold up every process for more than ten seconds."""

_NAMED = """
    select exists (select 1 from sessions where parent_id = ?1)
        or exists (select 1 from streams where is_hidden and hidden_parent = ?1)
"""
_BLOBS = """
    select blob_no from blob_refs where stream_no = ?1
    union select blob_no from history_refs where stream_no = ?1
"""
_UNNAMED = """
    not exists (select 1 from blob_refs where blob_refs.blob_no = blobs.blob_no)
    and not exists (select 1 from history_refs where history_refs.blob_no = blobs.blob_no)
"""
_TREES = """
    select distinct id from blob_refs join blobs using (blob_no)
    where stream_no <> ?1
        and blob_no in (select blob_no from blob_refs where stream_no = ?1)
"""
_PARENT = """
    select coalesce(sessions.parent_id, streams.hidden_parent)
    from streams left join sessions using (stream_no) where streams.stream_no = ?
"""


def delete(db: apsw.Connection, session_id: SessionId, owner: Owner, directory: Path) -> bool:
    """Remove a session, or hide it while a fork still reads its facts.

    The stream's own row stays, with its fence: an earlier holder of the lease can never write under
    this name again.

    Returns whether words were deleted, so that `merge_words` is needed.

    Raises:
        Owned: a living process elsewhere holds it.
    """
    place = find(db, session_id)
    if place is None:
        return False
    check_free(db, session_id, place, owner, directory)
    number = place.stream_no
    db.execute("update streams set process_id = null where stream_no = ?", (number,))
    parent = fetch(db, _PARENT, (number,))[0][0]
    files = _files_of(db, number)
    has_words = _has_words(db, number)
    if has_words or parent is not None:
        db.execute("insert or replace into meta values (?, 1)", (UNSCRUBBED,))
    _forget_beside(db, number)
    if _is_named(db, session_id):
        db.execute(
            "update streams set is_hidden = 1, hidden_parent = ? where stream_no = ?",
            (parent, number),
        )
        return has_words
    _remove_facts(db, number)
    _remove_unnamed(db, parent)
    if files is not None:
        _drop_unnamed_files(db, files)
    return has_words


def overwrite(db: apsw.Connection, stream: str, records: Sequence[Record]) -> None:
    """Put these in the place of the records with the same `seq`.

    Raises:
        Corrupt: one of them is not there; the caller's savepoint takes back the others.
    """
    place = find(db, stream)
    for record in records:
        if place is None or not 1 <= record.seq <= place.last_seq:
            raise Corrupt(stream, "there is no such record", seq=record.seq)
        db.execute(
            "update facts set at = ?, kind = ?, body = ? where stream_no = ? and seq = ?",
            (record.at, record.kind, record.body, place.stream_no, record.seq),
        )
    db.execute("insert or replace into meta values (?, 1)", (UNSCRUBBED,))


def _files_of(db: apsw.Connection, number: int) -> int | None:
    """The stream that names the files of a session's project; None where it has none."""
    known = fetch(db, "select project_path from sessions where stream_no = ?", (number,))
    files = find(db, files_stream(known[0][0])) if known else None
    return files.stream_no if files is not None else None


def _drop_unnamed_files(db: apsw.Connection, files: int) -> None:
    """Forget the files of a project that no tree names any more."""
    trees = [BlobId(each) for (each,) in fetch(db, _TREES, (files,))]
    named = named_by_trees(trees, lambda blob_id: _data(db, blob_id))
    kept = msgspec.json.encode([*named.listings, *named.contents]).decode()
    for table in ("blob_refs", "history_refs"):
        dropped = fetch(
            db,
            f"""delete from {table} where stream_no = ? and blob_no not in (
                    select blob_no from blobs where id in (select value from json_each(?))
                ) returning blob_no""",
            (files, kept),
        )
        db.executemany(f"delete from blobs where blob_no = ? and {_UNNAMED}", dropped)


def _data(db: apsw.Connection, blob_id: BlobId) -> bytes | None:
    found = fetch(db, "select data from blobs where id = ?", (blob_id,))
    return bytes(found[0][0]) if found else None


def merge_words(db: apsw.Connection, pages: int) -> bool:
    """Merge the segments of the word index, which drops the words of deleted texts.

    A negative number begins, a positive one goes on.  Returns whether there is more to do.
    """
    before = db.total_changes()
    db.execute("insert into said_words (said_words, rank) values ('merge', ?)", (pages,))
    # FTS5 has no other way to say that nothing was left: the command itself counts as one change.
    return db.total_changes() - before >= 2


def rewrite(db: apsw.Connection, path: Path) -> bool:
    """Write the file anew, because something was deleted since the last time; outside a
    transaction.

    False when the file is too large.
    """
    if os.stat(path).st_size > _MOST_REWRITTEN_BYTES:
        return False
    db.execute("vacuum")
    db.execute("delete from meta where key = ?", (UNSCRUBBED,))
    return True


def _remove_unnamed(db: apsw.Connection, name: str | None) -> None:
    """Remove hidden logs that no fork reads any more, up the line."""
    while name is not None and not _is_named(db, name):
        found = fetch(
            db, "select stream_no, hidden_parent from streams where name = ? and is_hidden", (name,)
        )
        if not found:
            return
        number, name = found[0]
        _remove_facts(db, number)


def _is_named(db: apsw.Connection, name: str) -> bool:
    return bool(fetch(db, _NAMED, (name,))[0][0])


def _has_words(db: apsw.Connection, number: int) -> bool:
    """Whether something was said, or the session has a title."""
    # A chat that was closed before its first message is deleted too, and leaves nothing to hide:
    # it must not have a large file written anew.
    found = fetch(
        db,
        """select exists (select 1 from said where stream_no = ?1)
               or exists (select 1 from sessions where stream_no = ?1 and title_words <> '')""",
        (number,),
    )
    return bool(found[0][0])


def _forget_beside(db: apsw.Connection, number: int) -> None:
    db.execute(
        "delete from said_words where rowid in (select said_no from said where stream_no = ?)",
        (number,),
    )
    # After the words: their rows are found through `said`.
    for table in ("said", "sessions", "drafts", "snapshots"):
        db.execute(f"delete from {table} where stream_no = ?", (number,))


def _remove_facts(db: apsw.Connection, number: int) -> None:
    blobs = fetch(db, _BLOBS, (number,))
    for table in ("facts", "blob_refs", "history_refs", "history_sums"):
        db.execute(f"delete from {table} where stream_no = ?", (number,))
    db.execute(
        """update streams set last_seq = 0, is_hidden = 0, hidden_parent = null
           where stream_no = ?""",
        (number,),
    )
    # After the references: a blob that another stream names is still needed.
    db.executemany(f"delete from blobs where blob_no = ? and {_UNNAMED}", blobs)


_HISTORY = f"""
    select kept_no, blob_no, size, id from history_refs join blobs using (blob_no)
    where stream_no in ({STREAMS_OF_PROJECT}) order by kept_no desc
"""


def sweep_blobs(db: apsw.Connection) -> int:
    """Drop blobs that no stream names; returns their bytes."""
    freed = fetch(db, f"select coalesce(sum(size), 0) from blobs where {_UNNAMED}")
    db.execute(f"delete from blobs where {_UNNAMED}")
    return int(freed[0][0])


def history_contents(db: apsw.Connection, project_path: str) -> list[KeptContent]:
    """The contents that a project has as file history, the newest first."""
    meant = (project_path, files_stream(project_path))
    return newest_first(HistoryRow(*row) for row in fetch(db, _HISTORY, meant))


def trim_history(
    db: apsw.Connection, project_path: str, most_bytes: int, newest: BlobId | None = None
) -> int:
    """Drop the oldest file history of a project beyond so many bytes, without what is in the tree
    `newest`.

    Returns the bytes that no session names any more.
    """
    meant = (project_path, files_stream(project_path))
    needed = named_by_trees([newest] if newest else [], lambda each: _data(db, each)).contents
    rows = [HistoryRow(*row) for row in fetch(db, _HISTORY, meant)]
    dropped = oldest_beyond(rows, most_bytes, needed)
    db.executemany(
        "delete from history_refs where kept_no = ?", ((each.kept_no,) for each in dropped)
    )
    freed = 0
    for each in {row.blob_no: row for row in dropped}.values():
        db.execute(f"delete from blobs where blob_no = ? and {_UNNAMED}", (each.blob_no,))
        freed += each.size if db.changes() else 0
    return freed
