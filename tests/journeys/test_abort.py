"""Abort: everything stops, everything is settled, and what was said so far is kept."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

import weft
from tests.support.idle_loop import all_tasks_blocked
from tests.support.world import (
    PATIENCE,
    World,
    facts,
    message_lines,
    request_lines,
    running,
    until,
    until_idle,
    until_status,
)
from weft.errors import NoPendingRequest, ViewerRefused
from weft.events import (
    PermissionRequest,
    TextDelta,
    ToolComplete,
    ToolOutput,
    TurnFinished,
    UsageRecorded,
)
from weft.providers.script import CallTogether, CallTool, SayText, Stall, Think
from weft.providers.scripted import ScriptedModel
from weft.store import Append, MemoryStore

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("session:abort:partial")
async def test_partial_text_is_kept_and_the_model_sees_it_again(world: World) -> None:
    model = ScriptedModel([(SayText(text="Half of an ans"), Stall(gate="g")), "I see."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_prompt("explain")
        await model.gate("g").reached.wait()
        with anyio.fail_after(PATIENCE):
            receipt = await session.abort("enough")
        assert receipt.turn_id is not None
        assert receipt.surviving == ()
        assert await session.get_status() == "idle"
        [finished] = await facts(session, TurnFinished)
        assert (finished.reason, finished.detail) == ("aborted", "enough")
        history = await session.messages()
        assert (history[-1].content, history[-1].is_partial) == ("Half of an ans", True)
        [used] = await facts(session, UsageRecorded)
        assert used.estimated
    async with world.open(model) as app:
        await (await app.sessions.get("s")).send_message("go on")
    assert request_lines(model.last_request)[:2] == ["user: explain", "assistant: Half of an ans"]
    assert "cut off" in request_lines(model.last_request)[2]
    assert request_lines(model.last_request)[-1] == "user: go on"


@pytest.mark.requirement("fault:empty-nodes")
async def test_an_abort_before_the_first_word_leaves_no_empty_answer(world: World) -> None:
    model = ScriptedModel([(Think(text="hm"), Stall(gate="g")), "fine"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("explain")
        await model.gate("g").reached.wait()
        await session.abort()
        assert await message_lines(session) == ["user: explain"]
        await session.send_message("again")
    assert request_lines(model.last_request) == ["user: explain", "user: again"]


@pytest.mark.process
@pytest.mark.requirement("session:abort:kills")
async def test_the_whole_process_group_of_a_running_command_is_killed(world: World) -> None:
    seconds = f"98765.{os.getpid()}{len(world.kind)}"
    command = f"sleep {seconds} & echo started; wait"
    model = ScriptedModel([CallTool(name="shell", args={"command": command}), "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(auto_approve=True)
        await session.send_prompt("run it")
        await until(session, ToolOutput)
        with anyio.fail_after(PATIENCE):
            while not sleepers(seconds):
                await anyio.lowlevel.checkpoint()
            await session.abort()
        assert sleepers(seconds) == []
        [complete] = await facts(session, ToolComplete)
        assert (complete.result.status, complete.is_error) == ("aborted", True)
        assert "may have taken effect" in complete.result.text
        await session.send_message("next")
    assert request_lines(model.last_request)[2].startswith("result: Stopped while it ran")


def sleepers(seconds: str) -> list[str]:
    """The processes of the whole machine that sleep so long.

    Whichever namespace they were started in.
    """
    wanted = f"sleep\0{seconds}\0".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cmdline").read_bytes() == wanted:
                found.append(process.name)
    return found


@pytest.mark.requirement("fault:escape-trap")
async def test_an_abort_while_a_permission_is_awaited_withdraws_the_request(world: World) -> None:
    model = ScriptedModel([CallTool(name="write", args={"path": "a", "content": "x"}), "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("write it")
        request = await until(session, PermissionRequest)
        await session.abort()
        assert (await session.editor_snapshot()).requests == ()
        with pytest.raises(NoPendingRequest):
            await session.respond_to_permission("allow_once", request_id=request.request_id)
        [complete] = await facts(session, ToolComplete)
        assert complete.result.status == "aborted"
        await session.send_message("next")
    assert not (world.project / "a").exists()


@pytest.mark.requirement("session:abort:receipt")
async def test_aborting_an_idle_session_is_a_receipt_and_nothing_else(world: World) -> None:
    async with world.open(ScriptedModel(["hi"])) as app:
        session = await app.sessions.start_session()
        assert (await session.abort()).turn_id is None
        await session.send_message("hello")
        before = (await session.editor_snapshot()).seq
        assert (await session.abort()).turn_id is None
        assert (await session.editor_snapshot()).seq == before


@pytest.mark.requirement("session:abort:receipt")
async def test_the_receipt_names_the_queued_messages_that_survive(world: World) -> None:
    async with world.open(ScriptedModel([Stall()])) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await session.queue_steering("steer")
        await session.queue_follow_up("later")
        receipt = await session.abort()
        assert [entry.text for entry in receipt.surviving] == ["steer", "later"]
        steering, follow_up = await session.get_queued_messages()
        assert [entry.text for entry in (*steering, *follow_up)] == ["steer", "later"]


@pytest.mark.requirement("reason:aborted")
async def test_a_caller_that_waits_for_the_aborted_turn_gets_its_result(world: World) -> None:
    model = ScriptedModel([(SayText(text="so far"), Stall(gate="g"))])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        results: list[tuple[str, str]] = []

        async def ask() -> None:
            reply = await session.send_message("go")
            results.append((reply.finish_reason, reply.text))

        async with running(ask):
            await model.gate("g").reached.wait()
            await session.abort()
        assert results == [("aborted", "so far")]


async def test_two_aborts_at_once_are_one(world: World) -> None:
    async with world.open(ScriptedModel([Stall()])) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        async with running(session.abort, session.abort):
            pass
        assert len(await facts(session, TurnFinished)) == 1
        assert await session.get_status() == "idle"


@pytest.mark.requirement("session:abort:settles")
async def test_calls_behind_the_running_one_are_settled_as_not_run(world: World) -> None:
    started = anyio.Event()
    ran: list[str] = []

    async def slow() -> None:
        started.set()
        await anyio.sleep_forever()

    async def second() -> None:
        ran.append("second")

    model = ScriptedModel(
        [CallTogether(calls=(CallTool(name="slow"), CallTool(name="second"))), "ok"]
    )
    async with world.open(model) as app:
        session = await app.sessions.start_session(tools=[slow, second], auto_approve=True)
        await session.send_prompt("go")
        await started.wait()
        await session.abort()
        completes = await facts(session, ToolComplete)
        assert [each.result.status for each in completes] == ["aborted", "aborted"]
        assert "Not run" in completes[1].result.text
        await session.send_message("next")
    assert ran == []


class Stubborn:
    """A tool that does not let go when it is cancelled."""

    def __init__(self) -> None:
        self.started = anyio.Event()
        self.let_go = anyio.Event()
        self.ended = anyio.Event()

    async def stubborn(self) -> str:
        self.started.set()
        with anyio.CancelScope(shield=True):
            await self.let_go.wait()
        self.ended.set()
        return "done after all"


@pytest.mark.requirement("session:abort:settles")
@pytest.mark.parametrize("effect", ["unknown", "pure"])
async def test_a_tool_that_ignores_the_abort_is_left_behind_and_its_late_result_refused(
    world: World, effect: str
) -> None:
    tool = Stubborn()
    model = ScriptedModel([(SayText(text="I call it."), CallTool(name="stubborn")), "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(
            tools=[weft.tool(effect=effect)(tool.stubborn)],  # type: ignore[call-overload]
            auto_approve=True,
        )
        await session.send_prompt("go")
        await tool.started.wait()
        with anyio.fail_after(PATIENCE):
            await session.abort()
        assert await session.get_status() == "idle"
        before = await facts(session, ToolComplete, TurnFinished, UsageRecorded)
        tool.let_go.set()
        await tool.ended.wait()
        await session.send_message("next")
        after = await facts(session, ToolComplete, TurnFinished, UsageRecorded)
        assert after[: len(before)] == before
        assert [each.result.status for each in await facts(session, ToolComplete)] == ["aborted"]
    assert request_lines(model.last_request)[:2] == ["user: go", "assistant: I call it."]
    assert len([each for each in before if isinstance(each, UsageRecorded)]) == 1


async def test_what_ended_before_an_overdue_abort_keeps_its_result(world: World) -> None:
    tool, quick_ended = Stubborn(), anyio.Event()

    async def quick() -> str:
        await tool.started.wait()
        quick_ended.set()
        return "found it"

    called = CallTogether(calls=(CallTool(name="stubborn"), CallTool(name="quick")))
    model = ScriptedModel([(SayText(text="I call both."), called), "ok"])
    async with world.open(model) as app:
        tools = [weft.tool(effect="pure")(each) for each in (tool.stubborn, quick)]
        session = await app.sessions.start_session(session_id="s", tools=tools)
        await session.send_prompt("go")
        with anyio.fail_after(PATIENCE):
            await quick_ended.wait()
            await all_tasks_blocked()
            await session.abort()
        results = {
            each.result.text: each.result.status for each in await facts(session, ToolComplete)
        }
        assert results["found it"] == "done"
        assert sorted(results.values()) == ["aborted", "done"]
        assert len(await facts(session, UsageRecorded)) == 1
        tool.let_go.set()
        await tool.ended.wait()
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s", tools=tools)
        await session.send_message("next")
    lines = request_lines(model.last_request)
    assert lines[:2] == ["user: go", "assistant: I call both."]
    assert "result: found it" in lines


class SlowStore(MemoryStore):
    """A store whose disk can be made to stand still."""

    def __init__(self) -> None:
        super().__init__()
        self.moves = anyio.Event()
        self.moves.set()
        self.waits = anyio.Event()

    async def append(self, *appends: Append) -> None:
        self.waits.set()
        await self.moves.wait()
        await super().append(*appends)


async def test_the_work_stops_at_once_even_while_the_disk_stands_still(
    plain_world: World,
) -> None:
    started, stopped = anyio.Event(), anyio.Event()

    async def work() -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()

    store = SlowStore()
    async with plain_world.open(ScriptedModel([CallTool(name="work"), "ok"]), store=store) as app:
        session = await app.sessions.start_session(tools=[work], permission_mode="bypass")
        await session.send_prompt("go")
        await started.wait()
        store.moves, store.waits = anyio.Event(), anyio.Event()
        async with running(lambda: session.add_system_message("something to store")):
            await store.waits.wait()
            async with running(session.abort):
                await stopped.wait()
                assert await session.get_status() != "idle"
                store.moves.set()
        assert await session.get_status() == "idle"
        assert (await session.send_message("next")).text == "ok"


@pytest.mark.requirement("session:wait", "session:stop")
async def test_stopping_aborts_the_turn_and_says_why(world: World) -> None:
    model = ScriptedModel([(SayText(text="half"), Stall(gate="g"))])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_prompt("go")
        await model.gate("g").reached.wait()
        why: list[str] = []

        async def wait() -> None:
            why.append(await session.wait())

        async with running(wait):
            await all_tasks_blocked()
            await session.stop()
        assert why == ["stopped"]
        assert await app.sessions.list_active() == []
        record = await app.sessions.read_session("s")
        assert [message.content for message in record.messages] == ["go", "half"]
        assert not record.row.turn_open


@pytest.mark.requirement("command:cancel")
async def test_cancelling_a_wait_stops_nothing(world: World) -> None:
    model = ScriptedModel([(Stall(gate="g"), SayText(text="done"))])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        with anyio.CancelScope() as impatient:
            async with anyio.create_task_group() as group:
                group.start_soon(session.send_message, "go")
                await model.gate("g").reached.wait()
                impatient.cancel()
        assert await session.get_status() == "thinking"
        model.gate("g").opened.set()
        await until_idle(session)
        assert await message_lines(session) == ["user: go", "assistant: done"]


async def test_a_turn_can_be_aborted_at_any_delta_and_the_next_prompt_works(world: World) -> None:
    model = ScriptedModel([(SayText(text="abcdef", chunk=1), Stall()), "fine"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await until(session, TextDelta)
        await session.abort()
        assert (await session.send_message("again")).text == "fine"
        await until_status(session, "idle")


@pytest.mark.requirement("session:stop_after_step")
async def test_a_turn_stopped_after_a_step_has_run_its_calls_and_goes_on_when_continued(
    world: World,
) -> None:
    call = CallTool(name="write", args={"path": "a.txt", "content": "a"})
    model = ScriptedModel([(call, Stall(gate="g")), "Done."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(auto_approve=True)
        assert not await session.stop_after_step()  # nothing runs
        await session.send_prompt("go")
        await model.gate("g").reached.wait()
        assert await session.stop_after_step()
        model.gate("g").opened.set()
        await until_idle(session)
        finished = await until(session, TurnFinished)
        assert (finished.reason, finished.detail) == (
            "aborted",
            "stopped after a step, as you asked",
        )
        assert world.read("a.txt") == "a"
        assert model.request_count == 1
        assert (await session.continue_and_wait()).text == "Done."


async def test_a_stop_after_a_step_can_be_taken_back_and_is_not_a_viewers(world: World) -> None:
    call = CallTool(name="write", args={"path": "a.txt", "content": "a"})
    model = ScriptedModel([(call, Stall(gate="g")), "Done."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(auto_approve=True)
        viewer = await app.sessions.get(session.id)
        await viewer.attach("viewer")
        await session.send_prompt("go")
        await model.gate("g").reached.wait()
        with pytest.raises(ViewerRefused):
            await viewer.stop_after_step()
        await session.stop_after_step()
        assert await session.stop_after_step(False)
        model.gate("g").opened.set()
        assert (await until(session, TurnFinished)).reason == "stop"
