"""A store that cannot be reached for a while: nothing lost, nothing doubled, no restart spent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from tests.support.buggy_model import BuggyModel
from tests.support.world import (
    PATIENCE,
    World,
    facts,
    message_lines,
    running,
    until,
    until_idle,
)
from weft.clock import ManualClock
from weft.errors import SessionInterrupted
from weft.events import ErrorRaised, SessionRestarted, ToolComplete, TurnFinished
from weft.providers.script import CallTogether, CallTool, SayText, Stall
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


@pytest.mark.parametrize("fault", ["outage", "stored", "unstored", "late"])
async def test_a_session_goes_on_by_itself_when_its_store_is_back(
    plain_world: World, wire: tuple[Store, ScriptedStore], fault: AppendFault
) -> None:
    """The connection is gone, at a lost answer or before it, for longer than an append waits."""
    store, script = wire
    model = ScriptedModel([(SayText(text="half"), Stall(gate="g")), "all of it", "more"])
    async with plain_world.open(model, store=store) as app:
        session = await app.sessions.start_session()

        async def ask() -> None:
            with pytest.raises(SessionInterrupted, match="store"):
                await session.send_message("a")

        async with running(ask):
            await model.gate("g").reached.wait()
            script.goes_down_with = fault
            model.gate("g").opened.set()
        await until_waited(plain_world, 5)
        assert await session.get_status() == "error"
        script.is_down = False
        with anyio.fail_after(PATIENCE):
            async with await session.subscribe(after=0) as events:
                async for event in events:
                    if isinstance(event, TurnFinished):
                        break
        # A lost append is sent again when it is not there: it may still be under way, and what was
        # said must not be said twice.
        said = "all of it" if fault == "outage" else "half"
        assert await message_lines(session) == ["user: a", f"assistant: {said}"]
        assert await facts(session, SessionRestarted) == []
        assert plain_world.waits == sorted(plain_world.waits), "it backs off"
        assert (await session.send_message("b")).text == ("all of it" if said == "half" else "more")
        assert (await session.editor_snapshot()).error == ""


@pytest.mark.parametrize("fault", ["outage", "stored", "unstored", "late"])
@pytest.mark.parametrize("calls", [1, 2])
async def test_a_turn_goes_on_after_a_call_that_could_not_be_stored(
    plain_world: World, wire: tuple[Store, ScriptedStore], fault: AppendFault, calls: int
) -> None:
    """Nothing is in doubt: the program that ran it is still there."""
    store, script = wire
    runs = 0

    async def act() -> str:
        nonlocal runs
        runs += 1
        if runs == 1:
            script.goes_down_with = fault
        return f"acted, time {runs}"

    together = CallTogether(calls=tuple(CallTool(name="act") for _ in range(calls)))
    model = ScriptedModel([together, "Done."])
    async with plain_world.open(model, store=store) as app:
        session = await app.sessions.start_session(tools=[act], permission_mode="bypass")
        await session.send_prompt("go")
        await until_waited(plain_world, 2)
        script.is_down = False
        await until(session, TurnFinished)
        ends = [fact.result.text for fact in await facts(session, ToolComplete)]
        # What the first call came to is known, whether or not it could be stored at once; the
        # second was not begun, whether or not its intent was stored.
        assert ends == ["acted, time 1", "acted, time 2"][:calls]
        assert runs == calls
        assert (await message_lines(session))[-1] == "assistant: Done."
        assert await facts(session, SessionRestarted) == []


async def test_an_outage_under_calls_that_run_at_once_is_no_crash(
    plain_world: World, wire: tuple[Store, ScriptedStore]
) -> None:
    """Two questions are asked at once: the group that they run in fails as a group."""
    store, script = wire
    ask = [CallTool(name="ask", args={"question": each}) for each in ("Red?", "Blue?")]
    model = ScriptedModel([CallTogether(calls=tuple(ask)), "I see."])
    async with plain_world.open(model, store=store) as app:
        session = await app.sessions.start_session()
        # The prompt is stored, the first question is not.
        script.goes_down_with, script.after_appends = "outage", 1
        await session.send_prompt("go")
        await until_waited(plain_world, 2)
        script.is_down = False
        await until(session, TurnFinished)
        assert await facts(session, SessionRestarted, ErrorRaised) == []


async def test_a_crash_during_an_outage_leaves_the_restarts_for_later(
    plain_world: World, wire: tuple[Store, ScriptedStore]
) -> None:
    store, script = wire
    model = BuggyModel(1, ["Here after all."] * 5)
    clock = ManualClock()
    async with plain_world.open(model, store=store, clock=clock) as app:
        session = await app.sessions.start_session()
        for _ in range(4):
            # The crash's own append is the one that is refused.
            script.goes_down_with, script.after_appends = "outage", 1
            await session.send_prompt("go")
            await until_waited(plain_world, len(plain_world.waits) + 1)
            model.left = 0
            script.is_down = False
            await until_idle(session)
            model.left = 1
        model.left = 3
        reply = await session.send_message("and now three crashes in a row")
        assert reply.finish_reason == "stop"
        assert len(await facts(session, SessionRestarted)) == 3


async def until_waited(world: World, times: int) -> None:
    """Wait until the session has backed off so often."""
    with anyio.fail_after(PATIENCE):
        while len(world.waits) < times:
            await anyio.lowlevel.checkpoint()
