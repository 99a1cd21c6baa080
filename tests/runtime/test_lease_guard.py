"""Commands of a host that lost its database end before another host may take its sessions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

import weft
from tests.support.postgres_proxy import cuttable
from tests.support.postgres_server import PostgresServer
from tests.support.tmux_terminal import wait_until
from weft.clock import SystemClock
from weft.store.postgres import PostgresStore, open_postgres
from weft.store.postgres.settings import LeaseTimes, PostgresSettings
from weft.testing import CallTool, ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]

TIMES = LeaseTimes(beat_seconds=0.2, grace_seconds=6.0, ttl_seconds=6.0)


async def seen(holds: Callable[[], bool]) -> None:
    await anyio.to_thread.run_sync(wait_until, holds)


def lives(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


async def test_a_command_ends_before_another_host_may_take_its_session(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    command = "echo $$ > pid; exec sleep 1000"
    model = ScriptedModel([CallTool(name="shell", args={"command": command}), "Done."])
    async with cuttable(postgres_server.folder / ".s.PGSQL.5432") as proxy:
        settings = PostgresSettings(
            dsn=postgres_server.tcp_dsn(proxy.port), tenant=str(tmp_path), times=TIMES
        )
        store = PostgresStore(settings, SystemClock())
        await store.open()
        other = await open_postgres(postgres_server.dsn(), tenant=str(tmp_path), times=TIMES)
        async with weft.open(project, store, {"sandbox.mode": "off"}) as app:
            session = await app.sessions.start_session(model=model, auto_approve=True)
            await session.send_prompt("Wait.")
            noted = project / "pid"
            await seen(lambda: noted.exists() and bool(noted.read_text()))
            pid = int(noted.read_text())
            proxy.is_down = True
            proxy.break_all()
            await seen(lambda: not lives(pid))
            lease = await other.lease_of(session.id)
            assert lease is not None, "the others had to wait for the end of the command"
            assert lease.owner.process_id == store.owner.process_id
            proxy.is_down = False
        await other.aclose()
        await store.aclose()
