"""Rows beside the log that are written outside of appends: damage, and snapshots."""

from __future__ import annotations

import msgspec

from weft.ids import SessionId
from weft.store import search_text as words
from weft.store.base import SessionRow, Snapshot
from weft.store.postgres.connection import Connection
from weft.store.postgres.reader import STREAM, decode_row
from weft.store.postgres.text_codec import stored

_PUT = """
    insert into sessions (
        tenant, stream_no, id, parent_id, project_path, last_active, is_child, archived,
        min_reader, wake_at, title_words, row
    ) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, null, $10, $11)
    on conflict (tenant, stream_no) do update set wake_at = null, row = excluded.row
"""
_SNAPSHOT = """
    insert into snapshots as kept (tenant, stream_no, seq, version, data)
    select $1, s.stream_no, $3, $4, $5 from streams s
    where s.tenant = $1 and s.name = $2 and $3 <= s.last_seq
    on conflict (tenant, stream_no) do update
        set seq = excluded.seq, version = excluded.version, data = excluded.data
        where excluded.seq >= kept.seq or excluded.version <> kept.version
"""


async def mark_damaged(db: Connection, tenant: int, session_id: SessionId, reason: str) -> None:
    """Write the reason into the row, and make one for a session that has none."""
    name = stored(session_id)
    await db.execute(
        "insert into streams (tenant, name) values ($1, $2) on conflict do nothing", tenant, name
    )
    number, is_hidden = await db.fetchrow(  # type: ignore[misc]  # it was just made
        "select stream_no, is_hidden from streams where tenant = $1 and name = $2 for update",
        tenant,
        name,
    )
    if is_hidden:
        return
    kept = await db.fetchval(
        f"select row from sessions where tenant = $1 and stream_no = ({STREAM})", tenant, name
    )
    row = decode_row(name, kept) if kept is not None else SessionRow(id=session_id)
    row = msgspec.structs.replace(row, damaged=reason)
    await db.execute(
        _PUT,
        tenant,
        number,
        name,
        None if row.parent_id is None else stored(row.parent_id),
        stored(row.project_path),
        row.last_active,
        row.is_child,
        row.archived,
        row.min_reader,
        words.indexed(row.title),
        msgspec.json.encode(row),
    )


async def save_snapshot(db: Connection, tenant: int, stream: str, snapshot: Snapshot) -> None:
    """Keep the newest; one from beyond the stream's end is of a log that is not this one."""
    await db.execute(
        _SNAPSHOT,
        tenant,
        stored(stream),
        snapshot.seq,
        stored(snapshot.version),
        snapshot.data,
    )
