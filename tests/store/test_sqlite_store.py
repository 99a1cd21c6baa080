"""What only the SQLite store promises."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import apsw
import pytest

from tests.support.store_connection import open_connection
from weft.errors import Conflict, StoreUnavailable
from weft.ids import NodeId, SessionId
from weft.store import Append, Record, SearchText, SessionRow, Snapshot
from weft.store.sqlite import SqliteStore, open_sqlite
from weft.store.sqlite.schema import VERSION, look, migrate
from weft.testing.store_contract import A, B, bodies, chunk, facts, project, refuses, seqs

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with await open_sqlite(tmp_path / "weft.db") as store:
        yield store


async def test_no_other_user_may_read_the_files(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with await open_sqlite(home / "weft.db") as store:
        lease = await store.take_lease(A)
        await store.append(facts(lease, 0, "secret"))
        folders = [home, home / "run"]
        assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o700, 0o700]
        names = {file.name for file in home.iterdir()}
        assert names == {"weft.db", "weft.db-wal", "weft.db-shm", "weft.db.ballast", "run"}
        for file in (*home.glob("weft.db*"), *(home / "run").iterdir()):
            assert file.stat().st_mode & 0o777 == 0o600, file


async def test_appends_of_one_moment_share_a_commit_and_a_refused_one_fails_alone(
    store: SqliteStore, tmp_path: Path
) -> None:
    leases = [await store.take_lease(SessionId(f"ses_{n}")) for n in range(20)]
    before = _commits(tmp_path)
    told = await asyncio.gather(
        *(store.append(facts(lease, n % 2, "x")) for n, lease in enumerate(leases)),
        return_exceptions=True,
    )
    assert [isinstance(error, Conflict) for error in told] == [n % 2 == 1 for n in range(20)]
    assert _commits(tmp_path) - before <= 3
    ends = [await store.last_seq(lease.stream) for lease in leases]
    assert ends == [1, 0] * 10


def _commits(folder: Path) -> int:
    """How often the log file has been committed to, counted from its frames."""
    data = (folder / "weft.db-wal").read_bytes()
    size = int.from_bytes(data[8:12], "big") + 24
    frames = range(32, len(data) - size + 1, size)
    return sum(data[at + 4 : at + 8] != bytes(4) for at in frames)


async def test_the_end_of_a_stream_is_told_without_a_reader(store: SqliteStore) -> None:
    """Every run asks for one, and most read nothing."""
    lease = await store.take_lease(A)
    await store.append(facts(lease, 0, "x"))
    assert (await store.last_seq(A), await store.last_seq(B)) == (1, 0)
    assert "weft-reader" not in {thread.name for thread in threading.enumerate()}
    await store.read(A)
    assert (await store.last_seq(A), await store.last_seq(B)) == (1, 0)


async def test_a_cancelled_append_is_committed_and_hurts_no_neighbour(
    store: SqliteStore,
) -> None:
    a, b = await store.take_lease(A), await store.take_lease(B)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.append, facts(a, 0, "handed in"))
        tasks.start_soon(store.append, facts(b, 0, "handed in"))
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    await store.append(facts(b, 1, "behind them"))
    assert bodies(await store.read(A)) == [b"handed in"]
    assert await store.last_seq(B) == 2


@pytest.mark.process
async def test_a_follower_is_woken_by_another_process(store: SqliteStore, tmp_path: Path) -> None:
    await store.append(project(0, "first"))
    followed = store.follow("project:p1")
    with anyio.fail_after(20):
        assert (await followed.__anext__()).body == b"first"
        async with await anyio.open_process(
            [sys.executable, "-c", _WRITE, str(tmp_path / "weft.db")]
        ) as other:
            seen = [await followed.__anext__() for _ in range(20)]
            await other.wait()
    assert seqs(seen) == list(range(2, 22))
    await followed.aclose()


_WRITE = """
import asyncio, sys
from weft.store import Append, Record
from weft.store.sqlite import open_sqlite
async def main():
    async with await open_sqlite(sys.argv[1]) as store:
        for n in range(1, 21):
            record = Record(n + 1, 0.0, "k", b"")
            await store.append(Append(stream="project:p1", expected_seq=n, records=(record,)))
