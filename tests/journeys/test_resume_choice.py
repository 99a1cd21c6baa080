"""What goes on after a crash is the user's choice: ask, auto or never."""

from __future__ import annotations

from typing import Final

import anyio
import pytest

from tests.support.waiting_turns import HeldSleep
from tests.support.world import World, crash, facts, until, until_status
from weft.api.session import Session
from weft.app import App
from weft.errors import UsageError
from weft.events import ModelCallStarted, SessionRestarted, ToolExecuting, TurnFinished, TurnParked
from weft.ids import SessionId
from weft.providers.script import CallTool, Stall, Step
from weft.providers.scripted import ScriptedModel
from weft.runtime import due_sessions

pytestmark = [pytest.mark.anyio, pytest.mark.process]

FOREVER: Final = Stall(gate="never")
KILLS: Final = ("call", "effect", "question", "second call")


def answer_of(kill: str) -> list[Step]:
    """What the model says before the kill."""
    match kill:
        case "effect":
            return [CallTool(name="shell", args={"command": "sleep 600"})]
        case "question":
            return [CallTool(name="write", args={"path": "a", "content": "b"})]
        case "second call":
            return [CallTool(name="list", args={}), FOREVER]
        case _:
            return [FOREVER]


async def killed(world: World, kill: str, **options: str) -> str:
    """A session whose process died there."""
    app = world.open(ScriptedModel(answer_of(kill)), clock=world.clock)
    await app.__aenter__()
    session = await app.sessions.start_session(
        session_id="s",
        tools=["shell", "write", "list"],
        auto_approve=kill != "question",
        **options,  # type: ignore[arg-type]
    )
    await session.send_prompt("go")
    if kill == "question":
        await until_status(session, "awaiting_permission")
    elif kill == "effect":
        await until(session, ToolExecuting)
    else:
        seen = await until(session, ModelCallStarted)
        if kill == "second call":
            await until(session, ModelCallStarted, after=seen.seq)
    await crash(app)
    return session.id


async def opened(world: World, *steps: Step) -> App:
    app = world.open(ScriptedModel(list(steps)), clock=world.clock)
    await app.__aenter__()
    return app


@pytest.mark.parametrize("kill", KILLS)
async def test_nothing_goes_on_by_itself_where_the_user_is_to_be_asked(
    world: World, kill: str
) -> None:
    name = await killed(world, kill)
    async with world.open(ScriptedModel(["Done."]), clock=world.clock) as app:
        assert await app.host.wake_due() == []
        session = await app.sessions.get(name)
        assert await session.get_status() == "interrupted"
        offer = await session.coming_back()
        assert (offer.resume, offer.is_interrupted, offer.restarts) == ("ask", True, 0)
        assert not await facts(session, SessionRestarted)
        await session.continue_turn()
        assert len(await facts(session, SessionRestarted)) == 1


@pytest.mark.parametrize("kill", KILLS)
async def test_a_turn_goes_on_by_itself_where_the_user_wants_it(world: World, kill: str) -> None:
    name = await killed(world, kill, resume="auto")
    async with world.open(ScriptedModel(["Done."]), clock=world.clock) as app:
        assert await app.host.wake_due() == [name]
        session = await app.sessions.get(name)
        [restarted] = await facts(session, SessionRestarted)
        if kill == "question":
            await until_status(session, "awaiting_permission")
        else:
            ended = await until(session, TurnFinished)
            assert ended.finish_reason == "stop"
            assert ended.seq > restarted.seq
        # It is at work, or done: nobody is woken for it again.
        assert await app.host.wake_due() == []


@pytest.mark.parametrize("kill", KILLS)
async def test_a_turn_ends_with_the_next_message_where_it_is_never_to_go_on(
    world: World, kill: str
) -> None:
    name = await killed(world, kill, resume="never")
    async with world.open(ScriptedModel(["Done."]), clock=world.clock) as app:
        assert await app.host.wake_due() == []
        session = await app.sessions.get(name)
        with pytest.raises(UsageError, match="never goes on after a crash; send a message"):
            await session.continue_turn()
        reply = await session.send_message("something else")
        assert reply.text == "Done."
        first = (await facts(session, TurnFinished))[0]
        assert first.finish_reason == "halted"


