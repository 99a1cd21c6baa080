"""What takes something out of a Postgres store: deleting sessions, sweeping blobs, trimming file
history, and overwriting records.

All of it runs in the lane, in a transaction, under the lock that keeps appends from naming a blob
that is about to go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.errors import Corrupt
from weft.ids import BlobId, SessionId
from weft.store.base import KeptContent, Record, files_stream
from weft.store.history_rows import HistoryRow, newest_first, oldest_beyond
from weft.store.postgres.connection import Connection
from weft.store.postgres.leases import HeldStream, check_free
from weft.store.postgres.reader import PROJECT_STREAMS, STREAM
from weft.store.postgres.registration import LOCK_CLASS, ProcessRegistration
from weft.store.postgres.settings import LeaseTimes
from weft.store.postgres.text_codec import loaded, stored
from weft.store.tree_names import TreeNames, listing_entries

_PLACE = """
    select s.stream_no, s.process_no, s.taken, coalesce(k.parent_id, s.hidden_parent) as parent,
        k.project_path
    from streams s left join sessions k on k.tenant = s.tenant and k.stream_no = s.stream_no
    where s.tenant = $1 and s.name = $2 for update of s
"""
_NAMED = """
    select exists (select 1 from sessions where tenant = $1 and parent_id = $2)
        or exists (select 1 from streams where tenant = $1 and is_hidden and hidden_parent = $2)
"""
_UNNAMED = """
    b.tenant = $1
    and not exists (select 1 from blob_refs r where r.tenant = $1 and r.blob_no = b.blob_no)
    and not exists (select 1 from history_refs r where r.tenant = $1 and r.blob_no = b.blob_no)
"""
_TREES = """
    select distinct b.id from blob_refs r join blobs b using (tenant, blob_no)
    where r.tenant = $1 and r.stream_no <> $2 and r.blob_no in (
        select blob_no from blob_refs where tenant = $1 and stream_no = $2)
