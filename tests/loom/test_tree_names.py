"""What a tree is called: the name that it was given, or its first words."""

from __future__ import annotations

import pytest

from tests.support.world import World

pytestmark = pytest.mark.anyio


async def test_a_tree_without_a_name_is_called_by_its_first_words_and_exported_without_one(
    world: World,
) -> None:
    async with world.open() as app:
        root = await app.loom.create_root("Once upon a time")
        view = await app.loom.open(root.id)
        (listed,) = (await app.loom.catalogue()).entries
        assert listed.name == view.get_state().name == "Once upon a time"
        assert (await app.loom.tree_record(root.id)).name == view.tree_settings().name == ""
        await app.loom.update_tree_settings(root.id, name="Spinning")
        assert view.get_state().name == "Spinning"
        await view.aclose()
