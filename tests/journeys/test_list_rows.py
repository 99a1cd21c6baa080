"""The row that lists show is written when something in it changed, not with every append."""

from __future__ import annotations

import pytest

from tests.support.world import World, until_idle
from weft.ids import SessionId
from weft.providers.script import CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel
from weft.store import Append, MemoryStore, SessionRow

pytestmark = pytest.mark.anyio


class NotingRows(MemoryStore):
    """A store that notes the row of each append, and what it leaves in the list."""

    def __init__(self) -> None:
        super().__init__()
        self.rows_written: list[SessionRow | None] = []

    async def append(self, *appends: Append) -> None:
        await super().append(*appends)
        self.rows_written += [each.row for each in appends]


async def test_an_append_that_changes_nothing_shown_writes_no_row(plain_world: World) -> None:
    async def act() -> str:
        plain_world.clock.advance(1)
        return "acted"

    store = NotingRows()
    model = ScriptedModel([*[CallTool(name="act")] * 5, "Done."])
    async with plain_world.open(model, store=store, clock=plain_world.clock) as app:
        session = await app.sessions.start_session(tools=[act], permission_mode="bypass")
        await session.send_message("go")
        await until_idle(session)
        written = [row.turn_open for row in store.rows_written if row is not None]
        assert written == [False, True, False], "made, in a turn, at its end"
        assert len(store.rows_written) > 6
        row = await store.row(session.id)
        assert row is not None
        end = await store.last_seq(session.id)
        assert (row.turn_open, row.turn_count, row.message_count) == (False, 1, 7)
        assert (row.last_seq, row.last_active) == (end, plain_world.clock.now()), "at its end"


async def test_a_list_is_at_most_a_minute_behind_a_long_turn(plain_world: World) -> None:
    async def act() -> str:
        plain_world.clock.advance(25)
        return "acted"

    store = NotingRows()
    model = ScriptedModel([*[CallTool(name="act")] * 6, "Done."])
    async with plain_world.open(model, store=store, clock=plain_world.clock) as app:
        session = await app.sessions.start_session(tools=[act], permission_mode="bypass")
        begun = plain_world.clock.now()
        await session.send_message("go")
        await until_idle(session)
        written = [row.last_active - begun for row in store.rows_written if row is not None]
        assert written == [0, 0, 75, 150]


async def test_a_title_that_is_given_in_a_turn_is_listed_at_once(plain_world: World) -> None:
    store = NotingRows()
    model = ScriptedModel([(Stall(gate="g"), SayText(text="one"))])
    async with plain_world.open(model, store=store) as app:
        session = await app.sessions.start_session(title="Old")
        await session.send_prompt("go")
        await model.gate("g").reached.wait()
        await app.sessions.rename_session(session.id, "New")
        row = await store.row(session.id)
        assert row is not None
        assert (row.title, row.turn_open) == ("New", True)
        model.gate("g").opened.set()
        await until_idle(session)


async def test_the_row_is_as_it_should_be_after_each_append(plain_world: World) -> None:
    store = NotingRows()
    model = ScriptedModel(["one", "two"])
    async with plain_world.open(model, store=store) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("first")
        await app.sessions.rename_session("s", "Title")
        await app.sessions.archive_session("s")
        await session.send_message("second")
        row = await store.row(SessionId("s"))
        assert row is not None
        assert (row.title, row.archived, row.turn_count, row.message_count) == ("Title", True, 2, 4)
    # A later process knows no row that it has written: its first append writes one.
    async with plain_world.open(ScriptedModel([]), store=NotingRowsOn(store)) as app:
        session = await app.sessions.get("s")
        await session.add_system_message("by the way")
        later = app.store
        assert isinstance(later, NotingRows)
        [first] = later.rows_written
        assert first is not None
        assert first.last_seq == await later.last_seq("s")


class NotingRowsOn(NotingRows):
    """Another process on the same data."""

    def __init__(self, other: MemoryStore) -> None:
        super().__init__()
        self.data = other.data
        self.data.living[self.owner.process_id] = self.owner


async def test_a_title_that_is_given_in_the_first_turn_stays(plain_world: World) -> None:
    """The first turn ends with a title of its own, where the user gave none."""
    store = NotingRows()
    model = ScriptedModel([(Stall(gate="g"), SayText(text="one"))])
    async with plain_world.open(model, store=store) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await model.gate("g").reached.wait()
        await app.sessions.rename_session(session.id, "New", input_id="once")
        await app.sessions.rename_session(session.id, "New", input_id="once")
        model.gate("g").opened.set()
        await until_idle(session)
        row = await store.row(session.id)
        assert row is not None
        assert row.title == "New"
