"""Minga: "manages the lifecycle of one AI agent conversation".

Prompt while busy, steer, follow up, recall, abort, continue, branch, switch; approvals; and a
boundary that is set, edited inside, outside and above.  What went wrong there (`seeds.md` 6.4) does
not here: the model's context follows branches and loading, late answers approve nothing, queued
pictures arrive, new files are listed, and boundaries hold.
"""

from __future__ import annotations

import pytest

from tests.support.image_samples import PIXEL_DATA
from tests.support.scripted_stage import ScriptedStage
from tests.support.world import facts, message_lines, request_lines, until, until_idle, until_status
from weft.api.session import Session
from weft.errors import NoPendingRequest, UsageError
from weft.events import (
    Event,
    PermissionRequest,
    QueuesRecalled,
    SessionStatus,
    SystemNote,
    TextDelta,
    ToolComplete,
    TurnFinished,
)
from weft.messages import ChatMessage, Image, Text
from weft.providers.script import Break, CallTogether, CallTool, SayText, Stall

pytestmark = pytest.mark.anyio

SONNET = "anthropic:claude-sonnet-4-6"
PIXEL = Image(media_type="image/png", data=PIXEL_DATA, name="shot.png")


def edit(old: str, new: str) -> CallTool:
    return CallTool(name="edit", args={"path": "lib/a.ex", "old_string": old, "new_string": new})


async def test_the_status_of_a_turn_and_its_text_reach_subscribers(stage: ScriptedStage) -> None:
    """idle → thinking → tool_executing → thinking → idle."""
    stage.plays(
        SONNET,
        CallTool(name="list"),
        (SayText(text="All is "), SayText(text="well.")),
    )
    async with stage.open() as app:
        session = await app.sessions.start_session()
        events = await session.subscribe()
        await session.send_prompt("look")
        seen: list[Event] = []
        async for event in events:
            seen.append(event)
            if isinstance(event, SessionStatus) and event.status == "idle":
                break
        statuses = [event.status for event in seen if isinstance(event, SessionStatus)]
        assert statuses[0] == "thinking"
        assert "executing_tool" in statuses
        assert statuses[-1] == "idle"
        deltas = [event for event in seen if isinstance(event, TextDelta)]
        assert "".join(event.text for event in deltas) == "All is well."
        assert [event.offset for event in deltas] == [0, 7]
        await session.unsubscribe()


async def test_prompting_while_busy_steering_following_up_and_recalling(
    stage: ScriptedStage,
) -> None:
    model = stage.plays(SONNET, (CallTool(name="list"), Stall(gate="g")), "as you wish", "and that")
    async with stage.open() as app:
        session = await app.sessions.start_session()
        assert (await session.send_prompt("go left")).status == "started"
        await model.gate("g").reached.wait()
        assert (await session.send_prompt("no, right")).status == "steering"
        picture = await session.queue_steering([Text(text="like this"), PIXEL])
        assert picture.status == "steering"
        assert (await session.queue_follow_up("then rest")).status == "follow_up"
        steering, follow_up = await session.get_queued_messages()
        assert (len(steering), len(follow_up)) == (2, 1)
        shown = session.combine_queue_entries_to_text([*steering, *follow_up])
        assert shown == "no, right\n\nlike this[image: shot.png]\n\nthen rest"
        model.gate("g").opened.set()
        await until_idle(session)
        assert await session.get_queued_messages() == ((), ())
        # Between the tools and the next model call, pictures too; the follow-up had a turn of its
        # own.
        delivered = [
            part
            for message in model.requests[1].messages
            if isinstance(message, ChatMessage) and message.role == "user"
            for part in message.parts
        ]
        assert [part for part in delivered if isinstance(part, Image)] == [PIXEL]
        assert request_lines(model.requests[1])[-2:] == ["user: no, right", "user: like this"]
        assert (await message_lines(session))[-2:] == ["user: then rest", "assistant: and that"]


async def test_ctrl_c_recalls_what_was_typed_and_aborts(stage: ScriptedStage) -> None:
    model = stage.plays(SONNET, (SayText(text="I begin "), Stall(gate="g")), "I go on")
    async with stage.open() as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await model.gate("g").reached.wait()
        await session.queue_steering("faster")
        await session.queue_follow_up("then stop")
        steering, follow_up = await session.recall_queues()
        assert [entry.text for entry in (*steering, *follow_up)] == ["faster", "then stop"]
        assert await session.get_queued_messages() == ((), ())
        receipt = await session.abort()
        assert receipt.surviving == ()
        assert await session.get_status() == "idle"
        assert [each.reason for each in await facts(session, TurnFinished)] == ["aborted"]
        assert len(await facts(session, QueuesRecalled)) == 1
        # What had been said is kept, on the screen and in the model's context; and it can go on
        # from there.
        assert (await session.continue_and_wait()).text == "I go on"
        assert request_lines(model.last_request)[1] == "assistant: I begin "


