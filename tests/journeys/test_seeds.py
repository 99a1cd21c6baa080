"""Faults that other systems have: none of them may be ours.

What the other journeys do not show is shown here.
"""

from __future__ import annotations

import pytest

import weft
from tests.support.world import World, crash, facts, message_lines, request_lines, running
from weft.context import load_prefix
from weft.events import ModelCallStarted, NewMessage
from weft.messages import Text, Thinking, ToolCall
from weft.providers import CallResults, ChatMessage
from weft.providers.script import CallTogether, CallTool, SayText, Stall, Think
from weft.providers.scripted import ScriptedModel
from weft.store import Append, MemoryStore

pytestmark = pytest.mark.anyio

WORK = (
    Think(text="let me think", signature="sig"),
    SayText(text="I look."),
    CallTogether(
        calls=(
            CallTool(name="read", args={"path": "a.txt"}, id="v1"),
            CallTool(name="read", args={"path": "missing"}, id="v2"),
        )
    ),
)


@pytest.mark.requirement("fault:phantom-context")
@pytest.mark.parametrize("leave", ["close", "crash"])
async def test_the_model_sees_after_reopening_what_it_saw_before(world: World, leave: str) -> None:
    """Calls, results, reasoning with its proof, vendors' ids: everything, in the same order."""
    world.write("a.txt", "text")
    model = ScriptedModel([WORK, "Done.", "Again."])
    app = await world.open(model).__aenter__()
    session = await app.sessions.start_session(session_id="s")
    await session.send_message("look")
    await (crash(app) if leave == "crash" else app.aclose())
    async with world.open(model) as app:
        await (await app.sessions.get("s")).send_message("and now?")
    before, after = model.requests[1], model.requests[2]
    assert after.messages[: len(before.messages)] == before.messages
    assert request_lines(after)[len(request_lines(before)) :] == [
        "assistant: Done.",
        "user: and now?",
    ]
    assert (after.system, after.tools) == (before.system, before.tools)
    # Behind the user's message stands the note on the environment.
    answer = before.messages[2]
    assert isinstance(answer, ChatMessage)
    assert [type(part) for part in answer.parts] == [Thinking, Text, ToolCall, ToolCall]
    results = before.messages[3]
    assert isinstance(results, CallResults)
    assert [result.provider_id for result in results.results] == ["v1", "v2"]


@pytest.mark.requirement("fault:instructions-again")
async def test_instructions_are_told_once_however_many_turns_there_are(world: World) -> None:
    world.write("AGENTS.md", "Always whistle.\n")
    model = ScriptedModel(["one", "two", "three"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("a")
        await session.send_message("b")
    async with world.open(model) as app:
        await (await app.sessions.get("s")).send_message("c")
    for request in model.requests:
        assert request.system.count("Always whistle.") == 1
        assert "whistle" not in repr(request.messages)


@pytest.mark.requirement("fault:delta-is-a-write")
async def test_a_stream_of_many_pieces_is_stored_as_one_message(world: World) -> None:
    counts: list[int] = []
    for chunk in (0, 1):
        model = ScriptedModel([SayText(text="x" * 2_000, chunk=chunk)])
        async with world.open(model) as app:
            session = await app.sessions.start_session()
            await session.send_message("go")
            counts.append((await session.editor_snapshot()).seq)
            assert len(await facts(session, NewMessage)) == 2
    assert counts[0] == counts[1]


class Counting(MemoryStore):
    """A store that counts its appends."""

    def __init__(self) -> None:
        super().__init__()
        self.appends = 0

    async def append(self, *appends: Append) -> None:
        self.appends += 1
        await super().append(*appends)


@pytest.mark.requirement("turn:one-append-a-step")
@pytest.mark.parametrize(("effect", "most"), [("pure", 1), ("unknown", 2)])
async def test_a_tool_round_costs_at_most_two_appends(
    plain_world: World, effect: str, most: int
) -> None:
    rounds = 20
    done = 0

    async def step() -> int:
        nonlocal done
        done += 1
        return done

    tool = weft.tool(effect=effect)(step)  # type: ignore[call-overload]
    store = Counting()
    model = ScriptedModel([*[CallTool(name="step")] * rounds, "Done."])
    async with plain_world.open(model, store=store) as app:
        session = await app.sessions.start_session(tools=[tool], permission_mode="bypass")
        before = store.appends
        await session.send_message("go")
        # One more to start the turn, and one to end it.
        assert store.appends - before <= most * rounds + 2
    assert done == rounds


@pytest.mark.requirement("fault:deaf-while-working")
async def test_a_working_session_answers_every_question_at_once(world: World) -> None:
    model = ScriptedModel([(SayText(text="half"), Stall(gate="g"))])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await model.gate("g").reached.wait()
        async with running():
            assert await session.get_status() == "thinking"
            assert await message_lines(session) == ["user: go"]
            assert (await session.metadata()).message_count == 1
            assert (await session.editor_snapshot()).draft == "half"
            assert await session.touched_files() == []
            await session.usage()
            await session.add_system_message("note")
            assert len(await app.sessions.list_active()) == 1
            assert len((await app.sessions.read_session(session.id)).messages) == 2


@pytest.mark.requirement("fault:order-by-clock")
async def test_order_does_not_come_from_the_clock(world: World) -> None:
    """The clock stands still, then jumps back an hour: history stays in order, and so does what the
    model sees.
    """
    model = ScriptedModel(["one", "two", "three"])
    async with world.open(model, clock=world.clock) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("a")
        world.clock.advance(-3600)
        await session.send_message("b")
    async with world.open(model, clock=world.clock) as app:
        session = await app.sessions.get("s")
        world.clock.advance(7200)
        await session.send_message("c")
        assert [line[-1] for line in (await message_lines(session))[::2]] == ["a", "b", "c"]
    assert [line for line in request_lines(model.last_request) if line.startswith("user")] == [
        "user: a",
        "user: b",
        "user: c",
    ]


@pytest.mark.requirement("turn:request-can-be-rebuilt")
async def test_every_model_call_names_the_prefix_it_was_sent_with(world: World) -> None:
    model = ScriptedModel(["one", "two"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("a")
        await session.send_message("b", tools=["read"])
        first, second = await facts(session, ModelCallStarted)
        assert first.prefix is not None
        assert second.prefix is not None
        assert first.prefix != second.prefix
        for call, request in zip((first, second), model.requests, strict=True):
            assert call.prefix is not None
            data = await app.store.blob(call.prefix)
            assert data is not None
            kept = load_prefix(data)
            assert kept.system == request.system
            assert [tool.name for tool in kept.tools] == [tool.name for tool in request.tools]
