"""A store that fails, is damaged, or is too new: a clear sentence, nothing lost, and every other
session works.
"""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec
import pytest

import weft
from tests.support.store_connection import open_connection
from tests.support.world import World, facts, message_lines, request_lines, running, until_status
from weft.errors import Corrupt, SessionInterrupted, StoreUnavailable, TooNew
from weft.events import ToolComplete, TurnFinished
from weft.providers.script import CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel
from weft.store import READER_VERSION, Append, MemoryData, MemoryStore

pytestmark = pytest.mark.anyio


class FullStore(MemoryStore):
    """A store whose disk is full while `full` is set; reading works."""

    def __init__(self, data: MemoryData | None = None) -> None:
        super().__init__(data=data)
        self.full = False
        self.refused = anyio.Event()

    async def append(self, *appends: Append) -> None:
        if self.full:
            self.refused.set()
            raise StoreUnavailable("the disk is full")
        await super().append(*appends)


async def test_a_prompt_that_cannot_be_stored_is_refused_and_nothing_is_changed(
    plain_world: World,
) -> None:
    store = FullStore()
    model = ScriptedModel(["one"])
    async with plain_world.open(model, store=store) as app:
        session = await app.sessions.start_session()
        store.full = True
        with pytest.raises(StoreUnavailable, match="the disk is full"):
            await session.send_prompt("a")
        assert model.request_count == 0
        assert await session.messages() == []
        store.full = False
        assert (await session.send_message("a")).text == "one"
        assert await message_lines(session) == ["user: a", "assistant: one"]


@pytest.mark.requirement("store:fails")
async def test_a_store_that_fails_in_the_middle_of_a_turn_costs_nothing_that_was_accepted(
    plain_world: World,
) -> None:
    store = FullStore()
    model = ScriptedModel([(SayText(text="half"), Stall(gate="g")), "all of it"])
    async with plain_world.open(model, store=store) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("a")
        await model.gate("g").reached.wait()
        store.full = True
        model.gate("g").opened.set()
        await until_status(session, "error")
        assert "the disk is full" in (await session.editor_snapshot()).error
        assert await message_lines(session) == ["user: a"]
        store.full = False
        assert (await session.continue_and_wait()).text == "all of it"
        assert await session.get_status() == "idle"
        assert (await session.editor_snapshot()).error == ""


async def test_a_caller_that_waits_for_a_turn_that_cannot_be_stored_is_told(
    plain_world: World,
) -> None:
    store = FullStore()
    model = ScriptedModel([(Stall(gate="g"), SayText(text="x")), "fine"])
    async with plain_world.open(model, store=store) as app:
        session = await app.sessions.start_session()

        async def ask() -> None:
            with pytest.raises(SessionInterrupted, match="the disk is full"):
                await session.send_message("a")

        async with running(ask):
            await model.gate("g").reached.wait()
            store.full = True
            model.gate("g").opened.set()
        store.full = False
        assert (await session.send_message("b")).text == "fine"
        assert [each.reason for each in await facts(session, TurnFinished)] == ["halted", "stop"]


async def test_a_result_that_could_not_be_stored_is_stored_when_the_turn_goes_on(
    plain_world: World,
) -> None:
    store = FullStore()
    runs = 0

    async def act() -> str:
        nonlocal runs
        runs += 1
        store.full = True
        return "acted"

    model = ScriptedModel([CallTool(name="act"), "I will look."])
    async with plain_world.open(model, store=store) as app:
        session = await app.sessions.start_session(tools=[act], permission_mode="bypass")
        await session.send_prompt("act")
        await until_status(session, "error")
        store.full = False
        await session.continue_and_wait()
        [complete] = await facts(session, ToolComplete)
        assert complete.result.status == "done"
    assert runs == 1
    assert "acted" in request_lines(model.last_request)[-1]


@pytest.mark.requirement("store:fails")
async def test_no_effect_takes_place_that_could_not_be_announced(plain_world: World) -> None:
    """The intent is stored before the tool starts; where it cannot be, the tool does not start."""
    store = FullStore()
    runs = 0

    async def act() -> None:
        nonlocal runs
        runs += 1

    model = ScriptedModel([(Stall(gate="g"), CallTool(name="act")), "ok"])
    async with plain_world.open(model, store=store) as app:
        session = await app.sessions.start_session(tools=[act], permission_mode="bypass")
        await session.send_prompt("act")
        await model.gate("g").reached.wait()
        store.full = True
        model.gate("g").opened.set()
        await until_status(session, "error")
    assert runs == 0


