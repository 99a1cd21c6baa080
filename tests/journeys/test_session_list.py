"""The list of sessions: read page by page, and followed while it changes."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from tests.support.world import PATIENCE, World, crash, until_idle
from weft.errors import UsageError
from weft.ids import SessionId
from weft.providers.script import SayText, Stall
from weft.providers.scripted import ScriptedModel
from weft.runtime.session_topic import MOST_IDS, SessionListEvents, SessionsChanged
from weft.store import SessionRow

pytestmark = pytest.mark.anyio


async def seen(events: SessionListEvents, wanted: str) -> tuple[SessionId, ...]:
    """The next change that names a session."""
    with anyio.fail_after(PATIENCE):
        async for change in events:
            if wanted in change.ids:
                return change.ids
    raise AssertionError("the topic ended")


@pytest.mark.requirement("app:topic-sessions")
async def test_the_topic_names_each_session_whose_row_changes(world: World) -> None:
    model = ScriptedModel(["one", "two"])
    async with world.open(model) as app:
        events = await app.subscribe("sessions")
        first = await app.sessions.start_session(title="A")
        assert first.id in await seen(events, first.id)
        await first.send_message("Hello.")
        assert first.id in await seen(events, first.id)
        fork = await app.sessions.fork_session(first.id)
        await seen(events, fork.id)
        await app.sessions.rename_session(first.id, "B")
        await seen(events, first.id)
        await app.sessions.archive_session(first.id)
        await seen(events, first.id)
        await app.sessions.delete_session(fork.id)
        await seen(events, fork.id)
        events.close()
        assert [change async for change in events] == []


async def test_what_changed_before_a_reader_looks_is_told_at_once(world: World) -> None:
    async with world.open(ScriptedModel(["one"])) as app:
        events = await app.subscribe("sessions")
        made = [(await app.sessions.start_session()).id for _ in range(3)]
        with anyio.fail_after(PATIENCE):
            change = await anext(events)
        assert set(change.ids) == set(made)


async def test_readers_come_to_an_end_when_the_application_closes(world: World) -> None:
    app = world.open(ScriptedModel([]))
    ended = 0

    async def read() -> None:
        nonlocal ended
        async for _ in events:
            pass
        ended += 1

    async with anyio.create_task_group() as group:
        async with app:
            events = await app.subscribe("sessions")
            group.start_soon(read)
            await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(PATIENCE):
            while not ended:
                await anyio.lowlevel.checkpoint()
    with pytest.raises(UsageError, match="the app is closed"):
        await app.subscribe("sessions")


async def test_changes_of_another_process_are_seen(shared_world: World) -> None:
    world, model = shared_world, ScriptedModel(["one", "two"])
    async with world.open(model) as here, world.open(model) as there:
        old = await there.sessions.start_session(title="Old")
        events = await here.subscribe("sessions")
        made = await there.sessions.start_session(title="New")
        await seen(events, made.id)
        await there.sessions.rename_session(old.id, "Renamed")
        await seen(events, old.id)
        await made.send_message("Hello.")
        await until_idle(made)
        await seen(events, made.id)
        await there.sessions.delete_session(made.id)
        await seen(events, made.id)


async def test_a_list_tells_a_session_at_work_in_another_process_from_one_that_was_left(
    shared_world: World,
) -> None:
    world = shared_world
    model = ScriptedModel([(Stall(gate="g"), SayText(text="done"))])
    here, there = world.open(model), world.open(ScriptedModel([]))
    await here.__aenter__()
    async with there:
        session = await here.sessions.start_session()
        await session.send_prompt("go")
        with anyio.fail_after(PATIENCE):
            await model.gate("g").reached.wait()
        for app in (here, there):
            page = await app.sessions.list_saved()
            assert [row.id for row in page if row.turn_open] == [session.id]
            assert page.working == {session.id}
        await crash(here)
        page = await there.sessions.list_saved()
        assert page[0].turn_open
        assert page.working == frozenset()


async def test_a_reader_that_never_reads_holds_a_bounded_number_of_ids() -> None:
    events = SessionListEvents()
    for number in range(MOST_IDS + 1):
        events._put([SessionId(f"ses_{number}")])
    assert await anext(events) == SessionsChanged(ids=())
    events._put([SessionId("ses_1")])
    assert await anext(events) == SessionsChanged(ids=(SessionId("ses_1"),))


async def test_a_topic_that_there_is_not_is_refused(world: World) -> None:
    async with world.open(ScriptedModel([])) as app:
        with pytest.raises(
            UsageError, match="no topic 'session'; there are 'sessions' and 'repo:updates'"
        ):
            await app.subscribe("session")


@pytest.mark.requirement("manager:list_saved:cursor")
@pytest.mark.parametrize("size", [1, 2, 5, 7])
async def test_the_list_is_read_page_by_page_each_session_once(world: World, size: int) -> None:
    async with world.open(ScriptedModel([])) as app:
        for number in range(7):
            # Some at the same instant: the id decides then.
            if number % 2:
                world.clock.advance(1)
            await app.sessions.start_session(title=f"T{number}")
        whole = await app.sessions.list_saved()
        found: list[SessionRow] = []
        after = None
        while True:
            page = await app.sessions.list_saved(limit=size, after=after)
            found += page
            after = page.next
            if after is None:
                break
        assert found == whole
        assert len(found) == 7
        assert whole.next is None


async def test_a_session_that_is_used_meanwhile_makes_none_come_twice(world: World) -> None:
    async with world.open(ScriptedModel(["one"]), clock=world.clock) as app:
        made = []
        for number in range(6):
            world.clock.advance(1)
            made.append(await app.sessions.start_session(title=f"T{number}"))
        page = await app.sessions.list_saved(limit=3)
        world.clock.advance(1)
        await made[4].send_message("Hello.")
        rest = await app.sessions.list_saved(limit=10, after=page.next)
        assert [row.title for row in rest] == ["T2", "T1", "T0"]


async def test_a_cursor_that_no_list_gave_is_refused(world: World) -> None:
    async with world.open(ScriptedModel([])) as app:
        for wrong in ("", "ses_1", "x:ses_1"):
            with pytest.raises(UsageError, match="is no place in the list"):
                await app.sessions.list_saved(after=wrong)
