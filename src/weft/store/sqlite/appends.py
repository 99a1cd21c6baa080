"""What the writer does for an append and for the things kept beside the log.

All of it inside its transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import msgspec

from weft.errors import UsageError
from weft.ids import BlobId, NodeId, SessionId
from weft.store import words
from weft.store.base import Append, Draft, DraftChunk, SessionRow, Snapshot, files_stream
from weft.store.checks import check_place
from weft.store.drafts import DraftPiece, joined_drafts
from weft.store.sqlite.query import fetch

_FIND = "select stream_no, last_seq, fence, process_id, is_hidden from streams where name = ?"
_NEW = "insert into streams (name) values (?) returning stream_no"
_FACT = "insert into facts values (?, ?, ?, ?, ?)"
_GROW = "update streams set last_seq = ? where stream_no = ?"
_SHOW = "update streams set is_hidden = 0, hidden_parent = null where stream_no = ?"
_ROW = """
    insert into sessions (
        stream_no, id, parent_id, project_path, last_active, is_child, archived, min_reader,
        title_words, row
    ) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    on conflict (stream_no) do update set
        parent_id = excluded.parent_id, project_path = excluded.project_path,
        last_active = excluded.last_active, is_child = excluded.is_child,
        archived = excluded.archived, min_reader = excluded.min_reader,
        title_words = excluded.title_words, row = excluded.row
"""
_NAME_LISTING = "insert or ignore into blob_refs select ?, blob_no from blobs where id = ?"
_NAME_CONTENT = """
    insert or ignore into history_refs (stream_no, blob_no)
    select ?, blob_no from blobs where id = ?
