"""How long twenty turns pause when their server is drained, killed or stopped: from the signal
until another server has the leases of all of them.  Real servers on a real Postgres.
"""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
from tests.support.postgres_server import PostgresServer
from tests.support.server_cluster import LEASE, ClusterServer, script, server_cluster
from tests.support.weft_program import call

from bench.scenes import run as run_async
from bench.table import Row
from weft.ids import SessionId
from weft.store import Store
from weft.store.postgres import open_postgres

TURNS: Final = 20
PATIENCE: Final = 120.0
_, GRACE, TTL = map(float, LEASE.split(","))
LIMITS: Final = {
    signal.SIGTERM: ("drained", 0.5),
    signal.SIGKILL: ("killed", GRACE + 1),
    signal.SIGSTOP: ("stopped", TTL + 1),
}


async def begin_turns(server: ClusterServer) -> list[SessionId]:
    """So many sessions of a server, each in the middle of a command."""
    sessions = []
    async with server.connect() as app:
        for _ in range(TURNS):
            session = await app.sessions.start_session(auto_approve=True)
            await session.send_prompt("Go.")
            sessions.append(SessionId(session.id))
        with anyio.fail_after(PATIENCE):
            while len(list(server.project.glob("started-*"))) < TURNS:  # noqa: ASYNC110  # of others
                await anyio.sleep(0.05)
    return sessions


async def until_taken(store: Store, sessions: Sequence[SessionId], address: str) -> float:
    """Seconds until a server has the leases of all of them."""
    started, waiting = time.perf_counter(), list(sessions)
    with anyio.fail_after(PATIENCE):
        while waiting:
            lease = await store.lease_of(waiting[-1])
            if lease is not None and lease.owner.address == address:
                waiting.pop()
            else:
                await anyio.sleep(0.005)
    return time.perf_counter() - started


async def takeover(postgres: PostgresServer, folder: Path, number: signal.Signals) -> list[Row]:
    """One server is ended in one way, with all its turns at work."""
    model = script(folder, [call("shell", command="touch started-$$; exec sleep 1000")], "Done.")
    async with (
        server_cluster(postgres, folder, model=model) as (one, two),
        await open_postgres(postgres.dsn(), tenant=folder.name) as store,
    ):
        sessions = await begin_turns(one)
        one.signal(number)
        seconds = await until_taken(store, sessions, two.url)
        rows = await store.rows(limit=TURNS, archived=True)
        assert len(rows) == TURNS
    how, limit = LIMITS[number]
    return [Row(f"{TURNS} turns go on elsewhere, server {how}", seconds, "s", limit=limit)]


def run() -> list[Row]:
    """All rows of this benchmark."""
    rows = []
    with PostgresServer() as postgres:
        for number in LIMITS:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                # Bound at once.
                rows += run_async(
                    lambda number=number, folder=folder: takeover(postgres, folder, number)  # type: ignore[misc]
                )
    return rows
