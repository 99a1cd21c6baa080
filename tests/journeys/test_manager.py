"""All sessions: found, listed, renamed, put away, stopped and deleted."""

from __future__ import annotations

import anyio
import pytest

from tests.support.world import World, message_lines, running
from weft.app import App
from weft.errors import AmbiguousId, SessionNotFound, StaleInput, UsageError
from weft.providers.script import CallTool, Stall
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


async def three(app: App) -> None:
    """Three sessions with something said in each."""
    for name, words in (("ab1", "the red door"), ("ab2", "a blue door"), ("xy", "nothing")):
        session = await app.sessions.start_session(session_id=name, title=f"About {name}")
        await session.send_message(words)


def model() -> ScriptedModel:
    return ScriptedModel(["I see.", "I see.", "I see.", "more"])


@pytest.mark.requirement("manager:start_session:id")
async def test_an_id_is_made_where_none_is_given_and_ids_sort_by_time(world: World) -> None:
    async with world.open(clock=world.clock) as app:
        first = await app.sessions.start_session()
        world.clock.advance(1)
        second = await app.sessions.start_session()
        assert first.id < second.id


@pytest.mark.requirement("manager:start_session:known")
async def test_a_known_id_is_resumed_and_a_running_one_is_the_same_session(world: World) -> None:
    async with world.open(ScriptedModel(["one", "two"])) as app:
        session = await app.sessions.start_session(session_id="s", title="Mine")
        await session.send_message("a")
        same = await app.sessions.start_session(session_id="s", title="Another")
        await same.send_message("b")
        assert len(await session.messages()) == 4
        assert (await session.metadata()).title == "Mine"
        assert len(await app.sessions.list_active()) == 1
    async with world.open() as app:
        again = await app.sessions.start_session(session_id="s")
        assert len(await again.messages()) == 4


@pytest.mark.requirement("manager:start_session:known")
async def test_two_that_start_the_same_id_at_once_get_the_same_session(world: World) -> None:
    async with world.open(ScriptedModel(["one"])) as app:
        started: list[str] = []

        async def start() -> None:
            session = await app.sessions.start_session(session_id="s")
            started.append(session.id)

        async with running(start, start, start):
            pass
        assert started == ["s", "s", "s"]
        session = await app.sessions.get("s")
        await session.send_message("hello")
        assert await message_lines(session) == ["user: hello", "assistant: one"]


@pytest.mark.requirement("manager:find_session")
async def test_running_sessions_are_found_by_id_and_unique_prefix(world: World) -> None:
    async with world.open(model()) as app:
        await three(app)
        for given in ("xy", "x", "ab1"):
            found = await app.sessions.find_session(given)
            assert found is not None
            assert found.id.startswith(given)
        with pytest.raises(AmbiguousId) as caught:
            await app.sessions.find_session("ab")
        assert sorted(caught.value.matches) == ["ab1", "ab2"]
        assert await app.sessions.find_session("nope") is None
        await app.sessions.stop_session("xy")
        assert await app.sessions.find_session("xy") is None


@pytest.mark.requirement("fault:wildcards")
async def test_an_exact_id_is_never_ambiguous(world: World) -> None:
    async with world.open() as app:
        await app.sessions.start_session(session_id="s")
        await app.sessions.start_session(session_id="s2")
        found = await app.sessions.find_session("s")
        assert found is not None
        assert found.id == "s"
        assert (await app.sessions.get("s")).id == "s"


@pytest.mark.requirement("manager:get")
async def test_stored_sessions_are_got_by_id_and_prefix_without_calling_a_model(
    world: World,
) -> None:
    scripted = model()
    async with world.open(scripted) as app:
        await three(app)
    async with world.open(scripted) as app:
        assert await app.sessions.list_active() == []
        assert (await app.sessions.get("x")).id == "xy"
        with pytest.raises(AmbiguousId):
            await app.sessions.get("ab")
        for nothing in ("nope", "", "%", "_", "a_"):
            with pytest.raises(SessionNotFound):
                await app.sessions.get(nothing)
    assert scripted.request_count == 3


