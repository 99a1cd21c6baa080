"""Listing ten thousand idle sessions: one table is read, and no fact is decoded."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import apsw

from bench.logs import facts, record, row
from bench.scenes import run as run_async
from bench.table import Row
from weft.ids import SessionId
from weft.store import Append, Store
from weft.store.sqlite import open_sqlite

SESSIONS = 10_000
REPEATS = 9
TOGETHER = 500


async def fill(store: Store) -> None:
    """Ten thousand sessions with a fact each, many in one transaction."""
    for start in range(0, SESSIONS, TOGETHER):
        batch = []
        for number in range(start, start + TOGETHER):
            session_id = SessionId(f"ses_{number:026}")
            lease = await store.take_lease(session_id)
            [first] = facts(session_id, 1)
            batch.append(
                Append(
                    stream=session_id,
                    expected_seq=0,
                    fence=lease.fence,
                    records=(record(first),),
                    row=row(session_id, number),
                )
            )
        await store.append(*batch)


async def measure(path: Path) -> list[Row]:
    """Ours and bare in turn; the bare one reads the same column and decodes nothing."""
    async with await open_sqlite(path) as store:
        await fill(store)
    bare = apsw.Connection(str(path))
    ours, newest, floor = [], [], []
    async with await open_sqlite(path) as store:
        for _ in range(REPEATS):
            started = time.perf_counter()
            listed = await store.rows(limit=SESSIONS)
            ours.append(time.perf_counter() - started)
            assert len(listed) == SESSIONS
            started = time.perf_counter()
            bare.execute("select row from sessions order by last_active desc").fetchall()
            floor.append(time.perf_counter() - started)
            started = time.perf_counter()
            await store.rows(limit=100)
            newest.append(time.perf_counter() - started)
    bare.close()
    least = statistics.median(floor) * 1000
    return [
        Row("list 10,000 sessions", statistics.median(ours) * 1000, "ms", floor=least, limit=50),
        Row("list the newest 100 of them", statistics.median(newest) * 1000, "ms"),
    ]


def run() -> list[Row]:
    """All rows of this benchmark."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "weft.db"
        return run_async(lambda: measure(path))
