"""Sending messages: prompts are durable before they are acknowledged, and no input is
taken twice.
"""

from __future__ import annotations

import pytest

from tests.support.world import (
    World,
    crash,
    facts,
    message_lines,
    request_lines,
    running,
    until,
    until_idle,
    until_queued,
)
from weft.errors import SessionBusy, StaleInput, UsageError
from weft.events import TurnFinished, TurnStarted
from weft.providers.script import CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("result:fields", "reason:stop", "session:send_message")
async def test_a_message_gets_the_reply_of_its_turn(world: World) -> None:
    world.write("notes.txt", "the answer is 42\n")
    model = ScriptedModel([CallTool(name="read", args={"path": "notes.txt"}), "It says 42."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(title="Notes")
        reply = await session.send_message("What does notes.txt say?")
        assert (reply.text, reply.finish_reason, reply.session_id) == (
            "It says 42.",
            "stop",
            session.id,
        )
        assert (reply.iterations, reply.tool_calls_made, reply.model) == (2, 1, "scripted:script")
        assert reply.usage.input_tokens == 200
        assert reply.cost_usd is not None
        assert reply.cost_usd > 0
        assert [message.role for message in reply.messages] == [
            "user",
            "assistant",
            "tool",
            "assistant",
        ]
        assert "the answer is 42" in reply.messages[2].content
        assert session.session_id() == session.id


async def test_the_second_message_is_asked_with_the_first_in_context(world: World) -> None:
    model = ScriptedModel(["Hello Ann.", "You are Ann."])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("I am Ann.")
        await session.send_message("Who am I?")
    assert request_lines(model.last_request) == [
        "user: I am Ann.",
        "assistant: Hello Ann.",
        "user: Who am I?",
    ]


@pytest.mark.requirement("session:send_prompt")
async def test_a_prompt_is_durable_before_it_is_acknowledged(world: World) -> None:
    app = await world.open(ScriptedModel([Stall()])).__aenter__()
    session = await app.sessions.start_session(session_id="s")
    accepted = await session.send_prompt("Do not forget this.")
    assert accepted.status == "started"
    await crash(app)
    async with world.open() as later:
        assert await message_lines(await later.sessions.get("s")) == ["user: Do not forget this."]


@pytest.mark.requirement("session:queue:durable")
async def test_steering_and_follow_ups_are_durable_before_they_are_acknowledged(
    world: World,
) -> None:
    app = await world.open(ScriptedModel([Stall()])).__aenter__()
    session = await app.sessions.start_session(session_id="s")
    await session.send_prompt("start")
    steering = await session.send_prompt("steer")
    follow_up = await session.queue_follow_up("then this")
    assert (steering.status, follow_up.status) == ("steering", "follow_up")
    await crash(app)
    async with world.open() as later:
        queued = await (await later.sessions.get("s")).get_queued_messages()
        assert [entry.text for entry in queued[0]] == ["steer"]
        assert [entry.text for entry in queued[1]] == ["then this"]


@pytest.mark.requirement("session:queue:idle")
async def test_queueing_on_an_idle_session_starts_a_turn(world: World) -> None:
    async with world.open(ScriptedModel(["one", "two"])) as app:
        session = await app.sessions.start_session()
        assert (await session.queue_steering("a")).status == "started"
        await until(session, TurnFinished)
        await until_idle(session)
        assert (await session.queue_follow_up("b")).status == "started"
        await until_idle(session)
        assert await message_lines(session) == [
            "user: a",
            "assistant: one",
            "user: b",
            "assistant: two",
        ]


@pytest.mark.requirement("command:input-id")
async def test_a_repeated_input_id_repeats_nothing_and_answers_the_same(world: World) -> None:
    model = ScriptedModel(["Done."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        first = await session.send_prompt("Do it.", input_id="i1")
        await until_idle(session)
        assert await session.send_prompt("Do it.", input_id="i1") == first
        assert await message_lines(session) == ["user: Do it.", "assistant: Done."]
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        assert await session.send_prompt("Do it.", input_id="i1") == first
        assert await message_lines(session) == ["user: Do it.", "assistant: Done."]
    assert model.request_count == 1


async def test_a_repeated_message_gets_the_same_reply_even_after_reopening(world: World) -> None:
    model = ScriptedModel(["Done."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        first = await session.send_message("Do it.", input_id="i1")
        assert await session.send_message("Do it.", input_id="i1") == first
    async with world.open(model) as app:
        again = await (await app.sessions.get("s")).send_message("Do it.", input_id="i1")
        assert again == first
    assert model.request_count == 1


@pytest.mark.requirement("command:input-id")
async def test_an_input_id_with_other_content_is_refused(world: World) -> None:
    async with world.open(ScriptedModel(["Done."])) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("Do it.", input_id="i1")
        with pytest.raises(StaleInput) as caught:
            await session.send_message("Do something else.", input_id="i1")
        assert caught.value.input_id == "i1"
        with pytest.raises(StaleInput):
            await session.queue_follow_up("Do it.", input_id="i1")
    async with world.open() as app:
        session = await app.sessions.get("s")
        with pytest.raises(StaleInput):
            await session.send_prompt("Do something else.", input_id="i1")
        assert len(await facts(session, TurnStarted)) == 1


@pytest.mark.requirement("session:send_message")
async def test_a_busy_session_queues_a_message_and_the_call_returns_its_own_reply(
    world: World,
) -> None:
    model = ScriptedModel([(SayText(text="first "), Stall(gate="g"), SayText(text="reply")), "2nd"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        replies: list[str] = []

        async def ask(content: str) -> None:
            replies.append((await session.send_message(content)).text)

        async with running(lambda: ask("one")):
            await model.gate("g").reached.wait()
            async with running(lambda: ask("two")):
                await until_queued(session)
                model.gate("g").opened.set()
        assert replies == ["first reply", "2nd"]


@pytest.mark.requirement("session:send_message:busy")
async def test_a_message_that_must_not_wait_is_refused_while_busy(world: World) -> None:
    model = ScriptedModel([Stall(gate="g")])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("one")
        with pytest.raises(SessionBusy, match="in the middle of a turn"):
            await session.send_message("two", queue=False)
        assert await session.get_queued_messages() == ((), ())


@pytest.mark.parametrize("content", ["", "   \n", ()])
async def test_an_empty_message_is_refused_and_stores_nothing(world: World, content: str) -> None:
    async with world.open(ScriptedModel(["never"])) as app:
        session = await app.sessions.start_session()
        with pytest.raises(UsageError, match="empty"):
            await session.send_message(content)
        assert await session.get_status() == "idle"
        assert await session.messages() == []
