"""Calibration of the commit queue on a real Postgres: a lone append, and many at once."""

from __future__ import annotations

import statistics
from typing import Final, NamedTuple

from tests.support.postgres_server import PostgresServer

from bench.bench_append import steady_ms, writer
from bench.bench_scale import at_once
from bench.scenes import run as run_async
from bench.simulate.assumptions import DATABASE, Database
from weft.store.postgres import open_postgres

ALONE: Final = 300
MANY: Final = 500
ROUNDS: Final = 3


class Calibration(NamedTuple):
    """What was measured here, and the database that follows from it."""

    lone_ms: float
    appends_a_second: float
    database: Database


def calibrate() -> Calibration:
    """Measure with a server of its own, started for it."""
    with PostgresServer() as server:
        lone_ms, rate = run_async(lambda: _measured(server))
    return Calibration(lone_ms, rate, database_of(lone_ms, rate))


def database_of(lone_ms: float, rate: float, cores: int = DATABASE.cores) -> Database:
    """The database of which one lane does so much: what it takes on the wire and in the client
    counts as its own, so that it does rather less in the model than it would."""
    append_cpu = 1 / rate
    group_cpu = DATABASE.group_cpu
    flush = max(0.0, lone_ms / 1000 - append_cpu - group_cpu)
    return Database(cores, flush, group_cpu, append_cpu)


async def _measured(server: PostgresServer) -> tuple[float, float]:
    async with await open_postgres(server.dsn(), tenant="calibration") as store:
        alone = await writer(store, "ses_alone")
        times = [await alone.step() for _ in range(ALONE)]
        rates = [await at_once(store, MANY, f"round_{number}") for number in range(ROUNDS)]
    return steady_ms(times), statistics.median(rates)
