"""Limits of the time and the tool calls of one turn: each ends the turn with a word of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import weft
from tests.support.waiting_turns import TEN_MINUTES, open_world, waiting
from tests.support.world import World, crash, facts, until, until_idle, until_status
from weft.errors import UsageError
from weft.events import (
    ModelCallStarted,
    PermissionRequest,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
)
from weft.providers.script import CallTogether, CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


def shell(command: str) -> CallTool:
    return CallTool(name="shell", args={"command": command})


@pytest.mark.process
@pytest.mark.requirement("reason:max_time")
async def test_a_turn_ends_in_the_middle_of_a_command_when_its_time_is_over(world: World) -> None:
    # The clock of the machine: the shell is a real one.
    async with world.open(ScriptedModel([shell("sleep 600"), "never"])) as app:
        session = await app.sessions.start_session(auto_approve=True)
        reply = await session.send_message("go", max_seconds=0.3)
        assert reply.finish_reason == "max_time"
        [ended] = await facts(session, TurnFinished)
        # Older programs know neither word.
        assert (ended.reason, ended.exact) == ("max_turns", "max_time")
        assert ended.detail == "the limit of 0.3 s for one turn is reached"
        [result] = await facts(session, ToolComplete)
        assert result.result.status == "aborted"


async def test_what_was_said_when_the_time_is_over_is_kept(world: World) -> None:
    model = ScriptedModel([(SayText(text="Half of an ans"), Stall(gate="g")), "The rest."])
    app, sleep = open_world(world, model)
    async with app:
        session = await app.sessions.start_session(max_seconds=60)
        await session.send_prompt("go")
        await model.gate("g").reached.wait()
        sleep.pass_time(61)
        await until(session, TurnFinished)
        assert (await session.messages())[-1].content == "Half of an ans"
        reply = await session.continue_and_wait()
        assert (reply.finish_reason, reply.text) == ("stop", "The rest.")


async def test_time_in_which_a_question_is_open_does_not_count(world: World) -> None:
    model = ScriptedModel([shell("true"), Stall(gate="g")])
    app, sleep = open_world(world, model)
    async with app:
        session = await app.sessions.start_session(max_seconds=60)
        await session.send_prompt("go")
        await until_status(session, "awaiting_permission")
        [asked] = await facts(session, PermissionRequest)
        sleep.pass_time(3600)
        await session.respond_to_permission("deny", request_id=asked.request_id)
        await model.gate("g").reached.wait()
        assert not await facts(session, TurnFinished)
        sleep.pass_time(61)
        [ended] = [await until(session, TurnFinished)]
        assert ended.finish_reason == "max_time"


async def test_time_in_which_a_turn_sleeps_does_not_count(world: World) -> None:
    model = ScriptedModel([TEN_MINUTES, Stall(gate="g")])
    app, sleep = open_world(world, model)
    async with app:
        session = await app.sessions.start_session(session_id="ses_waits", max_seconds=60)
        await waiting(app)
        sleep.pass_time(601)
        await model.gate("g").reached.wait()
        assert not await facts(session, TurnFinished)
        sleep.pass_time(61)
        assert (await until(session, TurnFinished)).finish_reason == "max_time"


async def test_a_program_may_make_so_many_calls_and_still_answer(world: World) -> None:
    ran: list[int] = []
    model = ScriptedModel([_three(), "Done."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(
            tools=[weft.tool(_counter(ran))], auto_approve=True
        )
        reply = await session.send_message("go", max_tool_calls=3)
        assert (reply.finish_reason, reply.text, len(ran)) == ("stop", "Done.", 3)


@pytest.mark.requirement("reason:max_tool_calls")
async def test_a_call_beyond_the_limit_is_not_run_and_ends_the_turn(world: World) -> None:
    ran: list[int] = []
    model = ScriptedModel([_three(), _three(), "Never.", "Again."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(
            tools=[weft.tool(_counter(ran))], auto_approve=True, max_tool_calls=4
        )
        reply = await session.send_message("go")
        assert (reply.finish_reason, len(ran)) == ("max_tool_calls", 4)
        [ended] = await facts(session, TurnFinished)
        assert (ended.reason, ended.exact) == ("max_turns", "max_tool_calls")
        assert ended.detail == "the limit of 4 tool calls in one turn is reached"
        results = [each.result for each in await facts(session, ToolComplete)]
        assert [each.status for each in results[-3:]] == ["done", "aborted", "aborted"]
        assert results[-1].text == "Not run: the limit of 4 tool calls in one turn is reached."
        # What is said next is another turn, with as many calls.
        assert (await session.send_message("go on")).text == "Never."


async def test_calls_before_a_crash_count(world: World) -> None:
    ran: list[int] = []
    one = CallTool(name="count", args={})
    model = ScriptedModel([one, Stall(gate="g")])
    app = world.open(model)
    await app.__aenter__()
    session = await app.sessions.start_session(
        session_id="s", tools=[weft.tool(_counter(ran))], auto_approve=True, max_tool_calls=2
    )
    await session.send_prompt("go")
    await model.gate("g").reached.wait()
    await crash(app)
    async with world.open(ScriptedModel([one, one, "Never."])) as app:
        session = await app.sessions.start_session(
            session_id="s", tools=[weft.tool(_counter(ran))], auto_approve=True
        )
        reply = await session.continue_and_wait()
        assert (reply.finish_reason, len(ran)) == ("max_tool_calls", 2)


async def test_a_structured_result_is_no_call_that_counts(world: World) -> None:
    ran: list[int] = []
    submit = CallTool(name="submit", args={"n": 1})
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    async with world.open(ScriptedModel([CallTool(name="count", args={}), submit])) as app:
        session = await app.sessions.start_session(
            tools=[weft.tool(_counter(ran))], auto_approve=True
        )
        reply = await session.send_message("go", schema=schema, max_tool_calls=1)
        assert (reply.finish_reason, reply.deliverable) == ("submitted", {"n": 1})


async def test_settings_limit_every_turn_of_a_session(world: World) -> None:
    once = CallTool(name="count", args={})
    model = ScriptedModel([once, once, "Never."])
    async with world.open(model, config={"session.max_tool_calls": 1}) as app:
        tools = [weft.tool(_counter([]))]
        session = await app.sessions.start_session(tools=tools, auto_approve=True)
        assert (await session.send_message("go")).finish_reason == "max_tool_calls"
        assert len(await facts(session, ToolExecuting)) == 1


@pytest.mark.parametrize("limit", [{"max_seconds": 0}, {"max_tool_calls": -1}])
async def test_what_can_be_no_limit_is_refused(world: World, limit: dict[str, Any]) -> None:
    async with world.open(ScriptedModel(["Hi."])) as app:
        with pytest.raises(UsageError, match="cannot be a limit"):
            await app.sessions.start_session(**limit)
        session = await app.sessions.start_session()
        with pytest.raises(UsageError, match="cannot be a limit"):
            await session.send_message("go", **limit)
        await until_idle(session)
        assert not await facts(session, ModelCallStarted)


def _three() -> CallTogether:
    one = CallTool(name="count", args={})
    return CallTogether(calls=(one, one, one))


def _counter(ran: list[int]) -> Callable[[], Awaitable[str]]:
    async def count() -> str:
        """Count one up."""
        ran.append(1)
        return f"run {len(ran)}"

    return count
