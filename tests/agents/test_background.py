"""Background agents: they go on beside the turns, and their end comes when it comes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.role_models import agent_call, only_child, role_model
from tests.support.world import (
    World,
    crash,
    facts,
    message_lines,
    request_lines,
    until,
    until_holds,
    until_idle,
    until_queued,
)
from weft.api.session import Session
from weft.app import App
from weft.errors import UsageError
from weft.events import (
    ChildFinished,
    InputQueued,
    PermissionRequest,
    PermissionResolved,
    ToolComplete,
    TurnFinished,
    TurnStarted,
)
from weft.messages import Usage
from weft.providers.script import CallTool, SayText, Spend, Stall

pytestmark = pytest.mark.anyio

WRITE = CallTool(name="write", args={"path": "a.txt", "content": "new\n"})


async def start(app: App, **settings: Any) -> Session:
    return await app.sessions.start_session(session_id="s", **settings)


def beside(prompt: str) -> CallTool:
    return agent_call(prompt, background=True, description="Dig")


async def until_ended(session: Session) -> ChildFinished:
    return await until(session, ChildFinished)


@pytest.mark.requirement("session:background_commands")
async def test_the_call_returns_at_once_and_the_end_steers_the_turn_that_runs(world: World) -> None:
    model = role_model(
        {
            "ask": [beside("dig"), (Stall(gate="p"), CallTool(name="list")), "I saw it."],
            "dig": [(Stall(gate="c"), SayText(text="Gold."))],
        }
    )
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("ask")
        await model.gate("p").reached.wait()
        await model.gate("c").reached.wait()
        child = await only_child(session)
        [complete] = await facts(session, ToolComplete)
        assert f"Started in the background as {child}" in complete.result.text
        [work] = await session.background_commands()
        assert (work.id, work.kind, work.title) == (child, "agent", "Dig")
        model.gate("c").opened.set()
        await until_ended(session)
        model.gate("p").opened.set()
        await until_idle(session)
        assert await session.background_commands() == []
        steered = next(line for line in request_lines(model.last_request) if "Gold." in line)
        assert steered.startswith(f"user: [The background agent {child} (Dig) has ended.]")
        [queued] = await facts(session, InputQueued)
        assert queued.delivery == "steering"
        assert len(await facts(session, TurnStarted)) == 1


async def test_an_end_that_finds_the_session_idle_starts_a_turn(world: World) -> None:
    model = role_model(
        {
            "ask": [beside("dig"), "Go on without me.", "Gold, then."],
            "dig": [(Stall(), Spend(usage=Usage(input_tokens=50)), SayText(text="Gold."))],
        }
    )
    async with world.open(model) as app:
        session = await start(app)
        reply = await session.send_message("ask")
        assert reply.text == "Go on without me."
        assert await session.get_status() == "idle"
        model.gate().opened.set()
        ended = await until_ended(session)
        assert ended.reason == "stop"
        await until(session, TurnFinished, after=ended.seq)
        assert (await message_lines(session))[-1] == "assistant: Gold, then."
        assert len(await facts(session, TurnStarted)) == 2


async def test_after_an_abort_the_end_waits_for_the_user(world: World) -> None:
    roles: dict[str, Any] = {
        "ask": [beside("dig"), Stall(gate="p")],
        "dig": [(Stall(gate="c"), SayText(text="Gold."))],
    }
    model = role_model(roles)
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("ask")
        await model.gate("p").reached.wait()
        await model.gate("c").reached.wait()
        await session.abort()
        roles["ask"] = [beside("dig"), "I know."]
        [work] = await session.background_commands()
        assert work.status == "thinking", "a background agent outlives the turn that was stopped"
        model.gate("c").opened.set()
        await until_ended(session)
        await until_queued(session)
        assert await session.get_status() == "idle"
        await session.send_message("and now?")
        assert any("Gold." in line for line in request_lines(model.last_request))


@pytest.mark.requirement("session:kill_background")
async def test_a_background_agent_can_be_killed(world: World) -> None:
    model = role_model({"ask": [beside("dig"), "Fine."], "dig": [Stall()]})
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("ask")
        await model.gate().reached.wait()
        child = await only_child(session)
        with pytest.raises(UsageError, match="nothing runs in the background"):
            await session.kill_background("s")
        await session.kill_background(child, input_id="k")
        assert (await until_ended(session)).reason == "aborted"
        await session.kill_background(child, input_id="k")
        assert await session.background_commands() == []
        assert await session.get_status() == "idle"
        with pytest.raises(UsageError, match="nothing runs in the background"):
            await session.kill_background(child)


async def test_one_that_a_dead_process_left_can_be_killed_too(world: World) -> None:
    spend = Spend(usage=Usage(input_tokens=50))
    model = role_model(
        {"ask": [beside("dig"), "Fine."], "dig": [(spend, CallTool(name="list")), Stall()]}
    )
    app = await world.open(model).__aenter__()
    session = await start(app)
    await session.send_message("ask")
    await model.gate().reached.wait()
    await crash(app)
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        child = await only_child(session)
        await session.kill_background(child)
        [ended] = await facts(session, ChildFinished)
        assert ended.reason == "aborted"
        assert ended.usage is not None
        assert ended.usage.input_tokens >= 50
        assert await session.background_commands() == []


async def test_its_request_reaches_the_user_and_outlives_the_turn(world: World) -> None:
    model = role_model(
        {
            "ask": [beside("dig"), "Fine.", "Good."],
            "dig": [(Stall(), WRITE), "Written."],
        }
    )
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("ask")
        await model.gate().reached.wait()
        model.gate().opened.set()
        asked = await until(session, PermissionRequest)
        assert (asked.tool_name, asked.outlives_turn) == ("agent ▸ write", True)
        assert await session.get_status() == "idle"
        await session.respond_to_permission("allow_once", request_id=asked.request_id)
        await until_ended(session)
        assert world.read("a.txt") == "new\n"


async def test_a_turn_that_ends_meanwhile_does_not_answer_for_the_user(world: World) -> None:
    model = role_model(
        {
            "ask": [beside("dig"), (Stall(gate="p"), SayText(text="Fine.")), "Good."],
            "dig": [WRITE, "Written."],
        }
    )
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("ask")
        await model.gate("p").reached.wait()
        asked = await until(session, PermissionRequest)
        model.gate("p").opened.set()
        await until(session, TurnFinished)
        [request] = (await session.editor_snapshot()).requests
        assert request.request_id == asked.request_id
        assert await facts(session, PermissionResolved) == []
        await session.respond_to_permission("allow_once", request_id=asked.request_id)
        assert (await until_ended(session)).reason == "stop"


@pytest.mark.parametrize("leave", [crash, App.aclose])
async def test_a_crash_or_a_closing_leaves_it_to_be_gone_on_with_by_the_next_turn(
    world: World, leave: Callable[[App], Awaitable[None]]
) -> None:
    roles: dict[str, Any] = {
        "ask": [beside("dig"), "Fine.", "Gold, then."],
        "dig": [CallTool(name="list"), (Stall(), SayText(text="x"))],
    }
    model = role_model(roles)
    app = await world.open(model).__aenter__()
    session = await start(app)
    await session.send_message("ask")
    await model.gate().reached.wait()
    child = await only_child(session)
    await leave(app)
    roles["dig"] = [CallTool(name="list"), "Gold."]
    roles["ask"] = [beside("dig"), "Fine.", "Hello.", "Gold, then."]
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        assert model.request_count == 4, "opening calls no model"
        [work] = await session.background_commands()
        assert (work.id, work.status) == (child, "interrupted")
        await session.send_prompt("hello")
        ended = await until_ended(session)
        assert (ended.child, ended.text) == (child, "Gold.")
        assert len(await facts(session, ChildFinished)) == 1

        async def has_heard() -> bool:
            return any("Gold." in line for line in await message_lines(session))

        await until_holds(session, has_heard)
        await until_idle(session)
        assert len(await session.children()) == 1


async def test_stopping_the_session_stops_it_and_puts_its_end_on_record(world: World) -> None:
    model = role_model({"ask": [beside("dig"), "Fine."], "dig": [Stall()]})
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("ask")
        await model.gate().reached.wait()
        child = await only_child(session)
        await app.sessions.stop_session("s")
        row = await app.host.row(child)  # type: ignore[arg-type]
        assert row is not None
        assert not row.turn_open
        session = await app.sessions.get("s")
        [ended] = await facts(session, ChildFinished)
        assert ended.reason == "aborted"


async def test_a_session_with_a_background_agent_is_not_unloaded(world: World) -> None:
    model = role_model(
        {"ask": [beside("dig"), "Fine.", "Gold."], "dig": [(Stall(), SayText(text="G"))]}
    )
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("ask")
        await model.gate().reached.wait()
        assert await app.sessions.unload_idle(0) == 0
        model.gate().opened.set()
        ended = await until_ended(session)
        await until(session, TurnFinished, after=ended.seq)
        await until_idle(session)
        assert await app.sessions.unload_idle(0) == 1


async def test_a_definition_may_always_be_for_the_background(world: World) -> None:
    world.write(".weft/agents/mole.md", "---\nbackground: true\n---\nDig.")
    model = role_model(
        {"ask": [agent_call("dig", agent="mole"), "Fine.", "Gold."], "dig": ["Gold."]}
    )
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("ask")
        await until_ended(session)
        [child] = await session.children()
        assert child.background
