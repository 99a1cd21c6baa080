"""Trees that cannot be read, or are deleted meanwhile: lists show all others, and so do lookups."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

import msgspec
import pytest

from tests.support.world import World
from weft.errors import NodeNotFound, TooNew
from weft.ids import NodeId, SessionId
from weft.store import READER_VERSION, MemoryData, MemoryStore, Record, SessionRow

pytestmark = pytest.mark.anyio


class DeletingStore(MemoryStore):
    """A store in which another process deletes a session after it was listed."""

    doomed: SessionId | None = None
    was_read: Set[str] = frozenset()
    """The logs that were read."""

    async def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[Record]:
        self.was_read = {*self.was_read, stream}
        return await super().read(stream, after=after, limit=limit)

    async def rows(self, **asked: Any) -> list[SessionRow]:
        found = await super().rows(**asked)
        doomed, self.doomed = self.doomed, None
        if doomed is not None:
            await self.delete(doomed)
        return found


def too_new(store: DeletingStore, session_id: SessionId) -> None:
    stream = store.data.stream(session_id)
    assert stream.row is not None
    stream.row = msgspec.structs.replace(stream.row, min_reader=READER_VERSION + 1)


def damaged(store: DeletingStore, session_id: SessionId) -> None:
    stream = store.data.stream(session_id)
    stream.snapshot = None
    del stream.records[0]


def deleted_meanwhile(store: DeletingStore, session_id: SessionId) -> None:
    store.doomed = session_id


async def listed(loom: Any, name: str) -> Any:
    """What a list has, in a form that can be compared."""
    match name:
        case "roots":
            return [node.text for node in await loom.roots()]
        case "recent":
            return [node.text for node in await loom.recent(2)]
        case "find_root_by_text":
            found = await loom.find_root_by_text("Root")
            return None if found is None else found.id
        case "active_node":
            return await loom.active_node()
        case "search":
            return [hit.node.text for hit in await loom.search("Root")]
    raise AssertionError(name)


@pytest.mark.parametrize("fault", [too_new, damaged, deleted_meanwhile])
@pytest.mark.parametrize("name", ["roots", "recent", "find_root_by_text", "active_node", "search"])
async def test_a_list_leaves_out_a_tree_that_cannot_be_read(
    plain_world: World, name: str, fault: Callable[[DeletingStore, SessionId], None]
) -> None:
    data = MemoryData()
    async with plain_world.open(store=MemoryStore(data=data)) as app:
        oldest = await app.loom.create_root("Begin")
        plain_world.clock.advance(1)
        kept = await app.loom.create_root("Root")
        plain_world.clock.advance(1)
        # Used last, made last, and it says the same.
        bad = await app.loom.session_of((await app.loom.create_root("Root")).id)
    store = DeletingStore(data=data)
    async with plain_world.open(store=store) as app:
        fault(store, bad)
        expected = {
            "roots": ["Root", "Begin"],
            "recent": ["Root", "Begin"],
            "find_root_by_text": kept.id,
            "active_node": kept.id,
            "search": ["Root"],
        }
        for _ in range(2):
            assert await listed(app.loom, name) == expected[name]
        assert (await app.loom.get(oldest.id)).text == "Begin"


async def test_a_tree_of_a_newer_program_is_in_the_catalogue_and_says_so_when_it_is_opened(
    plain_world: World,
) -> None:
    data = MemoryData()
    async with plain_world.open(store=MemoryStore(data=data)) as app:
        kept = await app.loom.create_root("Kept")
        plain_world.clock.advance(1)
        bad = await app.loom.create_root("New")
        session_id = await app.loom.session_of(bad.id)
    store = DeletingStore(data=data)
    too_new(store, session_id)
    row = data.stream(session_id).row
    assert row is not None
    async with plain_world.open(store=store) as app:
        for details in (False, True):
            entries = (await app.loom.catalogue(details=details)).entries
            assert [entry.root_id for entry in entries] == [bad.id, kept.id]
        # A row of a program that did not name the root: the tree is called by its session.
        data.stream(session_id).row = msgspec.structs.replace(row, root="")
        entries = (await app.loom.catalogue()).entries
        assert [entry.root_id for entry in entries] == [NodeId(session_id), kept.id]
        with pytest.raises(TooNew, match="newer Weft"):
            await app.loom.get(bad.id)


async def test_forks_of_a_deleted_tree_are_looked_through_for_whole_ids_alone_and_not_kept(
    plain_world: World,
) -> None:
    data = MemoryData()
    async with plain_world.open(store=MemoryStore(data=data)) as app:
        root, [child] = await app.loom.save_continuations("Root", [" and"])
        home = await app.loom.session_of(root.id)
        forks = []
        for _ in range(3):
            plain_world.clock.advance(1)
            forks.append((await app.sessions.fork_session(home)).id)
        await app.loom.delete_tree(root.id)
    store = DeletingStore(data=data)
    too_new(store, forks[0])
    async with plain_world.open(store=store) as app:
        loom = app.loom
        store.was_read = frozenset()
        for mistyped in ("zzz", "nod_zzz", child.id[:-1], f"{child.id}z", f"nobody/{child.id}"):
            with pytest.raises(NodeNotFound):
                await loom.get(mistyped)
        assert not store.was_read & {home, *forks}
        with pytest.raises(NodeNotFound):
            await loom.get(f"{child.id[:-1]}{'0' if child.id[-1] != '0' else '1'}")
        assert list(loom.trees) == []
        # The oldest of those that can be read has it, and is kept.
        assert await loom.session_of(child.id) == forks[1]
        assert [tree.port.session_id for tree in loom.trees] == [forks[1]]
