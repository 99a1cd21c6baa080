"""Prompts that are sent at a time, once or again and again, by whichever process finds them due."""

from __future__ import annotations

import pytest

from tests.support.waiting_turns import open_world
from tests.support.world import World, crash, facts, until, until_idle, until_status
from weft.api.session import Session
from weft.api.unattended.waits import all_waits
from weft.errors import UsageError
from weft.events import (
    InputQueued,
    InputScheduled,
    ModelCallStarted,
    NewMessage,
    PermissionRequest,
    PermissionResolved,
    ScheduleEnded,
    ScheduleFired,
    TurnFinished,
    TurnStarted,
)
from weft.ids import SessionId
from weft.messages import Text
from weft.providers.script import CallTool, Stall
from weft.providers.scripted import ScriptedModel
from weft.store import LOOKS_READER

pytestmark = pytest.mark.anyio

HOUR = 3600.0


async def said(session: Session) -> list[str]:
    nodes = [each.node for each in await facts(session, NewMessage)]
    return [
        "".join(p.text for p in n.parts if isinstance(p, Text)) for n in nodes if n.role == "user"
    ]


async def left(world: World, **schedule: object) -> SessionId:
    """A session with a schedule whose process died."""
    app, _ = open_world(world, ScriptedModel(["never"]))
    await app.__aenter__()
    given = {"at": "+1h", "prompt": "look at the build", **schedule}
    wait = await app.schedule(**given)  # type: ignore[arg-type]
    await crash(app)
    return wait.session_id


@pytest.mark.requirement("app:schedule", "session:schedule")
async def test_a_prompt_is_sent_when_its_time_has_come_and_once(world: World) -> None:
    session_id = await left(world)
    model = ScriptedModel(["all green"])
    app, _ = open_world(world, model)
    async with app:
        assert await app.host.wake_due() == []
        world.clock.advance(HOUR)
        assert await app.host.wake_due() == [session_id]
        session = await app.sessions.get(session_id)
        await until_idle(session)
        assert await said(session) == ["look at the build"]
        assert await app.host.wake_due() == []
        [fired] = await facts(session, ScheduleFired)
        [ended] = await facts(session, ScheduleEnded)
        assert (fired.round, fired.missed, ended.reason) == (1, 0, "done")
        assert (len(model.requests), await session.waits()) == (1, [])


async def test_two_processes_that_find_it_due_send_it_once(world: World) -> None:
    session_id = await left(world)
    world.clock.advance(HOUR)
    one, _ = open_world(world, ScriptedModel(["one"]))
    other, _ = open_world(world, ScriptedModel(["other"]))
    async with one, other:
        woken = [await one.host.wake_due(), await other.host.wake_due()]
        assert sorted(map(len, woken)) == [0, 1]
        session = await one.sessions.get(session_id)
        await until(session, TurnFinished)
        assert len(await facts(session, ScheduleFired)) == 1


async def test_missed_rounds_are_one_and_the_next_comes_in_its_time(world: World) -> None:
    session_id = await left(world, every="10m")
    model = ScriptedModel(["one", "two"])
    app, _ = open_world(world, model)
    async with app:
        world.clock.advance(HOUR + 25 * 60)
        assert await app.host.wake_due() == [session_id]
        session = await app.sessions.get(session_id)
        await until_idle(session)
        [fired] = await facts(session, ScheduleFired)
        assert (fired.round, fired.missed) == (1, 2)
        assert await app.host.wake_due() == []
        world.clock.advance(5 * 60)
        assert await app.host.wake_due() == [session_id]
        await until_idle(session)
        assert len(model.requests) == 2
        [wait] = await session.waits()
        assert (wait.kind, wait.rounds, wait.every) == ("schedule", 2, 600.0)


async def test_a_schedule_ends_after_its_rounds_and_after_its_last_day(world: World) -> None:
    app, _ = open_world(world, ScriptedModel(["ok"] * 10))
    async with app:
        session = await app.sessions.start_session()
        await session.schedule("+1m", "a", every="1m", max_rounds=2)
        await session.schedule("+10m", "b", every="1h", until="+11m")
        for _ in range(12):
            world.clock.advance(60)
            await app.host.wake_due()
            await until_idle(session)
        assert [each.reason for each in await facts(session, ScheduleEnded)] == [
            *("max_rounds", "ended")
        ]
        assert await said(session) == ["a", "a", "b"]


async def test_a_round_that_is_due_while_a_turn_runs_follows_it_and_is_one(world: World) -> None:
    model = ScriptedModel([Stall(gate="works"), "round"])
    app, _ = open_world(world, model)
    async with app:
        session = await app.sessions.start_session()
        await session.schedule("+1m", "again", every="1m")
        await session.send_prompt("go")
        await until(session, ModelCallStarted)
        for _ in range(3):
            world.clock.advance(60)
            await app.host.wake_due()
        assert len(await facts(session, InputQueued)) == 1
        model.gate("works").opened.set()
        await until_idle(session)
        assert await said(session) == ["go", "again"]


