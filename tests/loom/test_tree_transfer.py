"""Trees between a store and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.world import World
from weft.errors import NodeNotFound, UsageError
from weft.loom.formats.tree_file import parse_trees
from weft.loom.tree_transfer import export_tree, import_trees

pytestmark = pytest.mark.anyio

FILES = Path(__file__).parent / "files"
HOW: dict[str, Any] = {"model": "m", "strategy": "system", "max_tokens": 10, "temperature": 0.9}


async def test_a_tree_that_was_written_is_read_as_it_was(world: World) -> None:
    async with world.open() as app:
        root, (first, second) = await app.loom.save_continuations("Root", [" A", " B"], **HOW)
        await app.loom.update_metadata(first.id, {"bookmarked": True, "rating": 2})
        await app.loom.set_checked_out_child(root.id, second.id)
        await app.loom.set_context(second.id, "a storm")
        await app.loom.update_tree_settings(root.id, name="the loom")
        data = await export_tree(app.loom, root.id)
        record = await app.loom.tree_record(first.id)
        await app.loom.delete_tree(root.id)
        with pytest.raises(NodeNotFound):
            await app.loom.get(root.id)
        done = await import_trees(app.loom, data)
        assert (done.roots, done.added, done.known) == ((root.id,), 3, 0)
        again = await app.loom.tree_record(root.id)
        assert again == record
        assert [node.context for node in again.nodes] == ["", "", "a storm"]
        assert (again.name, again.nodes[1].bookmarked, again.nodes[2].checked_out) == (
            "the loom",
            True,
            True,
        )
        assert await export_tree(app.loom, root.id) == data


@pytest.mark.parametrize("name", ["basemode", "tinyloom", "minihf", "bonsai", "chatgpt", "claude"])
async def test_files_of_others_are_imported_once(world: World, name: str) -> None:
    data = (FILES / f"{name}.json").read_bytes()
    trees = parse_trees(data)
    size = sum(len(tree.nodes) for tree in trees)
    async with world.open() as app:
        done = await import_trees(app.loom, data)
        assert (done.source, done.added, done.known) == (name, size, 0)
        twice = await import_trees(app.loom, data)
        assert (twice.added, twice.known, twice.roots) == (0, size, done.roots)
        for tree in trees:
            for node in tree.nodes:
                text = "".join(each.text for each in tree.line(node.id))
                found = await app.loom.full_text(node.id)
                assert found.replace("\n", "") == text.replace("\n", "")


async def test_messages_of_a_chat_do_not_run_into_each_other(world: World) -> None:
    async with world.open() as app:
        await import_trees(app.loom, (FILES / "claude.json").read_bytes())
        assert await app.loom.full_text("d-2") == "Hi\n\nHello!\n\n"
        assert await app.loom.active_node("u-2") == "d-2"
        assert (await app.loom.tree_settings("u-2")).name == "Branches"


async def test_each_format_is_written_and_others_are_refused(world: World) -> None:
    async with world.open() as app:
        root, (first, _) = await app.loom.save_continuations("Root", [" A", " B"], **HOW)
        assert await export_tree(app.loom, first.id, "md") == b"Root A\n"
        assert b"<article" in await export_tree(app.loom, root.id, "html")
        assert parse_trees(await export_tree(app.loom, root.id, "basemode"))[0].root_id == root.id
        with pytest.raises(UsageError, match="no format 'pdf'; there are json, basemode, md, html"):
            await export_tree(app.loom, root.id, "pdf")


async def test_what_grew_from_an_older_text_still_reads_so_in_a_file(world: World) -> None:
    async with world.open() as app:
        root, (first,) = await app.loom.save_continuations("Root", [" A"], **HOW)
        below = await app.loom.add_child(first.id, " below", **HOW)
        view = await app.loom.open(first.id)
        view.edit_node_text(first.id, " changed")
        await view.save()
        await app.loom.add_child(first.id, " later", **HOW)
        record = await app.loom.tree_record(root.id)
        assert await app.loom.full_text(below.id) == "Root A below"
        texts = {"".join(each.text for each in record.line(node.id)) for node in record.nodes}
        assert texts == {"Root", "Root A", "Root A below", "Root changed", "Root changed later"}
