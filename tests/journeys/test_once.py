"""Every changing call takes an input id: a repeat changes nothing and answers the same, other
arguments are refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.world import World, crash, facts, until_idle, until_status
from weft.api.session import Session
from weft.errors import StaleInput
from weft.events import TurnFinished
from weft.providers.script import CallTool, Stall
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

Call = Callable[[Session, Any], Awaitable[Any]]


async def first_node(session: Session) -> str:
    return (await session.messages_with_ids())[0][0]


async def pin(session: Session, id: Any) -> None:
    await session.pin(await first_node(session), input_id=id)


async def collapse(session: Session, id: Any) -> bool:
    return await session.toggle_all_tool_collapses(input_id=id)


ONCE: dict[str, tuple[Call, Call]] = {
    "add_system_message": (
        lambda s, i: s.add_system_message("note", input_id=i),
        lambda s, i: s.add_system_message("other", input_id=i),
    ),
    "update_model": (
        lambda s, i: s.update_model("scripted:a", input_id=i),
        lambda s, i: s.update_model("scripted:b", input_id=i),
    ),
    "set_thinking_level": (
        lambda s, i: s.set_thinking_level("high", input_id=i),
        lambda s, i: s.set_thinking_level("low", input_id=i),
    ),
    "set_resume": (
        lambda s, i: s.set_resume("auto", input_id=i),
        lambda s, i: s.set_resume("never", input_id=i),
    ),
    "set_permission_mode": (
        lambda s, i: s.set_permission_mode("plan", input_id=i),
        lambda s, i: s.set_permission_mode("default", input_id=i),
    ),
    "set_budget": (
        lambda s, i: s.set_budget(usd=5, input_id=i),
        lambda s, i: s.set_budget(usd=6, input_id=i),
    ),
    "pin": (pin, lambda s, i: s.add_system_message("x", input_id=i)),
    "branch_at": (
        lambda s, i: s.branch_at(0, "side", input_id=i),
        lambda s, i: s.branch_at(0, "other", input_id=i),
    ),
    "checkpoint": (
        lambda s, i: s.checkpoint("here", input_id=i),
        lambda s, i: s.checkpoint("there", input_id=i),
    ),
    "toggle_all_tool_collapses": (collapse, lambda s, i: s.checkpoint("x", input_id=i)),
    "recall_queues": (
        lambda s, i: s.recall_queues(input_id=i),
        lambda s, i: s.dequeue_steering(input_id=i),
    ),
    "cycle_model": (
        lambda s, i: s.cycle_model(input_id=i),
        lambda s, i: s.cycle_thinking_level(input_id=i),
    ),
    "cycle_thinking_level": (
        lambda s, i: s.cycle_thinking_level(input_id=i),
        lambda s, i: s.cycle_model(input_id=i),
    ),
    "abort": (
        lambda s, i: s.abort("why", input_id=i),
        lambda s, i: s.abort("another reason", input_id=i),
    ),
}


@pytest.mark.requirement("command:input-id")
@pytest.mark.parametrize("name", ONCE)
async def test_a_repeated_change_changes_nothing_and_answers_the_same(
    world: World, name: str
) -> None:
    once, other = ONCE[name]
    rotation = {"model.rotation": ["scripted:script", "scripted/other:high"]}
    async with world.open(ScriptedModel(["hello"]), config=rotation) as app:
        session = await app.sessions.start_session()
        await session.send_message("hi")
        answer = await once(session, "i")
        before = (await session.editor_snapshot()).seq
        assert await once(session, "i") == answer
        with pytest.raises(StaleInput):
            await other(session, "i")
        assert (await session.editor_snapshot()).seq == before


async def test_a_branch_is_brought_over_once_and_summed_up_once(world: World) -> None:
    model = ScriptedModel(["one", "two", "Blue is better."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("a")
        await session.send_message("b")
        left = (await session.messages_with_ids())[-1][0]
        await session.branch_at(0)
        assert await session.summarize_branch(left, input_id="i") == "Blue is better."
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        before = (await session.editor_snapshot()).seq
        assert await session.summarize_branch(left, input_id="i") == "Blue is better."
        with pytest.raises(StaleInput):
            await session.summarize_branch(await first_node(session), input_id="i")
        assert (await session.editor_snapshot()).seq == before
    assert len(model.requests) == 3


async def test_an_abort_that_comes_again_does_not_stop_the_next_turn(world: World) -> None:
    model = ScriptedModel([Stall(gate="a"), Stall(gate="b")])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("one")
        await model.gate("a").reached.wait()
        receipt = await session.abort(input_id="i")
        await session.send_prompt("two")
        await model.gate("b").reached.wait()
        assert await session.abort(input_id="i") == receipt
        assert await session.get_status() == "thinking"
        assert len(await facts(session, TurnFinished)) == 1


@pytest.mark.process
async def test_an_answer_that_comes_again_does_not_answer_the_next_request(world: World) -> None:
    calls = [CallTool(name="shell", args={"command": f"echo {i}"}) for i in range(2)]
    async with world.open(ScriptedModel([*calls, "ok"])) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await until_status(session, "awaiting_permission")
        first = (await session.editor_snapshot()).pending_approval
        await session.respond_to_permission("allow_once", input_id="i")
        while (await session.editor_snapshot()).pending_approval in (first, None):
            await until_status(session, "awaiting_permission")
        await session.respond_to_permission("allow_once", input_id="i")
        assert await session.get_status() == "awaiting_permission"
        await session.respond_to_permission("deny")
        await until_idle(session)


async def test_a_call_through_another_process_is_carried_out_once_too(
    shared_world: World,
) -> None:
    async with shared_world.open(ScriptedModel(["x"])) as owner, shared_world.open() as guest:
        await owner.sessions.start_session(session_id="s")
        session = await guest.sessions.get("s")
        await session.add_system_message("note", input_id="i")
        await session.add_system_message("note", input_id="i")
        assert len(await session.messages()) == 1


def test_every_changing_call_takes_an_input_id() -> None:
    looks = {
        *("attach", "background_commands", "boundary_for", "children", "claim_driver", "detach"),
        *("editor_snapshot", "expand_command", "get_available_models", "get_commands", "wait"),
        *("get_history", "get_mode", "get_provider", "get_queued_messages", "get_status"),
        *("list_branches", "list_commands", "list_skills", "load_session", "messages", "usage"),
        *(
            "line",
            "messages_with_ids",
            "metadata",
            "new_session",
            "nodes",
            "revisions",
            "stop",
            "subscribe",
        ),
        *(
            "compare_files",
            "files_at",
            "open_at",
            "goal",
            "asides",
            "coming_back",
            "differences",
            "receipts",
            "request",
            "bisect",
            "waits",
            "join",
            "list_agents",
            "net_changes",
            "read_file",
            "summarize",
            "todos",
            "touched_files",
        ),
        *("tree", "unsubscribe", "write_files"),
    }
    missing = [
        name
        for name, member in inspect.getmembers(Session, inspect.iscoroutinefunction)
        if not name.startswith("_")
        and name not in looks
        and "input_id" not in inspect.signature(member).parameters
    ]
    assert missing == []


@pytest.mark.parametrize("name", ["abort", "recall_queues"])
async def test_a_command_that_left_no_fact_is_remembered_by_the_next_process(
    world: World, name: str
) -> None:
    once, other = ONCE[name]
    async with world.open(ScriptedModel(["one"])) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("hi")
        answer = await once(session, "i")
    async with world.open(ScriptedModel([Stall(gate="g")])) as app:
        session = await app.sessions.get("s")
        await session.send_prompt("again")
        assert await once(session, "i") == answer
        # Above all a repeated abort stops nothing that was begun since.
        assert await session.get_status() == "thinking"
        with pytest.raises(StaleInput):
            await other(session, "i")


async def test_a_continued_turn_is_continued_once_whatever_process_is_asked(world: World) -> None:
    dying = ScriptedModel([Stall(gate="g")])
    first = await world.open(dying).__aenter__()
    session = await first.sessions.start_session(session_id="s")
    await session.send_prompt("hi")
    await dying.gate("g").reached.wait()
    await crash(first)
    async with world.open(ScriptedModel(["one"])) as app:
        session = await app.sessions.get("s")
        accepted = await session.continue_turn(input_id="i")
        await until_idle(session)
    async with world.open(ScriptedModel([])) as app:
        session = await app.sessions.get("s")
        assert await session.continue_turn(input_id="i") == accepted
        assert await session.get_status() == "idle"
        assert len(await facts(session, TurnFinished)) == 1
