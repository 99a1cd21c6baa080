"""Many hosts: appends to Postgres beside SQLite with the same durability, and the leases of a host
that died.

Postgres is started for it, with its data on the same disk.  The floor of a lone append is a bare
insert into the same server; that of many is SQLite, measured in turn.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

import anyio
import asyncpg
from tests.support.postgres_server import PostgresServer

from bench.bench_append import Writer, steady_ms, writer
from bench.scenes import run as run_async
from bench.table import Row
from weft.ids import SessionId
from weft.store import Store
from weft.store.postgres import open_postgres
from weft.store.sqlite import open_sqlite

ONE_BY_ONE: Final = 600
ROUNDS: Final = 5
EACH: Final = 20
LEASES: Final = 6_000
LEAST: Final = {50: (3_500, 0.9), 500: (8_000, 1.6)}
"""Appends a second for so many sessions, or so much of what SQLite does."""


async def one_by_one(server: PostgresServer, folder: Path) -> list[Row]:
    """Append by append: ours on Postgres, a bare insert there, and ours on SQLite."""
    bare = await asyncpg.connect(server.dsn())
    await bare.execute("create table bare (seq integer primary key, body bytea)")
    ours, floor, sqlite = [], [], []
    async with (
        await open_postgres(server.dsn(), tenant="lone") as postgres,
        await open_sqlite(folder / "lone.db") as file,
    ):
        there, here = await writer(postgres, "ses_a"), await writer(file, "ses_a")
        for number in range(ONE_BY_ONE):
            ours.append(await there.step())
            sqlite.append(await here.step())
            started = time.perf_counter()
            await bare.execute("insert into bare values ($1, $2)", number, b"x" * 400)
            floor.append(time.perf_counter() - started)
    await bare.close()
    return [
        Row("append on Postgres, one session", steady_ms(ours), "ms", steady_ms(floor), limit=1.5),
        Row("append on SQLite beside it", steady_ms(sqlite), "ms"),
    ]


async def at_once(store: Store, count: int, label: str) -> float:
    """Appends a second of so many sessions, each of which waits for its own."""
    # Of their own for each round: an append follows on the last.
    writers = [await writer(store, f"ses_{label}_{number}") for number in range(count)]

    async def append_all(session: Writer) -> None:
        for _ in range(EACH):
            await session.step()

    started = time.perf_counter()
    async with anyio.create_task_group() as group:
        for session in writers:
            group.start_soon(append_all, session)
    return count * EACH / (time.perf_counter() - started)


async def many_at_once(server: PostgresServer, folder: Path) -> list[Row]:
    """Fifty and five hundred sessions, on both stores in turn; the medians."""
    rows = []
    async with (
        await open_postgres(server.dsn(), tenant="many") as postgres,
        await open_sqlite(folder / "many.db") as file,
    ):
        for count, (least, share) in LEAST.items():
            ours, theirs = [], []
            for turn in range(ROUNDS):
                ours.append(await at_once(postgres, count, f"{count}_{turn}"))
                theirs.append(await at_once(file, count, f"{count}_{turn}"))
            rate, floor = statistics.median(ours), statistics.median(theirs)
            is_enough = rate >= least
            rows.append(
                Row(
                    f"appends on Postgres, {count} sessions (floor: SQLite)",
                    rate,
                    "/s",
                    floor,
                    limit=least if is_enough else share,
                    of="value" if is_enough else "ratio",
                    better="more",
                )
            )
    return rows


async def of_a_dead_host(server: PostgresServer, folder: Path) -> list[Row]:
    """All leases of a host in one go."""
    del folder
    async with await open_postgres(server.dsn(), tenant="leases") as store:
        names = [SessionId(f"ses_{number}") for number in range(LEASES)]
        started = time.perf_counter()
        leases = await store.take_leases(names)
        taken = time.perf_counter() - started
        started = time.perf_counter()
        await store.release_leases(list(leases))
        given = time.perf_counter() - started
    return [
        Row("6,000 leases taken", taken, "s", limit=1.0),
        Row("6,000 leases given back", given, "s", limit=1.0),
    ]


def run() -> list[Row]:
    """All rows of this benchmark."""
    rows = []
    with PostgresServer() as server:
        for measure in (one_by_one, many_at_once, of_a_dead_host):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                # Bound at once.
                rows += run_async(lambda measure=measure, folder=folder: measure(server, folder))  # type: ignore[misc]
    return rows
