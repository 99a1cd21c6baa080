"""What a Postgres store does with faults that come together, under an ordinary user, and while its
lane is busy.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import asyncpg
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.postgres_proxy import PostgresProxy, cuttable
from tests.support.postgres_server import PostgresServer
from tests.support.tmux_terminal import wait_until
from weft.clock import SystemClock
from weft.errors import Corrupt, OutcomeUnknown, StoreUnavailable
from weft.ids import BlobId, NodeId, SessionId
from weft.sha256 import sha256
from weft.store import Append, Record, SessionRow
from weft.store.base import Blob, DraftChunk
from weft.store.postgres import PostgresStore, open_postgres
from weft.store.postgres.connection import connect, server_settings
from weft.store.postgres.group import APPEND, CommitGroup
from weft.store.postgres.lane import MOST_BYTES_IN_A_GROUP, AppendJob
from weft.store.postgres.settings import LeaseTimes, PostgresSettings
from weft.store.postgres.text_codec import loaded, stored
from weft.store.postgres.transfer import copy_to_postgres
from weft.store.sqlite import open_sqlite

pytestmark = [pytest.mark.anyio, pytest.mark.process]

QUICK = LeaseTimes(beat_seconds=0.05, grace_seconds=0.1, ttl_seconds=3600.0)
SLOW = LeaseTimes(beat_seconds=1000.0, grace_seconds=2000.0, ttl_seconds=3000.0)
HELD = """
    select exists (
        select 1 from processes join held_locks using (tenant, process_no) where process_id = $1)