async def test_no_round_begins_after_its_end_however_many_were_missed(world: World) -> None:
    session_id = await left(world, every="10m", until="+2h")
    world.clock.advance(3 * HOUR)
    app, _ = open_world(world, ScriptedModel(["never"]))
    async with app:
        assert await app.host.wake_due() == []
        session = await app.sessions.get(session_id)
        assert [each.reason for each in await facts(session, ScheduleEnded)] == ["ended"]
        assert await facts(session, ScheduleFired) == []
        assert await session.waits() == []


async def test_what_is_over_holds_up_no_other_one(world: World) -> None:
    app, _ = open_world(world, ScriptedModel(["looked"]))
    async with app:
        session = await app.sessions.start_session()
        await session.schedule("+1h", "over", every="10m", until="+2h")
        await session.schedule("+3h", "look")
        world.clock.advance(3 * HOUR)
        assert await app.host.wake_due() == [session.id]
        await until_idle(session)
        assert await said(session) == ["look"]
        assert await session.waits() == []


async def test_a_schedule_that_is_cancelled_takes_the_round_along_that_waits(world: World) -> None:
    model = ScriptedModel([Stall(gate="works"), "never"])
    app, _ = open_world(world, model)
    async with app:
        session = await app.sessions.start_session()
        wait = await session.schedule("+1m", "again", every="1m")
        await session.send_prompt("go")
        await until(session, ModelCallStarted)
        world.clock.advance(60)
        await app.host.wake_due()
        assert len(await facts(session, InputQueued)) == 1
        assert await session.cancel_wait(wait.id)
        model.gate("works").opened.set()
        await until_idle(session)
        assert await said(session) == ["go"]


async def test_a_round_that_a_dead_process_left_goes_on_when_the_next_is_due(world: World) -> None:
    app, _ = open_world(world, ScriptedModel([Stall(gate="never")]))
    await app.__aenter__()
    wait = await app.schedule("+1m", "look", every="1m")
    world.clock.advance(60)
    await app.host.wake_due()
    session = await app.sessions.get(wait.session_id)
    await until(session, ModelCallStarted)
    await crash(app)
    app, _ = open_world(world, ScriptedModel(["looked", "again"]))
    async with app:
        assert await app.host.wake_due() == []
        world.clock.advance(60)
        assert await app.host.wake_due() == [wait.session_id]
        session = await app.sessions.get(wait.session_id)
        await until_idle(session)
        assert [each.reason for each in await facts(session, TurnFinished)] == ["stop", "stop"]
        assert len(await facts(session, ScheduleFired)) == 2


@pytest.mark.requirement("session:waits", "session:cancel_wait")
async def test_a_schedule_is_cancelled(world: World) -> None:
    app, _ = open_world(world, ScriptedModel(["never"]))
    async with app:
        wait = await app.schedule("+1m", "look")
        session = await app.sessions.get(wait.session_id)
        assert await session.cancel_wait(wait.id)
        assert not await session.cancel_wait(wait.id)
        world.clock.advance(60)
        assert await app.host.wake_due() == []


def writes(name: str) -> CallTool:
    return CallTool(name="write", args={"path": name, "content": "x"})


@pytest.mark.parametrize(
    ("mode", "is_written"), [("accept_edits", True), ("default", False), ("bypass", False)]
)
async def test_its_rounds_have_the_mode_that_the_session_had(
    world: World, mode: str, is_written: bool
) -> None:
    app, _ = open_world(world, ScriptedModel(["never"]))
    await app.__aenter__()
    session = await app.sessions.start_session(permission_mode=mode)
    await session.schedule("+1m", "write it")
    await crash(app)
    world.clock.advance(60)
    app, _ = open_world(world, ScriptedModel([writes("a.txt"), "done"]))
    async with app:
        assert await app.host.wake_due() == [session.id]
        again = await app.sessions.get(session.id)
        await until_status(again, "idle" if is_written else "awaiting_permission")
        assert (world.project / "a.txt").exists() == is_written


async def test_a_mode_that_was_tightened_since_holds(world: World) -> None:
    app, _ = open_world(world, ScriptedModel(["never"]))
    await app.__aenter__()
    session = await app.sessions.start_session(permission_mode="accept_edits")
    await session.schedule("+1m", "write it")
    await session.set_permission_mode("default")
    await crash(app)
    world.clock.advance(60)
    app, _ = open_world(world, ScriptedModel([writes("a.txt"), "done"]))
    async with app:
        await app.host.wake_due()
        await until(await app.sessions.get(session.id), PermissionRequest)
        assert not (world.project / "a.txt").exists()