"""
_WAIT = "insert into waits (stream_no, id, wake_at) values (?, ?, ?)"
_encode_row = msgspec.json.Encoder().encode
_row_decoder = msgspec.json.Decoder(SessionRow)


class StreamPosition(msgspec.Struct, frozen=True):
    """Where a stream stands."""

    stream_no: int
    last_seq: int
    fence: int
    process_id: str | None
    is_hidden: int = 0


def find(db: apsw.Connection, stream: str) -> StreamPosition | None:
    """The place of a stream that exists."""
    found = fetch(db, _FIND, (stream,))
    return StreamPosition(*found[0]) if found else None


def find_or_add(db: apsw.Connection, stream: str) -> StreamPosition:
    """The place of a stream, made when it is new."""
    known = find(db, stream)
    return known or StreamPosition(int(fetch(db, _NEW, (stream,))[0][0]), 0, 0, None)


def append(db: apsw.Connection, appends: Sequence[Append], process_id: str) -> None:
    """Add all of it.

    Raises:
        Conflict, Fenced, UsageError: the caller's savepoint takes back what was already added.
    """
    # Three rounds, because one append of a batch may name a blob that another one brings.
    places = [_add_facts(db, one, process_id) for one in appends]
    for one, place in zip(appends, places, strict=True):
        if one.row is not None:
            put_row(db, place, one.row)
        _add_beside(db, one, place.stream_no)
    for one, place in zip(appends, places, strict=True):
        for blob_id in one.names_blobs:
            _name_blob(db, place.stream_no, blob_id)


def _add_facts(db: apsw.Connection, one: Append, process_id: str) -> StreamPosition:
    place = find(db, one.stream)
    check_place(
        one,
        last_seq=place.last_seq if place is not None else 0,
        fence=place.fence if place is not None else 0,
        is_held=place is not None and place.process_id == process_id,
    )
    # Only after the check: a refused append must not leave an empty stream behind.
    place = place or find_or_add(db, one.stream)
    if one.records:
        number = place.stream_no
        facts = ((number, r.seq, r.at, r.kind, r.body) for r in one.records)
        db.executemany(_FACT, facts)
        db.execute(_GROW, (one.records[-1].seq, number))
    return place


def _add_beside(db: apsw.Connection, one: Append, stream_no: int) -> None:
    for said in one.said:
        # The index has no content of its own (`content=''`), so the row number ties the two tables.
        added = fetch(
            db,
            "insert into said (stream_no, node, text) values (?, ?, ?) returning said_no",
            (stream_no, said.node, said.text),
        )
        db.execute(
            "insert into said_words (rowid, words) values (?, ?)",
            (added[0][0], words.indexed(said.text)),
        )
    in_trees = {*one.tree_listings, *one.tree_contents}
    for blob in one.blobs:
        db.execute(
            "insert into blobs (id, size, data) values (?, ?, ?) on conflict do nothing",
            (blob.id, len(blob.data), blob.data),
        )
        if blob.id in one.history or blob.id not in in_trees:
            _name_blob(db, stream_no, blob.id, is_history=blob.id in one.history)
    if in_trees or one.trees:
        _add_trees(db, one, stream_no)
    if one.drop_draft:
        db.execute("delete from drafts where stream_no = ?", (stream_no,))
    for node in one.ends_drafts:
        db.execute("delete from drafts where stream_no = ? and node = ?", (stream_no, node))


def _add_trees(db: apsw.Connection, one: Append, stream_no: int) -> None:
    """Name what is in trees for the project, and the trees for the stream."""
    known = fetch(db, "select project_path from sessions where stream_no = ?", (stream_no,))
    files = find_or_add(db, files_stream(known[0][0] if known else "")).stream_no
    db.executemany(_NAME_LISTING, ((files, each) for each in one.tree_listings))
    db.executemany(_NAME_CONTENT, ((files, each) for each in one.tree_contents))
    # One that is gone by now, with the last session that had it, is no reason to refuse the facts.
    db.executemany(_NAME_LISTING, ((stream_no, each) for each in one.trees))


def _name_blob(
    db: apsw.Connection, stream_no: int, blob_id: BlobId, *, is_history: bool = False
) -> None:
    known = fetch(db, "select blob_no from blobs where id = ?", (blob_id,))
    if not known:
        raise UsageError(f"blob {blob_id!r} is not stored; hand its content in")
    named = (stream_no, known[0][0])
    if is_history:
        db.execute("insert or ignore into history_refs (stream_no, blob_no) values (?, ?)", named)
    else:
        db.execute("insert or ignore into blob_refs values (?, ?)", named)


def put_row(db: apsw.Connection, place: StreamPosition, row: SessionRow) -> None:
    """Keep the row of a session; one that was hidden is seen again."""
    db.execute(
        _ROW,
        (
            place.stream_no,
            row.id,
            row.parent_id,
            row.project_path,
            row.last_active,
            row.is_child,
            row.archived,
            row.min_reader,
            words.indexed(row.title),
            _encode_row(row),
        ),
    )
    # After the row: a trigger has just taken away the wait that was there before.
    # A damaged row is never woken, and `due` has no other sign of it.
    if row.wake_at is not None and not row.damaged:
        db.execute(_WAIT, (place.stream_no, row.id, row.wake_at))
    if place.is_hidden:
        db.execute(_SHOW, (place.stream_no,))


def decode_row(session_id: str, data: bytes) -> SessionRow:
    """A stored row; one that cannot be read is shown as damaged, for it must not hide the
    others.
    """
    try:
        return _row_decoder.decode(data)
    except msgspec.MsgspecError as error:
        return SessionRow(id=SessionId(session_id), damaged=f"its row cannot be read: {error}")


def mark_damaged(db: apsw.Connection, session_id: SessionId, reason: str) -> None:
    """Write the reason into the row, and make one for a session that has none."""
    place = find_or_add(db, session_id)
    if place.is_hidden:
        return
    kept = fetch(db, "select row from sessions where stream_no = ?", (place.stream_no,))
    row = decode_row(session_id, kept[0][0]) if kept else SessionRow(id=session_id)
    put_row(db, place, msgspec.structs.replace(row, damaged=reason))


def save_draft(db: apsw.Connection, chunk: DraftChunk, process_id: str) -> None:
    """Keep one more chunk.

    Under an old fence nothing happens.  The draft of an answer begun again is replaced.
    """
    place = find(db, chunk.stream)
    # A late chunk of an owner that was replaced: its text belongs to a turn that is over.
    if place is None or place.fence != chunk.fence or place.process_id != process_id:
        return
    number = place.stream_no
    if chunk.restart:
        db.execute("delete from drafts where stream_no = ? and node = ?", (number, chunk.node))
    if not chunk.chunk:
        return
    db.execute(
        """insert into drafts select ?1, coalesce(max(chunk_no), 0) + 1, ?2, ?3, ?4
           from drafts where stream_no = ?1""",
        (number, chunk.node, _part_column(chunk), chunk.chunk),
    )


def _part_column(chunk: DraftChunk) -> str:
    # The call is written into the part, so that older programs, which know two words for it, pass
    # the row over.
    is_call = chunk.part == "arguments"
    return f"{chunk.part}:{chunk.index}:{chunk.tool}" if is_call else chunk.part


def load_drafts(db: apsw.Connection, stream: str) -> list[Draft]:
    """The drafts in flight; asked of the writer, so that it sees the chunks handed in before."""
    place = find(db, stream)
    if place is None:
        return []
    rows = fetch(
        db,
        "select node, part, chunk from drafts where stream_no = ? order by chunk_no",
        (place.stream_no,),
    )
    return joined_drafts(_piece(*row) for row in rows)


def _piece(node: str, column: str, chunk: str) -> DraftPiece:
    part, _, call = column.partition(":")
    index, _, tool = call.partition(":")
    return DraftPiece(NodeId(node), part, chunk, int(index or 0), tool)


def save_snapshot(db: apsw.Connection, stream: str, snapshot: Snapshot) -> None:
    """Keep the newest; one from beyond the stream's end is of a log that is not this one."""
    place = find(db, stream)
    if place is None or snapshot.seq > place.last_seq:
        return
    db.execute(
        """insert into snapshots values (?, ?, ?, ?) on conflict (stream_no) do update
           set seq = excluded.seq, version = excluded.version, data = excluded.data
           where excluded.seq >= seq or excluded.version <> version""",
        (place.stream_no, snapshot.seq, snapshot.version, snapshot.data),
    )
