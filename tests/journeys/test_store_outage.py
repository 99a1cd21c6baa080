"""A store that cannot be reached for a while: nothing lost, nothing doubled, no restart spent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.world import World, facts, message_lines
from weft.events import SessionRestarted, TurnFinished
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel
from weft.store import MemoryStore, Store
from weft.store.jsonl import open_jsonl
from weft.store.sqlite import open_sqlite
from weft.testing.scripted_store import AppendFault, ScriptedStore, scripted_store

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "jsonl", "sqlite"])
async def wire(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[tuple[Store, ScriptedStore]]:
    kept: Store
    if request.param == "memory":
        kept = MemoryStore()
    elif request.param == "jsonl":
        kept = await open_jsonl(tmp_path / "jsonl")
    else:
        kept = await open_sqlite(tmp_path / "store.db")
    async with kept:
        yield scripted_store(kept)


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("fault", ["stored", "unstored"])
async def test_an_answer_that_is_lost_once_costs_nothing(
    plain_world: World, wire: tuple[Store, ScriptedStore], at: int, fault: AppendFault
) -> None:
    """Wherever in the turn the connection breaks."""
    store, script = wire
    runs = 0

    async def act() -> str:
        nonlocal runs
        runs += 1
        return "acted"

    model = ScriptedModel([CallTool(name="act"), "Done."])
    async with plain_world.open(model, store=store) as app:
        session = await app.sessions.start_session(tools=[act], permission_mode="bypass")
        for _ in range(at):
            script.faults.append("")
        script.faults.append(fault)
        assert (await session.send_message("go")).text == "Done."
        assert not script.faults
        lines = await message_lines(session)
        assert (lines[0], lines[-1], runs) == ("user: go", "assistant: Done.", 1)
        assert len(await facts(session, TurnFinished)) == 1
        assert await facts(session, SessionRestarted) == []
        events = await store.read(session.id)
        assert [each.seq for each in events] == list(range(1, len(events) + 1))
