"""Sessions that are kept in another store than their application's: they live beside the others,
and all of them stays in that store.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import anyio
import pytest

from tests.support.buggy_model import BuggyModel
from tests.support.compaction import SummarizingModel
from tests.support.rewind_project import open_world, shell, turns
from tests.support.role_models import agent_call, only_child, role_model
from tests.support.sandboxed_session import skip_without_sandbox, tool_results
from tests.support.world import World, facts, message_lines, running, until_idle
from weft.app import App
from weft.errors import Corrupt, Owned, SessionNotFound, StoreError, StoreUnavailable, UsageError
from weft.events import SessionRestarted, TurnFinished
from weft.ids import SessionId
from weft.providers.script import CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel
from weft.store import MemoryStore, Store
from weft.store.sqlite import open_sqlite

pytestmark = pytest.mark.anyio

Wanted: TypeAlias = Store | str | Path
WRITE = CallTool(name="write", args={"path": "a.txt", "content": "new"})


def elsewhere(kind: str, world: World) -> Wanted:
    """A store that is not the application's, named in one of the ways there are."""
    ways: dict[str, Wanted] = {
        "memory": "memory" if world.kind != "memory" else MemoryStore(),
        "jsonl": "jsonl",
        "sqlite": "sqlite" if world.kind == "memory" else f"sqlite:{world.base / 'more.db'}",
        "folder": f"jsonl:{world.base / 'talks'}",
        "file": world.base / "other.db",
        "store": MemoryStore(),
    }
    return ways[kind]


@pytest.fixture(params=["memory", "jsonl", "sqlite", "folder", "file", "store"])
def other(request: pytest.FixtureRequest, world: World) -> Wanted:
    return elsewhere(request.param, world)


async def is_closed(store: Store) -> bool:
    try:
        await store.last_seq("nobody")
    except StoreUnavailable:
        return True
    return False


@pytest.mark.requirement("manager:start_session:store")
async def test_a_session_of_another_store_is_one_of_the_app_and_not_in_its_store(
    world: World, other: Wanted
) -> None:
    async with world.open(ScriptedModel(["one", "two"])) as app:
        here = await app.sessions.start_session(session_id="here")
        there = await app.sessions.start_session(session_id="there", title="T", store=other)
        events = await there.subscribe()
        assert (await there.send_message("hi")).text == "one"
        seen: list[object] = []
        while not seen or not isinstance(seen[-1], TurnFinished):
            seen.append(await anext(events))
        assert (await here.send_message("ho")).text == "two"
        assert await app.store.row(SessionId("there")) is None
        assert await app.host.store_of(SessionId("there")).row(SessionId("here")) is None
        assert [info.id for info in await app.sessions.list_active()] == ["here", "there"]
        assert {row.id for row in await app.sessions.list_saved()} == {"here", "there"}
        assert [row.id for row in await app.sessions.list_saved(query="hi")] == ["there"]
        assert await message_lines(await app.sessions.get("the")) == ["user: hi", "assistant: one"]
        found = await app.sessions.find_session("there")
        assert found is not None
        assert (await app.sessions.read_session("there")).row.title == "T"
        assert "hi" in await app.sessions.export_session("there", "md")
        await app.sessions.rename_session("there", "U")
        row = await app.host.row(SessionId("there"))
        assert row is not None
        assert row.title == "U"


@pytest.mark.requirement("manager:start_session:store")
async def test_forks_and_further_sessions_are_kept_where_they_come_from(
    world: World, other: Wanted
) -> None:
    async with world.open(ScriptedModel(["one", "two"])) as app:
        session = await app.sessions.start_session(store=other)
        await session.send_message("hi")
        fork = await app.sessions.fork_session(session.id)
        await fork.send_message("and")
        assert await message_lines(fork) == [
            "user: hi",
            "assistant: one",
            "user: and",
            "assistant: two",
        ]
        further = await session.new_session()
        store = app.host.store_of(session.id)
        assert store is not app.store
        for each in (fork, further):
            assert app.host.store_of(each.id) is store
            assert await store.row(each.id) is not None
            assert await app.store.row(each.id) is None
        assert (await further.load_session(session.id)).id == session.id


