"""Many sessions at once in one process, each on the durable log."""

from __future__ import annotations

import time

import anyio

import weft
from bench.scenes import project, reads
from bench.scenes import run as run_async
from bench.table import Row

ROUNDS = 20


def run() -> list[Row]:
    """1, 50 and 500 sessions; the floor is the same number of sessions on the memory store."""
    rows = []
    for sessions, limit in ((1, None), (50, 1000.0), (500, None)):
        # Bound at once.
        floor = run_async(lambda n=sessions: _rate("memory", n))  # type: ignore[misc]
        # Bound at once.
        rate = run_async(lambda n=sessions: _rate("sqlite", n))  # type: ignore[misc]
        rows.append(
            Row(
                f"{sessions} sessions at once",
                rate,
                "rounds/s",
                floor=floor,
                limit=limit,
                better="more",
            )
        )
    return rows


async def _rate(store: str, count: int) -> float:
    async with project(store) as (app, _):
        sessions = [
            await app.sessions.start_session(model=reads(ROUNDS, f"s{number}"), auto_approve=True)
            for number in range(count)
        ]
        started = time.perf_counter()
        async with anyio.create_task_group() as group:
            for session in sessions:
                group.start_soon(_talk, session)
        return count * ROUNDS / (time.perf_counter() - started)


async def _talk(session: weft.Session) -> None:
    reply = await session.send_message("go")
    assert reply.finish_reason == "stop", reply
