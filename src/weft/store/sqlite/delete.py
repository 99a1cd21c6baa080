"""Deleting sessions and sweeping blobs; run by the writer inside its transaction.

What was deleted must not be readable in the file either.  `secure_delete` overwrites rows and free
pages with zeros, but three things escape it.  The index of words keeps a deleted text until its
segments are merged (`merge_words`).  The write-ahead log keeps older pages until it is emptied.
And where SQLite moves rows from one page to another, a copy stays in the unused middle of the
first one, which nothing but writing the file anew removes (`rewrite`).
"""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from weft.ids import SessionId
from weft.store.base import Owner
from weft.store.sqlite.appends import find
from weft.store.sqlite.leases import check_free
from weft.store.sqlite.query import fetch
from weft.store.sqlite.schema import UNSCRUBBED

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
    return has_words


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


_HISTORY = """
    select kept_no, blob_no, size
    from history_refs join sessions using (stream_no) join blobs using (blob_no)
    where project_path = ? order by kept_no desc
"""
_HISTORY_BYTES = """
    select coalesce(sum(bytes), 0) from history_sums join sessions using (stream_no)
    where project_path = ?
"""
_TRIM = """
    delete from history_refs
    where kept_no <= ? and stream_no in (select stream_no from sessions where project_path = ?)
"""


def sweep_blobs(db: apsw.Connection) -> int:
    """Drop blobs that no stream names; returns their bytes."""
    freed = fetch(db, f"select coalesce(sum(size), 0) from blobs where {_UNNAMED}")
    db.execute(f"delete from blobs where {_UNNAMED}")
    return int(freed[0][0])


def trim_history(db: apsw.Connection, project_path: str, most_bytes: int) -> int:
    """Drop the oldest file history of a project beyond so many bytes.

    Returns the bytes that no session names any more.
    """
    # Nearly always: every session asks with its first change of a file, and this thread is the one
    # that commits.
    if fetch(db, _HISTORY_BYTES, (project_path,))[0][0] <= most_bytes:
        return 0
    total, seen = 0, set[int]()
    for kept_no, blob_no, size in fetch(db, _HISTORY, (project_path,)):
        total += 0 if blob_no in seen else size
        seen.add(blob_no)
        # Everything from here on is older, so one statement drops the rest.
        if total > most_bytes:
            db.execute(_TRIM, (kept_no, project_path))
            return sweep_blobs(db)
    return 0