async def test_the_turn_after_a_round_has_nothing_of_what_was_given_to_it(world: World) -> None:
    app, _ = open_world(world, ScriptedModel(["never"]))
    await app.__aenter__()
    session = await app.sessions.start_session(permission_mode="accept_edits")
    await session.schedule("+1m", "write it")
    await crash(app)
    world.clock.advance(60)
    app, _ = open_world(world, ScriptedModel([writes("a.txt"), "done", writes("b.txt"), "done"]))
    async with app:
        await app.host.wake_due()
        again = await app.sessions.get(session.id)
        await until_idle(again)
        await again.send_prompt("and b")
        await until(again, PermissionRequest)
        assert not (world.project / "b.txt").exists()


@pytest.mark.process
async def test_grants_of_the_session_go_with_the_schedule(world: World) -> None:
    call = CallTool(name="shell", args={"command": "touch granted"})
    app, _ = open_world(world, ScriptedModel([call, "ok"]))
    await app.__aenter__()
    session = await app.sessions.start_session()
    await session.send_prompt("go")
    await until(session, PermissionRequest)
    await session.respond_to_permission("allow_always")
    await until_idle(session)
    [answer] = await facts(session, PermissionResolved)
    await session.schedule("+1m", "again")
    await crash(app)
    (world.project / "granted").unlink()
    world.clock.advance(60)
    app, _ = open_world(world, ScriptedModel([call, "ok"]))
    async with app:
        await app.host.wake_due()
        again = await app.sessions.get(session.id)
        await until_idle(again)
        assert (world.project / "granted").exists()
        [scheduled] = await facts(again, InputScheduled)
        assert scheduled.permission is not None
        assert scheduled.permission.grants == (answer.pattern,)


async def test_what_another_user_has_sealed_does_not_begin(world: World) -> None:
    session_id = await left(world)
    [key] = world.base.rglob("unattended.key")
    assert key.stat().st_mode & 0o777 == 0o600
    key.write_bytes(b"another user's key, 32 bytes long")
    world.clock.advance(HOUR)
    app, _ = open_world(world, ScriptedModel(["never"]))
    async with app:
        assert await app.host.wake_due() == []
        session = await app.sessions.get(session_id)
        [wait] = await session.waits()
        assert not wait.is_sealed
        assert await facts(session, TurnStarted) == []


async def test_a_key_that_cannot_be_read_hides_nothing_that_waits(world: World) -> None:
    session_id = await left(world)
    [key] = world.base.rglob("unattended.key")
    whole = key.read_bytes()
    key.write_bytes(b"")
    world.clock.advance(HOUR)
    app, _ = open_world(world, ScriptedModel(["sent"]))
    async with app:
        assert [each.is_sealed for each in await all_waits(app.host)] == [False]
        assert await app.host.wake_due() == []
        key.write_bytes(whole)
        world.clock.advance(HOUR)
        assert await app.host.wake_due() == [session_id]


async def test_an_older_program_does_not_open_what_it_could_not_send(world: World) -> None:
    session_id = await left(world)
    app, _ = open_world(world, ScriptedModel(["never"]))
    async with app:
        row = await app.store.row(session_id)
        assert row is not None
        assert (row.min_reader, row.waits, row.turn_open) == (LOOKS_READER, False, False)


async def test_a_fork_is_sent_nothing(world: World) -> None:
    session_id = await left(world)
    app, _ = open_world(world, ScriptedModel(["never"]))
    async with app:
        fork = await app.sessions.fork_session(session_id)
        assert await fork.waits() == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"at": "noon"}, "'noon' is no time: write 17:00, 2027-01-31T17:00 or +2h"),
        ({"at": "25:00"}, "no time of day"),
        ({"at": "+5x"}, "no length of time"),
        ({"at": "2001-01-01"}, "that time is over"),
        ({"at": "+400d"}, "within a year"),
        ({"at": "+1m", "every": 1}, "at least 10 seconds apart"),
        ({"at": "+1m", "every": "9" * 400 + "d"}, "more time than there is"),
        ({"at": "+1m", "prompt": " "}, "message is empty"),
        ({"at": "+1m", "every": "5m", "max_rounds": 0}, "max_rounds is 1 or more"),
        ({"at": "+2h", "every": "5m", "until": "+1h"}, "ends before its first round"),
    ],
)
async def test_what_cannot_be_scheduled_is_said_and_leaves_no_session(
    world: World, given: dict[str, object], said: str
) -> None:
    app, _ = open_world(world, ScriptedModel(["never"]))
    async with app:
        with pytest.raises(UsageError, match=said.replace("+", r"\+")):
            await app.schedule(**{"prompt": "go", **given})  # type: ignore[arg-type]
        assert list(await app.sessions.list_saved()) == []
