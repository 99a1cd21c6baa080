"""Two applications on one file: one owns a session, the other drives it through the owner, and
takes over when it goes.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import msgspec
import pytest

from tests.support.buggy_model import BuggyModel
from tests.support.world import (
    World,
    crash,
    facts,
    message_lines,
    request_lines,
    running,
    until,
    until_holds,
    until_idle,
    until_queued,
    until_status,
)
from weft.api.session import Session
from weft.app import App
from weft.errors import NoPendingRequest, SessionBusy, StaleInput, UsageError, WeftError
from weft.events import PermissionRequest, TextDelta, TurnFinished
from weft.providers.script import CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


class Two:
    """A session of one application, held by two."""

    def __init__(self, owner: App, guest: App, here: Session, there: Session) -> None:
        self.owner = owner
        self.guest = guest
        self.here = here
        """The owner's handle."""
        self.there = there
        """The handle of the application that is the guest."""


@asynccontextmanager
async def two(world: World, model: ScriptedModel, **settings: object) -> AsyncGenerator[Two]:
    """Both applications, and one session that the first of them owns."""
    async with world.open(model) as owner, world.open(ScriptedModel([])) as guest:
        here = await owner.sessions.start_session(session_id="s", **settings)  # type: ignore[arg-type]
        there = await guest.sessions.get("s")
        yield Two(owner, guest, here, there)


@pytest.mark.requirement("processes:drive")
async def test_the_guest_talks_to_the_owners_session(shared_world: World) -> None:
    model = ScriptedModel(["one", "two"])
    async with two(shared_world, model) as both:
        with anyio.fail_after(5):
            reply = await both.there.send_message("from there")
            assert (reply.text, reply.finish_reason) == ("one", "stop")
            await both.here.send_message("from here")
        expected = ["user: from there", "assistant: one", "user: from here", "assistant: two"]
        assert await message_lines(both.there) == expected
        assert await message_lines(both.here) == expected
        assert await both.there.messages_with_ids() == await both.here.messages_with_ids()
        # The owner's status comes as a signal, beside the log.
        await until_idle(both.there)
        assert await both.there.metadata() == await both.here.metadata()
        assert await both.there.usage() == await both.here.usage()
        there, here = await both.there.editor_snapshot(), await both.here.editor_snapshot()
        assert msgspec.structs.asdict(there) == msgspec.structs.asdict(here)


@pytest.mark.requirement("processes:drive")
async def test_the_guest_hears_the_owners_live_events(shared_world: World) -> None:
    model = ScriptedModel([(SayText(text="Hello "), Stall(gate="g"), SayText(text="there"))])
    async with two(shared_world, model) as both:
        heard = ""
        async with await both.there.subscribe() as events, running():
            await both.here.send_prompt("hi")
            while heard != "Hello ":
                event = await anext(events)
                if isinstance(event, TextDelta):
                    heard += event.text
            assert (await both.there.editor_snapshot()).draft == "Hello "
            assert await both.there.get_status() == "thinking"
            model.gate("g").opened.set()
            while not isinstance(event := await anext(events), TurnFinished):
                if isinstance(event, TextDelta):
                    heard += event.text
        assert heard == "Hello there"
        await until_idle(both.there)


async def test_the_guest_steers_queues_and_takes_back(shared_world: World) -> None:
    model = ScriptedModel([(Stall(gate="g"), SayText(text="one")), "two"])
    async with two(shared_world, model) as both:
        await both.there.send_prompt("go")
        await model.gate("g").reached.wait()
        assert (await both.there.queue_steering("steer")).status == "steering"
        later = await both.there.queue_follow_up("later")
        assert [entry.text for entry in (await both.there.get_queued_messages())[1]] == ["later"]
        await both.there.edit_queued(later.entry_id or "", "much later")
        steering, follow_up = await both.there.recall_queues()
        assert [entry.text for entry in (*steering, *follow_up)] == ["steer", "much later"]
        with pytest.raises(SessionBusy):
            await both.there.send_message("no", queue=False)
        with pytest.raises(UsageError, match="not in the queue"):
            await both.there.remove_queued(later.entry_id or "")
        model.gate("g").opened.set()
        await until_idle(both.here)