@pytest.mark.requirement("event:TurnParked")
async def test_a_session_that_kills_its_process_is_parked_after_three_restarts(
    world: World,
) -> None:
    name = await killed(world, "call", resume="auto")
    for _ in range(3):
        app = await opened(world, FOREVER)
        assert await app.host.wake_due() == [name]
        await until_call_after_restart(await app.sessions.get(name))
        await crash(app)
    async with world.open(ScriptedModel(["Done."]), clock=world.clock) as app:
        assert await app.host.wake_due() == []
        session = await app.sessions.get(name)
        [parked] = await facts(session, TurnParked)
        assert parked.restarts == 3
        assert parked.detail == (
            "parked: its process ended 4 times within an hour; nothing runs until you continue it"
        )
        offer = await session.coming_back()
        assert offer.parked == parked.detail
        assert await app.host.wake_due() == []
        # The user has looked at it: it goes on, and has all its restarts again.
        await session.continue_turn()
        assert (await until(session, TurnFinished)).finish_reason == "stop"
        assert not (await session.coming_back()).parked


async def until_call_after_restart(session: Session) -> None:
    [*_, last] = await facts(session, SessionRestarted)
    await until(session, ModelCallStarted, after=last.seq)


async def test_restarts_of_more_than_an_hour_ago_do_not_count(world: World) -> None:
    name = await killed(world, "call", resume="auto")
    for _ in range(5):
        app = await opened(world, FOREVER)
        assert await app.host.wake_due() == [name]
        await until_call_after_restart(await app.sessions.get(name))
        await crash(app)
        world.clock.advance(1300.0)


async def test_time_between_two_processes_does_not_count_for_the_limit_of_a_turn(
    world: World,
) -> None:
    sleep = HeldSleep(world.clock)
    app = world.open(ScriptedModel([FOREVER]), clock=world.clock, sleep=sleep)
    await app.__aenter__()
    session = await app.sessions.start_session(session_id="s", max_seconds=60)
    await session.send_prompt("go")
    await until(session, ModelCallStarted)
    await crash(app)
    world.clock.advance(3600.0)
    async with world.open(ScriptedModel(["Done."]), clock=world.clock, sleep=sleep) as app:
        session = await app.sessions.get("s")
        assert (await session.continue_and_wait()).finish_reason == "stop"


@pytest.mark.requirement("session:set_resume")
async def test_what_the_settings_say_holds_for_new_sessions(world: World) -> None:
    async with world.open(ScriptedModel([]), config={"session.resume": "auto"}) as app:
        session = await app.sessions.start_session()
        assert (await session.coming_back()).resume == "auto"
        await session.set_resume("never")
        assert (await session.coming_back()).resume == "never"
        with pytest.raises(UsageError, match="there are ask, auto, never"):
            await session.set_resume("perhaps")


@pytest.mark.requirement("session:coming_back")
async def test_the_price_of_going_on_is_known_before(world: World) -> None:
    name = await killed(world, "second call")
    async with world.open(ScriptedModel(["Done."]), clock=world.clock) as app:
        offer = await (await app.sessions.get(name)).coming_back()
        assert offer.tokens > 0
        assert offer.max_cost_usd is not None
        assert offer.max_cost_usd >= 0.0


async def test_a_turn_at_work_in_another_process_is_left_to_it(world: World) -> None:
    async with world.open(ScriptedModel([FOREVER]), clock=world.clock) as app:
        session = await app.sessions.start_session(session_id="s", resume="auto")
        await session.send_prompt("go")
        await until(session, ModelCallStarted)
        other = await opened(world, FOREVER)
        third = await opened(world, FOREVER)
        for each in (other, third):
            assert await each.host.wake_due() == []
        assert not await facts(session, SessionRestarted)
        await crash(app)
        woken: list[list[SessionId]] = []

        async def wake(each: App) -> None:
            woken.append(await each.host.wake_due())

        async with anyio.create_task_group() as group:
            group.start_soon(wake, other)
            group.start_soon(wake, third)
        # One of them alone.
        assert sorted(woken) == [[], ["s"]]
        for each in (other, third):
            await crash(each)


async def test_turns_at_work_elsewhere_keep_nothing_else_from_being_woken(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due_sessions, "DUE_ROWS", 2)
    async with world.open(ScriptedModel([FOREVER] * 3), clock=world.clock) as app:
        for number in range(3):
            session = await app.sessions.start_session(session_id=f"s{number}", resume="auto")
            await session.send_prompt("go")
            await until(session, ModelCallStarted)
        world.clock.advance(1.0)
        name = await killed(world, "call", resume="auto")
        other = await opened(world, FOREVER)
        looks = [await other.host.wake_due() for _ in range(3)]
        assert [name] in looks
        await crash(other)
