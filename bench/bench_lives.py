"""A thousand sessions started and deleted in one process: what is left of them in memory."""

from __future__ import annotations

import gc

import weft
from bench.bench_reopen import memory_megabytes
from bench.scenes import project, reads
from bench.scenes import run as run_async
from bench.table import Row

WARM = 200
SESSIONS = 1_000


def run() -> list[Row]:
    """The growth, after a few hundred that fill what is filled once."""
    before, after = run_async(_measure)
    name = f"memory after {SESSIONS:,} sessions that were deleted"
    return [Row(name, after, "MB", floor=before, limit=1.2, of="ratio")]


async def _measure() -> tuple[float, float]:
    async with project("sqlite") as (app, _):
        await _live_and_go(app, WARM)
        before = _megabytes()
        await _live_and_go(app, SESSIONS)
        return before, _megabytes()


async def _live_and_go(app: weft.App, count: int) -> None:
    for _ in range(count):
        session = await app.sessions.start_session(model=reads(1), auto_approve=True)
        await session.send_message("go")
        await app.sessions.delete_session(session.id)


def _megabytes() -> float:
    gc.collect()
    return memory_megabytes()