async def test_the_guest_aborts_the_owners_turn(shared_world: World) -> None:
    model = ScriptedModel([(SayText(text="half"), Stall(gate="g"))])
    async with two(shared_world, model) as both:
        await both.here.send_prompt("go")
        await model.gate("g").reached.wait()
        with anyio.fail_after(5):
            receipt = await both.there.abort("from there")
        assert receipt.turn_id is not None
        assert await both.here.get_status() == "idle"
        assert await message_lines(both.there) == ["user: go", "assistant: half"]


async def test_either_may_answer_and_the_first_answer_counts(shared_world: World) -> None:
    call = CallTool(name="write", args={"path": "a", "content": "x"})
    model = ScriptedModel([call, "ok"])
    async with two(shared_world, model) as both:
        await both.here.send_prompt("go")
        request = await until(both.there, PermissionRequest)
        await until_status(both.there, "awaiting_permission")
        assert (await both.there.editor_snapshot()).pending_approval == request
        await both.there.respond_to_permission("allow_once", request_id=request.request_id)
        with pytest.raises(NoPendingRequest):
            await both.here.respond_to_permission("deny", request_id=request.request_id)
        await until_idle(both.here)
        with pytest.raises(NoPendingRequest):
            await both.there.respond_to_permission("allow_once", request_id=request.request_id)
    assert shared_world.read("a") == "x"


async def test_an_input_id_counts_on_both_sides(shared_world: World) -> None:
    model = ScriptedModel(["one"])
    async with two(shared_world, model) as both:
        first = await both.here.send_message("hi", input_id="i")
        assert await both.there.send_message("hi", input_id="i") == first
        with pytest.raises(StaleInput) as caught:
            await both.there.send_message("other", input_id="i")
        assert caught.value.input_id == "i"


async def test_what_the_owner_may_not_do_the_guest_may_not_either(shared_world: World) -> None:
    async with two(shared_world, ScriptedModel(["x"])) as both:
        await both.there.attach("viewer")
        with pytest.raises(UsageError, match="only watches"):
            await both.there.send_message("hi")
        with pytest.raises(UsageError, match="only watches"):
            await both.there.abort()
        await both.there.claim_driver()
        assert (await both.there.send_message("hi")).text == "x"


async def test_both_list_the_session_and_only_its_owner_runs_it(shared_world: World) -> None:
    async with two(shared_world, ScriptedModel(["x"])) as both:
        await both.there.send_message("hi")
        await both.guest.sessions.rename_session("s", "Renamed from there")
        for app in (both.owner, both.guest):
            assert [row.title for row in await app.sessions.list_saved()] == ["Renamed from there"]
        fork = await both.guest.sessions.fork_session("s")
        assert await message_lines(fork) == ["user: hi", "assistant: x"]


@pytest.mark.requirement("processes:take-over")
async def test_the_guest_takes_over_when_the_owner_closes(shared_world: World) -> None:
    world = shared_world
    owner = await world.open(ScriptedModel(["one"])).__aenter__()
    here = await owner.sessions.start_session(session_id="s")
    await here.send_message("a")
    model = ScriptedModel(["two"])
    async with world.open(model) as guest:
        there = await guest.sessions.get("s")
        assert len(await there.messages()) == 2
        await owner.aclose()
        with anyio.fail_after(5):
            reply = await there.send_message("b")
        assert reply.text == "two"
    assert request_lines(model.last_request) == ["user: a", "assistant: one", "user: b"]


@pytest.mark.requirement("processes:take-over")
async def test_the_guest_takes_over_at_once_when_the_owner_dies(shared_world: World) -> None:
    world = shared_world
    dying = ScriptedModel([(SayText(text="half"), Stall(gate="g"))])
    owner = await world.open(dying).__aenter__()
    here = await owner.sessions.start_session(session_id="s")
    model = ScriptedModel(["the rest"])
    async with world.open(model) as guest:
        there = await guest.sessions.get("s")
        await here.send_prompt("a")
        await dying.gate("g").reached.wait()
        await until_status(there, "thinking")
        await crash(owner)
        with anyio.fail_after(5):
            assert (await until_taken_over(there)) == "interrupted"
            reply = await there.continue_and_wait()
        assert reply.text == "the rest"
        assert len(await facts(there, TurnFinished)) == 1


async def until_taken_over(session: Session) -> str:
    """The status, once the handle has noticed that the owner is gone."""
    while True:
        with contextlib.suppress(WeftError):
            if (status := await session.get_status()) == "interrupted":
                return status
        await anyio.lowlevel.checkpoint()