async def test_continuing_after_the_stream_broke(stage: ScriptedStage) -> None:
    model = stage.plays(SONNET, (SayText(text="half of it"), Break()), "and the rest")
    async with stage.open() as app:
        session = await app.sessions.start_session()
        reply = await session.send_message("tell me", retries=0)
        assert reply.finish_reason == "provider_error"
        assert (await session.continue_and_wait()).text == "and the rest"
        assert (await message_lines(session))[-2:] == [
            "assistant: half of it",
            "assistant: and the rest",
        ]
    assert "half of it" in str(model.last_request.messages)


async def test_branching_and_switching_change_what_the_model_sees(stage: ScriptedStage) -> None:
    model = stage.plays(SONNET, "one", "two", "other", "again")
    async with stage.open() as app:
        session = await app.sessions.start_session()
        await session.send_message("first")
        await session.send_message("second")
        ids = [key for key, _ in await session.messages_with_ids()]
        branch = await session.branch_at(1)
        assert [key for key, _ in await session.messages_with_ids()] == ids[:2]
        await session.send_message("elsewhere")
        assert request_lines(model.last_request) == [
            "user: first",
            "assistant: one",
            "user: elsewhere",
        ]
        assert [each.name for each in await session.list_branches()] == ["main", branch.name]
        await session.switch_branch("main")
        assert [key for key, _ in await session.messages_with_ids()] == ids
        await session.send_message("third")
        assert request_lines(model.last_request)[2:] == [
            "user: second",
            "assistant: two",
            "user: third",
        ]
        await session.switch_branch(1)
        assert (await message_lines(session))[-1] == "assistant: other"
        with pytest.raises(UsageError):
            await session.branch_at(99)


async def test_approving_rejecting_and_approving_all(stage: ScriptedStage) -> None:
    write = CallTool(name="write", args={"path": "a.txt", "content": "x"})
    stage.plays(SONNET, write, "one", write, "two", write, "three", write, "four")
    async with stage.open() as app:
        session = await app.sessions.start_session()
        with pytest.raises(NoPendingRequest):
            await session.respond_to_approval("approve")
        await session.send_prompt("write")
        await until_status(session, "awaiting_permission")
        snapshot = await session.editor_snapshot()
        assert snapshot.pending_approval is not None
        assert snapshot.pending_approval.tool_name == "write"
        await session.respond_to_approval("reject")
        await until_idle(session)
        assert not (stage.world.project / "a.txt").exists()
        for decision in ("approve", "approve_all"):
            await session.send_prompt("write")
            await until_status(session, "awaiting_permission")
            await session.respond_to_approval(decision)
            await until_idle(session)
        assert (await session.send_message("write")).text == "four"
        assert len(await facts(session, PermissionRequest)) == 3


async def test_a_late_answer_approves_nothing(stage: ScriptedStage) -> None:
    """There, an answer to a card that had timed out approved the next request unseen."""
    shell = CallTool(name="shell", args={"command": "touch made"})
    stage.plays(SONNET, shell, shell, "done")
    async with stage.open() as app:
        session = await app.sessions.start_session()
        await session.send_prompt("one")
        first = await until(session, PermissionRequest)
        await session.abort()
        await session.send_prompt("two")
        await until_status(session, "awaiting_permission")
        with pytest.raises(NoPendingRequest):
            await session.respond_to_permission("allow_once", request_id=first.request_id)
        assert await session.get_status() == "awaiting_permission"
        await session.respond_to_approval("reject")
        await until_idle(session)
    assert not (stage.world.project / "made").exists()


CODE = "defmodule A do\n  def one, do: 1\n  def two, do: 2\n  def three, do: 3\nend\n"