asyncio.run(main())
"""


async def test_opening_and_closing_leaves_no_thread_and_no_descriptor(tmp_path: Path) -> None:
    async def once() -> None:
        async with await open_sqlite(tmp_path / "weft.db") as store:
            lease = await store.take_lease(A)
            await store.append(facts(lease, await store.last_seq(A), "x"))
            await store.search("x")
            with anyio.move_on_after(0.01):
                await store.follow(A, after=await store.last_seq(A)).__anext__()

    await once()
    gc.collect()
    # Not the counts alone: a thread of an earlier test may still be about to end.
    threads, descriptors = set(threading.enumerate()), len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        await once()
    gc.collect()
    assert set(threading.enumerate()) - threads == set()
    assert len(os.listdir("/proc/self/fd")) <= descriptors


async def test_the_log_file_stays_small_under_steady_reading_and_writing(
    store: SqliteStore, tmp_path: Path
) -> None:
    lease = await store.take_lease(A)
    for start in range(0, 3000, 30):
        records = tuple(Record(start + n, 0.0, "k", bytes(3000)) for n in range(1, 31))
        await store.append(Append(stream=A, expected_seq=start, records=records, fence=lease.fence))
        async for _ in store.follow(A):
            break
        await store.read(A, after=start, limit=5)
    assert (tmp_path / "weft.db-wal").stat().st_size < 16 << 20


async def test_a_stale_row_of_a_dead_process_is_tidied_away(
    store: SqliteStore, tmp_path: Path
) -> None:
    db = open_connection(tmp_path / "weft.db")
    db.execute("insert into processes values ('prc_dead', 1, 0.0, '', '', '')")
    db.execute("insert into streams (name, fence, process_id) values ('ses_x', 7, 'prc_dead')")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "prc_dead.lock").touch()
    assert await store.lease_of("ses_x") is None
    lease = await store.take_lease("ses_x")
    assert lease.fence == 8
    assert [row[0] for row in db.execute("select process_id from processes").fetchall()] == [
        store.owner.process_id
    ]
    db.close()
    assert [file.stem for file in (tmp_path / "run").iterdir()] == [store.owner.process_id]


async def test_drafts_that_the_disk_cannot_take_are_cut_short_and_never_have_a_hole(
    tmp_path: Path,
) -> None:
    async with await open_sqlite(tmp_path / "weft.db") as store:
        lease = await store.take_lease(A)
        locker = open_connection(tmp_path / "weft.db")
        locker.execute("begin immediate")
        for n in range(40):
            store.save_draft(chunk(lease, f"{n:06d}" + "x" * 999_994))
        locker.execute("rollback")
        locker.close()
        [draft] = await store.load_drafts(A)
        store.save_draft(chunk(lease, "more of the same"))
        assert await store.load_drafts(A) == [draft]
        pieces = [draft.text[at : at + 6] for at in range(0, len(draft.text), 1_000_000)]
        assert pieces == [f"{n:06d}" for n in range(len(pieces))]
        assert 10 <= len(pieces) < 20
        store.save_draft(chunk(lease, "a new node", node="n2"))
        cut_short, fresh = await store.load_drafts(A)
        assert cut_short == draft
        assert fresh.text == "a new node"


@pytest.mark.process
async def test_a_store_from_before_a_fork_is_refused(tmp_path: Path) -> None:
    done = await anyio.run_process(
        [sys.executable, "-c", _FORKED, str(tmp_path / "weft.db")], check=False
    )
    assert done.stdout == b"refused\n"


_FORKED = """
import asyncio, os, sys
from weft.errors import StoreUnavailable
from weft.store.sqlite import open_sqlite
async def main():
    store = await open_sqlite(sys.argv[1])
    if os.fork() == 0:
        try:
            await store.read("x")
        except StoreUnavailable:
            print("refused", flush=True)
        os._exit(0)
    os.wait()
    await store.aclose()
asyncio.run(main())
"""


async def test_a_deleted_session_leaves_nothing_but_its_name(
    store: SqliteStore, tmp_path: Path
) -> None:
    lease = await store.take_lease(A)
    row = SessionRow(id=A, title="private")
    said = (SearchText(NodeId("n1"), "private"),)
    record = (Record(1, 0.0, "k", b"private"),)
    await store.append(
        Append(stream=A, expected_seq=0, records=record, fence=lease.fence, row=row, said=said)
    )
    store.save_draft(chunk(lease, "private"))
    await store.save_snapshot(A, Snapshot(1, "v", b"private"))
    await store.delete(A)
    db = open_connection(tmp_path / "weft.db")
    tables = ("facts", "sessions", "said", "said_words", "drafts", "snapshots", "blob_refs")
    for table in tables:
        assert db.execute(f"select count(*) from {table}").fetchall() == [(0,)], table
    db.close()


async def test_a_file_that_is_being_made_by_another_process_is_no_strangers(
    tmp_path: Path,
) -> None:
    path = tmp_path / "weft.db"
    other, ours = apsw.Connection(str(path)), apsw.Connection(str(path))
    other.execute("pragma journal_mode = wal").fetchall()

    def between(cursor: apsw.Cursor, sql: str, values: object) -> bool:
        if "sqlite_schema" in sql:
            ours.exec_trace = None
            migrate(other, path)
        return True

    ours.exec_trace = between
    assert look(ours, path) == 0
    assert look(ours, path) == VERSION
    ours.close()
    other.close()


async def test_text_that_is_no_text_fails_alone(store: SqliteStore) -> None:
    lease = await store.take_lease(A)
    other = await store.take_lease(B)
    odd = SessionRow(id=A, title="\ud800")
    told = await asyncio.gather(
        store.append(Append(stream=A, expected_seq=0, records=(), fence=lease.fence, row=odd)),
        store.append(facts(other, 0, "fine")),
        return_exceptions=True,
    )
    assert isinstance(told[0], ValueError)
    assert told[1] is None
    await store.append(facts(lease, 0, "fine"))


async def test_opening_can_be_cancelled(tmp_path: Path) -> None:
    locker = apsw.Connection(str(tmp_path / "weft.db"))
    locker.execute("begin exclusive; create table x (y)")
    with anyio.move_on_after(0.05) as scope:
        await open_sqlite(tmp_path / "weft.db")
    assert scope.cancelled_caught
    locker.execute("rollback")
    locker.close()
    async with await open_sqlite(tmp_path / "weft.db") as store:
        assert await store.rows() == []


async def test_a_file_that_stays_locked_cannot_be_opened(tmp_path: Path) -> None:
    locker = apsw.Connection(str(tmp_path / "weft.db"))
    locker.execute("begin exclusive; create table x (y)")
    with refuses(StoreUnavailable) as refusal:
        await open_sqlite(tmp_path / "weft.db", busy_seconds=0.05)
    assert "locked by another process" in str(refusal.error)
    locker.close()
