"""Sessions that are due go on at a server that has none of their files, with a clock of the test's:
two homes, two folders, one database.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.support.postgres_server import PostgresServer
from tests.support.world import facts, until, until_idle
from weft.app import App
from weft.clock import ManualClock
from weft.events import ScheduleFired, TurnWaiting, TurnWoken
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel, ScriptedProvider
from weft.runtime.ports.local import LocalPort
from weft.server.due import due_projects
from weft.server.due.due_projects import DueProjects
from weft.server.projects import ServedProjects
from weft.session.log.load import keep_snapshot, load_with_snapshot
from weft.store import Append, Record, Store
from weft.store.postgres import open_postgres

pytestmark = [pytest.mark.anyio, pytest.mark.process]

WRITE = CallTool(name="write", args={"path": "a.txt", "content": "ours\n"})
SLEEP = CallTool(name="wait_for", args={"seconds": 3600})


class Hosts:
    """Hosts of one database, each with a home and a project of its own."""

    def __init__(self, dsn: str, base: Path) -> None:
        self._dsn = dsn
        self.base = base
        self.clock = ManualClock()
        self._count = 0

    @asynccontextmanager
    async def opened(self, *answers: Any) -> AsyncIterator[ServedProjects]:
        self._count += 1
        home, number = self.base / f"host{self._count}", 7000 + self._count
        (home / "project").mkdir(parents=True)
        store = await open_postgres(self._dsn, tenant=self.base.name)
        models = {"script": ScriptedModel(list(answers))}

        def opener(folder: str) -> App:
            return self._app(home, folder, store, models)

        try:
            async with opener(str(home / "project")) as main:
                projects = ServedProjects(main, opener)
                projects.join_cluster(f"http://127.0.0.1:{number}")
                await store.register_address(f"http://127.0.0.1:{number}")
                yield projects
                await projects.aclose()
        finally:
            await store.aclose()

    def _app(self, home: Path, folder: str, store: Store, models: dict[str, ScriptedModel]) -> App:
        environ = {
            "HOME": str(home),
            "WEFT_HOME": str(home),
            "PATH": os.environ["PATH"],
            "WEFT_REPO_INDEX": "off",
            "WEFT_UNATTENDED_KEY": "one key that all hosts of a test share",
        }
        settings = {
            "model.default": "scripted:script",
            "sandbox.mode": "off",
            "lsp.enabled": False,
        }
        providers = {"scripted": ScriptedProvider(models)}
        parts = {"clock": self.clock, "environ": environ, "providers": providers, "serves": True}
        return weft.open(folder, store, settings, **parts)

    def lose(self) -> None:
        """The disk of the first host is gone."""
        (self.base / "host1").rename(self.base / "gone")


@pytest.fixture
def hosts(postgres_server: PostgresServer, tmp_path: Path) -> Hosts:
    return Hosts(postgres_server.dsn(), tmp_path)


async def scheduled(hosts: Hosts, count: int = 1, **more: Any) -> list[str]:
    """Sessions with files at a host that is no more, which are sent a prompt in an hour."""
    made: list[str] = []
    answers = [[WRITE], "Written."] * count
    async with hosts.opened(*answers) as projects:
        for _ in range(count):
            session = await projects.main.sessions.start_session(auto_approve=True)
            await session.send_prompt("Write.")
            await until_idle(session)
            await session.schedule("+1h", "look", **more)
            made.append(session.id)
    hosts.lose()
    return made


async def test_a_turn_that_sleeps_is_woken_where_none_of_its_files_are(hosts: Hosts) -> None:
    async with hosts.opened([WRITE], [SLEEP]) as projects:
        session = await projects.main.sessions.start_session(auto_approve=True)
        await session.send_prompt("Write, and wait.")
        await until(session, TurnWaiting)
        session_id = session.id
    hosts.lose()
    async with hosts.opened("Done.") as projects:
        due = DueProjects(projects)
        assert await due.look() == []
        assert projects.apps == [projects.main], "it sleeps still"
        hosts.clock.advance(3600)
        await due.look()
        _, session = await projects.session(session_id)
        await until_idle(session)
        assert [fact.by for fact in await facts(session, TurnWoken)] == ["time"]
        [made] = (hosts.base / "host2" / "workspaces").glob("ses_*/1/project/a.txt")
        assert made.read_text() == "ours\n"
        assert list(Path(projects.main.project_path).iterdir()) == []


async def test_each_round_begins_where_the_session_is_open_by_now(hosts: Hosts) -> None:
    [session_id] = await scheduled(hosts, every="1h")
    async with hosts.opened("One.", "Two.") as projects:
        due, ports = DueProjects(projects), []
        for count in (1, 2):
            hosts.clock.advance(3600)
            await due.look()
            await due.look()
            app, session = await projects.session(session_id)
            await until_idle(session)
            assert len(await facts(session, ScheduleFired)) == count
            ports.append(app.host.running(session.id))
        assert ports[0] is ports[1], "it is open once"


async def damage(store: Store, session_id: str) -> None:
    """Let the log of a session end with what nobody can read."""
    lease = await store.take_lease(session_id)
    end = await store.last_seq(session_id)
    record = Record(end + 1, 0.0, "new_message", b"{")
    await store.append(
        Append(stream=session_id, expected_seq=end, records=(record,), fence=lease.fence)
    )
    await store.release_lease(lease)


async def test_a_session_that_cannot_be_read_keeps_no_other_one_asleep(hosts: Hosts) -> None:
    first, second = await scheduled(hosts, count=2)
    async with hosts.opened("One.") as projects:
        await damage(projects.main.store, min(first, second))
        due = DueProjects(projects)
        hosts.clock.advance(3600)
        await due.look()
        _, session = await projects.session(max(first, second))
        await until_idle(session)
        assert len(await facts(session, ScheduleFired)) == 1


async def test_many_sessions_are_brought_a_few_at_a_time(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due_projects, "AT_ONCE", 1)
    await scheduled(hosts, count=2)
    async with hosts.opened("One.", "Two.") as projects:
        due = DueProjects(projects)
        hosts.clock.advance(3600)
        for count in (1, 2):
            await due.look()
            assert len(projects.apps) == 1 + count


async def test_a_snapshot_names_no_folder_of_the_host_that_kept_it(hosts: Hosts) -> None:
    [session_id] = await scheduled(hosts)
    first = str(hosts.base / "host1" / "project")
    async with hosts.opened("One.") as projects:
        _, session = await projects.session(session_id)
        port = projects.apps[-1].host.running(session.id)
        assert isinstance(port, LocalPort)
        assert port.state.about.project_path != first
        await keep_snapshot(port.state, projects.main.store)
        stored, seq = await load_with_snapshot(session.id, projects.main.store)
        assert seq == port.state.seq
        assert (stored.about.project_path, stored.about.listed_path) == (first, "")
