"""A program has a session wait: the turn begins asleep, and the model is asked when it is over."""

from __future__ import annotations

import socket

import anyio
import pytest

from tests.support.waiting_turns import HeldSleep, open_world, woken_by
from tests.support.world import World, crash, facts, request_lines, until_idle, until_status
from weft.api.session import Session
from weft.app import App
from weft.errors import SessionBusy, UsageError
from weft.events import (
    ModelCallStarted,
    SystemNote,
    TurnFinished,
    TurnStarted,
    TurnWaiting,
    WaitSubject,
)
from weft.ids import SessionId
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

FILE = {"kind": "file", "place": "out.txt"}


async def started(app: App) -> Session:
    session = await app.sessions.start_session(session_id="ses_waits")
    await session.send_message("hello")
    return session


async def until_woken(session: Session, sleep: HeldSleep) -> None:
    async with anyio.create_task_group() as group:

        async def tick() -> None:
            while True:
                await anyio.wait_all_tasks_blocked()
                sleep.pass_time(11)

        group.start_soon(tick)
        await until_idle(session)
        group.cancel_scope.cancel()


async def left(world: World) -> SessionId:
    """A session that waits for a file, whose process died."""
    app, _ = open_world(world, ScriptedModel(["hi", "never"]))
    await app.__aenter__()
    session = await started(app)
    await session.wait_for(FILE)
    await until_status(session, "waiting")
    await crash(app)
    return session.id


@pytest.mark.requirement("session:wait_for")
async def test_a_turn_begins_asleep_and_the_model_is_told_when_it_is_over(world: World) -> None:
    model = ScriptedModel(["hi", "there it is"])
    app, sleep = open_world(world, model)
    async with app:
        session = await started(app)
        wait = await session.wait_for(WaitSubject(kind="file", place="out.txt"), "+1h")
        assert [each.id for each in await session.waits()] == [wait.id]
        await until_status(session, "waiting")
        for _ in range(5):
            await anyio.wait_all_tasks_blocked()
            sleep.pass_time(11)
        assert len(model.requests) == 1
        (world.project / "out.txt").write_text("done")
        await until_woken(session, sleep)
        assert await woken_by(session) == ["file"]
        assert "out.txt has changed." in "\n".join(request_lines(model.requests[-1]))
        assert [each.reason for each in await facts(session, TurnFinished)] == ["stop", "stop"]
        assert await session.waits() == []


async def test_it_is_woken_once_after_its_process_died(world: World) -> None:
    session_id = await left(world)
    (world.project / "out.txt").write_text("done")
    model = ScriptedModel(["found"])
    app, sleep = open_world(world, model)
    async with app:
        assert await app.host.wake_due() == [session_id]
        session = await app.sessions.get(session_id)
        await until_woken(session, sleep)
        assert await woken_by(session) == ["file"]
        notes = [each.text for each in await facts(session, SystemNote) if each.to_model]
        assert notes[-1:] == ["out.txt has changed."]
        assert (len(model.requests), await app.host.wake_due()) == (1, [])


async def test_a_message_ends_it_and_is_read_in_this_turn(world: World) -> None:
    model = ScriptedModel(["hi", "heard"])
    app, _ = open_world(world, model)
    async with app:
        session = await started(app)
        await session.wait_for(FILE)
        await until_status(session, "waiting")
        await session.send_prompt("never mind")
        await until_idle(session)
        assert await woken_by(session) == ["message"]
        assert "never mind" in "\n".join(request_lines(model.requests[-1]))
        assert len(await facts(session, TurnStarted)) == 2


async def test_it_is_cancelled_and_goes_on_or_is_stopped(world: World) -> None:
    app, _ = open_world(world, ScriptedModel(["hi", "as you like"]))
    async with app:
        session = await started(app)
        wait = await session.wait_for(FILE)
        await until_status(session, "waiting")
        assert await session.cancel_wait(wait.id)
        await until_idle(session)
        assert await woken_by(session) == ["cancelled"]
        await session.wait_for(FILE)
        await until_status(session, "waiting")
        await session.abort()
        await until_idle(session)
        assert [each.reason for each in await facts(session, TurnFinished)][-1] == "aborted"


