"""A turn that waits for something that is looked at: a file, a port; or for a background agent."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import anyio
import pytest

from tests.support.role_models import agent_call
from tests.support.waiting_turns import (
    HeldSleep,
    left_waiting,
    open_world,
    result_of,
    waiting,
    woken_by,
)
from tests.support.world import World, facts, request_lines, until, until_idle, until_status
from weft.api.session import Session
from weft.events import ToolComplete, TurnWaiting
from weft.providers import CallResults, ModelRequest
from weft.providers.script import CallTool, SayText, Stall, Step
from weft.providers.scripted import ScriptedModel
from weft.store import LOOKS_READER
from weft.tools.waits.file_look import digest_of, fixed_folder

pytestmark = pytest.mark.anyio


def wait_for(**args: object) -> CallTool:
    return CallTool(name="wait_for", args=dict(args))


async def looked(sleep: HeldSleep, times: int = 2, seconds: float = 11) -> None:
    """Let some looks happen."""
    for _ in range(times):
        await anyio.wait_all_tasks_blocked()
        sleep.pass_time(seconds)


async def until_woken(session: Session, sleep: HeldSleep) -> None:
    """Let time pass until the turn has ended."""
    async with anyio.create_task_group() as group:

        async def tick() -> None:
            while True:
                await looked(sleep, 1)

        group.start_soon(tick)
        await until_idle(session)
        group.cancel_scope.cancel()


@pytest.mark.parametrize("named", ["out.txt", "./out.txt", "*.txt", "new/*/done.txt", "new"])
async def test_a_turn_waits_until_a_file_appears(world: World, named: str) -> None:
    model = ScriptedModel([wait_for(file=named), "there it is"])
    app, sleep = open_world(world, model)
    async with app:
        session = await waiting(app)
        await looked(sleep)
        assert (len(model.requests), await session.get_status()) == (1, "waiting")
        for path in ("out.txt", "new/a/done.txt"):
            (world.project / path).parent.mkdir(parents=True, exist_ok=True)
            (world.project / path).write_text("done")
        await until_woken(session, sleep)
        [wait] = await facts(session, TurnWaiting)
        assert (wait.on.kind, wait.on.place) == ("file", named.removeprefix("./"))
        assert await woken_by(session) == ["file"]
        assert f"{named.removeprefix('./')} has changed." in await result_of(session)


@pytest.mark.parametrize("change", ["write", "remove", "replace"])
async def test_a_file_that_is_there_is_waited_for_until_it_changes(
    world: World, change: str
) -> None:
    file = world.project / "log"
    file.write_text("one")
    app, sleep = open_world(world, ScriptedModel([wait_for(file="log"), "ok"]))
    async with app:
        session = await waiting(app)
        await looked(sleep)
        assert await session.get_status() == "waiting"
        match change:
            case "write":
                file.write_text("three")
            case "remove":
                file.unlink()
            case _:
                other = world.project / "other"
                other.write_text("two")
                os.replace(other, file)
        await until_woken(session, sleep)
        assert await woken_by(session) == ["file"]


async def test_what_changed_while_no_process_looked_is_found_by_the_next_one(world: World) -> None:
    session_id = await left_waiting(world, wait_for(file="out.txt"))
    (world.project / "out.txt").write_text("done")
    app, sleep = open_world(world, ScriptedModel(["found"]))
    async with app:
        assert await app.host.wake_due() == [session_id]
        session = await app.sessions.get(session_id)
        await until_woken(session, sleep)
        assert await woken_by(session) == ["file"]
        assert await app.host.wake_due() == []


async def test_a_process_that_only_sleeps_on_writes_nothing(world: World) -> None:
    session_id = await left_waiting(world, wait_for(port=1))
    app, sleep = open_world(world, ScriptedModel(["never"]))
    async with app:
        assert await app.host.wake_due() == [session_id]
        session = await app.sessions.get(session_id)
        await until_status(session, "waiting")
        before = len(await facts(session))
        await looked(sleep, 5)
        assert len(await facts(session)) == before


async def test_a_turn_waits_until_a_port_is_listened_on(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    app, sleep = open_world(world, ScriptedModel([wait_for(port=port), "up"]))
    async with app:
        session = await waiting(app)
        await looked(sleep)
        assert await session.get_status() == "waiting"
        with socket.create_server(("127.0.0.1", port)):
            await until_woken(session, sleep)
        assert await woken_by(session) == ["port"]
        assert f"Something listens on port {port}." in await result_of(session)


async def test_a_port_that_is_listened_on_is_not_waited_for(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        app, _ = open_world(world, ScriptedModel([wait_for(port=port), "up"]))
        async with app:
            session = await app.sessions.start_session()
            await session.send_message("go")
            assert await facts(session, TurnWaiting) == []
            assert f"Something listens on port {port}." in await result_of(session)


async def test_what_does_not_come_in_time_is_said(world: World) -> None:
    app, sleep = open_world(world, ScriptedModel([wait_for(file="never", seconds=60), "ok"]))
    async with app:
        session = await waiting(app)
        await until_woken(session, sleep)
        assert await woken_by(session) == ["time"]
        assert "never has not changed within 1 minutes" not in await result_of(session)
        assert "never has not changed within 6" in await result_of(session)


async def test_nothing_is_looked_for_longer_than_a_day_unless_it_is_said(world: World) -> None:
    app, _ = open_world(world, ScriptedModel([wait_for(file="never")]))
    async with app:
        session = await waiting(app)
        [wait] = await facts(session, TurnWaiting)
        assert wait.until == wait.at + 24 * 3600


async def test_an_older_program_does_not_open_what_it_could_not_wake(world: World) -> None:
    session_id = await left_waiting(world, wait_for(file="out.txt"))
    app, _ = open_world(world, ScriptedModel(["never"]))
    async with app:
        [row] = [each for each in await app.sessions.list_saved() if each.id == session_id]
        store = app.host.registry.stores.in_use[0]
        [stored] = [each for each in await store.rows() if each.id == session_id]
        assert (row.id, stored.min_reader) == (session_id, LOOKS_READER)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"file": "a", "port": 5}, "one thing at a time"),
        ({"file": "../a"}, "without `..`"),
        ({"port": 70000}, "port"),
        ({"agent": "ses_none"}, "no background agent 'ses_none'; those at work: none"),
        ({}, "`command`, `agent`, `file`, `port`"),
    ],
)
async def test_what_cannot_be_waited_for_is_said(
    world: World, args: dict[str, object], said: str
) -> None:
    app, _ = open_world(world, ScriptedModel([wait_for(**args), "ok"]))
    async with app:
        session = await app.sessions.start_session()
        await session.send_message("go")
        assert said in await result_of(session)
        assert await facts(session, TurnWaiting) == []


async def test_a_rule_about_reading_keeps_a_file_from_being_waited_for(world: World) -> None:
    model = ScriptedModel([wait_for(file=".env"), "ok"])
    async with world.open(model, config={"permissions.deny": ["read(.env)"]}) as app:
        session = await app.sessions.start_session()
        await session.send_message("go")
        assert [each.result.status for each in await facts(session, ToolComplete)] == ["denied"]


async def test_a_call_by_the_name_that_it_had_before_is_answered(world: World) -> None:
    call = CallTool(name="wait", args={"seconds": 600})
    app, sleep = open_world(world, ScriptedModel([call, "ok"]))
    async with app:
        session = await waiting(app)
        await until_woken(session, sleep)
        assert await woken_by(session) == ["time"]


async def test_a_turn_waits_for_a_background_agent(world: World) -> None:
    held = anyio.Event()

    def say(request: ModelRequest) -> Step:
        lines = request_lines(request)
        if "dig" in lines[0]:
            return Stall(gate="digs")
        child = next((word for line in lines for word in line.split() if "ses_" in word), "")
        if not child:
            return agent_call("dig", background=True)
        rounds = sum(isinstance(message, CallResults) for message in request.messages)
        if rounds == 1:
            return wait_for(agent=child.strip("."))
        held.set()
        return SayText(text="read it")

    model = ScriptedModel([], choose=say)
    app, _ = open_world(world, model)
    async with app:
        session = await app.sessions.start_session(auto_approve=True)
        await session.send_prompt("go")
        await until(session, TurnWaiting)
        await until_status(session, "waiting")
        [child] = await session.children()
        await (await app.sessions.get(child.id)).abort()
        await until_idle(session)
        assert held.is_set()
        assert await woken_by(session) == ["agent"]
        assert f"The agent {child.id} has ended (aborted)" in await result_of(session)


def test_a_pattern_is_looked_for_below_its_fixed_folder(tmp_path: Path) -> None:
    assert [fixed_folder(each) for each in ("*.py", "a/b/*.py", "/x/*", "a/**/b", "a/b.py")] == [
        *(".", "a/b", "/x", "a", "a")
    ]
    (tmp_path / "a").mkdir()
    assert digest_of(f"{tmp_path}/a/**/*.py") == ""
    (tmp_path / "a" / "x.py").touch()
    assert digest_of(f"{tmp_path}/a/**/*.py") != ""