"""


async def _lock_blobs(db: Connection, tenant: int) -> None:
    # In a statement of its own: the next one sees all that was named before the lock was had.
    await db.execute("select pg_advisory_xact_lock($1, $2)", LOCK_CLASS, tenant)


async def delete(
    db: Connection, registration: ProcessRegistration, times: LeaseTimes, session_id: SessionId
) -> None:
    """Remove a session, or hide it while a fork still reads its facts.

    The stream's own row stays, with its fence: an earlier holder of the lease can never write under
    this name again.

    Raises:
        Owned: a living process elsewhere holds it.
    """
    tenant, name = registration.tenant, stored(session_id)
    await _lock_blobs(db, tenant)
    place = await db.fetchrow(_PLACE, tenant, name)
    if place is None:
        return
    held = HeldStream(session_id, place["process_no"], place["taken"])
    await check_free(db, registration, times, [held])
    number = place["stream_no"]
    await _execute(db, "update streams set process_no = null", tenant, number)
    for table in ("said", "sessions", "drafts", "snapshots"):
        await _execute(db, f"delete from {table}", tenant, number)
    if await db.fetchval(_NAMED, tenant, name):
        await db.execute(
            """update streams set is_hidden = true, hidden_parent = $3
               where tenant = $1 and stream_no = $2""",
            tenant,
            number,
            place["parent"],
        )
        return
    await _remove_facts(db, tenant, number)
    await _remove_unnamed(db, tenant, place["parent"])
    if place["project_path"] is not None:
        await _drop_unnamed_files(db, tenant, files_stream(place["project_path"]))


async def _execute(db: Connection, statement: str, tenant: int, number: int) -> None:
    await db.execute(f"{statement} where tenant = $1 and stream_no = $2", tenant, number)


async def _remove_facts(db: Connection, tenant: int, number: int) -> None:
    blobs = await _blobs_of(db, tenant, number)
    for table in ("facts", "blob_refs", "history_refs"):
        await _execute(db, f"delete from {table}", tenant, number)
    await _execute(
        db,
        "update streams set last_seq = 0, is_hidden = false, hidden_parent = null",
        tenant,
        number,
    )
    await _drop_unnamed(db, tenant, blobs)


async def _blobs_of(db: Connection, tenant: int, number: int) -> list[int]:
    found = await db.fetch(
        """select blob_no from blob_refs where tenant = $1 and stream_no = $2
           union select blob_no from history_refs where tenant = $1 and stream_no = $2""",
        tenant,
        number,
    )
    return [row[0] for row in found]


async def _drop_unnamed(db: Connection, tenant: int, blobs: Sequence[int]) -> int:
    """Remove those of some blobs that no stream names; returns their bytes."""
    freed = await db.fetch(
        f"delete from blobs b where b.blob_no = any ($2) and {_UNNAMED} returning b.size",
        tenant,
        list(blobs),
    )
    return sum(row[0] for row in freed)


async def _remove_unnamed(db: Connection, tenant: int, name: str | None) -> None:
    """Remove hidden logs that no fork reads any more, up the line."""
    while name is not None and not await db.fetchval(_NAMED, tenant, name):
        found = await db.fetchrow(
            """select stream_no, hidden_parent from streams
               where tenant = $1 and name = $2 and is_hidden""",
            tenant,
            name,
        )
        if found is None:
            return
        name = found["hidden_parent"]
        await _remove_facts(db, tenant, found["stream_no"])


async def _drop_unnamed_files(db: Connection, tenant: int, files: str) -> None:
    """Forget the files of a project that no tree names any more."""
    number = await db.fetchval(STREAM, tenant, files)
    if number is None:
        return
    trees = [BlobId(loaded(row[0])) for row in await db.fetch(_TREES, tenant, number)]
    named = await tree_names(db, tenant, trees)
    kept = [stored(each) for each in (*named.listings, *named.contents)]
    for table in ("blob_refs", "history_refs"):
        dropped = await db.fetch(
            f"""delete from {table} where tenant = $1 and stream_no = $2 and blob_no not in (
                    select blob_no from blobs where tenant = $1 and id = any ($3)
                ) returning blob_no""",
            tenant,
            number,
            kept,
        )
        await _drop_unnamed(db, tenant, [row[0] for row in dropped])


async def tree_names(db: Connection, tenant: int, trees: Iterable[BlobId]) -> TreeNames:
    """All that these trees name, as far as it is stored; a level of folders at a time."""
    found = TreeNames(set(), set())
    waiting = set(trees)
    while waiting:
        found.listings.update(waiting)
        rows = await db.fetch(
            "select data from blobs where tenant = $1 and id = any ($2)",
            tenant,
            [stored(each) for each in waiting],
        )
        folders: set[BlobId] = set()
        for (data,) in rows:
            for is_folder, blob_id in listing_entries(bytes(data)):
                (folders if is_folder else found.contents).add(blob_id)
        waiting = folders - found.listings
    return found


async def overwrite(db: Connection, tenant: int, stream: str, records: Sequence[Record]) -> None:
    """Put these in the place of the records with the same `seq`.

    Raises:
        Corrupt: one of them is not there; the transaction takes back the others.
    """
    for record in records:
        changed = await db.execute(
            f"""update facts set at = $3, kind = $4, body = $5
                where tenant = $1 and stream_no = ({STREAM}) and seq = $6""",
            tenant,
            stored(stream),
            record.at,
            stored(record.kind),
            record.body,
            record.seq,
        )
        if changed == "UPDATE 0":
            raise Corrupt(stream, "there is no such record", seq=record.seq)


_HISTORY = f"""
    select kept_no, blob_no, size, id
    from history_refs h join blobs b using (tenant, blob_no)
    where h.tenant = $1 and h.stream_no in ({PROJECT_STREAMS}) order by kept_no desc
"""


async def sweep_blobs(db: Connection, tenant: int) -> int:
    """Drop blobs that no stream names; returns their bytes."""
    await _lock_blobs(db, tenant)
    freed = await db.fetch(f"delete from blobs b where {_UNNAMED} returning b.size", tenant)
    return sum(row[0] for row in freed)


async def history_contents(db: Connection, tenant: int, project_path: str) -> list[KeptContent]:
    """The contents that a project has as file history, the newest first."""
    found = await db.fetch(
        _HISTORY, tenant, stored(project_path), files_stream(stored(project_path))
    )
    return newest_first(HistoryRow(no, blob, size, loaded(id_)) for no, blob, size, id_ in found)


async def trim_history(
    db: Connection, tenant: int, project_path: str, most_bytes: int, newest: BlobId | None
) -> int:
    """Drop the oldest file history of a project beyond so many bytes, without what is in the tree
    `newest`; returns the bytes that no session names any more.
    """
    meant = (tenant, stored(project_path), files_stream(stored(project_path)))
    total = await db.fetchval(
        f"""select coalesce(sum(size), 0)
            from history_refs h join blobs b using (tenant, blob_no)
            where h.tenant = $1 and h.stream_no in ({PROJECT_STREAMS})""",
        *meant,
    )
    if total <= most_bytes:
        return 0
    await _lock_blobs(db, tenant)
    named = await tree_names(db, tenant, [newest] if newest else [])
    found = await db.fetch(_HISTORY, *meant)
    rows = [HistoryRow(no, blob, size, loaded(id_)) for no, blob, size, id_ in found]
    dropped = oldest_beyond(rows, most_bytes, named.contents)
    await db.execute(
        "delete from history_refs where tenant = $1 and kept_no = any ($2)",
        tenant,
        [row.kept_no for row in dropped],
    )
    return await _drop_unnamed(db, tenant, list({row.blob_no for row in dropped}))
