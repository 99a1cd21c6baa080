"""What plain calls have changed is stored when the program closes, or its failure is on record."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.world import World
from weft.errors import StoreUnavailable
from weft.events import ErrorRaised, Fact, NodeEdited, decode
from weft.loom import GenerationCancelled, LoomSession
from weft.loom.branches.generation import GenerationRun
from weft.providers import ModelInfo
from weft.providers.script import SayText, Stall
from weft.providers.scripted import ScriptedModel
from weft.store import Append, MemoryStore

pytestmark = pytest.mark.anyio


def bookmark(view: LoomSession) -> None:
    view.toggle_bookmark()


def edit(view: LoomSession) -> None:
    view.edit_node_text(view.current_node_id, "Edited")


def rename(view: LoomSession) -> None:
    view.set_max_tokens(77)


def look(view: LoomSession) -> object:
    state = view.get_state()
    return (state.current_node.bookmarked, state.full_text, state.max_tokens, len(state.children))


@pytest.mark.parametrize("change", [bookmark, edit, rename])
@pytest.mark.parametrize("awaits_save", [False, True])
async def test_a_change_that_nobody_awaits_outlives_the_program(
    world: World, change: Callable[[LoomSession], None], awaits_save: bool
) -> None:
    async with world.open() as app:
        root = await app.loom.create_root("Root")
        view = await app.loom.open(root.id)
        change(view)
        if awaits_save:
            view.save()
        expected = look(view)
    async with world.open() as app:
        assert look(await app.loom.open(root.id)) == expected


async def test_many_changes_of_many_trees_outlive_the_program(world: World) -> None:
    async with world.open() as app:
        roots = [await app.loom.create_root(f"Root {number}") for number in range(5)]
        views = [await app.loom.open(root.id) for root in roots]
        for number in range(20):
            for view in views:
                view.edit_node_text(view.root_id, f"text {number}")
                view.split_node(view.root_id, 2)
                view.join_with_parent(view.get_state().children[0].id)
    async with world.open() as app:
        for root in roots:
            assert await app.loom.full_text(root.id) == "text 19"


class FailingStore(MemoryStore):
    """One that does not store edits of texts."""

    async def append(self, *appends: Append) -> None:
        if any(record.kind == "node_edited" for one in appends for record in one.records):
            raise StoreUnavailable("the disk is full")
        await super().append(*appends)


async def test_what_cannot_be_stored_is_raised_once_on_the_record(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    world = World("memory", tmp_path_factory.mktemp("world"))
    store = FailingStore(data=world._memory)
    async with world.open(store=store) as app:
        root = await app.loom.create_root("Root")
        session = await app.loom.session_of(root.id)
        view = await app.loom.open(root.id)
        view.edit_node_text(root.id, "Edited")
        view.save()
    async with world.open() as app:
        facts: list[Fact] = [decode(each.body) for each in await app.store.read(session)]  # type: ignore[misc]
        assert not any(isinstance(fact, NodeEdited) for fact in facts)
        [raised] = [fact for fact in facts if isinstance(fact, ErrorRaised)]
        assert (raised.where, "disk is full" in raised.message) == ("loom", True)
        assert await app.loom.full_text(root.id) == "Root"


async def test_branches_that_are_on_their_way_are_stored_as_far_as_they_came(world: World) -> None:
    slow = ScriptedModel(
        [(SayText(text=" half done"), Stall(gate="g"))] * 2,
        info=ModelInfo(provider="scripted", name="slow", price_input=1.0, price_output=1.0),
    )
    run: GenerationRun
    async with world.open(slow) as app:
        root = await app.loom.create_root(
            "Root", metadata={"model": "scripted:slow", "n_branches": 2}
        )
        view = await app.loom.open(root.id)
        run = view.generate()
        await anext(run)
        await anext(run)
    assert isinstance([event async for event in run][-1], GenerationCancelled)
    async with world.open() as app:
        found = await app.loom.children(root.id)
        assert [(node.text, node.partial) for node in found] == [(" half done", True)] * 2
