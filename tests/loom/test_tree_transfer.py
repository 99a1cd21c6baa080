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


def _odd(**fields: str) -> bytes:
    """A file of ours whose second node has these fields, as they are written there."""
    more = "".join(f', "{name}": {value}' for name, value in fields.items())
    root = '{"id": "r", "kind": "root", "text": "Once"' + more + "}"
    node = '{"id": "a", "parent_id": "r", "text": " up"' + more + "}"
    tree = '{"root_id": "r", "nodes": [' + root + ", " + node + "]}"
    return ('{"format": "weft-loom", "version": 1, "trees": [' + tree + "]}").encode()


@pytest.mark.parametrize("at", ["1e400", "-1e400", "-1e17", "1e17", "-1"])
async def test_a_time_that_is_none_is_left_out_before_it_is_stored(world: World, at: str) -> None:
    async with world.open() as app:
        await import_trees(app.loom, _odd(created_at=at))
        # As of any node that names no time, the one at which it came.
        assert 0 < (await app.loom.get("a")).created_at < 4e9
    async with world.open() as app:
        assert [hit.node.id for hit in await app.loom.search("up")] == ["a"]
        assert b"Once" in await export_tree(app.loom, "r", "html")
        assert b"Once" in await export_tree(app.loom, "r", "basemode")
        assert await app.loom.delete_tree("r") == 2


async def test_numbers_of_a_file_are_in_range_or_left_out(world: World) -> None:
    metadata = '{"far": 1e400, "many": 1' + "0" * 400 + ', "large": 99999999999999999999}'
    odd = _odd(
        rating="77", max_tokens="-3", cost_usd="-1e400", temperature="1e400", metadata=metadata
    )
    (tree,) = parse_trees(odd)
    node = tree.nodes[1]
    assert (node.rating, node.max_tokens, node.cost_usd, node.temperature) == (10, None, None, None)
    async with world.open() as app:
        await import_trees(app.loom, odd)
        records = [{"id": "x", "rating": -77.4, "max_tokens": -3, "created_at": -1e300}]
        await app.loom.import_nodes(records)
    async with world.open() as app:
        found = await app.loom.get("a")
        assert (found.rating, found.max_tokens, found.temperature) == (10, None, None)
        assert (found.metadata["far"], found.metadata["many"]) == (None, None)
        assert found.metadata["large"] == pytest.approx(1e20)
        other = await app.loom.get("x")
        assert (other.rating, other.max_tokens, other.created_at > 0) == (-10, None, True)
        assert await app.loom.delete_tree("r") == 2


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
