"""A process that opens a store, works, and dies at an armed fail-point; run as `python -m
tests.support.crashing_store`.

    crashing_store KIND PLACE POINT AT

It says on stdout which appends were acknowledged, one number a line.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from weft import faults
from weft.store import Append, Record, Store

STREAMS = ("ses_a", "ses_b", "project:p")
STEPS = 4


async def open_store(kind: str, place: Path) -> Store:
    """Open the store of one kind; imported here so that a process pays for one."""
    if kind == "sqlite":
        from weft.store.sqlite import open_sqlite

        return await open_sqlite(place / "weft.db")
    from weft.store.jsonl import open_jsonl

    return await open_jsonl(place)


def step(number: int, fences: dict[str, int]) -> tuple[Append, ...]:
    """The batch of one step: one record for each stream, and in odd steps for one alone."""
    streams = STREAMS if number % 2 == 0 else STREAMS[:1]
    ends = {name: number if name == STREAMS[0] else (number + 1) // 2 for name in STREAMS}
    return tuple(
        Append(
            stream=name,
            expected_seq=ends[name],
            records=(Record(ends[name] + 1, 0.0, "k", f'{{"step": {number}}}'.encode()),),
            fence=fences.get(name),
        )
        for name in streams
    )


async def main(kind: str, place: Path, point: str, at: int) -> None:
    async with await open_store(kind, place) as store:
        fences = {name: (await store.take_lease(name)).fence for name in STREAMS[:2]}
        faults.arm(point, at=at)
        for number in range(STEPS):
            await store.append(*step(number, fences))
            print(number, flush=True)
        faults.disarm_all()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