async def test_a_caller_that_waits_for_a_reply_gets_it_although_the_owner_dies(
    shared_world: World,
) -> None:
    """Several times, because the owner's last answer and its end race each other."""
    async with shared_world.open(ScriptedModel(["taken over"] * 5)) as guest:
        for turn in range(5):
            dying = ScriptedModel([Stall(gate="g")])
            owner = await shared_world.open(dying).__aenter__()
            await owner.sessions.start_session(session_id=f"s{turn}")
            there = await guest.sessions.get(f"s{turn}")

            async def ask(session: Session = there) -> None:
                assert (await session.send_message("a")).text == "taken over"

            async with running(ask):
                await dying.gate("g").reached.wait()
                await crash(owner)


async def test_a_message_that_waits_behind_the_owners_turn_gets_its_reply(
    shared_world: World,
) -> None:
    model = ScriptedModel([(Stall(gate="g"), SayText(text="one")), "two"])
    async with two(shared_world, model) as both:
        await both.here.send_prompt("a")
        await model.gate("g").reached.wait()
        replies: list[str] = []

        async def ask() -> None:
            replies.append((await both.there.send_message("b")).text)

        async with running(ask):
            await until_queued(both.here)
            model.gate("g").opened.set()
        assert replies == ["two"]


async def test_sessions_of_both_run_side_by_side_in_one_file(shared_world: World) -> None:
    world = shared_world
    async with (
        world.open(ScriptedModel(["a"] * 20)) as one,
        world.open(ScriptedModel(["b"] * 20)) as other,
    ):
        sessions = [
            await app.sessions.start_session(session_id=f"{name}{i}")
            for i in range(5)
            for name, app in (("one", one), ("other", other))
        ]

        async def talk(session: Session) -> None:
            for _ in range(3):
                await session.send_message("hi")

        async with running(*[lambda s=s: talk(s) for s in sessions]):
            pass
        for session in sessions:
            assert len(await session.messages()) == 6
        assert len(await one.sessions.list_saved()) == 10


async def test_the_guest_sees_its_own_writes(shared_world: World) -> None:
    model = ScriptedModel([Stall(gate="g")])
    async with two(shared_world, model) as both:
        await both.there.send_prompt("a")
        assert await message_lines(both.there) == ["user: a"]
        await both.there.queue_follow_up("b")
        assert len((await both.there.get_queued_messages())[1]) == 1
        await both.there.update_model("scripted:other")
        assert (await both.there.metadata()).model == "scripted:other"

        async def busy() -> bool:
            return await both.there.get_status() == "thinking"

        await until_holds(both.there, busy)


async def test_deleting_what_another_owns_is_refused(shared_world: World) -> None:
    async with two(shared_world, ScriptedModel(["one"])) as both:
        with pytest.raises(WeftError, match="open in process"):
            await both.guest.sessions.delete_session("s")
        assert (await both.here.send_message("hi")).text == "one"
        assert (await both.there.metadata()).message_count == 2


async def test_the_guest_is_told_the_mode_that_is_in_force(shared_world: World) -> None:
    async with shared_world.open(ScriptedModel([])) as first:
        await first.sessions.start_session(session_id="s", permission_mode="bypass")
    async with shared_world.open() as owner, shared_world.open() as guest:
        here = await owner.sessions.get("s")
        there = await guest.sessions.get("s")
        assert (await here.editor_snapshot()).permission_mode == "default"
        assert (await there.editor_snapshot()).permission_mode == "default"
        await there.set_permission_mode("bypass")
        assert (await there.editor_snapshot()).permission_mode == "bypass"
        await here.set_permission_mode("plan")
        await there.add_system_message("whoever asks the owner is told")
        assert (await there.editor_snapshot()).permission_mode == "plan"


async def test_the_guest_is_told_why_a_session_is_down(shared_world: World) -> None:
    async with two(shared_world, BuggyModel(9, [])) as both:
        reply = await both.there.send_message("go")
        assert reply.finish_reason == "halted"
        await until_status(both.there, "error")
        snapshot = await both.there.editor_snapshot()
        assert "crashed too often" in snapshot.error
        assert snapshot.error == (await both.here.editor_snapshot()).error
        await both.there.add_system_message("somebody speaks to it")
        snapshot = await both.there.editor_snapshot()
        assert (snapshot.error, snapshot.status) == ("", "idle")
