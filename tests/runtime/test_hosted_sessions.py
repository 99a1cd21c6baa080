"""A session that servers of one database host goes on at the next one, as its user left it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import weft
from tests.support.postgres_server import PostgresServer
from weft.app import App
from weft.errors import Owned
from weft.events import SessionHosted
from weft.ids import SessionId
from weft.permissions import PermissionGrant
from weft.runtime.ports.local import LocalPort
from weft.session import ChangeSetting
from weft.store import Lease
from weft.store.postgres import open_postgres
from weft.testing import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]


class Hosts:
    """Servers of one database, as far as their sessions go."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self._dsn = dsn
        self._tenant = folder.name
        self._project = folder / "project"
        self._project.mkdir()
        self._count = 0

    @asynccontextmanager
    async def opened(self, *, hosts: bool = True, model: str = "") -> AsyncIterator[App]:
        self._count += 1
        store = await open_postgres(self._dsn, tenant=self._tenant)
        settings = {"sandbox.mode": "off", "model.default": model}
        app = weft.open(self._project, store, settings, serves=hosts)
        async with app:
            if hosts:
                address = f"http://127.0.0.1:{7000 + self._count}"
                await store.register_address(address)
                app.host.registry.host = address
                app.host.registry.reaches_owners = False
            yield app
        await store.aclose()


@pytest.fixture
def hosts(postgres_server: PostgresServer, tmp_path: Path) -> Hosts:
    return Hosts(postgres_server.dsn(), tmp_path)


async def die(app: App) -> None:
    """Let a server be dead for all others."""
    await app.store.abandon()  # type: ignore[attr-defined]  # of this store alone


async def taken(app: App, session_id: str) -> LocalPort:
    """The session at a server that opens what a dead one left."""
    leases = await app.store.adopt(only=session_id)
    first = [each for each in leases if each.stream == session_id]
    rest: list[Lease] = [each for each in leases if each.stream != session_id]
    port = await app.host.take_over([*first, *rest])
    assert isinstance(port, LocalPort)
    return port


GRANT = PermissionGrant(pattern="shell(make test)", scope="session")


async def granted(app: App) -> SessionId:
    """A session that was told `auto`, and allowed something for as long as it lasts."""
    session = await app.sessions.start_session(model=ScriptedModel([]), title="first")
    port = await app.host.port(session.id)
    assert isinstance(port, LocalPort)
    port.actor.gate._grants.append(GRANT)  # as an answer does
    await session.set_permission_mode("auto")
    return session.id


@pytest.mark.requirement("event:SessionHosted")
async def test_the_mode_and_the_grants_move_with_a_session(hosts: Hosts) -> None:
    async with hosts.opened() as one, hosts.opened() as two, hosts.opened() as three:
        session_id = await granted(one)
        await die(one)
        second = await taken(two, session_id)
        assert (second.permission_mode, second.actor.gate.granted.grants) == ("auto", (GRANT,))
        # Nothing was done with it there, and it is carried on all the same.
        await die(two)
        third = await taken(three, session_id)
        assert (third.permission_mode, third.actor.gate.granted.grants) == ("auto", (GRANT,))
        written = [fact async for fact in third.subscribe(after=0, live=False)]
        moves = [fact for fact in written if isinstance(fact, SessionHosted)]
        assert [fact.moved for fact in moves] == [False, True, True]


async def test_a_mode_that_asks_nothing_falls_back_when_a_session_moves(hosts: Hosts) -> None:
    async with hosts.opened() as one, hosts.opened() as two:
        session_id = await granted(one)
        port = await one.host.port(session_id)
        await port.call(ChangeSetting(name="permission_mode", value="bypass"))
        await die(one)
        assert (await taken(two, session_id)).permission_mode == "default"


async def test_what_was_granted_elsewhere_in_between_does_not_count(hosts: Hosts) -> None:
    async with hosts.opened() as one, hosts.opened() as two:
        session_id = await granted(one)
        await die(one)
        async with hosts.opened(hosts=False) as run:
            await run.sessions.get(session_id)
        port = await two.host.port(session_id)
        assert isinstance(port, LocalPort)
        assert (port.permission_mode, port.actor.gate.granted.grants) == ("default", ())


async def test_a_server_opens_no_session_of_another_for_reading(hosts: Hosts) -> None:
    async with hosts.opened() as one, hosts.opened() as two:
        session_id = await granted(one)
        with pytest.raises(Owned):
            await two.host.port(session_id)


async def test_a_store_from_elsewhere_brings_no_grants_along(tmp_path: Path) -> None:
    brought = f"sqlite:{tmp_path / 'brought.db'}"
    settings = {"sandbox.mode": "off"}
    async with weft.open(tmp_path, brought, settings) as elsewhere:
        elsewhere.host.registry.host = "http://127.0.0.1:7001"
        session_id = await granted(elsewhere)
    async with weft.open(tmp_path, "memory", settings) as app:
        app.host.registry.host = "http://127.0.0.1:7002"
        await app.sessions.start_session(model=ScriptedModel([]), store=brought)
        port = await app.host.port(session_id)
        assert isinstance(port, LocalPort)
        assert (port.permission_mode, port.actor.gate.granted.grants) == ("default", ())
