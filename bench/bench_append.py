"""Appending: one session, fifty at once, and one with a hundred thousand facts, beside bare SQLite
with the same durability.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import anyio
import apsw

from bench.logs import facts, record, row, write_log
from bench.scenes import run as run_async
from bench.table import Row
from weft.ids import SessionId
from weft.store import Append, Lease, Record, Store
from weft.store.sqlite import open_sqlite

ONE_BY_ONE = 900
BLOCK = 150
SESSIONS = 50
EACH = 40
LONG = 100_000

_TABLE = """create table facts (
    stream_no integer, seq integer, at real, kind text, body blob, primary key (stream_no, seq)
) strict, without rowid"""


class Bare:
    """SQLite and nothing else: the same pragmas, the same table, one transaction a group."""

    def __init__(self, path: Path) -> None:
        self._db = apsw.Connection(str(path))
        self._db.execute("pragma journal_mode = wal; pragma synchronous = full")
        self._db.execute(_TABLE)

    def append(self, rows: list[tuple[int, Record]]) -> None:
        """One group, durable when this returns."""
        self._db.execute("begin immediate")
        for stream_no, each in rows:
            values = (stream_no, each.seq, each.at, each.kind, each.body)
            self._db.execute("insert into facts values (?, ?, ?, ?, ?)", values)
        self._db.execute("commit")


class Writer:
    """A session that appends one fact at a time, as its actor does: with its row, and waiting for
    it.
    """

    def __init__(self, store: Store, lease: Lease, records: list[Record], last: int) -> None:
        self._store = store
        self._lease = lease
        self._records = records
        self._row = row(SessionId(lease.stream), last)
        self._last = last

    async def step(self) -> float:
        """Append once; seconds until it is durable."""
        stored = self._records[self._last % len(self._records)]
        self._last += 1
        append = Append(
            stream=self._lease.stream,
            expected_seq=self._last - 1,
            fence=self._lease.fence,
            records=(Record(self._last, stored.at, stored.kind, stored.body),),
            row=self._row,
        )
        started = time.perf_counter()
        await self._store.append(append)
        return time.perf_counter() - started


async def writer(store: Store, name: str, last: int = 0) -> Writer:
    """A session that is ready to append after `last`."""
    session_id = SessionId(name)
    some = [record(fact) for fact in facts(session_id, 100)]
    return Writer(store, await store.take_lease(session_id), some, last)


def steady_ms(seconds: list[float]) -> float:
    """The least median of the blocks, in milliseconds: what an append costs while no other process
    keeps the disk busy.
    """
    blocks = (seconds[start : start + BLOCK] for start in range(0, len(seconds), BLOCK))
    return min(statistics.median(block) for block in blocks) * 1000


async def one_by_one(folder: Path) -> list[Row]:
    """Ours and bare in turn, append by append, so that both see the same disk."""
    bare, ours, floor = Bare(folder / "bare.db"), [], []
    some = [record(fact) for fact in facts(SessionId("ses_a"), ONE_BY_ONE)]
    async with await open_sqlite(folder / "weft.db") as store:
        session = await writer(store, "ses_a")
        for each in some:
            ours.append(await session.step())
            started = time.perf_counter()
            bare.append([(1, each)])
            floor.append(time.perf_counter() - started)
    return [Row("append, one session", steady_ms(ours), "ms", floor=steady_ms(floor))]


async def many_at_once(folder: Path) -> list[Row]:
    """Fifty sessions that wait for each append; bare: the same facts in groups of fifty."""
    some = [record(fact) for fact in facts(SessionId("ses_a"), EACH)]
    async with await open_sqlite(folder / "weft.db") as store:
        sessions = [await writer(store, f"ses_{number}") for number in range(SESSIONS)]

        async def append_all(session: Writer) -> None:
            for _ in range(EACH):
                await session.step()

        started = time.perf_counter()
        async with anyio.create_task_group() as group:
            for session in sessions:
                group.start_soon(append_all, session)
        ours = time.perf_counter() - started
    bare = Bare(folder / "bare.db")
    started = time.perf_counter()
    for each in some:
        bare.append([(number, each) for number in range(SESSIONS)])
    floor = time.perf_counter() - started
    count = SESSIONS * EACH
    return [Row("appends, 50 sessions at once", count / ours, "/s", floor=count / floor)]


async def in_a_long_session(folder: Path) -> list[Row]:
    """An empty session and one of a hundred thousand facts, each in a file of its own, in turn."""
    async with (
        await open_sqlite(folder / "empty.db") as empty,
        await open_sqlite(folder / "long.db") as long,
    ):
        await write_log(long, SessionId("ses_long"), LONG)
        short, full = await writer(empty, "ses_short"), await writer(long, "ses_long", LONG)
        floor, ours = [], []
        for _ in range(ONE_BY_ONE):
            floor.append(await short.step())
            ours.append(await full.step())
    name = "append, after 100,000 facts (floor: empty)"
    return [Row(name, steady_ms(ours), "ms", floor=steady_ms(floor), limit=1.2, of="ratio")]


def run() -> list[Row]:
    """All rows of this benchmark."""
    rows = []
    for measure in (one_by_one, many_at_once, in_a_long_session):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            # Bound at once.
            rows += run_async(lambda measure=measure, folder=folder: measure(folder))  # type: ignore[misc]
    return rows
