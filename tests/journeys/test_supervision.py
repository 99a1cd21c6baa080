"""What is unforeseen: a session that crashes comes back, a few times, and hurts itself alone."""

from __future__ import annotations

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
    until_idle,
    until_status,
)
from weft import faults
from weft.clock import ManualClock
from weft.errors import SessionStopped, StoreUnavailable
from weft.events import ErrorRaised, SessionRestarted, SessionStatus, TurnFinished
from weft.providers import ModelInfo
from weft.providers.script import CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel
from weft.store import Append, MemoryData, MemoryStore, Snapshot

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("supervision:restart")
async def test_a_session_that_crashes_goes_on_by_itself(world: World) -> None:
    model = BuggyModel(2, ["Here after all."])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        reply = await session.send_message("go")
        assert (reply.finish_reason, reply.text) == ("stop", "Here after all.")
        restarts = await facts(session, SessionRestarted)
        assert ["KeyError" in each.reason for each in restarts] == [True, True]
        assert len(await facts(session, ErrorRaised)) == 2
        assert await message_lines(session) == ["user: go", "assistant: Here after all."]


@pytest.mark.requirement("reason:halted", "supervision:restart")
async def test_a_session_that_keeps_crashing_stays_down_until_it_is_spoken_to(
    world: World,
) -> None:
    model = BuggyModel(4, ["Well again."])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        reply = await session.send_message("go")
        assert reply.finish_reason == "halted"
        assert "crashed too often" in reply.detail
        assert model.crashes == 4
        assert await session.get_status() == "error"
        snapshot = await session.editor_snapshot()
        assert (snapshot.status, "KeyError" in snapshot.error) == ("error", True)
        [info] = await app.sessions.list_active()
        assert info.status == "error"
        assert len(await facts(session, SessionRestarted)) == 3
        assert (await session.send_message("again")).text == "Well again."
        assert await session.get_status() == "idle"
        assert (await session.editor_snapshot()).error == ""


async def test_the_budget_of_restarts_is_for_a_minute(world: World) -> None:
    clock = ManualClock()
    model = BuggyModel(3, ["one", "two"])
    async with world.open(model, clock=clock) as app:
        session = await app.sessions.start_session()
        assert (await session.send_message("a")).finish_reason == "stop"
        clock.advance(61)
        model.left = 3
        assert (await session.send_message("b")).finish_reason == "stop"


@pytest.mark.requirement("supervision:alone")
async def test_other_sessions_never_notice(world: World) -> None:
    buggy = BuggyModel(100, [])
    fine = ScriptedModel(["fine"] * 10)
    async with world.open(fine) as app:
        bad = await app.sessions.start_session(model=Named(buggy))
        good = [await app.sessions.start_session() for _ in range(5)]
        async with running(
            lambda: bad.send_message("go"),
            *[lambda s=s: s.send_message("hi") for s in good],
        ):
            pass
        assert await bad.get_status() == "error"
        for session in good:
            assert await message_lines(session) == ["user: hi", "assistant: fine"]
            assert await facts(session, SessionRestarted, ErrorRaised) == []


class Named(BuggyModel):
    """The same bug under another name."""

    def __init__(self, model: BuggyModel) -> None:
        super().__init__(model.left, [])
        self.info = ModelInfo(provider="scripted", name="buggy")