async def test_a_wait_that_no_process_has_is_cancelled_and_gone_on_with_when_due(
    world: World,
) -> None:
    session_id = await left(world)
    app, sleep = open_world(world, ScriptedModel(["as you like"]))
    async with app:
        session = await app.sessions.get(session_id)
        [wait] = await session.waits()
        assert await session.cancel_wait(wait.id)
        assert await app.host.wake_due() == [session_id]
        await until_woken(session, sleep)
        assert await woken_by(session) == ["cancelled"]


async def test_a_time_and_a_port_are_waited_for(world: World) -> None:
    app, sleep = open_world(world, ScriptedModel(["hi", "later", "up"]))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    async with app:
        session = await started(app)
        await session.wait_for({"kind": "time"}, "+10m")
        await until_woken(session, sleep)
        await session.wait_for({"kind": "port", "place": str(port)})
        await until_status(session, "waiting")
        with socket.create_server(("127.0.0.1", port)):
            await until_woken(session, sleep)
        assert await woken_by(session) == ["time", "port"]
        [first, _] = await facts(session, TurnWaiting)
        assert first.until == first.at + 600


async def test_nothing_is_begun_while_a_turn_runs_or_sleeps(world: World) -> None:
    app, _ = open_world(world, ScriptedModel(["hi", "never"]))
    async with app:
        session = await started(app)
        await session.wait_for(FILE)
        with pytest.raises(SessionBusy):
            await session.wait_for(FILE)


@pytest.mark.parametrize(
    ("on", "until", "said"),
    [
        ({"kind": "time"}, None, "needs `until`"),
        ({"kind": "moon"}, None, "nothing waits for 'moon'"),
        ({"kind": "file"}, None, "say which file"),
        ({"kind": "file", "place": "../x"}, None, "without `..`"),
        ({"kind": "command", "name": "bg_9"}, None, "no background command 'bg_9'"),
        ({"kind": "ci", "place": "77"}, None, "owner/name#RUN"),
        ({"kind": "time"}, "+8d", "7 days at most"),
        ({"place": "x"}, None, "cannot be waited for"),
    ],
)
async def test_what_cannot_be_waited_for_is_said(
    world: World, on: dict[str, str], until: str | None, said: str
) -> None:
    app, _ = open_world(world, ScriptedModel(["hi", "never"]))
    async with app:
        session = await started(app)
        with pytest.raises(UsageError, match=said):
            await session.wait_for(on, until)
        assert (await session.get_status(), len(await facts(session, TurnStarted))) == ("idle", 1)


async def test_a_session_without_a_message_has_nothing_to_go_on_with(world: World) -> None:
    app, _ = open_world(world, ScriptedModel(["never"]))
    async with app:
        session = await app.sessions.start_session()
        with pytest.raises(UsageError, match="send a message first"):
            await session.wait_for(FILE)


async def test_a_rule_about_reading_keeps_a_file_from_being_waited_for(world: World) -> None:
    model, rules = ScriptedModel(["hi"]), {"permissions.deny": ["read(.env)"]}
    async with world.open(model, config=rules) as app:
        session = await started(app)
        with pytest.raises(UsageError, match="may not be waited for"):
            await session.wait_for({"kind": "file", "place": ".env"})


async def test_a_ten_minute_build_costs_no_call_and_no_append(world: World) -> None:
    model = ScriptedModel(["hi", "built"])
    app, sleep = open_world(world, model)
    async with app:
        session = await started(app)
        await session.wait_for({"kind": "file", "place": "dist/*.whl"})
        await until_status(session, "waiting")
        before = len(await facts(session))
        for _ in range(60):
            await anyio.wait_all_tasks_blocked()
            sleep.pass_time(10)
        assert (len(model.requests), len(await facts(session))) == (1, before)
        (world.project / "dist").mkdir()
        (world.project / "dist" / "x.whl").write_text("wheel")
        await until_woken(session, sleep)
        [wait] = await facts(session, TurnWaiting)
        calls = [each for each in await facts(session, ModelCallStarted) if each.seq > wait.seq]
        assert (len(calls), calls[0].at - wait.at >= 600) == (1, True)
