"""File history: files of older schemas are brought up, and sums are kept of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import apsw
import msgspec
import pytest

from tests.support.store_connection import open_connection
from weft.ids import SessionId
from weft.store import Append, Blob, Record, SessionRow, Store
from weft.store.sqlite import open_sqlite
from weft.store.sqlite.query import fetch
from weft.store.sqlite.reader import DUE, history_bytes
from weft.testing.store_contract import blob_id

pytestmark = pytest.mark.anyio


def without_waits(db: apsw.Connection) -> None:
    """As the file was before the fourth schema."""
    db.execute("drop index said_by_node")  # of the fifth
    for trigger in ("wait_rewritten", "wait_deleted"):
        db.execute(f"drop trigger {trigger}")
    db.execute("drop table waits")


async def set_wake(store: Store, session: SessionId, wake_at: float | None) -> SessionRow:
    """Write the row of a session that waits until then, and let go of it."""
    known = await store.row(session)
    assert known is not None
    row = msgspec.structs.replace(known, wake_at=wake_at)
    lease = await store.take_lease(session)
    end = await store.last_seq(session)
    await store.append(
        Append(stream=session, expected_seq=end, records=(), fence=lease.fence, row=row)
    )
    await store.release_lease(lease)
    return row


async def test_a_file_of_the_third_schema_can_be_asked_what_is_due(tmp_path: Path) -> None:
    path, session = tmp_path / "weft.db", SessionId("ses_a")
    async with await open_sqlite(path) as store:
        await write_history(store, session, [1])
    db = open_connection(path)
    without_waits(db)
    db.execute("pragma user_version = 3")
    async with await open_sqlite(path) as store:
        assert await store.due(99.0) == []
        row = await set_wake(store, session, 5.0)
        assert await store.due(5.0) == [row]
        plan = str(fetch(db, f"explain query plan {DUE}", (1.0, None, 5)))
        assert "waits_due" in plan
        assert "TEMP B-TREE" not in plan
    db.close()


ROW_OF_THE_THIRD_SCHEMA = """
    insert into sessions values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    on conflict (stream_no) do update set
        parent_id = excluded.parent_id, project_path = excluded.project_path,
        last_active = excluded.last_active, is_child = excluded.is_child,
        archived = excluded.archived, min_reader = excluded.min_reader,
        title_words = excluded.title_words, row = excluded.row
