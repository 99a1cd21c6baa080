"""Steering and follow-ups: when they reach the model, and what can be done with them before."""

from __future__ import annotations

import anyio
import pytest

import weft
from tests.support.image_samples import PIXEL_DATA
from tests.support.world import (
    World,
    crash,
    facts,
    message_lines,
    request_lines,
    running,
    until_idle,
    until_queued,
    until_status,
)
from weft.api.session import Session
from weft.app import App
from weft.errors import UsageError
from weft.events import TurnStarted
from weft.messages import Image, Text
from weft.providers.script import CallTogether, CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


class Held:
    """A tool that waits in the middle of its work."""

    def __init__(self) -> None:
        self.reached = anyio.Event()
        self.opened = anyio.Event()

    async def hold(self) -> str:
        """Wait until somebody opens."""
        self.reached.set()
        await self.opened.wait()
        return "held"


async def busy(app: App, session_id: str = "s") -> Session:
    """A session whose model stands at the gate called "g"."""
    session = await app.sessions.start_session(session_id=session_id)
    await session.send_prompt("start")
    return session


@pytest.mark.requirement("session:queue_steering")
async def test_steering_reaches_the_model_after_the_running_batch_and_before_its_next_call(
    world: World,
) -> None:
    held = Held()
    model = ScriptedModel(
        [
            CallTogether(calls=(CallTool(name="hold"), CallTool(name="list"))),
            "Stopped looking, as you said.",
        ]
    )
    async with world.open(model) as app:
        session = await app.sessions.start_session(
            tools=[weft.tool(held.hold), "list"], auto_approve=True
        )
        async with running(lambda: session.send_message("look around")):
            await held.reached.wait()
            assert (await session.queue_steering("stop looking")).status == "steering"
            held.opened.set()
    heard = request_lines(model.last_request)
    assert [line.partition(":")[0] for line in heard] == [
        "user",
        "assistant",
        "result",
        "result",
        "user",
    ]
    assert heard[-1] == "user: stop looking"
    assert model.request_count == 2


@pytest.mark.requirement("session:queue_steering")
async def test_steering_that_comes_during_the_last_answer_is_still_delivered(world: World) -> None:
    model = ScriptedModel([(SayText(text="Done."), Stall(gate="g")), "And now that too."])
    async with world.open(model) as app:
        session = await busy(app)
        await model.gate("g").reached.wait()
        await session.queue_steering("and the docs")
        model.gate("g").opened.set()
        await until_idle(session)
        assert await message_lines(session) == [
            "user: start",
            "assistant: Done.",
            "user: and the docs",
            "assistant: And now that too.",
        ]
        assert len(await facts(session, TurnStarted)) == 1


@pytest.mark.requirement("session:queue_follow_up")
async def test_follow_ups_wait_for_the_end_and_each_has_a_turn_of_its_own(world: World) -> None:
    model = ScriptedModel([(Stall(gate="g"), SayText(text="one")), "two", "three"])
    async with world.open(model) as app:
        session = await busy(app)
        await session.queue_follow_up("b")
        await session.queue_follow_up("c")
        model.gate("g").opened.set()
        await until_idle(session)
        assert await message_lines(session) == [
            "user: start",
            "assistant: one",
            "user: b",
            "assistant: two",
            "user: c",
            "assistant: three",
        ]
        assert len(await facts(session, TurnStarted)) == 3
    assert request_lines(model.requests[1])[-1] == "user: b"


@pytest.mark.requirement(
    "session:get_queued_messages",
    "session:edit_queued",
    "session:remove_queued",
    "session:reorder_queue",
)
async def test_the_queue_can_be_looked_at_edited_thinned_and_reordered(world: World) -> None:
    model = ScriptedModel([(Stall(gate="g"), SayText(text="w")), "x", "y"])
    async with world.open(model) as app:
        session = await busy(app)
        a = (await session.queue_follow_up("a")).entry_id
        b = (await session.queue_follow_up("b")).entry_id
        c = (await session.queue_follow_up("c")).entry_id
        assert a
        assert b
        assert c
        await session.edit_queued(a, "a, but better")
        await session.remove_queued(b)
        await session.reorder_queue([c, a])
        _, follow_up = await session.get_queued_messages()
        assert [entry.text for entry in follow_up] == ["c", "a, but better"]
        model.gate("g").opened.set()
        await until_idle(session)
        assert (await message_lines(session))[::2] == [
            "user: start",
            "user: c",
            "user: a, but better",
        ]


@pytest.mark.requirement("session:queue:durable")
async def test_changes_of_the_queue_survive_a_crash(world: World) -> None:
    app = await world.open(ScriptedModel([Stall()])).__aenter__()
    session = await busy(app)
    ids = [(await session.queue_follow_up(word)).entry_id or "" for word in "abc"]
    await session.edit_queued(ids[0], "A")
    await session.remove_queued(ids[1])
    await session.reorder_queue([ids[2]])
    await crash(app)
    async with world.open() as later:
        _, follow_up = await (await later.sessions.get("s")).get_queued_messages()
        assert [entry.text for entry in follow_up] == ["c", "A"]