@pytest.mark.requirement("manager:start_session:store")
async def test_children_are_kept_with_their_parent_and_deleted_with_it(
    world: World, other: Wanted
) -> None:
    model = role_model(
        {"ask": [agent_call("count the files"), "There are 3."], "count": ["I found 3."]}
    )
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s", auto_approve=True, store=other)
        keeper = await app.sessions.start_session(session_id="keeper", store=other)
        assert (await session.send_message("ask somebody")).text == "There are 3."
        child = SessionId(await only_child(session))
        store = app.host.store_of(session.id)
        assert await store.row(child) is not None
        assert await app.store.last_seq(child) == 0
        assert await message_lines(await app.sessions.get(child)) == [
            "user: count the files",
            "assistant: I found 3.",
        ]
        await app.sessions.delete_session("s")
        assert (await store.row(SessionId("s")), await store.row(child)) == (None, None)
        await keeper.stop()


async def test_compaction_and_rewind_work_there(world: World, other: Wanted) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await app.sessions.start_session(session_id="s", store=other)
        await session.send_message("one")
        assert (await session.compact()).summary == "summary 1"
        await session.send_message("two")
        assert teller.seen[0] == "user: <summary 1>"
    model = ScriptedModel([WRITE, "done"])
    async with world.open(model) as app:
        if isinstance(other, MemoryStore):
            other = MemoryStore()
        session = await app.sessions.start_session(session_id="r", auto_approve=True, store=other)
        await session.checkpoint("before")
        await session.send_message("write")
        assert world.read("a.txt") == "new"
        await session.rewind(0)
        assert not (world.project / "a.txt").exists()


async def test_a_session_that_crashes_comes_back_there(world: World, other: Wanted) -> None:
    async with world.open(BuggyModel(1, ["Here after all."])) as app:
        session = await app.sessions.start_session(store=other)
        assert (await session.send_message("go")).text == "Here after all."
        assert len(await facts(session, SessionRestarted)) == 1


async def test_an_idle_one_is_unloaded_and_comes_back_there(world: World, other: Wanted) -> None:
    async with world.open(ScriptedModel(["one", "two"])) as app:
        session = await app.sessions.start_session(session_id="s", store=other)
        await session.send_message("hi")
        assert await app.sessions.unload_idle(-1) == 1
        assert await app.sessions.find_session("s") is None
        assert (await session.send_message("again")).text == "two"
        assert len(await message_lines(session)) == 4


@pytest.mark.requirement("manager:start_session:store")
@pytest.mark.parametrize("kind", ["jsonl", "sqlite", "folder", "file"])
async def test_the_last_session_closes_what_we_opened_and_resuming_names_it_again(
    world: World, kind: str
) -> None:
    other = elsewhere(kind, world)
    async with world.open(ScriptedModel(["one", "two"])) as app:
        first = await app.sessions.start_session(session_id="first", store=other)
        second = await app.sessions.start_session(session_id="second", store=other)
        await first.send_message("hi")
        store = app.host.store_of(first.id)
        assert app.host.store_of(second.id) is store
        await first.stop()
        assert not await is_closed(store)
        # While the store is in use its sessions are found, whoever was stopped.
        assert await message_lines(await app.sessions.get("first")) == [
            "user: hi",
            "assistant: one",
        ]
        await first.stop()
        await second.stop()
        assert await is_closed(store)
        with pytest.raises(SessionNotFound):
            await app.sessions.get("first")
        assert await app.sessions.list_saved() == []
        again = await app.sessions.start_session(session_id="first", store=other)
        assert (await again.send_message("again")).text == "two"
        assert len(await message_lines(again)) == 4
        kept = app.host.store_of(again.id)
    assert await is_closed(kept)


