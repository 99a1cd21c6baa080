"""Search over all trees of a store: fused, filtered, rolled up."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.world import World
from weft.errors import UsageError

pytestmark = pytest.mark.anyio

HOW: dict[str, Any] = {"model": "scripted:haiku", "strategy": "system"}


async def test_trees_are_found_by_words_by_name_and_by_id(world: World) -> None:
    async with world.open() as app:
        loom = app.loom
        sea, (storm, calm) = await loom.save_continuations("The sea", [" a storm", " calm"], **HOW)
        wood, _ = await loom.save_continuations("The wood", [" a storm, a storm"], **HOW)
        await loom.update_tree_settings(wood.id, name="Autumn storm")
        trees = {tree.root_id: tree for tree in await loom.search_trees("storm")}
        assert trees.keys() == {wood.id, sea.id}
        # The name of a tree leads to its root, beside the node that says the word.
        assert (trees[wood.id].hits, trees[sea.id].hits) == (2, 1)
        assert trees[sea.id].best_id == storm.id
        assert [tree.root_id for tree in await loom.search_trees("autumn")] == [wood.id]
        assert [tree.root_id for tree in await loom.search_trees(calm.id)] == [sea.id]
        assert await loom.search_trees("no such words") == []


async def test_filters_may_stand_among_the_words(world: World) -> None:
    async with world.open() as app:
        loom = app.loom
        _, (one, two) = await loom.save_continuations("The sea", [" storm A", " storm B"], **HOW)
        await loom.update_metadata(two.id, {"bookmarked": True, "labels": ["dark"]})

        async def found(query: str) -> list[str]:
            return [hit.node.id for hit in await loom.search(query)]

        assert sorted(await found("storm")) == sorted([one.id, two.id])
        assert await found("storm is:bookmarked") == [two.id]
        assert await found("storm -is:bookmarked") == [one.id]
        assert await found("label:dark storm") == [two.id]
        assert await found("storm model:gpt") == []
        assert await found("storm -model:haiku") == []
        assert await found("storm -b") == [one.id]
        assert await found("-a storm") == [two.id]
        assert await found("storm -st") == await found("storm")
        assert await found("storm -a -B") == []
        assert await found("storm after:2999-01-01") == []
        with pytest.raises(UsageError, match="is:great is not known"):
            await found("storm is:great")


async def test_what_a_node_said_before_it_was_edited_is_not_found(world: World) -> None:
    async with world.open() as app:
        loom = app.loom
        _, [one] = await loom.save_continuations("Once", [" up there"], **HOW)
        view = await loom.open(one.id)
        view.edit_node_text(one.id, " zebra there")
        await view.save()
        assert await loom.search("up") == []
        assert await loom.search("up there") == []
        for words in ("zebra", "there"):
            [hit] = await loom.search(words)
            assert (hit.node.id, hit.snippet) == (one.id, "zebra there")
        # By its name the tree is found all the same, and by its id the node.
        await loom.update_tree_settings(one.root_id, name="Up and away")
        assert [hit.node.id for hit in await loom.search("up")] == [one.root_id]
        [hit] = await loom.search(one.id)
        assert hit.snippet.strip() == "zebra there"
