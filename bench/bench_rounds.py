"""What a tool round costs: on the durable log beside the memory store, and how often it goes to the
disk.
"""

from __future__ import annotations

import statistics

import weft
from bench.counting import CountingFiles, CountingStore
from bench.scenes import project, reads, timed_rounds, writes
from bench.scenes import run as run_async
from bench.table import Row
from weft.store.sqlite import open_sqlite

ROUNDS = 100
REPEATS = 7


def run_pair() -> list[Row]:
    """Memory and SQLite in turn, so that both see the same machine."""

    async def measure() -> tuple[float, float]:
        memory: list[float] = []
        durable: list[float] = []
        async with project("memory") as (plain, _), project("sqlite") as (kept, _):
            for number in range(REPEATS):
                memory.append(await timed_rounds(plain, reads(ROUNDS, f"m{number}"), ROUNDS))
                durable.append(await timed_rounds(kept, reads(ROUNDS, f"s{number}"), ROUNDS))
        return (
            statistics.median(memory) / ROUNDS * 1000,
            statistics.median(durable) / ROUNDS * 1000,
        )

    memory, durable = run_async(measure)
    return [
        Row("tool round (read), memory store", memory, "ms"),
        Row("tool round (read), durable log", durable, "ms", floor=memory),
        Row("what the durable log adds to a round", durable - memory, "ms", limit=1.5),
    ]


def run_counts() -> list[Row]:
    """Appends, and syncs of the log's file, that one more round costs."""

    async def count(kind: str, rounds: int) -> tuple[int, int]:
        files = CountingFiles()
        async with project("memory") as (_, folder):
            store = CountingStore(await open_sqlite(folder / "counted.db", vfs=files.name))
            async with weft.open(folder / "project", store=store) as app:
                make = reads if kind == "read" else writes
                await timed_rounds(app, make(rounds, "counted"), rounds)
                return store.appends, files.syncs

    rows = []
    for kind in ("read", "write"):
        # Bound at once.
        few = run_async(lambda kind=kind: count(kind, ROUNDS))  # type: ignore[misc]
        # As above.
        many = run_async(lambda kind=kind: count(kind, 2 * ROUNDS))  # type: ignore[misc]
        appends, syncs = ((more - less) / ROUNDS for more, less in zip(many, few, strict=True))
        rows.append(Row(f"commits a round ({kind})", appends, "", limit=2))
        rows.append(Row(f"syncs of the log a round ({kind})", syncs, "", limit=2.1))
    return rows


def run() -> list[Row]:
    """All rows of this benchmark."""
    return [*run_pair(), *run_counts()]