async def test_deleting_the_last_session_closes_it_too(shared_world: World) -> None:
    async with shared_world.open() as app:
        path = shared_world.base / "other.db"
        session = await app.sessions.start_session(session_id="s", store=path)
        store = app.host.store_of(session.id)
        await app.sessions.delete_session("s")
        assert await is_closed(store)
    async with await open_sqlite(path) as left:
        assert await left.row(SessionId("s")) is None


async def test_what_is_in_memory_is_kept_until_the_app_closes(shared_world: World) -> None:
    async with shared_world.open(ScriptedModel(["one"])) as app:
        session = await app.sessions.start_session(session_id="s", store="memory")
        await session.send_message("hi")
        store = app.host.store_of(session.id)
        await session.stop()
        assert await message_lines(await app.sessions.get("s")) == ["user: hi", "assistant: one"]
        assert app.host.store_of(session.id) is store
    assert await is_closed(store)


async def test_a_store_that_was_handed_in_stays_the_callers(world: World) -> None:
    async with await open_sqlite(world.base / "mine.db") as mine:
        async with world.open(ScriptedModel(["one"])) as app:
            session = await app.sessions.start_session(session_id="s", store=mine)
            await session.send_message("hi")
            assert mine.owner.address
            await session.stop()
            assert not mine.owner.address
            row = await mine.row(SessionId("s"))
            assert row is not None
            assert await mine.lease_of("s") is None
            await app.sessions.start_session(session_id="t", store=mine)
        assert not await is_closed(mine)
        assert await mine.lease_of("t") is None


async def test_a_name_for_the_apps_own_store_is_the_apps_own(shared_world: World) -> None:
    async with shared_world.open() as app:
        names: list[Wanted] = [app.store, shared_world.base / "weft.db", "sqlite"]
        for number, name in enumerate(names):
            session = await app.sessions.start_session(session_id=f"s{number}", store=name)
            assert app.host.store_of(session.id) is app.store
        await app.sessions.aclose()
        assert not await is_closed(app.store)


async def test_one_store_is_opened_once_by_whatever_name(shared_world: World) -> None:
    path = shared_world.base / "other.db"
    (shared_world.base / "link.db").symlink_to(path)
    names: list[Wanted] = [path, str(path), f"sqlite:{path}", shared_world.base / "link.db"]
    async with shared_world.open() as app:
        async with anyio.create_task_group() as group:
            for number, name in enumerate(names):
                group.start_soon(_start, app, f"s{number}", name)
        stores = {id(app.host.store_of(SessionId(f"s{n}"))) for n in range(len(names))}
        assert len(stores) == 1


async def _start(app: App, session_id: str, store: Wanted) -> None:
    await app.sessions.start_session(session_id=session_id, store=store)


async def test_an_id_that_is_open_from_one_store_is_not_started_in_another(world: World) -> None:
    async with world.open(ScriptedModel(["one"])) as app:
        await app.sessions.start_session(session_id="own")
        there = await app.sessions.start_session(session_id="there", store="jsonl")
        for session_id, store in (("own", "jsonl"), ("there", MemoryStore()), ("there", app.store)):
            with pytest.raises(UsageError, match="open from another store"):
                await app.sessions.start_session(session_id=session_id, store=store)
        # Without a store the running one is meant, and with its own too.
        for same in (None, "jsonl"):
            again = await app.sessions.start_session(session_id="there", store=same)
            assert app.host.store_of(again.id) is app.host.store_of(there.id)
        await there.stop()
        await app.sessions.start_session(session_id="there")
        assert app.host.store_of(there.id) is app.store


@pytest.mark.parametrize("wrong", [42, "", object()])
async def test_what_is_no_store_is_refused_with_a_sentence(world: World, wrong: object) -> None:
    async with world.open() as app:
        with pytest.raises(UsageError, match="store"):
            # That is the point.
            await app.sessions.start_session(store=wrong)  # type: ignore[arg-type]
        assert await app.sessions.list_active() == []


