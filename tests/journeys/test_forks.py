"""Forks: one past by reference, two futures."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

import weft
from tests.support.world import World, crash, facts, message_lines, request_lines, until_idle
from weft.errors import SessionNotFound, UsageError
from weft.events import FactBase, NewMessage, SessionCreated, ToolExecuting
from weft.providers.script import CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("manager:fork_session")
async def test_a_fork_shares_the_past_by_reference_and_both_go_on_alone(world: World) -> None:
    model = ScriptedModel(["one", "two", "fork three", "parent three"])
    async with world.open(model) as app:
        parent = await app.sessions.start_session(session_id="p", title="Parent")
        await parent.send_message("a")
        await parent.send_message("b")
        before = await facts(parent, FactBase)
        fork = await app.sessions.fork_session("p")
        assert await fork.messages_with_ids() == await parent.messages_with_ids()
        assert await facts(fork, NewMessage) == []
        [created] = await facts(fork, SessionCreated)
        assert created.seq == 1
        about = await fork.metadata()
        assert (about.title, about.parent_id) == ("Parent (fork)", "p")
        await fork.send_message("c in the fork")
        await parent.send_message("c in the parent")
        assert (await message_lines(fork))[-2:] == ["user: c in the fork", "assistant: fork three"]
        assert (await message_lines(parent))[-2:] == [
            "user: c in the parent",
            "assistant: parent three",
        ]
        assert (await facts(parent, FactBase))[: len(before)] == before
    shared = ["user: a", "assistant: one", "user: b", "assistant: two"]
    assert request_lines(model.requests[2]) == [*shared, "user: c in the fork"]
    assert request_lines(model.requests[3]) == [*shared, "user: c in the parent"]


@pytest.mark.requirement("manager:fork_session")
@pytest.mark.parametrize("by", ["index", "id", "negative"])
async def test_a_fork_ends_at_the_message_it_was_made_at(world: World, by: str) -> None:
    model = ScriptedModel(["one", "two", "again"])
    async with world.open(model) as app:
        parent = await app.sessions.start_session()
        await parent.send_message("a")
        await parent.send_message("b")
        ids = [key for key, _ in await parent.messages_with_ids()]
        places: dict[str, str | int] = {"index": 1, "id": ids[1], "negative": -3}
        at = places[by]
        fork = await app.sessions.fork_session(parent.id, at=at, title="Elsewhere")
        assert await message_lines(fork) == ["user: a", "assistant: one"]
        assert (await fork.metadata()).title == "Elsewhere"
        await fork.send_message("c")
    assert request_lines(model.last_request) == ["user: a", "assistant: one", "user: c"]


@pytest.mark.requirement("manager:delete_session")
async def test_forks_of_forks_survive_reopening_and_deletion_of_their_parents(
    world: World,
) -> None:
    model = ScriptedModel(["one", "two", "three", "four"])
    async with world.open(model) as app:
        parent = await app.sessions.start_session(session_id="p")
        await parent.send_message("a")
        child = await app.sessions.fork_session("p")
        await child.send_message("b")
        grandchild = await app.sessions.fork_session(child.id)
        await grandchild.send_message("c")
        await app.sessions.delete_session("p")
        await app.sessions.delete_session(child.id)
    async with world.open(model) as app:
        assert [row.id for row in await app.sessions.list_saved()] == [grandchild.id]
        for gone in ("p", child.id):
            with pytest.raises(SessionNotFound):
                await app.sessions.get(gone)
        session = await app.sessions.get(grandchild.id)
        await session.send_message("d")
        assert await message_lines(session) == [
            "user: a",
            "assistant: one",
            "user: b",
            "assistant: two",
            "user: c",
            "assistant: three",
            "user: d",
            "assistant: four",
        ]


async def test_a_fork_inherits_files_todos_and_settings_but_no_money_and_no_queue(
    world: World,
) -> None:
    listed = {"todos": [{"text": "think"}]}
    model = ScriptedModel(
        [
            CallTool(name="write", args={"path": "a", "content": "x"}),
            CallTool(name="todo", args=listed),
            "done",
            Stall(gate="g"),
        ]
    )
    async with world.open(model) as app:
        parent = await app.sessions.start_session(permission_mode="accept_edits", thinking="high")
        await parent.send_message("go")
        await parent.send_prompt("wait")
        await model.gate("g").reached.wait()
        await parent.queue_follow_up("queued")
        await app.sessions.archive_session(parent.id)
        fork = await app.sessions.fork_session(parent.id, at=0)
        assert [each.path for each in await fork.touched_files()] == ["a"]
        assert len(await fork.todos()) == 1
        snapshot = await fork.editor_snapshot()
        assert (snapshot.thinking, snapshot.permission_mode) == ("high", "accept_edits")
        assert (snapshot.queue, snapshot.status) == ((), "idle")
        assert (await fork.usage()).total.total_tokens == 0
        assert (await fork.usage()).total.cost_usd == 0
        await fork.add_system_message("hello")
        assert [row.id for row in await app.sessions.list_saved()] == [fork.id]


@pytest.mark.requirement("manager:fork_session:effects")
async def test_a_fork_of_a_running_session_does_not_repeat_what_runs(world: World) -> None:
    """The call that the parent is in the middle of is the parent's: the fork is told that its
    effect is unknown.
    """
    runs = 0
    reached, opened = anyio.Event(), anyio.Event()

    async def act() -> str:
        nonlocal runs
        runs += 1
        reached.set()
        await opened.wait()
        return "acted"

    tool = weft.tool(act)
    model = ScriptedModel([CallTool(name="act"), "fork: I see", "parent: done", "fork: more"])
    async with world.open(model) as app:
        parent = await app.sessions.start_session(tools=[tool], permission_mode="bypass")
        await parent.send_prompt("act")
        await reached.wait()
        fork = await app.sessions.fork_session(parent.id)
        with anyio.fail_after(5):
            await fork.send_message("hello")
        assert runs == 1
        assert await facts(fork, ToolExecuting) == []
        assert "unknown" in request_lines(model.requests[1])[2]
        opened.set()
        await until_idle(parent)
        assert (await message_lines(parent))[-1] == "assistant: parent: done"
        await fork.send_message("and?")
        assert "unknown" in request_lines(model.last_request)[2]
    assert runs == 1


async def test_a_fork_of_a_running_session_that_just_goes_on_repeats_nothing_either(
    world: World,
) -> None:
    runs = 0
    reached = anyio.Event()

    async def act() -> None:
        nonlocal runs
        runs += 1
        reached.set()
        await anyio.sleep_forever()

    model = ScriptedModel([CallTool(name="act"), "fork: going on"])
    async with world.open(model) as app:
        parent = await app.sessions.start_session(tools=[act], permission_mode="bypass")
        await parent.send_prompt("act")
        await reached.wait()
        fork = await app.sessions.fork_session(parent.id)
        with anyio.fail_after(5):
            assert (await fork.continue_and_wait()).text == "fork: going on"
    assert runs == 1


async def test_a_stored_session_can_be_forked_without_starting_it(world: World) -> None:
    model = ScriptedModel(["one", "two"])
    async with world.open(model) as app:
        parent = await app.sessions.start_session(session_id="p")
        await parent.send_message("a")
    async with world.open(model) as app:
        fork = await app.sessions.fork_session("p")
        assert [info.id for info in await app.sessions.list_active()] == [fork.id]
        await fork.send_message("b")
        assert len(await fork.messages()) == 4


async def test_a_fork_survives_a_crash(world: World) -> None:
    model = ScriptedModel(["one", (SayText(text="x"), Stall(gate="g")), "two"])
    app = await world.open(model).__aenter__()
    parent = await app.sessions.start_session(session_id="p")
    await parent.send_message("a")
    fork = await app.sessions.fork_session("p")
    await fork.send_prompt("b")
    await model.gate("g").reached.wait()
    await crash(app)
    async with world.open(model) as app:
        session = await app.sessions.get(fork.id)
        assert await session.get_status() == "interrupted"
        await session.continue_and_wait()
        assert (await message_lines(session))[:3] == ["user: a", "assistant: one", "user: b"]
        assert await message_lines(await app.sessions.get("p")) == ["user: a", "assistant: one"]


async def test_the_id_of_a_deleted_session_whose_past_forks_share_is_not_given_away(
    world: World,
) -> None:
    async with world.open(ScriptedModel(["one", "two"])) as app:
        parent = await app.sessions.start_session(session_id="p")
        await parent.send_message("a")
        fork = await app.sessions.fork_session("p")
        await app.sessions.delete_session("p")
        with pytest.raises(UsageError, match="'p' was deleted, and forks share its past"):
            await app.sessions.start_session(session_id="p")
        assert await message_lines(fork) == ["user: a", "assistant: one"]
        # Nothing was left behind that would keep it from being asked again.
        with pytest.raises(UsageError, match="use another id"):
            await app.sessions.start_session(session_id="p")


async def test_forking_where_nothing_is_says_so(world: World) -> None:
    async with world.open(ScriptedModel(["one"])) as app:
        session = await app.sessions.start_session()
        await session.send_message("a")
        with pytest.raises(SessionNotFound):
            await app.sessions.fork_session("nope")
        with pytest.raises(UsageError, match="no message 7"):
            await app.sessions.fork_session(session.id, at=7)
        with pytest.raises(UsageError, match="no message 'nod_x'"):
            await app.sessions.fork_session(session.id, at="nod_x")
        assert len(await app.sessions.list_saved()) == 1


# --- a conversation that is brought along ----------------------------------------------------


@pytest.mark.requirement("manager:start_session:messages")
async def test_a_conversation_can_be_brought_along(world: World) -> None:
    model = ScriptedModel(["Still 4."])
    brought: list[dict[str, Any]] = [
        {"role": "user", "content": "What is 2+2?"},
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [{"id": "x", "name": "add", "args": {"a": 2, "b": 2}}],
        },
        {"role": "tool", "content": "4", "tool_call_id": "x"},
        {"role": "assistant", "content": "4."},
    ]
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s", messages=brought)
        assert model.request_count == 0
        history = await session.messages()
        assert [(each.role, each.content) for each in history] == [
            (each["role"], each["content"]) for each in brought
        ]
        await session.send_message("And now?")
        other = await app.sessions.start_session(messages=await session.messages())
        assert await message_lines(other) == await message_lines(session)
    assert request_lines(model.last_request) == [
        "user: What is 2+2?",
        "assistant: Let me see.",
        "result: 4",
        "assistant: 4.",
        "user: And now?",
    ]


async def test_an_unanswered_call_that_is_brought_along_is_not_run(world: World) -> None:
    """Nobody here made it; a prompt that comes after it must not set it off."""
    calls = [{"id": "x", "name": "write", "args": {"path": "a", "content": "boo"}}]
    brought: list[dict[str, Any]] = [
        {"role": "user", "content": "write"},
        {"role": "assistant", "content": "", "tool_calls": calls},
    ]
    model = ScriptedModel(["I see."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(messages=brought, permission_mode="bypass")
        await session.send_message("hello")
    assert not (world.project / "a").exists()
    assert "unknown" in request_lines(model.last_request)[-2]
