"""Looking at a session: history, ids, usage, metadata."""

from __future__ import annotations

import pytest

from tests.support.world import World, facts, message_lines, request_lines
from weft.events import NewMessage, NodeMarked, SettingChanged, SystemNote
from weft.messages import Usage
from weft.providers import ModelInfo
from weft.providers.script import CallTogether, CallTool, SayText, Spend
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("session:messages", "session:get_history")
async def test_history_has_calls_with_their_results_right_behind(world: World) -> None:
    world.write("a", "text of a")
    calls = CallTogether(
        calls=(
            CallTool(name="read", args={"path": "missing"}),
            CallTool(name="read", args={"path": "a"}),
        )
    )
    async with world.open(ScriptedModel([(SayText(text="Look:"), calls), "Done."])) as app:
        session = await app.sessions.start_session()
        await session.send_message("go")
        user, answer, first, second, last = await session.messages()
        assert await session.get_history() == [user, answer, first, second, last]
        assert (user.role, answer.role, last.role) == ("user", "assistant", "assistant")
        assert [call["name"] for call in answer.tool_calls] == ["read", "read"]
        assert [call["args"]["path"] for call in answer.tool_calls] == ["missing", "a"]
        ids = [call["id"] for call in answer.tool_calls]
        assert [first.tool_call_id, second.tool_call_id] == ids
        assert (first.role, first.is_error) == ("tool", True)
        assert "text of a" in second.content


