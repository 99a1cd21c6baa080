"""A store is copied whole between SQLite and Postgres, and goes on there."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft
from tests.support.postgres_server import PostgresServer
from weft.errors import UsageError
from weft.store.postgres.transfer import copy_to_postgres, copy_to_sqlite
from weft.testing import CallTool, ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]


async def test_a_store_goes_to_postgres_and_back_with_all_that_it_holds(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    project, first = tmp_path / "project", tmp_path / "first.db"
    project.mkdir()
    settings = {"sandbox.mode": "off"}
    model = ScriptedModel(
        [
            CallTool(name="write", args={"path": "a.txt", "content": "one\n"}),
            "Wrote \0 it.",
            CallTool(name="write", args={"path": "a.txt", "content": "two\n"}),
            "Changed it.",
        ]
    )
    async with weft.open(project, first, settings) as app:
        session = await app.sessions.start_session(model=model, auto_approve=True, title="Naïve")
        await session.send_message("Write a file.")
        fork = await app.sessions.fork_session(session.id)
        await session.send_message("Change it.")
        kept = [message.content for message in await session.messages()]

    there = await copy_to_postgres(first, postgres_server.dsn(), tenant=str(tmp_path))
    assert there.rows["facts"] > 10
    assert there.rows["blobs"] > 0
    with pytest.raises(UsageError, match="has sessions already"):
        await copy_to_postgres(first, postgres_server.dsn(), tenant=str(tmp_path))

    address = f"{postgres_server.dsn()}&tenant={tmp_path}"
    async with weft.open(project, address, settings) as app:
        moved = await app.sessions.get(session.id)
        assert [message.content for message in await moved.messages()] == kept
        assert session.id in {row.id for row in await app.sessions.list_saved(query="naive")}
        assert {row.id for row in await app.sessions.list_saved()} == {session.id, fork.id}
        await moved.rewind(0)
        assert not (project / "a.txt").exists()
        again = ScriptedModel(["Here too."])
        await moved.update_model(again)
        assert (await moved.send_message("Go on.")).text == "Here too."
        kept = [message.content for message in await moved.messages()]

    second = tmp_path / "second.db"
    back = await copy_to_sqlite(postgres_server.dsn(), second, tenant=str(tmp_path))
    assert back.rows["facts"] > there.rows["facts"]
    async with weft.open(project, second, settings) as app:
        home = await app.sessions.get(session.id)
        assert [message.content for message in await home.messages()] == kept
    with pytest.raises(UsageError, match="exists"):
        await copy_to_sqlite(postgres_server.dsn(), second, tenant=str(tmp_path))
