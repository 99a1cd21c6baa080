"""What a Postgres store does when the way to its database, the database or another process
fails.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import anyio
import msgspec
import pytest

from tests.support.postgres_proxy import PostgresProxy, cuttable
from tests.support.postgres_server import PostgresServer
from weft.clock import SystemClock
from weft.errors import Conflict, Fenced, OutcomeUnknown, StoreOutage, StoreUnavailable, UsageError
from weft.ids import BlobId, SessionId
from weft.store import Append, Record, Store
from weft.store.postgres import PostgresStore, open_postgres
from weft.store.postgres.settings import LeaseTimes, PostgresSettings

pytestmark = [pytest.mark.anyio, pytest.mark.process]


@pytest.fixture
async def proxy(postgres_server: PostgresServer) -> AsyncIterator[PostgresProxy]:
    async with cuttable(postgres_server.folder / ".s.PGSQL.5432") as made:
        yield made


async def opened(dsn: str, tenant: Path, patience_seconds: float = 30.0) -> PostgresStore:
    settings = PostgresSettings(dsn=dsn, tenant=str(tenant), patience_seconds=patience_seconds)
    store = PostgresStore(settings, SystemClock())
    await store.open()
    return store


async def grow(store: Store, name: str, count: int) -> None:
    """Append records one by one, each naming its place."""
    lease = await store.take_lease(name)
    for number in range(count):
        await store.append(fact(name, number, lease.fence))


def fact(stream: str, after: int, fence: int | None) -> Append:
    record = Record(after + 1, 0.0, "k", f"{stream} {after}".encode())
    return Append(stream=stream, expected_seq=after, records=(record,), fence=fence)


async def check_whole(store: Store, name: str, count: int) -> None:
    """Nothing is missing and nothing is there twice."""
    read = await store.read(name, limit=count + 10)
    assert [r.body for r in read] == [f"{name} {number}".encode() for number in range(count)]


async def test_a_connection_that_is_cut_loses_nothing_and_doubles_nothing(
    postgres_server: PostgresServer, proxy: PostgresProxy, tmp_path: Path
) -> None:
    store = await opened(postgres_server.tcp_dsn(proxy.port), tmp_path)
    chance = random.Random(7)

    # Half of them on the way there, half on the way back, where the commit has happened.
    def cut(_way: str, before: int) -> bool:
        return proxy.cuts < 30 and before > 12 and chance.random() < 0.1

    proxy.cut = cut
    names = [f"ses_{number}" for number in range(12)]
    await asyncio.gather(*(grow(store, name, 100) for name in names))
    assert proxy.cuts == 30
    proxy.cut = lambda _way, _before: False
    for name in names:
        await check_whole(store, name, 100)
    await store.aclose()


async def test_a_database_that_crashes_and_comes_back_costs_time_and_no_error(
    tmp_path: Path,
) -> None:
    with PostgresServer() as server:
        store = await opened(server.dsn(), tmp_path)
        names = [f"ses_{number}" for number in range(10)]
        work = asyncio.gather(*(grow(store, name, 100) for name in names))
        for crash in (True, False, True):
            await anyio.to_thread.run_sync(partial(server.restart, crash=crash))
        await work
        for name in names:
            await check_whole(store, name, 100)
        await store.aclose()


async def test_an_answer_that_stays_lost_is_unknown_and_the_store_goes_on_afterwards(
    postgres_server: PostgresServer, proxy: PostgresProxy, tmp_path: Path
) -> None:
    store = await opened(postgres_server.tcp_dsn(proxy.port), tmp_path, patience_seconds=0.2)
    lease = await store.take_lease("ses_a")
    await store.append(fact("ses_a", 0, lease.fence))

    def cut(way: str, _before: int) -> bool:
        proxy.is_down = way == "from"
        return proxy.is_down

    proxy.cut = cut
    with pytest.raises(OutcomeUnknown):
        await store.append(fact("ses_a", 1, lease.fence))
    with pytest.raises(StoreOutage):
        await store.append(fact("ses_a", 2, lease.fence))
    proxy.is_down, proxy.cut = False, lambda _way, _before: False
    # The first of the two had arrived.
    with pytest.raises(Conflict):
        await store.append(fact("ses_a", 1, lease.fence))
    await store.append(fact("ses_a", 2, lease.fence))
    await check_whole(store, "ses_a", 3)
    await store.aclose()


async def test_a_refused_job_fails_alone_in_its_group(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    store = await opened(postgres_server.dsn(), tmp_path)
    leases = await store.take_leases(["a", "b", "c", "d"])
    nowhere = msgspec.structs.replace(
        fact("c", 0, leases[2].fence), names_blobs=(BlobId("0" * 64),)
    )
    outcomes = await asyncio.gather(
        store.append(fact("a", 0, leases[0].fence)),
        store.append(fact("b", 7, leases[1].fence)),
        store.append(nowhere),
        store.append(fact("a", 1, leases[0].fence), fact("d", 3, leases[3].fence)),
        store.append(fact("a", 1, leases[0].fence)),
        store.append(fact("d", 0, 99)),
        return_exceptions=True,
    )
    kinds = [type(each) for each in outcomes]
    none = type(None)
    assert kinds == [none, Conflict, UsageError, Conflict, none, Fenced]
    assert [await store.last_seq(name) for name in "abcd"] == [2, 0, 0, 0]
    await store.aclose()


async def test_a_process_that_was_given_up_is_fenced_and_may_begin_again(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    one, two = [await opened(postgres_server.dsn(), tmp_path) for _ in range(2)]
    old = await one.take_lease("ses_a")
    await one.append(fact("ses_a", 0, old.fence))
    await one.abandon()
    await two.take_lease("ses_a")
    await two._work(
        lambda db: db.execute("delete from processes where process_id = $1", one.owner.process_id)
    )
    with pytest.raises(Fenced):
        await one.append(fact("ses_a", 1, old.fence))
    await grow(one, "ses_b", 3)
    await check_whole(two, "ses_b", 3)
    for store in (one, two):
        await store.aclose()


async def test_a_dead_connection_tells_of_a_death_before_the_time_is_over(
    postgres_server: PostgresServer, proxy: PostgresProxy, tmp_path: Path
) -> None:
    """The advisory lock goes with its connection: the owner is dead after the grace."""
    times = LeaseTimes(beat_seconds=0.01, grace_seconds=0.02, ttl_seconds=3600.0)
    dsn = postgres_server.tcp_dsn(proxy.port)
    one = await open_postgres(dsn, tenant=str(tmp_path), times=times)
    two = await open_postgres(postgres_server.dsn(), tenant=str(tmp_path), times=times)
    lease = await one.take_lease("ses_a")
    held = (
        "select exists (select 1 from processes join held_locks using (tenant, process_no) "
        "where process_id = $1)"
    )
    while not await two._work(lambda db: db.fetchval(held, one.owner.process_id)):
        pass
    proxy.is_down = True
    proxy.break_all()
    while await two.lease_of("ses_a") is not None:
        pass
    assert (await two.take_lease("ses_a")).fence > lease.fence
    proxy.is_down = False
    with pytest.raises(Fenced):
        await one.append(fact("ses_a", 0, lease.fence))
    for store in (one, two):
        await store.aclose()


async def test_lost_commits_of_the_database_are_said_loudly(
    postgres_server: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = await opened(postgres_server.dsn(), tmp_path)
    await grow(store, "ses_a", 3)
    # What a failover to a replica that was behind looks like: the number went back.
    await store._work(lambda db: db.execute("update processes set last_commit = last_commit - 2"))
    with caplog.at_level(logging.ERROR):
        await grow(store, "ses_b", 2)
    assert caplog.text.count("LOST COMMITS") == 1
    await check_whole(store, "ses_b", 2)
    await store.aclose()


async def test_a_server_that_would_lose_what_it_answers_is_refused(tmp_path: Path) -> None:
    with (
        PostgresServer(more=["fsync = off"]) as server,
        pytest.raises(StoreUnavailable, match="fsync is off"),
    ):
        await open_postgres(server.dsn())


async def test_a_database_that_is_not_there_is_one_sentence(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    with pytest.raises(StoreUnavailable, match='database "nowhere" does not exist'):
        await open_postgres(postgres_server.dsn("nowhere"))
    with pytest.raises(StoreOutage, match="cannot be reached"):
        await open_postgres(f"postgresql://postgres@/postgres?host={tmp_path}")


async def test_the_next_process_of_a_slot_takes_over_at_once(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    first = await open_postgres(postgres_server.dsn(), tenant=str(tmp_path), slot="weft-0")
    lease = await first.take_lease("ses_a")
    other = await open_postgres(postgres_server.dsn(), tenant=str(tmp_path), slot="weft-1")
    assert await other.lease_of("ses_a") == lease
    again = await open_postgres(postgres_server.dsn(), tenant=str(tmp_path), slot="weft-0")
    assert (await again.take_lease("ses_a")).fence > lease.fence
    for store in (first, other, again):
        await store.aclose()


async def test_a_tenant_sees_and_changes_nothing_of_another(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    one = await open_postgres(postgres_server.dsn(), tenant=f"{tmp_path}/one")
    two = await open_postgres(postgres_server.dsn(), tenant=f"{tmp_path}/two")
    lease = await one.take_lease("ses_a")
    await one.append(fact("ses_a", 0, lease.fence))
    assert await two.read("ses_a") == []
    assert await two.lease_of("ses_a") is None
    assert await two.rows() == []
    with pytest.raises(Fenced):
        await two.append(fact("ses_a", 1, lease.fence))
    mine = await two.take_lease("ses_a")
    await two.append(fact("ses_a", 0, mine.fence))
    await two.delete(SessionId("ses_a"))
    await check_whole(one, "ses_a", 1)
    for store in (one, two):
        await store.aclose()


async def test_hosts_that_start_together_make_the_schema_once(
    postgres_server: PostgresServer,
) -> None:
    for number in range(5):
        name = f"together{number}"
        first = await open_postgres(postgres_server.dsn())
        await first._lane._db.execute(f"create database {name}")  # type: ignore[union-attr]
        await first.aclose()
        stores = await asyncio.gather(*(open_postgres(postgres_server.dsn(name)) for _ in range(8)))
        await grow(stores[0], "ses_a", 2)
        await check_whole(stores[7], "ses_a", 2)
        for store in stores:
            await store.aclose()
