"""Hosts that share a Postgres store: who lives, how busy each is, and what a dead one leaves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from tests.support.postgres_server import PostgresServer
from weft.errors import Fenced, UsageError
from weft.ids import SessionId
from weft.store import Append, Record, SessionRow
from weft.store.location import StoreLocation, open_location
from weft.store.postgres import PostgresStore, open_postgres

pytestmark = [pytest.mark.anyio, pytest.mark.process]

A = "http://127.0.0.1:7001"
B = "http://127.0.0.1:7002"


@pytest.fixture
async def hosts(
    postgres_server: PostgresServer, tmp_path: Path
) -> AsyncIterator[tuple[PostgresStore, PostgresStore]]:
    one = await open_postgres(postgres_server.dsn(), tenant=str(tmp_path))
    two = await open_postgres(postgres_server.dsn(), tenant=str(tmp_path))
    await one.register_address(A)
    await two.register_address(B)
    yield one, two
    await one.aclose()
    await two.aclose()


async def made(store: PostgresStore, name: str, **fields: object) -> None:
    """A session with a row, held by a store."""
    lease = await store.take_lease(name)
    row = SessionRow(id=SessionId(name), **fields)  # type: ignore[arg-type]  # a test's own
    record = Record(1, 1.0, "said", b"one")
    append = Append(stream=name, expected_seq=0, records=(record,), fence=lease.fence, row=row)
    await store.append(append)


async def test_living_hosts_are_listed_with_their_load(
    hosts: tuple[PostgresStore, PostgresStore],
) -> None:
    one, two = hosts
    await two.publish_load(3.0)
    await two.register_address(B, accepting=False)
    found = {host.owner.address: host for host in await one.hosts()}
    assert {address: host.load for address, host in found.items()} == {A: 0.0, B: 3.0}
    assert (found[A].owner.accepting, found[B].owner.accepting) == (True, False)
    await two.abandon()
    assert [host.owner.address for host in await one.hosts()] == [A]


async def test_a_family_of_a_dead_host_is_adopted_whole_and_once(
    hosts: tuple[PostgresStore, PostgresStore],
) -> None:
    one, two = hosts
    await made(one, "ses_parent", turn_open=True)
    await made(one, "ses_child", parent_id="ses_parent", is_child=True, turn_open=True)
    await made(one, "ses_grandchild", parent_id="ses_child", is_child=True)
    await made(one, "ses_fork", parent_id="ses_parent")
    assert await two.adopt() == [], "its host lives"
    await one.abandon()
    family = {lease.stream for lease in await two.adopt(limit=2)}
    assert family == {"ses_fork", "ses_parent", "ses_child", "ses_grandchild"}
    assert await two.adopt() == []
    old = Record(2, 2.0, "said", b"two")
    with pytest.raises(Fenced):
        await one.append(Append(stream="ses_parent", expected_seq=1, records=(old,), fence=1))


async def test_two_hosts_that_adopt_at_once_share_what_was_left(
    hosts: tuple[PostgresStore, PostgresStore], postgres_server: PostgresServer, tmp_path: Path
) -> None:
    one, two = hosts
    dead = await open_postgres(postgres_server.dsn(), tenant=str(tmp_path))
    await dead.register_address("http://127.0.0.1:7003")
    for number in range(20):
        await made(dead, f"ses_{number:02}", turn_open=True)
    await dead.abandon()
    taken: list[str] = []

    async def take(store: PostgresStore) -> None:
        while found := await store.adopt(limit=3):
            taken.extend(lease.stream for lease in found)

    async with anyio.create_task_group() as group:
        group.start_soon(take, one)
        group.start_soon(take, two)
    assert sorted(taken) == [f"ses_{number:02}" for number in range(20)]
    await dead.aclose()


async def test_what_a_host_leaves_is_adopted_and_what_it_gives_back_is_not(
    hosts: tuple[PostgresStore, PostgresStore],
) -> None:
    one, two = hosts
    for name in ("ses_left", "ses_given"):
        await made(one, name, turn_open=True)
    left, given = await one.take_leases(["ses_left", "ses_given"])
    async with anyio.create_task_group() as group:
        group.start_soon(one.leave_lease, left)
        group.start_soon(one.release_lease, given)
    assert await two.lease_of("ses_left") is None
    assert [lease.stream for lease in await two.adopt()] == ["ses_left"]


async def test_a_session_of_a_command_line_is_not_adopted(
    hosts: tuple[PostgresStore, PostgresStore], postgres_server: PostgresServer, tmp_path: Path
) -> None:
    _, two = hosts
    run = await open_postgres(postgres_server.dsn(), tenant=str(tmp_path))
    await made(run, "ses_run", turn_open=True)
    await made(run, "ses_other", turn_open=True)
    await run.leave_lease(await run.take_lease("ses_other"))
    await run.abandon()
    assert await two.adopt() == []
    await run.aclose()


async def test_a_lease_is_never_given_back_before_an_append_that_was_handed_in_earlier(
    hosts: tuple[PostgresStore, PostgresStore],
) -> None:
    one, _ = hosts
    first = await one.take_lease("ses_first")
    second = await one.take_lease("ses_second")
    append = Append(
        stream="ses_second",
        expected_seq=0,
        records=(Record(1, 1.0, "said", b"one"),),
        fence=second.fence,
    )
    async with anyio.create_task_group() as group:
        group.start_soon(one.release_lease, first)
        group.start_soon(one.append, append)
        group.start_soon(one.release_lease, second)
    assert await one.last_seq("ses_second") == 1


async def test_an_address_may_name_the_slot_and_the_times_of_leases(
    postgres_server: PostgresServer,
) -> None:
    address = f"{postgres_server.dsn()}&tenant=t&slot=web-0&lease=1,2,3"
    store = await open_location(StoreLocation("postgres", address))
    assert isinstance(store, PostgresStore)
    assert store.lease_seconds_left() <= 3.0
    assert store.tenant == "t"
    await store.aclose()
    with pytest.raises(UsageError, match="BEAT,GRACE,TTL"):
        await open_location(StoreLocation("postgres", f"{postgres_server.dsn()}&lease=fast"))
