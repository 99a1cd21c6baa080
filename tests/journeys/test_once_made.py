"""A fork, an import or a deletion that is asked for twice under one `input_id` happens once."""

from __future__ import annotations

import anyio
import pytest

from tests.support.world import World, crash, message_lines
from weft.errors import SessionNotFound, StaleInput, StoreUnavailable, UsageError
from weft.ids import SessionId
from weft.providers.scripted import ScriptedModel
from weft.store import MemoryStore

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("manager:fork_session:input_id")
async def test_a_fork_asked_for_again_is_the_same_fork(world: World) -> None:
    async with world.open(ScriptedModel(["one", "two", "three"])) as app:
        session = await app.sessions.start_session()
        await session.send_message("first")
        fork = await app.sessions.fork_session(session.id, input_id="f1")
        # The source has gone on, and so has the fork: the repeat is still about the first one.
        await session.send_message("second")
        await fork.send_message("elsewhere")
        again = await app.sessions.fork_session(session.id, input_id="f1")
        assert again.id == fork.id
        assert len(await again.messages()) == 4
        other = await app.sessions.fork_session(session.id, input_id="f2")
        assert other.id != fork.id
        with pytest.raises(StaleInput, match="'f1'"):
            await app.sessions.fork_session(session.id, at=0, input_id="f1")
        with pytest.raises(StaleInput, match="'f1'"):
            await app.sessions.fork_session(session.id, title="T", input_id="f1")
        assert len(await app.sessions.list_saved()) == 3
        source, first = session.id, fork.id
    async with world.open(ScriptedModel([])) as app:
        assert (await app.sessions.fork_session(source, input_id="f1")).id == first
        assert len(await app.sessions.list_saved()) == 3


async def test_the_same_id_for_another_source_is_another_fork(world: World) -> None:
    async with world.open(ScriptedModel([])) as app:
        one, two = [await app.sessions.start_session() for _ in range(2)]
        first = await app.sessions.fork_session(one.id, input_id="f")
        second = await app.sessions.fork_session(two.id, input_id="f")
        assert first.id != second.id
        assert (await first.metadata()).title != (await second.metadata()).id


async def test_forks_asked_for_at_once_under_one_id_are_one(world: World) -> None:
    async with world.open(ScriptedModel([])) as app:
        session = await app.sessions.start_session()
        made: list[str] = []

        async def fork() -> None:
            made.append((await app.sessions.fork_session(session.id, input_id="f")).id)

        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(fork)
        assert len(set(made)) == 1
        assert len(await app.sessions.list_saved()) == 2


async def test_a_fork_asked_for_again_after_a_crash_is_the_same_fork(world: World) -> None:
    app = world.open(ScriptedModel([]))
    await app.__aenter__()
    session = await app.sessions.start_session()
    fork = await app.sessions.fork_session(session.id, input_id="f")
    await crash(app)
    async with world.open(ScriptedModel([])) as app:
        assert (await app.sessions.fork_session(session.id, input_id="f")).id == fork.id


@pytest.mark.requirement("manager:import_session:input_id")
async def test_an_import_asked_for_again_is_the_same_session(world: World) -> None:
    file, other = world.base / "a.json", world.base / "b.json"
    async with world.open(ScriptedModel(["one", "two"])) as app:
        session = await app.sessions.start_session()
        await session.send_message("first")
        await app.sessions.export_session(session.id, path=file)
        await session.send_message("second")
        await app.sessions.export_session(session.id, path=other)
        first = await app.sessions.import_session(file, input_id="i")
        again = await app.sessions.import_session(file, input_id="i")
        assert again.session.id == first.session.id
        assert again.dropped == first.dropped
        assert await message_lines(again.session) == ["user: first", "assistant: one"]
        with pytest.raises(StaleInput, match="'i'"):
            await app.sessions.import_session(other, input_id="i")
        unnamed = await app.sessions.import_session(file)
        assert unnamed.session.id not in (first.session.id, session.id)
        assert len(await app.sessions.list_saved()) == 3
        kept = first.session.id
    async with world.open(ScriptedModel([])) as app:
        assert (await app.sessions.import_session(file, input_id="i")).session.id == kept


@pytest.mark.requirement("manager:delete_session:input_id")
async def test_a_deletion_asked_for_again_is_done(world: World) -> None:
    async with world.open(ScriptedModel([])) as app:
        one, two = [await app.sessions.start_session() for _ in range(2)]
        named = await app.sessions.start_session(session_id="mine")
        await app.sessions.delete_session(one.id, input_id="d")
        await app.sessions.delete_session(one.id, input_id="d")
        with pytest.raises(StaleInput, match="'d'"):
            await app.sessions.delete_session(two.id, input_id="d")
        await app.sessions.delete_session(named.id, input_id="e")
        await app.sessions.delete_session(named.id, input_id="e")
        assert [row.id for row in await app.sessions.list_saved()] == [two.id]
        with pytest.raises(SessionNotFound):
            await app.sessions.delete_session(one.id)
        with pytest.raises(SessionNotFound):
            await app.sessions.delete_session("other", input_id="x")
    async with world.open(ScriptedModel([])) as app:
        # Of a deleted session nothing is left, not even who asked: that it is gone is enough.
        await app.sessions.delete_session(one.id, input_id="d")


class LockedStore(MemoryStore):
    """A store that cannot delete while it is locked."""

    is_locked = True

    async def delete(self, session_id: SessionId) -> None:
        if self.is_locked:
            raise StoreUnavailable("the file is locked")
        await super().delete(session_id)


async def test_a_deletion_that_failed_is_done_when_it_is_asked_for_again(
    plain_world: World,
) -> None:
    store = LockedStore()
    async with plain_world.open(ScriptedModel([]), store=store) as app:
        session = await app.sessions.start_session()
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await app.sessions.delete_session(session.id, input_id="d")
        store.is_locked = False
        await app.sessions.delete_session(session.id, input_id="d")
        assert await app.sessions.list_saved() == []


@pytest.mark.parametrize("is_shared", [False, True])
async def test_a_fork_that_was_deleted_is_not_made_again_by_the_same_call(
    world: World, is_shared: bool
) -> None:
    async with world.open(ScriptedModel(["one"])) as app:
        session = await app.sessions.start_session()
        await session.send_message("Hello.")
        fork = await app.sessions.fork_session(session.id, input_id="f1")
        if is_shared:
            await app.sessions.fork_session(fork.id)
        await app.sessions.delete_session(fork.id)
        with pytest.raises(UsageError, match=f"{fork.id}, was deleted; use another input_id"):
            await app.sessions.fork_session(session.id, input_id="f1")
        assert (await app.sessions.fork_session(session.id, input_id="f2")).id != fork.id