async def test_an_abort_that_cannot_be_stored_still_stops_the_work(plain_world: World) -> None:
    store = FullStore()
    stopped = anyio.Event()
    started = anyio.Event()

    async def work() -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()

    model = ScriptedModel([CallTool(name="work"), "ok"])
    async with plain_world.open(model, store=store) as app:
        session = await app.sessions.start_session(tools=[work], permission_mode="bypass")
        await session.send_prompt("go")
        await started.wait()
        store.full = True
        with anyio.fail_after(5):
            await session.abort()
            await stopped.wait()
        assert await session.get_status() == "error"
        store.full = False
        assert (await session.send_message("next")).text == "ok"


async def test_an_app_can_be_left_while_the_store_fails(plain_world: World) -> None:
    store = FullStore()
    model = ScriptedModel([Stall(gate="g")])
    with anyio.fail_after(10):
        async with plain_world.open(model, store=store) as app:
            session = await app.sessions.start_session(session_id="s")
            await session.send_prompt("a")
            await model.gate("g").reached.wait()
            store.full = True
    async with plain_world.open(store=MemoryStore(data=store.data)) as app:
        assert await message_lines(await app.sessions.get("s")) == ["user: a"]


# --- damage --------------------------------------------------------------------------------


async def three_sessions(world: World) -> None:
    async with world.open(ScriptedModel(["fine"] * 3)) as app:
        for name in ("a", "b", "c"):
            await (await app.sessions.start_session(session_id=name)).send_message("hello")


def damage(database: Path, session_id: str, seq: int) -> None:
    """Overwrite one stored fact, as a bad disk would."""
    db = open_connection(database)
    [(number,)] = db.execute(
        "select stream_no from streams where name = ?", (session_id,)
    ).fetchall()
    changed = db.execute(
        "update facts set body = ? where stream_no = ? and seq = ?",
        (b"\x00garbage", number, seq),
    )
    changed.fetchall()
    assert db.changes() == 1
    db.close()


@pytest.mark.requirement("manager:list_saved:damaged")
async def test_one_damaged_session_hides_no_other(shared_world: World) -> None:
    world = shared_world
    await three_sessions(world)
    damage(world.base / "weft.db", "b", 2)
    async with world.open(ScriptedModel(["still fine"])) as app:
        with pytest.raises(Corrupt, match="damaged"):
            await app.sessions.get("b")
        with pytest.raises(Corrupt):
            await app.sessions.read_session("b")
        with pytest.raises(Corrupt):
            await app.sessions.fork_session("b")
        rows = {str(row.id): row.damaged for row in await app.sessions.list_saved()}
        assert sorted(rows) == ["a", "b", "c"]
        assert rows["b"]
        assert not rows["a"]
        assert (await (await app.sessions.get("a")).send_message("well?")).text == "still fine"
        assert len((await app.sessions.read_session("c")).messages) == 2
        await app.sessions.delete_session("b")
        assert sorted(row.id for row in await app.sessions.list_saved()) == ["a", "c"]


async def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(shared_world: World) -> None:
    path = shared_world.base / "weft.db"
    path.write_bytes(b"this is no database\n" * 1000)
    before = path.read_bytes()
    with pytest.raises(Corrupt, match="left as it is: put a copy of it back, or move it away to"):
        async with shared_world.open():
            pass
    assert path.read_bytes() == before


@pytest.mark.requirement("store:too-new")
async def test_a_session_of_a_newer_program_is_listed_and_refused_and_not_touched() -> None:
    data = MemoryData()
    async with weft.open(".", MemoryStore(data=data), environ={"HOME": "/nonexistent"}) as app:
        await app.sessions.start_session(session_id="new", model="scripted:x")
        await app.sessions.start_session(session_id="old", model="scripted:x")
    stream = data.stream("new")
    assert stream.row is not None
    stream.row = msgspec.structs.replace(stream.row, min_reader=READER_VERSION + 1)
    before = list(stream.records)
    async with weft.open(".", MemoryStore(data=data), environ={"HOME": "/nonexistent"}) as app:
        assert {row.id for row in await app.sessions.list_saved()} == {"new", "old"}
        for lookup in (app.sessions.get, app.sessions.read_session, app.sessions.fork_session):
            with pytest.raises(TooNew, match="newer Weft"):
                await lookup("new")
        with pytest.raises(TooNew):
            await app.sessions.start_session(session_id="new")
        await app.sessions.get("old")
    assert data.stream("new").records == before


async def test_a_folder_that_cannot_be_written_is_said_in_a_sentence(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(StoreUnavailable) as caught:
        async with weft.open(tmp_path, blocked / "weft.db", environ={"HOME": str(tmp_path)}):
            pass
    assert len(str(caught.value)) > 20