async def test_an_effect_that_a_crash_interrupted_is_not_repeated(world: World) -> None:
    """The tool ran; then the session crashed before the result was stored: it is told as
    unknown.
    """
    runs = 0

    async def act() -> str:
        nonlocal runs
        runs += 1
        return "acted"

    model = ScriptedModel([CallTool(name="act"), "I will look."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(tools=[act], permission_mode="bypass")

        def crash_here(name: str) -> None:
            raise KeyError("a bug")

        faults.arm("loop.tool.after_run", action=crash_here)
        try:
            reply = await session.send_message("act")
        finally:
            faults.disarm_all()
        assert reply.finish_reason == "stop"
    assert runs == 1


@pytest.mark.requirement("supervision:unload")
async def test_an_idle_session_is_unloaded_and_comes_back_with_the_next_call(world: World) -> None:
    model = ScriptedModel(["one", "two"])
    async with world.open(model, clock=world.clock) as app:
        session = await app.sessions.start_session()
        await session.send_message("a")
        assert await app.sessions.unload_idle(1800) == 0
        world.clock.advance(1801)
        assert await app.sessions.unload_idle(1800) == 1
        assert await app.sessions.list_active() == []
        assert await message_lines(session) == ["user: a", "assistant: one"]
        assert (await session.send_message("b")).text == "two"
        assert len(await app.sessions.list_active()) == 1


async def test_a_session_with_custom_tools_still_has_them_after_an_unloading(world: World) -> None:
    async def act() -> str:
        return "acted"

    model = ScriptedModel(["one", CallTool(name="act"), "two"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(tools=[act], auto_approve=True)
        await session.send_message("a")
        await app.sessions.unload_idle(0)
        assert (await session.send_message("b")).text == "two"


async def test_a_busy_session_is_not_unloaded(world: World) -> None:
    async with world.open(ScriptedModel([Stall()])) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("a")
        assert await app.sessions.unload_idle(0) == 0


async def test_a_call_that_meets_an_unloading_is_carried_out(world: World) -> None:
    async with world.open(ScriptedModel(["one"])) as app:
        session = await app.sessions.start_session()
        for _ in range(20):
            async with running(
                lambda: app.sessions.unload_idle(0), lambda: session.add_system_message("x")
            ):
                pass
        assert len(await session.messages()) == 20


async def test_a_turn_that_began_while_others_were_unloaded_is_not_stopped_by_it(
    world: World,
) -> None:
    for turns in range(1, 8):
        model = ScriptedModel([Stall(gate="g")])
        async with world.open(model) as app:
            await app.sessions.start_session()
            session = await app.sessions.start_session()
            async with running(lambda: app.sessions.unload_idle(0)):
                for _ in range(turns):
                    await anyio.lowlevel.checkpoint()
                await session.send_prompt("go")
            with anyio.fail_after(PATIENCE):
                await model.gate("g").reached.wait()
            assert await session.get_status() == "thinking"
            assert await facts(session, TurnFinished) == []


async def test_a_turn_that_crashes_while_it_is_stopped_does_not_go_on_by_itself(
    world: World,
) -> None:
    model = ScriptedModel([(SayText(text="Half"), Stall(gate="g")), "Gone on.", "Later."])

    def crash_here(name: str) -> None:
        raise KeyError("a bug")

    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await model.gate("g").reached.wait()
        faults.arm("loop.abort.before", action=crash_here)
        try:
            with anyio.fail_after(PATIENCE):
                await session.abort("enough")
                await until_idle(session)
        finally:
            faults.disarm_all()
        [finished] = await facts(session, TurnFinished)
        assert (finished.reason, finished.detail) == ("aborted", "enough")
        assert len(model.requests) == 1
        assert len(await facts(session, SessionRestarted)) == 1


async def test_a_call_that_the_end_of_the_program_overtakes_is_answered(world: World) -> None:
    """A store that hangs keeps the actor inside an append while everything is taken down
    around it.
    """
    app = world.open(ScriptedModel([]), store=Hanging(data=MemoryData()))
    async with app:
        session = await app.sessions.start_session()
        store = app.store
        assert isinstance(store, Hanging)
        store.is_hanging = True

        async def call() -> None:
            with pytest.raises(SessionStopped):
                await session.add_system_message("x")

        async with running(call):
            await store.reached.wait()
            await app._supervisor.aclose()


class Hanging(MemoryStore):
    """A store whose appends do not come back."""

    def __init__(self, *, data: MemoryData) -> None:
        super().__init__(data=data)
        self.is_hanging = False
        self.reached = anyio.Event()

    async def append(self, *appends: Append) -> None:
        if self.is_hanging:
            self.reached.set()
            await anyio.sleep_forever()
        await super().append(*appends)


async def test_a_session_whose_snapshot_cannot_be_kept_is_stopped_all_the_same(
    plain_world: World,
) -> None:
    store = Snapshotless(data=MemoryData())
    async with plain_world.open(ScriptedModel(["one"]), store=store) as app:
        session = await app.sessions.start_session(session_id="s")
        while not store.refused:
            for _ in range(500):
                await session.add_system_message("x")
            await app.sessions.stop_session("s")
        assert len(await session.messages()) == 2000, "what earlier openings added counts too"
        await app.sessions.stop_session("s")
        assert await store.lease_of("s") is None
        assert (await session.send_message("hi")).text == "one"


class Snapshotless(MemoryStore):
    """A store without room for snapshots."""

    refused = 0

    async def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        self.refused += 1
        raise StoreUnavailable("the disk is full")


@pytest.mark.requirement("session:get_status")
async def test_the_status_is_reported_as_it_changes(world: World) -> None:
    model = BuggyModel(4, [])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        seen: list[str] = []
        async with await session.subscribe() as events, running():
            await session.send_message("go")
            while "error" not in seen:
                event = await anext(events)
                if isinstance(event, SessionStatus):
                    seen.append(event.status)
        assert seen[0] == "thinking"
        assert seen[-1] == "error"


async def test_a_bug_in_one_command_fails_that_command_and_not_the_turn(world: World) -> None:
    model = ScriptedModel([Stall(gate="g"), "two"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("a")
        await model.gate("g").reached.wait()
        assert await session.get_status() == "thinking"
        await session.abort()
        await until_status(session, "idle")
        assert [each.reason for each in await facts(session, TurnFinished)] == ["aborted"]
        assert (await session.send_message("b")).text == "two"
        await until_idle(session)