@pytest.mark.requirement("manager:read_session")
async def test_reading_a_session_starts_nothing(world: World) -> None:
    async with world.open(model()) as app:
        await three(app)
    async with world.open() as app:
        record = await app.sessions.read_session("ab1")
        assert [message.content for message in record.messages] == ["the red door", "I see."]
        assert (record.row.title, record.row.id) == ("About ab1", "ab1")
        assert await app.sessions.list_active() == []
        with pytest.raises(SessionNotFound):
            await app.sessions.read_session("nope")


@pytest.mark.requirement("manager:list_active")
async def test_running_sessions_are_listed_with_what_they_do(world: World) -> None:
    scripted = ScriptedModel([Stall(), "x"])
    async with world.open(scripted) as app:
        busy = await app.sessions.start_session(session_id="busy", title="Busy")
        await busy.send_prompt("go")
        await app.sessions.start_session(session_id="idle")
        infos = {info.id: info for info in await app.sessions.list_active()}
        assert {name: info.status for name, info in infos.items()} == {
            "busy": "thinking",
            "idle": "idle",
        }
        info = infos[busy.id]
        assert (info.title, info.model, info.mode) == ("Busy", "scripted:script", "normal")
        assert info.project_path == str(world.project.resolve())
        assert info.last_active > 0


@pytest.mark.requirement("manager:list_saved")
async def test_stored_sessions_are_listed_newest_first(world: World) -> None:
    async with world.open(model(), clock=world.clock) as app:
        for name in ("a", "b", "c"):
            await app.sessions.start_session(session_id=name)
            world.clock.advance(10)
        await (await app.sessions.get("a")).send_message("hello")
        assert [row.id for row in await app.sessions.list_saved()] == ["a", "c", "b"]
        assert [row.id for row in await app.sessions.list_saved(limit=1)] == ["a"]


@pytest.mark.requirement("manager:list_saved")
async def test_stored_sessions_are_listed_by_project(world: World) -> None:
    other = world.base / "other"
    other.mkdir()
    async with world.open() as app:
        await app.sessions.start_session(session_id="here")
        await app.sessions.start_session(session_id="there", project_path=other)
        assert [row.id for row in await app.sessions.list_saved(other)] == ["there"]
        assert [row.id for row in await app.sessions.list_saved(world.project)] == ["here"]
        assert len(await app.sessions.list_saved()) == 2


@pytest.mark.requirement("manager:list_saved")
async def test_titles_and_words_are_searched(world: World) -> None:
    world.write("secret", "unsearchable tool output")
    async with world.open(model()) as app:
        await three(app)
        assert [row.id for row in await app.sessions.list_saved(query="blue")] == ["ab2"]
        assert {row.id for row in await app.sessions.list_saved(query="door")} == {"ab1", "ab2"}
        assert [row.id for row in await app.sessions.list_saved(query="About xy")] == ["xy"]
        assert await app.sessions.list_saved(query="absent") == []
        for odd in ('"', "AND OR", "*", "a-b:c(", "'; drop table"):
            await app.sessions.list_saved(query=odd)


@pytest.mark.requirement("manager:list_saved")
async def test_the_end_of_a_very_long_message_is_searched_too(world: World) -> None:
    long = "and so on " * 5_000
    async with world.open(ScriptedModel([f"{long} aardvark"])) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message(f"{long} zebra")
        found = [await app.sessions.list_saved(query=word) for word in ("zebra", "aardvark")]
        assert [[row.id for row in rows] for rows in found] == [["s"], ["s"]]


async def test_tool_output_is_not_searched(world: World) -> None:
    world.write("secret", "unsearchable tool output")
    scripted = ScriptedModel([CallTool(name="read", args={"path": "secret"}), "Read it."])
    async with world.open(scripted) as app:
        session = await app.sessions.start_session()
        await session.send_message("read it")
        assert await app.sessions.list_saved(query="unsearchable") == []


@pytest.mark.requirement("manager:rename_session")
async def test_a_session_is_renamed_running_or_not(world: World) -> None:
    async with world.open(model()) as app:
        await three(app)
        await app.sessions.rename_session("ab1", "  Red  ")
        assert (await (await app.sessions.get("ab1")).metadata()).title == "Red"
        with pytest.raises(UsageError):
            await app.sessions.rename_session("ab1", "  ")
    async with world.open() as app:
        await app.sessions.rename_session("xy", "Other")
        titles = {row.id: row.title for row in await app.sessions.list_saved()}
        assert titles == {"ab1": "Red", "ab2": "About ab2", "xy": "Other"}