async def test_a_session_that_cannot_start_leaves_no_store_open(shared_world: World) -> None:
    async with shared_world.open() as app:
        with pytest.raises(UsageError, match="no folder"):
            await app.sessions.start_session(project_path="/nowhere/at/all", store="jsonl")
        assert app.host.registry.stores.in_use == [app.store]
        damaged = shared_world.base / "no.db"
        damaged.write_bytes(b"this is no database, and never was one" * 100)
        with pytest.raises((Corrupt, StoreError)):
            await app.sessions.start_session(store=damaged)
        assert app.host.registry.stores.in_use == [app.store]


# --- other processes


@asynccontextmanager
async def two_on_a_file(
    world: World, model: ScriptedModel
) -> AsyncGenerator[tuple[App, App, Path]]:
    """Two applications, neither of which has the file for its own store."""
    path = world.base / "other.db"
    async with (
        world.open(model, store=MemoryStore()) as owner,
        world.open(ScriptedModel([]), store=MemoryStore()) as guest,
    ):
        yield owner, guest, path


@pytest.mark.requirement("manager:start_session:store")
async def test_another_process_drives_a_session_of_a_file_store_through_its_owner(
    plain_world: World,
) -> None:
    model = ScriptedModel([(Stall(gate="g"), SayText(text="one")), "two"])
    async with two_on_a_file(plain_world, model) as (owner, guest, path):
        here = await owner.sessions.start_session(session_id="s", store=path)
        there = await guest.sessions.start_session(session_id="s", store=path)
        await there.send_prompt("from there")
        await model.gate("g").reached.wait()
        assert await here.get_status() == "thinking"
        with pytest.raises(Owned):
            await guest.host.store_of(there.id).take_lease("s")
        model.gate("g").opened.set()
        await until_idle(here)
        assert await message_lines(here) == ["user: from there", "assistant: one"]
        store = guest.host.store_of(there.id)
        await there.stop()
        assert await is_closed(store)
        assert await here.get_status() == "idle"


async def test_the_app_that_is_left_takes_the_session_over(plain_world: World) -> None:
    async with two_on_a_file(plain_world, ScriptedModel(["one"])) as (owner, guest, path):
        here = await owner.sessions.start_session(session_id="s", store=path)
        there = await guest.sessions.start_session(session_id="s", store=path)
        await here.send_message("hi")
        async with running():
            await here.stop()
            await there.wait()
            assert await message_lines(there) == ["user: hi", "assistant: one"]
            await guest.sessions.rename_session("s", "Taken over")
        assert (await there.metadata()).title == "Taken over"


# --- the sandbox


async def test_commands_do_not_see_a_store_that_came_later(plain_world: World) -> None:
    world = plain_world
    talks = world.project / "talks"  # elsewhere nothing of the temporary folder is seen anyway
    peep = shell(f"ls {talks} {talks}/logs 2>&1; echo looked")
    model = turns([shell("echo first")], [peep])
    async with open_world(world, model, sandbox="auto") as app:
        await skip_without_sandbox(app, world)
        here = await app.sessions.start_session(session_id="here", auto_approve=True)
        await here.send_message("warm up")
        await app.sessions.start_session(session_id="there", store=f"jsonl:{talks}")
        assert "there" in str(list((talks / "logs").iterdir()))
        await here.send_message("peep")
        [result] = tool_results(model)[-1:]
        assert "looked" in result
        assert "Permission denied" in result
        assert "there" not in result


async def test_a_turn_that_runs_there_is_suspended_with_the_app(world: World) -> None:
    model = ScriptedModel([(SayText(text="half"), Stall(gate="g"))])
    path = world.base / "other.db"
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s", store=path)
        await session.send_prompt("go")
        await model.gate("g").reached.wait()
    async with world.open() as app:
        again = await app.sessions.start_session(session_id="s", store=path)
        assert await message_lines(again) == ["user: go", "assistant: half"]
        assert await facts(again, TurnFinished) == []
        assert await again.get_status() == "interrupted"