@pytest.mark.requirement("session:messages_with_ids")
async def test_ids_never_change(world: World) -> None:
    model = ScriptedModel([CallTool(name="list"), "one", "two"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("a")
        await session.add_system_message("note")
        before = await session.messages_with_ids()
        live = [each.node.id for each in await facts(session, NewMessage)]
        assert [key for key, _ in before if key.startswith("nod_")] == live
        await session.send_message("b")
        assert (await session.messages_with_ids())[: len(before)] == before
    async with world.open() as app:
        session = await app.sessions.get("s")
        assert (await session.messages_with_ids())[: len(before)] == before
        record = await app.sessions.read_session("s")
        assert list(zip(record.ids, record.messages, strict=True)) == (
            await session.messages_with_ids()
        )


@pytest.mark.requirement("session:usage")
async def test_usage_counts_every_call_by_model_by_turn_and_by_line(world: World) -> None:
    def spending(tokens: int, *steps: object) -> tuple[object, ...]:
        return (
            Spend(usage=Usage(input_tokens=tokens, output_tokens=1, cache_read_tokens=2)),
            *steps,
        )

    model = ScriptedModel(
        [spending(10, CallTool(name="list")), spending(20, SayText(text="a"))]  # type: ignore[list-item]
    )
    other = ScriptedModel(
        [spending(300, SayText(text="b"))],  # type: ignore[list-item]
        info=ModelInfo(provider="scripted", name="other", price_input=1.0, price_output=1.0),
    )
    async with world.open(model, other) as app:
        session = await app.sessions.start_session(session_id="s")
        first = await session.send_message("x")
        second = await session.send_message("y", model="scripted:other")
        report = await session.usage()
        assert report.total.input_tokens == 330
        assert (report.total.output_tokens, report.total.cache_read_tokens) == (3, 6)
        assert {name: each.input_tokens for name, each in report.by_model.items()} == {
            "scripted:script": 30,
            "scripted:other": 300,
        }
        assert report.by_turn[str(first.turn_id)].input_tokens == 30
        assert report.by_turn[str(second.turn_id)].input_tokens == 300
        assert report.branch == report.total
        assert report.total.cost_usd == pytest.approx(
            (first.cost_usd or 0) + (second.cost_usd or 0)
        )
    async with world.open() as app:
        assert await (await app.sessions.get("s")).usage() == report


@pytest.mark.requirement("session:metadata")
async def test_metadata_says_what_a_list_shows(world: World) -> None:
    async with world.open(ScriptedModel(["Hello."]), clock=world.clock) as app:
        session = await app.sessions.start_session(title="Mine")
        created = await session.metadata()
        assert (created.title, created.message_count, created.turn_count) == ("Mine", 0, 0)
        world.clock.advance(60)
        await session.send_message("first words")
        found = await session.metadata()
        assert (found.id, found.model, found.provider) == (
            session.id,
            "scripted:script",
            "scripted",
        )
        assert (found.message_count, found.turn_count) == (2, 1)
        assert found.first_prompt == "first words"
        assert found.last_message - found.created == 60
        assert (found.status, found.parent_id) == ("idle", None)
        assert found.project_path == str(world.project.resolve())
        assert found.cost_usd
        assert found.cost_usd > 0
        [row] = await app.sessions.list_saved()
        assert (row.title, row.message_count, row.cost_usd) == ("Mine", 2, found.cost_usd)


@pytest.mark.requirement("manager:start_session:title")
async def test_a_session_without_a_title_gets_one_after_its_first_turn(world: World) -> None:
    async with world.open(ScriptedModel(["a", "b"]), clock=world.clock) as app:
        session = await app.sessions.start_session()
        assert (await session.metadata()).title.startswith("Session 2027-01-15 ")
        await session.send_message("Please fix the flaky test in the parser")
        title = (await session.metadata()).title
        assert title == "Please fix the flaky test in the parser"
        await session.send_message("And now something else entirely")
        assert (await session.metadata()).title == title
        [row] = await app.sessions.list_saved()
        assert row.title == title


@pytest.mark.requirement("session:add_system_message")
async def test_a_system_message_is_shown_and_kept_and_told_to_the_model_only_if_asked(
    world: World,
) -> None:
    model = ScriptedModel(["one", "two"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("a")
        await session.add_system_message("deploy failed", "error")
        await session.add_system_message("the tests are in spec/", to_model=True)
        await session.send_message("b")
        assert await message_lines(session) == [
            "user: a",
            "assistant: one",
            "system: deploy failed",
            "system: the tests are in spec/",
            "user: b",
            "assistant: two",
        ]
        assert (await session.messages())[2].is_error
        assert [each.level for each in await facts(session, SystemNote)] == ["error", "info"]
    assert request_lines(model.last_request) == [
        "user: a",
        "assistant: one",
        "user: the tests are in spec/",
        "user: b",
    ]


@pytest.mark.requirement(
    "session:get_provider",
    "session:get_available_models",
    "session:get_commands",
    "session:update_model",
)
async def test_the_model_can_be_changed_and_history_stays(world: World) -> None:
    model = ScriptedModel(["from the first"])
    other = ScriptedModel(["from the other"], info=ModelInfo(provider="scripted", name="other"))
    async with world.open(model, other) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("a")
        await session.update_model("scripted/other")
        assert await session.get_provider() == "scripted"
        assert (await session.metadata()).model == "scripted:other"
        [change] = [each for each in await facts(session, SettingChanged) if each.name == "model"]
        assert change.value == "scripted:other"
        assert (await session.send_message("b")).model == "scripted:other"
        assert request_lines(other.last_request)[:2] == ["user: a", "assistant: from the first"]
        names = {info.name for info in await session.get_available_models()}
        assert {"script", "other"} <= names
        assert "/help" in await session.get_commands()
    async with world.open(model, other) as app:
        assert (await (await app.sessions.get("s")).metadata()).model == "scripted:other"


@pytest.mark.requirement("session:todos")
async def test_todos_are_what_the_model_last_wrote(world: World) -> None:
    listed = {"todos": [{"text": "a", "status": "done"}, {"text": "b"}]}
    async with world.open(ScriptedModel([CallTool(name="todo", args=listed), "ok"])) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("plan")
        todos = await session.todos()
        assert [(each.text, each.status) for each in todos] == [("a", "done"), ("b", "pending")]
    async with world.open() as app:
        assert await (await app.sessions.get("s")).todos() == todos


@pytest.mark.requirement("session:pin")
async def test_a_pinned_message_is_marked(world: World) -> None:
    async with world.open(ScriptedModel(["one"])) as app:
        session = await app.sessions.start_session()
        await session.send_message("a")
        [(node, _), _] = await session.messages_with_ids()
        await session.pin(node)
        [mark] = await facts(session, NodeMarked)
        assert (mark.node, mark.mark, mark.value) == (node, "pin", True)


@pytest.mark.requirement("session:unpin")
async def test_a_message_that_is_pinned_no_more_is_marked_so(world: World) -> None:
    async with world.open(ScriptedModel(["one"])) as app:
        session = await app.sessions.start_session()
        await session.send_message("a")
        [(node, _), _] = await session.messages_with_ids()
        await session.pin(node)
        await session.unpin(node)
        assert [mark.value for mark in await facts(session, NodeMarked)] == [True, None]