"""
SEEN = "select seen from weft.processes where process_id = $1"


@pytest.fixture
async def proxy(postgres_server: PostgresServer) -> AsyncIterator[PostgresProxy]:
    async with cuttable(postgres_server.folder / ".s.PGSQL.5432") as made:
        yield made


@pytest.fixture
async def admin(
    postgres_server: PostgresServer,
) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    db = await asyncpg.connect(postgres_server.dsn())
    yield db
    await db.close()


async def opened(dsn: str, tenant: Path | str, **more: object) -> PostgresStore:
    store = PostgresStore(
        PostgresSettings(dsn=dsn, tenant=str(tenant), **more),  # type: ignore[arg-type]
        SystemClock(),
    )
    await store.open()
    return store


def fact(stream: str, after: int, fence: int | None) -> Append:
    record = Record(after + 1, 0.0, "k", f"{stream} {after}".encode())
    return Append(stream=stream, expected_seq=after, records=(record,), fence=fence)


async def make_role(db: asyncpg.Connection[asyncpg.Record], name: str) -> None:
    """An ordinary user, whom an administrator lets in where the schema is made already."""
    await db.execute(
        f"""create role {name} login;
            grant usage on schema weft to {name};
            grant select, insert, update, delete on all tables in schema weft to {name};
            grant usage, select on all sequences in schema weft to {name}"""
    )


# -- lost answers


async def test_a_group_never_gets_the_answer_of_one_that_was_given_up(
    postgres_server: PostgresServer,
    proxy: PostgresProxy,
    admin: asyncpg.Connection[asyncpg.Record],
    tmp_path: Path,
) -> None:
    """The answer is lost, and then the user may not come in again."""
    await (await open_postgres(postgres_server.dsn())).aclose()
    await make_role(admin, "shut_out")
    dsn = postgres_server.tcp_dsn(proxy.port).replace("postgres@", "shut_out@")
    store = await opened(dsn, tmp_path, patience_seconds=0.2)
    one, two = await store.take_leases(["ses_a", "ses_b"])
    await store.append(fact("ses_a", 0, one.fence))
    await admin.execute("alter role shut_out nologin")
    proxy.cut = lambda way, before: before > 3 and way == "from"
    with pytest.raises(OutcomeUnknown):
        await store.append(fact("ses_a", 1, one.fence))
    proxy.cut = lambda _way, _before: False
    await admin.execute("alter role shut_out login")
    await store.append(fact("ses_b", 0, two.fence))
    assert [await store.last_seq(name) for name in ("ses_a", "ses_b")] == [2, 1]
    await store.aclose()


async def test_a_group_that_arrives_after_it_was_given_up_changes_nothing(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    store = await opened(postgres_server.dsn(), tmp_path)
    one, two = await store.take_leases(["ses_a", "ses_b"])
    late = CommitGroup()
    late.add_job(0, [fact("ses_a", 0, one.fence)])
    registration, lane = store._registration, store._lane
    # What the next group does after an answer stayed lost, and then the lost group, late.
    lane._is_unsure = True
    await store.append(fact("ses_b", 0, two.fence))
    assert lane._db is not None
    await lane._db.fetchrow(APPEND, *late.arguments(*registration.key, 1))
    assert lane._number == 2
    assert await store.last_seq("ses_a") == 0
    await store.append(fact("ses_b", 1, two.fence))
    assert await store.last_seq("ses_b") == 2
    await store.aclose()


async def test_what_the_driver_cannot_send_fails_alone_and_at_once(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    store = await opened(postgres_server.dsn(), tmp_path, patience_seconds=3600.0)
    one, two = await store.take_leases(["ses_a", "ses_b"])
    row = SessionRow(id=SessionId("ses_a"), min_reader=2**40)
    wrong = msgspec.structs.replace(fact("ses_a", 0, one.fence), row=row)
    with anyio.fail_after(20):
        outcomes = await asyncio.gather(
            store.append(wrong), store.append(fact("ses_b", 0, two.fence)), return_exceptions=True
        )
        with pytest.raises(StoreUnavailable):
            await store.read("ses_b", after=2**70)
    assert isinstance(outcomes[0], StoreUnavailable)
    assert outcomes[1] is None
    await store.aclose()


async def test_every_job_is_answered_whatever_the_error(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    store = await opened(postgres_server.dsn(), tmp_path)
    futures = [asyncio.get_running_loop().create_future() for _ in range(2)]
    store._lane._fail([AppendJob((), each) for each in futures], Corrupt("x", "a page", seq=3))
    for each in futures:
        with pytest.raises(Corrupt, match="'x' at seq 3 is damaged: a page") as caught:
            await each
        assert caught.value.seq == 3
    lease = await store.take_lease("ses_a")
    # No text of it can be encoded: that is noticed while the group is made.
    chunk = DraftChunk(
        stream="ses_a", fence=lease.fence, node=NodeId("n"), part="text", chunk="\ud800"
    )
    store._hand_in_draft(chunk, 0)
    with anyio.fail_after(20):
        await store.append(fact("ses_a", 0, lease.fence))
    await store.aclose()


# -- signs of life


async def test_a_lane_survives_that_it_cannot_register_again(
    postgres_server: PostgresServer,
    admin: asyncpg.Connection[asyncpg.Record],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await (await open_postgres(postgres_server.dsn())).aclose()
    await make_role(admin, "given_up")
    dsn = postgres_server.dsn(user="given_up")
    with caplog.at_level(logging.DEBUG, "weft.store.postgres.lane"), anyio.fail_after(20):
        store = await opened(dsn, tmp_path, times=QUICK)
        await admin.execute("revoke insert on weft.processes from given_up")
        await admin.execute(
            "delete from weft.processes where process_id = $1", store.owner.process_id
        )
        task = store._lane._task
        assert task is not None
        while "permission denied" not in caplog.text and not task.done():
            await anyio.lowlevel.checkpoint()
        await admin.execute("grant insert on weft.processes to given_up")
        lease = await store.take_lease("ses_a")
        await store.append(fact("ses_a", 0, lease.fence))
        await store.aclose()


async def test_a_lane_that_always_works_gives_signs_of_life(
    postgres_server: PostgresServer, admin: asyncpg.Connection[asyncpg.Record], tmp_path: Path
) -> None:
    store = await opened(postgres_server.dsn(), tmp_path, times=QUICK)
    await store._side.end()
    first = await admin.fetchval(SEEN, store.owner.process_id)
    with anyio.fail_after(20):
        while await admin.fetchval(SEEN, store.owner.process_id) == first:
            await asyncio.gather(*(store.load_drafts("ses_a") for _ in range(20)))
    await store.aclose()


async def test_a_process_lives_while_one_statement_of_its_lane_takes_long(
    postgres_server: PostgresServer, admin: asyncpg.Connection[asyncpg.Record], tmp_path: Path
) -> None:
    store = await opened(postgres_server.dsn(), tmp_path, times=QUICK)
    await admin.execute("select pg_advisory_lock(77)")
    wait = "select pg_advisory_xact_lock(77)"
    waiting = asyncio.ensure_future(store._work(lambda db: db.execute(wait)))
    held = "select count(*) from pg_locks where objid = 77 and not granted"
    while not await admin.fetchval(held):
        pass
    with anyio.fail_after(20):
        first = await admin.fetchval(SEEN, store.owner.process_id)
        while await admin.fetchval(SEEN, store.owner.process_id) == first:
            pass
    await admin.execute("select pg_advisory_unlock(77)")
    await waiting
    await store.aclose()


async def test_only_a_sign_of_life_lengthens_the_time_of_the_leases(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    store = await opened(postgres_server.dsn(), tmp_path, times=SLOW)
    before = store.lease_seconds_left()
    await store.load_drafts("ses_a")
    assert store.lease_seconds_left() < before
    lease = await store.take_lease("ses_a")
    left = store.lease_seconds_left()
    await store.append(fact("ses_a", 0, lease.fence))
    assert store.lease_seconds_left() > left
    await store.aclose()


@pytest.mark.parametrize("how", ["restart", "crash"])
async def test_an_outage_of_the_database_is_no_death_of_its_processes(
    how: str, tmp_path: Path
) -> None:
    """All locks are gone with it, and who comes back first must not take what others still do."""
    with PostgresServer() as server:
        async with cuttable(server.folder / ".s.PGSQL.5432") as proxy:
            one = await opened(server.tcp_dsn(proxy.port), tmp_path, times=QUICK)
            two = await opened(server.dsn(), tmp_path, times=QUICK)
            lease = await one.take_lease("ses_a")
            while not await two._work(lambda db: db.fetchval(HELD, one.owner.process_id)):
                pass
            proxy.is_down = True
            if how == "restart":
                await anyio.to_thread.run_sync(partial(server.restart))
            else:
                # The server ends all others, forgets its locks, and goes on without a new start.
                backend = await two._work(lambda db: db.fetchval("select pg_backend_pid()"))
                os.kill(backend, signal.SIGKILL)
                await anyio.to_thread.run_sync(_wait_for_end, backend)
            await two.load_drafts("ses_a")
            assert await two.lease_of("ses_a") == lease
            proxy.is_down = False
            await one.append(fact("ses_a", 0, lease.fence))
            for store in (one, two):
                await store.aclose()


def _wait_for_end(pid: int) -> None:
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


def test_the_server_keeps_the_lock_through_a_silence_as_long_as_the_leases() -> None:
    found = server_settings(1, 16.0)
    assert int(found["tcp_user_timeout"]) == 16_000
    probes = int(found["tcp_keepalives_interval"]) * int(found["tcp_keepalives_count"])
    assert int(found["tcp_keepalives_idle"]) + probes < 16 < 11 + 2 * probes


async def test_a_side_connection_that_fails_is_replaced(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    store = await opened(postgres_server.dsn(), tmp_path)
    side = store._side
    first = await side._living()

    async def fail() -> None:
        if first.is_closed():
            done.set()
            await asyncio.Event().wait()
        raise TimeoutError

    done = asyncio.Event()
    side._tasks.start(side._repeat(fail), "weft-test")
    with anyio.fail_after(20):
        await done.wait()
    assert await side._living() is not first
    await store.aclose()


async def test_a_group_that_was_carried_out_before_is_a_sign_of_life_too(
    postgres_server: PostgresServer, admin: asyncpg.Connection[asyncpg.Record], tmp_path: Path
) -> None:
    """Its answer lengthens the time of the leases here, so it must do so in the database."""
    store = await opened(postgres_server.dsn(), tmp_path, times=SLOW)
    lease = await store.take_lease("ses_a")
    group = CommitGroup()
    group.add_job(0, [fact("ses_a", 0, lease.fence)])
    db = store._lane._db
    assert db is not None
    for number in (1, 1):
        await store._work(store._registration.age)
        arguments = group.arguments(*store._registration.key, number)
        assert await db.fetchval(APPEND, *arguments) == "[]"
        assert await store.lease_of("ses_a") == lease
        assert (await admin.fetchval(SEEN, store.owner.process_id)).year > 2000
    store._lane._is_unsure = True
    await store.aclose()


async def test_processes_name_the_files_of_a_project_one_at_a_time(
    postgres_server: PostgresServer, admin: asyncpg.Connection[asyncpg.Record], tmp_path: Path
) -> None:
    """Their contents are named by age, and two orders at once would be a deadlock."""
    store = await opened(postgres_server.dsn(), tmp_path)
    lease = await store.take_lease("ses_a")
    blob = Blob(BlobId(sha256(b"x").hexdigest()), b"x")
    row = SessionRow(id=SessionId("ses_a"), project_path="/p")

    def naming(number: int) -> Append:
        plain = fact("ses_a", number, lease.fence)
        return msgspec.structs.replace(plain, blobs=(blob,), tree_contents=(blob.id,), row=row)

    await store.append(naming(0))
    other = admin.transaction()
    await other.start()
    files = "select 1 from weft.streams where name = 'project:files:/p' and tenant = $1 for update"
    await admin.execute(files, store._tenant)
    waiting = asyncio.ensure_future(store.append(naming(1)))
    blocked = "select count(*) from pg_locks where not granted"
    with anyio.fail_after(20):
        while not await admin.fetchval(blocked):
            assert not waiting.done()
        await other.rollback()
        await waiting
    await store.aclose()


# -- size


async def test_a_group_has_an_end_in_bytes_too(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    store = await opened(postgres_server.dsn(), tmp_path)
    lane = store._lane
    big = b"x" * (MOST_BYTES_IN_A_GROUP // 2 - 100)
    blob = Blob(BlobId(sha256(big).hexdigest()), big)
    lease = await store.take_lease("ses_a")
    appends = [
        msgspec.structs.replace(fact("ses_a", number, lease.fence), blobs=(blob,))
        for number in range(5)
    ]
    loop = asyncio.get_running_loop()
    jobs = [AppendJob((each,), loop.create_future()) for each in appends]
    lane._jobs.extend(jobs)
    assert [len(lane._collect()) for _ in range(3)] == [2, 2, 1]
    await store.append(appends[0])
    assert await store.blob(blob.id) == big
    await store.aclose()


# -- users, tenants and settings


async def test_an_ordinary_user_works_within_the_walls_of_its_tenant(
    postgres_server: PostgresServer, admin: asyncpg.Connection[asyncpg.Record], tmp_path: Path
) -> None:
    await (await open_postgres(postgres_server.dsn())).aclose()
    await make_role(admin, "ordinary")
    dsn = postgres_server.dsn(user="ordinary")
    one, two = [await opened(dsn, f"{tmp_path}/{number}") for number in range(2)]
    for store in (one, two):
        lease = await store.take_lease("ses_a")
        data = str(store._tenant).encode()
        blob = Blob(BlobId(sha256(data).hexdigest()), data)
        row = SessionRow(id=SessionId("ses_a"), title="words")
        await store.append(
            msgspec.structs.replace(fact("ses_a", 0, lease.fence), blobs=(blob,), row=row)
        )
        assert [each.id for each in await store.rows(query="words")] == ["ses_a"]
    await one.delete(SessionId("ses_a"))
    assert await two.last_seq("ses_a") == 1
    tables = ("processes", "streams", "facts", "sessions", "blobs", "blob_refs")
    bare = await connect(PostgresSettings(dsn=dsn))
    inside = await connect(PostgresSettings(dsn=dsn), two._tenant)
    for table in tables:
        assert await bare.fetchval(f"select count(*) from {table}") == 0
        assert await inside.fetchval(f"select count(*) from {table}") == 1
        assert await inside.execute(f"delete from {table} where tenant <> $1", two._tenant) == (
            "DELETE 0"
        )
    for db in (bare, inside):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await db.execute("insert into streams (tenant, name) values ($1, 'x')", one._tenant)
        await db.close()
    for store in (one, two):
        await store.aclose()


async def test_a_user_without_rights_is_told_in_a_sentence(
    postgres_server: PostgresServer, admin: asyncpg.Connection[asyncpg.Record]
) -> None:
    await (await open_postgres(postgres_server.dsn())).aclose()
    await admin.execute("create role nobody_here login")
    with pytest.raises(StoreUnavailable, match="permission denied"):
        await open_postgres(postgres_server.dsn(user="nobody_here"))


async def test_a_schema_that_an_administrator_made_is_filled_by_an_ordinary_user(
    postgres_server: PostgresServer, admin: asyncpg.Connection[asyncpg.Record]
) -> None:
    await admin.execute("create role builder login")
    await admin.execute("create database built")
    there = await asyncpg.connect(postgres_server.dsn("built"))
    await there.execute("create schema weft authorization builder")
    await there.close()
    store = await open_postgres(postgres_server.dsn("built", user="builder"))
    lease = await store.take_lease("ses_a")
    await store.append(fact("ses_a", 0, lease.fence))
    await store.aclose()


async def test_a_copy_takes_no_numbers_from_other_tenants(
    postgres_server: PostgresServer, admin: asyncpg.Connection[asyncpg.Record], tmp_path: Path
) -> None:
    await (await open_postgres(postgres_server.dsn())).aclose()
    await make_role(admin, "copier")
    dsn = postgres_server.dsn(user="copier")
    there = await opened(dsn, f"{tmp_path}/there")
    await there.take_leases([f"ses_{number}" for number in range(20)])
    async with await open_sqlite(tmp_path / "small.db") as small:
        lease = await small.take_lease("ses_x")
        await small.append(fact("ses_x", 0, lease.fence))
    await copy_to_postgres(tmp_path / "small.db", dsn, f"{tmp_path}/copy")
    await there.take_leases([f"ses_more_{number}" for number in range(20)])
    async with await opened(dsn, f"{tmp_path}/copy") as copied:
        await copied.take_leases([f"ses_{number}" for number in range(20)])
        assert await copied.last_seq("ses_x") == 1
    await there.aclose()


async def test_the_isolation_of_a_role_changes_nothing(
    postgres_server: PostgresServer, admin: asyncpg.Connection[asyncpg.Record], tmp_path: Path
) -> None:
    """A sweep must see what was named before it had its lock."""
    await (await open_postgres(postgres_server.dsn())).aclose()
    await make_role(admin, "strict")
    await admin.execute("alter role strict set default_transaction_isolation = 'repeatable read'")
    store = await opened(postgres_server.dsn(user="strict"), tmp_path)
    shown = "select current_setting('transaction_isolation')"
    assert await store._work(lambda db: db.fetchval(shown)) == "read committed"
    await store.aclose()


@given(st.text(alphabet="\\\0a0"), st.text(alphabet="\\\0a0"))
def test_stored_text_comes_back_and_keeps_its_prefixes(one: str, two: str) -> None:
    assert loaded(stored(one)) == one
    assert "\0" not in stored(one)
    assert (stored(one) == stored(two)) == (one == two)
    assert stored(one + two).startswith(stored(one))
    assert stored(two).startswith(stored(one)) == two.startswith(one)
