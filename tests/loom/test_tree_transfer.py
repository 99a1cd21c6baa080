"""Trees between a store and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.world import World
from weft.errors import NodeNotFound, UsageError
from weft.loom.formats.tree_file import parse_trees
from weft.loom.tree_transfer import export_tree, import_trees
from weft.messages import Usage
from weft.providers.script import SayText, Spend
from weft.providers.scripted import ScriptedModel

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


async def test_what_nodes_cost_and_how_a_tree_is_continued_come_back(world: World) -> None:
    spent = Spend(usage=Usage(input_tokens=100, output_tokens=10, cost_usd=0.25))
    model = ScriptedModel([[SayText(text=" once"), spent], [SayText(text=" twice"), spent]])
    model.info = msgspec.structs.replace(model.info, name="other")
    async with world.open(ScriptedModel([]), model) as app:
        root = await app.loom.create_root("Root")
        plan = [{"model": "scripted:other", "n_branches": 2, "max_tokens": 30, "temperature": 0.5}]
        await app.loom.update_tree_settings(root.id, model_plan=plan, metadata={"mood": "dark"})
        view = await app.loom.open(root.id)
        async for _ in view.generate():
            pass
        before = view.get_state()
        assert before.cost == pytest.approx(0.5)
        record = await app.loom.tree_record(root.id)
        data = await export_tree(app.loom, root.id)
        await app.loom.delete_tree(root.id)
        await import_trees(app.loom, data)
        assert await app.loom.tree_record(root.id) == record
        again = (await app.loom.open(root.id)).get_state()
        assert again.model_plan == before.model_plan
        assert (again.cost, again.usage) == (before.cost, before.usage)
        assert [child.cost_usd for child in again.children] == [0.25, 0.25]
        (listed,) = (await app.loom.catalogue()).entries
        assert listed.model == "scripted:other"
        assert (await app.loom.tree_settings(root.id)).metadata == {"mood": "dark"}
        await import_trees(app.loom, data)
        assert (await app.loom.open(root.id)).get_state().cost == before.cost, "counted once"


async def test_what_is_wrong_in_a_plan_or_a_cost_is_left_out(world: World) -> None:
    entries = [{"model": "nobody:nothing", "n_branches": 2}, {"model": "x", "n_branches": -1}]
    nodes = [{"id": "r", "text": "R", "usage": {"input_tokens": -5}, "cost_usd": -1.0}]
    tree = {"root_id": "r", "nodes": nodes, "settings": {"model_plan": entries}}
    data = json.dumps({"format": "weft-loom", "version": 1, "trees": [tree]}).encode()
    async with world.open() as app:
        await import_trees(app.loom, data)
        state = (await app.loom.open("r")).get_state()
        assert [each.model for each in state.model_plan] == ["nobody:nothing"]
        assert state.current_node.usage is None


async def test_an_import_tells_how_far_it_is(world: World) -> None:
    trees = [
        {"root_id": f"r{n}", "nodes": [{"id": f"r{n}"}, {"id": f"c{n}", "parent_id": f"r{n}"}]}
        for n in range(3)
    ]
    data = json.dumps({"format": "weft-loom", "version": 1, "trees": trees}).encode()
    told: list[tuple[int, int]] = []
    async with world.open() as app:
        await import_trees(app.loom, data, lambda done, total: told.append((done, total)))
    assert told == [(0, 6), (2, 6), (4, 6), (6, 6)]


async def test_a_node_with_very_many_children_comes_back_with_all_of_them(world: World) -> None:
    below = [{"id": f"c{n}", "parent_id": "r", "text": f" {n}"} for n in range(600)]
    tree = {"root_id": "r", "nodes": [{"id": "r", "text": "R"}, *below]}
    data = json.dumps({"format": "weft-loom", "version": 1, "trees": [tree]}).encode()
    async with world.open() as app:
        await import_trees(app.loom, data)
        children = [each.id for each in await app.loom.children("r")]
    assert children == [f"c{n}" for n in range(600)]


async def test_an_import_is_one_append(world: World) -> None:
    nodes = [{"id": "r", "text": "R"}, *({"id": f"c{n}", "parent_id": "r"} for n in range(3))]
    tree = {"root_id": "r", "nodes": nodes, "name": "the loom", "current_id": "c1"}
    data = json.dumps({"format": "weft-loom", "version": 1, "trees": [tree]}).encode()
    appends: list[int] = []
    async with world.open() as app:
        append = app.store.append

        async def counted(*args: Any, **more: Any) -> Any:
            appends.append(1)
            return await append(*args, **more)

        app.store.append = counted  # type: ignore[method-assign]
        await import_trees(app.loom, data)
        assert len(appends) == 1
        assert (await app.loom.tree_settings("r")).name == "the loom"


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