@pytest.mark.requirement("manager:archive_session")
async def test_an_archived_session_leaves_the_list_and_comes_back(world: World) -> None:
    async with world.open(model()) as app:
        await three(app)
        await app.sessions.archive_session("xy")
        assert {row.id for row in await app.sessions.list_saved()} == {"ab1", "ab2"}
        assert len(await app.sessions.list_saved(archived=True)) == 3
        await (await app.sessions.get("xy")).send_message("still usable")
        assert {row.id for row in await app.sessions.list_saved()} == {"ab1", "ab2"}
        await app.sessions.archive_session("xy", archived=False)
        assert len(await app.sessions.list_saved()) == 3


@pytest.mark.requirement("manager:delete_session")
async def test_a_deleted_session_is_gone_for_good(world: World) -> None:
    async with world.open(model()) as app:
        await three(app)
        session = await app.sessions.get("xy")
        await app.sessions.delete_session("xy")
        assert {row.id for row in await app.sessions.list_saved()} == {"ab1", "ab2"}
        assert await app.sessions.list_saved(query="nothing") == []
        for lookup in (app.sessions.get, app.sessions.read_session, app.sessions.delete_session):
            with pytest.raises(SessionNotFound):
                await lookup("xy")
        with pytest.raises(SessionNotFound):
            await session.send_message("hello?")
        fresh = await app.sessions.start_session(session_id="xy")
        assert await fresh.messages() == []


@pytest.mark.requirement("manager:stop_session")
async def test_a_stopped_session_comes_back_with_the_next_call(world: World) -> None:
    async with world.open(model()) as app:
        await three(app)
        session = await app.sessions.get("xy")
        await app.sessions.stop_session("xy")
        assert len(await app.sessions.list_active()) == 2
        await session.send_message("again")
        assert len(await app.sessions.list_active()) == 3
        with pytest.raises(SessionNotFound):
            await app.sessions.stop_session("nope")


@pytest.mark.requirement("entry:open")
async def test_an_app_may_be_opened_in_one_task_and_left_in_another(world: World) -> None:
    app = world.open(ScriptedModel(["one"]))
    async with running(app.__aenter__):
        pass
    session = await app.sessions.start_session()
    assert (await session.send_message("hi")).text == "one"
    async with running(app.aclose):
        pass


async def test_a_cancelled_caller_takes_no_session_along(world: World) -> None:
    """Sessions live in the supervisor's tasks, never in a caller's."""
    scripted = ScriptedModel([Stall(gate="g"), "two"])
    async with world.open(scripted) as app:
        session = await app.sessions.start_session()
        async with anyio.create_task_group() as group:
            group.start_soon(session.send_message, "a")
            await scripted.gate("g").reached.wait()
            group.cancel_scope.cancel()
        assert await session.get_status() == "thinking"
        await session.abort()
        assert (await session.send_message("b")).text == "two"


async def test_an_app_that_is_not_open_says_so(world: World) -> None:
    app = world.open()
    with pytest.raises(UsageError, match="async with"):
        _ = app.sessions


@pytest.mark.requirement("manager:rename_session", "manager:archive_session")
async def test_renaming_and_archiving_can_be_repeated_under_their_id(world: World) -> None:
    async with world.open() as app:
        session = await app.sessions.start_session(session_id="s", store=app.store)
        await app.sessions.rename_session("s", "First", input_id="r")
        await app.sessions.archive_session("s", input_id="a")
        await app.sessions.rename_session("s", "Second")
        await app.sessions.archive_session("s", False)
        before = (await session.editor_snapshot()).seq
        await app.sessions.rename_session("s", "First", input_id="r")
        await app.sessions.archive_session("s", input_id="a")
        assert (await session.editor_snapshot()).seq == before
        with pytest.raises(StaleInput):
            await app.sessions.rename_session("s", "Third", input_id="r")