async def test_a_boundary_is_set_and_edited_inside_outside_and_above(stage: ScriptedStage) -> None:
    """Lines count from 0, both ends belong to it.

    The range follows what happens in it and above it.
    """
    stage.world.write("lib/a.ex", CODE)
    stage.plays(
        SONNET,
        CallTool(name="read", args={"path": "lib/a.ex"}),
        edit("  def two, do: 2\n", "  def two, do: 2\n  def more, do: 2.5\n"),
        edit("def three, do: 3", "def three, do: 33"),
        edit("def one, do: 1", "def one, do: 11"),
        "done",
        edit("def more, do: 2.5", "def more, do: 2.6"),
        "done",
    )
    async with stage.open() as app:
        session = await app.sessions.start_session(permission_mode="accept_edits")
        assert await session.boundary_for("lib/a.ex") is None
        with pytest.raises(UsageError):
            await session.set_boundary("lib/a.ex", 3, 2)
        await session.set_boundary("lib/a.ex", 2, 2)
        await session.send_message("improve it")
        _, inside, below, above = [
            message for message in await session.messages() if message.role == "tool"
        ]
        assert not inside.is_error
        assert below.is_error
        assert above.is_error
        assert "only lines 3 to 4" in below.content
        assert stage.world.read("lib/a.ex") == CODE.replace("2\n", "2\n  def more, do: 2.5\n")
        assert await boundary(session) == (2, 3)
        stage.world.write("lib/a.ex", "# by hand\n" + stage.world.read("lib/a.ex"))
        await session.send_message("improve it more")
        assert await boundary(session) == (3, 4)
        assert "def more, do: 2.6" in stage.world.read("lib/a.ex")
        await session.clear_boundary("lib/a.ex")
        assert await session.boundary_for("lib/a.ex") is None
        await session.set_boundary("lib/a.ex", 0, 0)
        await session.clear_all_boundaries()
        assert await session.boundary_for("lib/a.ex") is None


async def boundary(session: Session) -> tuple[int, int] | None:
    found = await session.boundary_for("lib/a.ex")
    return None if found is None else (found.first, found.last)


@pytest.mark.process
async def test_what_an_editor_reads_to_draw_itself(stage: ScriptedStage) -> None:
    calls = CallTogether(
        calls=(
            CallTool(name="write", args={"path": "new.txt", "content": "x"}),
            CallTool(name="shell", args={"command": "echo y > made.txt"}),
        )
    )
    stage.plays(SONNET, calls, "Written.")
    async with stage.open() as app:
        session = await app.sessions.start_session(auto_approve=True)
        await session.send_message("write something\nplease")
        metadata = await session.metadata()
        assert (metadata.turn_count, metadata.provider, metadata.status) == (1, "anthropic", "idle")
        assert metadata.first_prompt.startswith("write something")
        assert {(file.path, file.action) for file in await session.touched_files()} >= {
            ("new.txt", "created")
        }
        usage = await session.usage()
        assert usage.total.input_tokens == 200, "every call of the turn is counted"
        answer = next(key for key, m in await session.messages_with_ids() if m.tool_calls)
        assert await session.toggle_tool_collapse(answer) is False
        await session.toggle_all_tool_collapses()
        await session.add_system_message("by the way", level="info")
        assert (await facts(session, SystemNote))[-1].text == "by the way"
        assert (await session.editor_snapshot()).status == "idle"
        assert len(await facts(session, ToolComplete)) == 2


async def test_models_thinking_levels_and_the_rotation(stage: ScriptedStage) -> None:
    stage.plays(SONNET, "a")
    stage.plays("openai:gpt-5", "b")
    config = {"model.rotation": [SONNET, "openai:gpt-5:high"]}
    async with stage.open(config) as app:
        session = await app.sessions.start_session()
        await session.send_message("one")
        assert await session.cycle_model() == "openai:gpt-5"
        assert (await session.editor_snapshot()).thinking == "high"
        assert await session.cycle_thinking_level() == "xhigh"
        await session.set_thinking_level("low")
        assert (await session.send_message("two")).model == "openai:gpt-5"
        assert len(await session.messages()) == 4
        await session.set_model(SONNET)
        assert await session.get_provider() == "anthropic"
        names = {f"{each.provider}:{each.name}" for each in await session.get_available_models()}
        assert {SONNET, "openai:gpt-5"} <= names


async def test_loading_another_session_shows_the_model_what_the_user_sees(
    stage: ScriptedStage,
) -> None:
    """There, a loaded session was for display only, or was put behind the old context."""
    model = stage.plays(SONNET, "Hello Ann.", "Hello Bob.", "You are Ann.")
    async with stage.open() as app:
        ann = await app.sessions.start_session()
        await ann.send_message("I am Ann.")
        bob = await ann.new_session()
        assert await bob.messages() == []
        await bob.send_message("I am Bob.")
        again = await bob.load_session(ann.id)
        assert again.id == ann.id
        await again.send_message("Who am I?")
    assert request_lines(model.last_request) == [
        "user: I am Ann.",
        "assistant: Hello Ann.",
        "user: Who am I?",
    ]


async def test_compacting_and_the_summary_for_a_later_session(stage: ScriptedStage) -> None:
    model = stage.plays(SONNET, "one", "They spoke.", "# Handover\n## Decisions\nnone", "two")
    async with stage.open() as app:
        session = await app.sessions.start_session()
        await session.send_message("first")
        report = await session.compact()
        assert report.summary == "They spoke."
        text, path = await session.summarize()
        assert text.startswith("# Handover")
        assert session.id in path
        await session.send_message("second")
    assert "They spoke." in request_lines(model.last_request)[0]
    assert request_lines(model.last_request)[-1] == "user: second"
