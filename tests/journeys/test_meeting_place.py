"""Where a store's processes meet and whether it lasts are two questions."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from tests.support.world import World, message_lines
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel
from weft.store import MemoryStore, Store
from weft.store.sqlite import open_sqlite

pytestmark = pytest.mark.anyio


class DistantStore:
    """A store as of a database server: it lasts, others share it, and it has no folder here."""

    is_lasting = True
    is_shared = True
    meeting_folder = None

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class LoneStore(DistantStore):
    """One that lasts and that no other process can have."""

    is_shared = False


@asynccontextmanager
async def opened(kind: type[DistantStore], path: Path) -> AsyncGenerator[Store]:
    async with await open_sqlite(path) as store:
        yield cast("Store", kind(store))


async def test_sessions_of_a_store_without_a_folder_are_driven_from_another_process(
    plain_world: World, tmp_path: Path
) -> None:
    path = tmp_path / "far.db"
    async with opened(DistantStore, path) as one, opened(DistantStore, path) as two:
        model = ScriptedModel(["one"])
        async with (
            plain_world.open(model, store=one) as owner,
            plain_world.open(ScriptedModel([]), store=two) as guest,
        ):
            here = await owner.sessions.start_session(session_id="s")
            there = await guest.sessions.get("s")
            with anyio.fail_after(10):
                assert (await there.send_message("from there")).text == "one"
            assert await message_lines(here) == ["user: from there", "assistant: one"]
            [socket] = (plain_world.base / "sockets").glob(f"{one.owner.process_id}*.sock")
            assert socket.is_socket()


@pytest.mark.process
@pytest.mark.parametrize("kind", ["distant", "lone", "memory"])
async def test_what_files_held_is_kept_on_disk_where_the_store_lasts(
    plain_world: World, tmp_path: Path, kind: str
) -> None:
    run = CallTool(name="shell", args={"command": "echo new > kept.txt"})
    model = ScriptedModel([run, "done"])
    plain_world.write("kept.txt", "old\n")
    async with opened(LoneStore if kind == "lone" else DistantStore, tmp_path / "far.db") as far:
        store = MemoryStore() if kind == "memory" else far
        async with plain_world.open(model, store=store) as app:
            session = await app.sessions.start_session(permission_mode="bypass")
            assert (await session.send_message("go")).text == "done"
            assert bool(store.owner.address) == (kind == "distant")
    assert (plain_world.base / "files").exists() == (kind != "memory")


class NotingStore(DistantStore):
    """One that notes what its process publishes of itself, and whether it has the session then."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.published: list[tuple[bool, bool]] = []

    async def register_address(self, address: str, *, accepting: bool = True) -> None:
        await self._store.register_address(address, accepting=accepting)
        self.published.append((accepting, await self._store.lease_of("s") is not None))


async def test_a_process_that_closes_says_so_before_it_gives_its_sessions_back(
    plain_world: World, tmp_path: Path
) -> None:
    async with await open_sqlite(tmp_path / "far.db") as kept:
        store = NotingStore(kept)
        async with plain_world.open(ScriptedModel(["one"]), store=cast("Store", store)) as app:
            await app.sessions.start_session(session_id="s")
        assert store.published == [(True, False), (False, True)]