"""


def write_as_before(db: apsw.Connection, session: str, number: int) -> None:
    """What a program of the third schema does, which had the file open when it was migrated."""
    row = msgspec.json.encode({"id": session, "project_path": "/p"})
    db.execute(ROW_OF_THE_THIRD_SCHEMA, (number, session, None, "/p", 9.0, 0, 0, 0, "", row))


async def test_a_writer_of_the_third_schema_goes_on_beside_this_one(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    async with await open_sqlite(path) as store:
        await write_history(store, SessionId("ses_a"), [1])
    before = open_connection(path)
    without_waits(before)
    before.execute("pragma user_version = 3")
    write_as_before(before, "ses_b", 50)
    async with await open_sqlite(path) as store:
        write_as_before(before, "ses_b", 50)
        write_as_before(before, "ses_c", 51)
        listed = {row.id for row in await store.rows()}
        assert listed == {"ses_a", "ses_b", "ses_c"}
        assert await store.due(99.0) == []
    before.close()


async def test_a_wait_ends_with_a_row_that_knows_of_none(tmp_path: Path) -> None:
    """A program of the third schema goes on with the session, or deletes it."""
    path, a, b = tmp_path / "weft.db", SessionId("ses_a"), SessionId("ses_b")
    db = open_connection(path)
    async with await open_sqlite(path) as store:
        for session in (a, b):
            await write_history(store, session, [1])
            await set_wake(store, session, 5.0)
        assert [row.id for row in await store.due(5.0)] == [a, b]
        number = fetch(db, "select stream_no from sessions where id = ?", (a,))[0][0]
        write_as_before(db, a, number)
        assert [row.id for row in await store.due(5.0)] == [b]
        db.execute("delete from sessions where id = ?", (b,))
        assert await store.due(5.0) == []
        assert fetch(db, "select count(*) from waits") == [(0,)]
    db.close()


async def test_a_file_of_the_first_schema_is_brought_up_and_goes_on(tmp_path: Path) -> None:
    path, session = tmp_path / "weft.db", SessionId("ses_a")
    data = b"what it was"
    blob = Blob(blob_id(data), data)
    row = SessionRow(id=session, project_path="/p")
    async with await open_sqlite(path) as store:
        lease = await store.take_lease(session)
        add = Append(
            stream=session,
            expected_seq=0,
            records=(Record(1, 1.0, "k", b"{}"),),
            fence=lease.fence,
            row=row,
            blobs=(blob,),
        )
        await store.append(add)
    db = open_connection(path)
    for table in ("history_refs", "history_sums"):
        db.execute(f"drop table {table}")
    without_waits(db)
    db.execute("pragma user_version = 1")
    db.close()
    async with await open_sqlite(path) as store:
        lease = await store.take_lease(session)
        assert await store.trim_history("/p", 0) == 0
        assert await store.blob(blob.id) == data
        other = Blob(blob_id(b"other"), b"other")
        again = msgspec.structs.replace(
            add,
            expected_seq=1,
            records=(Record(2, 2.0, "k", b"{}"),),
            fence=lease.fence,
            blobs=(other,),
            history=(other.id,),
        )
        await store.append(again)
        assert await store.trim_history("/p", 0) == len(b"other")
        assert await store.blob(blob.id) == data


async def write_history(store: Store, session: SessionId, sizes: Sequence[int]) -> None:
    """A session whose file history has blobs of these sizes."""
    lease = await store.take_lease(session)
    blobs = [
        Blob(blob_id(data), data)
        for data in (f"{session}{number}".encode().ljust(size) for number, size in enumerate(sizes))
    ]
    add = Append(
        stream=session,
        expected_seq=0,
        records=(Record(1, 1.0, "k", b"{}"),),
        fence=lease.fence,
        row=SessionRow(id=session, project_path="/p"),
        blobs=tuple(blobs),
        history=tuple(blob.id for blob in blobs),
    )
    await store.append(add)
    await store.release_lease(lease)


SUMMED = "select coalesce(sum(bytes), 0) from history_sums"
COUNTED = "select coalesce(sum(size), 0) from history_refs join blobs using (blob_no)"


def sums(db: apsw.Connection) -> tuple[int, int]:
    """The kept sum, and what counting gives."""
    return fetch(db, SUMMED)[0][0], fetch(db, COUNTED)[0][0]


async def test_the_sum_of_the_history_is_what_counting_it_gives(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    a, b = SessionId("ses_a"), SessionId("ses_b")
    db = open_connection(path)
    async with await open_sqlite(path) as store:
        await write_history(store, a, [100, 200, 300])
        await write_history(store, b, [50] * 4)
        assert sums(db) == (800, 800)
        assert await store.trim_history("/p", 250) == 600
        assert sums(db) == (200, 200)
        await store.delete(b)
        assert sums(db) == (0, 0)
    db.close()


async def test_a_file_of_the_second_schema_has_its_history_added_up(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    async with await open_sqlite(path) as store:
        await write_history(store, SessionId("ses_a"), [100, 200])
    db = open_connection(path)
    for trigger in ("history_named", "history_dropped"):
        db.execute(f"drop trigger {trigger}")
    db.execute("drop table history_sums")
    without_waits(db)
    db.execute("pragma user_version = 2")
    async with await open_sqlite(path) as store:
        assert sums(db) == (300, 300)
        await write_history(store, SessionId("ses_b"), [7])
        assert sums(db) == (307, 307)
        assert await store.trim_history("/p", 10) == 300
    db.close()


async def test_a_project_below_its_quota_is_not_looked_through(tmp_path: Path) -> None:
    def steps(db: apsw.Connection) -> int:
        """What SQLite does to see that nothing is to be trimmed, in tens of its instructions."""
        count = 0

        def see() -> bool:
            nonlocal count
            count += 1
            return False

        db.set_progress_handler(see, 10)
        assert history_bytes(db, "/p") < 1_000_000
        db.set_progress_handler(None)
        return count

    costs: list[int] = []
    for number, blobs in enumerate((10, 2_000)):
        path = tmp_path / f"{number}.db"
        async with await open_sqlite(path) as store:
            await write_history(store, SessionId("ses_a"), [20] * blobs)
        db = open_connection(path)
        costs.append(steps(db))
        db.close()
    assert costs[0] == costs[1]