@pytest.mark.requirement("session:recall_queues")
async def test_recalling_returns_both_queues_and_empties_them(world: World) -> None:
    async with world.open(ScriptedModel([Stall()])) as app:
        session = await busy(app)
        await session.queue_steering("s1")
        await session.queue_steering("s2")
        await session.queue_follow_up("f1")
        steering, follow_up = await session.recall_queues()
        assert [entry.text for entry in steering] == ["s1", "s2"]
        assert [entry.text for entry in follow_up] == ["f1"]
        assert await session.get_queued_messages() == ((), ())
        assert await session.recall_queues() == ((), ())


@pytest.mark.requirement("session:dequeue_steering", "session:clear_queues")
async def test_all_steering_is_taken_back_and_follow_ups_stay(world: World) -> None:
    async with world.open(ScriptedModel([Stall()])) as app:
        session = await busy(app)
        await session.queue_steering("s1")
        await session.queue_steering("s2")
        await session.queue_follow_up("f1")
        taken = await session.dequeue_steering(input_id="i")
        assert [entry.text for entry in taken] == ["s1", "s2"]
        assert await session.dequeue_steering(input_id="i") == taken, "a repeat takes nothing more"
        steering, follow_up = await session.get_queued_messages()
        assert (steering, [entry.text for entry in follow_up]) == ((), ["f1"])
        await session.clear_queues()
        assert await session.get_queued_messages() == ((), ())
        assert await session.dequeue_steering() == ()


async def test_a_queue_entry_that_is_gone_cannot_be_changed(world: World) -> None:
    async with world.open(ScriptedModel([Stall()])) as app:
        session = await busy(app)
        entry = (await session.queue_follow_up("a")).entry_id or ""
        await session.remove_queued(entry)
        for change in (
            session.edit_queued(entry, "b"),
            session.remove_queued(entry),
            session.reorder_queue([entry]),
        ):
            with pytest.raises(UsageError, match="not in the queue"):
                await change


async def test_a_queued_message_cannot_be_edited_to_nothing(world: World) -> None:
    async with world.open(ScriptedModel([Stall()])) as app:
        session = await busy(app)
        entry = (await session.queue_follow_up("a")).entry_id or ""
        for nothing in ("", "  "):
            with pytest.raises(UsageError, match="empty"):
                await session.edit_queued(entry, nothing)
        assert [each.text for each in (await session.get_queued_messages())[1]] == ["a"]


async def test_a_caller_that_waits_for_a_message_that_is_taken_back_is_told(world: World) -> None:
    async with world.open(ScriptedModel([Stall()])) as app:
        session = await busy(app)

        async def wait_for_it() -> None:
            with pytest.raises(UsageError, match="taken back"):
                await session.send_message("later")

        async with running(wait_for_it):
            await until_queued(session)
            await session.recall_queues()


@pytest.mark.requirement("session:combine_queue_entries_to_text")
async def test_entries_are_shown_as_one_text_with_images_named(world: World) -> None:
    async with world.open(ScriptedModel([Stall()])) as app:
        session = await busy(app)
        await session.queue_follow_up("look:")
        picture = Image(media_type="image/png", data=PIXEL_DATA, name="cat.png")
        await session.queue_follow_up((Text(text="at "), picture))
        _, follow_up = await session.get_queued_messages()
        shown = session.combine_queue_entries_to_text(follow_up)
        assert shown == "look:\n\nat [image: cat.png]"


async def test_after_an_abort_follow_ups_wait_for_the_user(world: World) -> None:
    model = ScriptedModel([Stall(), "later", "last"])
    async with world.open(model) as app:
        session = await busy(app)
        await session.queue_follow_up("wait")
        await session.abort()
        assert await session.get_status() == "idle"
        assert [entry.text for entry in (await session.get_queued_messages())[1]] == ["wait"]
        await session.send_message("go on")
        await until_idle(session)
        assert [line for line in await message_lines(session) if line.startswith("user")] == [
            "user: start",
            "user: go on",
            "user: wait",
        ]


async def test_a_message_that_a_caller_waits_for_is_sent_even_after_an_abort(world: World) -> None:
    """Also behind a follow-up that nobody waits for and that stays where it is."""
    model = ScriptedModel([Stall(), "reply to the waiting one", "reply to the other"])
    async with world.open(model) as app:
        session = await busy(app)
        await session.queue_follow_up("nobody waits for this")
        replies: list[str] = []

        async def ask() -> None:
            replies.append((await session.send_message("somebody waits for this")).text)

        async with running(ask):
            await until_queued(session, 2)
            await session.abort()
        assert replies == ["reply to the waiting one"]


@pytest.mark.requirement("session:get_status")
async def test_a_busy_session_says_what_it_is_doing(world: World) -> None:
    held = Held()
    model = ScriptedModel([(Stall(gate="g"), CallTool(name="hold")), "done"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(
            tools=[weft.tool(held.hold)], permission_mode="bypass"
        )
        assert await session.get_status() == "idle"
        await session.send_prompt("go")
        await model.gate("g").reached.wait()
        assert await session.get_status() == "thinking"
        model.gate("g").opened.set()
        await held.reached.wait()
        await until_status(session, "executing_tool")
        held.opened.set()
        await until_idle(session)
