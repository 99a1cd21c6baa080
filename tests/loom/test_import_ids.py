"""Ids of imports: kept where they are free, found again, and never a reason to merge two trees."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.world import World
from weft.errors import UsageError
from weft.loom import GenerationStore
from weft.loom.tree_transfer import export_tree, import_trees

pytestmark = pytest.mark.anyio


def basemode(*texts: str) -> bytes:
    """A file of another program: a line of nodes that are called 1, 2, …"""
    nodes = [
        {"id": str(number), "parent_id": str(number - 1) if number > 1 else None, "text": text}
        for number, text in enumerate(texts, 1)
    ]
    return json.dumps({"version": 1, "nodes": nodes}).encode()


async def lines(loom: GenerationStore) -> set[str]:
    """What all trees say, each from its root down its only line."""
    found = set()
    for root in await loom.roots():
        nodes = await loom.tree(root.id)
        found.add(await loom.full_text(nodes[-1].id))
    return found


async def test_two_files_with_the_same_small_ids_are_two_trees(world: World) -> None:
    first, second = basemode("One", " two"), basemode("Eins", " zwei", " drei")
    async with world.open() as app:
        loom = app.loom
        report = await import_trees(loom, first)
        other = await import_trees(loom, second)
        assert (report.roots, report.added, report.known) == (("1",), 2, 0)
        assert (other.added, other.known) == (3, 0)
        assert other.roots != report.roots
        assert await lines(loom) == {"One two", "Eins zwei drei"}
        # What was free is kept; what was taken is known by its old name.
        [last] = await loom.nodes_by_ids(["3"])
        assert last == "3"
        assert (await loom.get(other.roots[0])).metadata["imported_id"] == "1"
    async with world.open() as app:
        loom = app.loom
        for data, expected in ((first, report), (second, other)) * 2:
            again = await import_trees(loom, data)
            assert (again.roots, again.added) == (expected.roots, 0)
            assert again.known == expected.added
        assert await lines(loom) == {"One two", "Eins zwei drei"}


async def test_a_file_that_has_grown_adds_what_is_new_to_its_own_tree(world: World) -> None:
    async with world.open() as app:
        loom = app.loom
        await import_trees(loom, basemode("One", " two"))
        other = await import_trees(loom, basemode("Eins", " zwei"))
        grown = await import_trees(loom, basemode("Eins", " zwei", " drei"))
        assert (grown.roots, grown.added, grown.known) == (other.roots, 1, 2)
        await import_trees(loom, basemode("One", " two", " three"))
        assert await lines(loom) == {"One two three", "Eins zwei drei"}


async def test_trees_that_begin_alike_and_differ_below_are_not_merged(world: World) -> None:
    async with world.open() as app:
        await import_trees(app.loom, basemode("Once", " upon"))
        await import_trees(app.loom, basemode("Once", " more", " with"))
        assert await lines(app.loom) == {"Once upon", "Once more with"}


async def test_an_edit_a_split_and_a_join_since_do_not_make_it_another_tree(world: World) -> None:
    data = basemode("One", " two", " three", " four")
    async with world.open() as app:
        loom = app.loom
        await import_trees(loom, data)
        view = await loom.open("1")
        view.edit_node_text("2", " deux")
        view.split_node("3", 3)
        view.join_with_parent("4")
        await view.save()
        assert (await import_trees(loom, data)).added == 0
        assert len(await loom.roots()) == 1
        await loom.delete_subtree("2")
        assert (await import_trees(loom, data)).added == 0


async def test_an_export_comes_back_to_its_own_tree_with_what_was_said_before(
    world: World,
) -> None:
    async with world.open() as app:
        loom = app.loom
        root, [child] = await loom.save_continuations("Root", [" and"], model="m")
        await loom.add_child(child.id, " more")
        view = await loom.open(child.id)
        # A child keeps the text that it grew from, so that the export has both.
        view.edit_node_text(child.id, " or")
        await view.save()
        data = await export_tree(loom, root.id, "json")
        assert len(json.loads(data)["trees"][0]["nodes"]) == 4
        assert (await import_trees(loom, data)).added == 0
    (world.base / "other").mkdir()
    async with World(world.kind, world.base / "other").open() as app:
        report = await import_trees(app.loom, data)
        assert (report.roots, report.added) == ((root.id,), 4)
        assert (await import_trees(app.loom, data)).added == 0


async def test_an_export_of_a_fork_is_not_taken_for_the_tree_it_came_from(world: World) -> None:
    async with world.open() as app:
        loom = app.loom
        root, [child] = await loom.save_continuations("Root", [" and"], model="m")
        fork = (await app.sessions.fork_session(await loom.session_of(root.id))).id
        await loom.add_child(f"{fork}/{child.id}", " in the fork")
        data = [await export_tree(loom, each, "json") for each in (root.id, fork)]
        for each in data:
            assert (await import_trees(loom, each)).added == 0
        assert await loom.children(child.id) == []
    (world.base / "other").mkdir()
    async with World(world.kind, world.base / "other").open() as app:
        for each in data:
            await import_trees(app.loom, each)
        assert await lines(app.loom) == {"Root and", "Root and in the fork"}
        assert [(await import_trees(app.loom, each)).added for each in data] == [0, 0]


async def test_nodes_may_be_added_below_one_that_is_there(world: World) -> None:
    async with world.open() as app:
        loom = app.loom
        _, [child] = await loom.save_continuations("Root", [" and"], model="m")
        await import_trees(loom, basemode("One", " two"))
        more: list[dict[str, Any]] = [
            {"id": "2", "parent_id": child.id, "text": " below"},
            {"id": "9", "parent_id": "2", "text": " and below that"},
        ]
        assert await loom.import_nodes(more) == 2
        assert await loom.import_nodes(more) == 0
        [below] = await loom.children(child.id)
        assert (below.text, below.metadata["imported_id"]) == (" below", "2")
        assert await loom.full_text("9") == "Root and below and below that"
        assert [node.text for node in await loom.tree("1")] == ["One", " two"]
        with pytest.raises(UsageError, match="is not there"):
            await loom.import_nodes([{"id": "x", "parent_id": "nobody", "text": ""}])


async def test_a_part_of_a_tree_that_has_changed_is_refused_and_nothing_is_there_twice(
    world: World,
) -> None:
    async with world.open() as app:
        loom = app.loom
        root, [child] = await loom.save_continuations("Root", [" and"], model="m")
        part: list[dict[str, Any]] = [
            {"id": "a", "parent_id": root.id, "text": " A"},
            {"id": "b", "parent_id": "a", "text": " B"},
            {"id": "c", "parent_id": "b", "text": " C"},
        ]
        assert await loom.import_nodes(part) == 3
        before = await loom.tree(root.id)
        new = {"id": "d", "parent_id": "c", "text": " D"}
        for changed in ({**part[0], "text": " A changed"}, {**part[0], "parent_id": child.id}):
            for _ in range(2):
                with pytest.raises(UsageError, match="'a' of the import is not the one"):
                    await loom.import_nodes([changed, *part[1:], new])
            assert await loom.tree(root.id) == before
        # What it once said is no difference, nor is a node that was deleted.
        view = await loom.open(root.id)
        view.edit_node_text("a", " A edited here")
        await view.save()
        await loom.delete_subtree("c")
        assert await loom.import_nodes(part) == 0
        await loom.restore_subtree("c")
        assert await loom.import_nodes([*part, new]) == 1
        assert [node.id for node in await loom.lineage("d")] == [root.id, "a", "b", "c", "d"]


async def test_nodes_may_be_added_below_the_root_of_a_fork(world: World) -> None:
    async with world.open() as app:
        loom = app.loom
        root, [child] = await loom.save_continuations("Root", [" and"], model="m")
        fork = (await app.sessions.fork_session(await loom.session_of(root.id))).id
        named = (await loom.get(fork)).id
        more: list[dict[str, Any]] = [
            {"id": "x", "parent_id": named, "text": " below the fork", "checked_out": True},
            {"id": "y", "parent_id": "x", "text": " and below that"},
        ]
        assert await loom.import_nodes(more) == 2
        assert await loom.import_nodes(more) == 0
        assert [node.id for node in await loom.children(fork)] == [child.id, "x"]
        assert [node.id for node in await loom.children(root.id)] == [child.id]
        assert await loom.full_text("y") == "Root below the fork and below that"
        assert await loom.checked_out_child(fork) == "x"


async def test_a_second_root_is_in_every_export_and_comes_back(world: World) -> None:
    async with world.open() as app:
        loom = app.loom
        root, [child] = await loom.save_continuations("Root", [" and"], model="m")
        view = await loom.open(child.id)
        view.apply_edit("Root and", "Anew and", fork=True)
        await view.save()
        assert view.get_state().full_text == "Anew and"
        files = {form: await export_tree(loom, root.id, form) for form in ("json", "basemode")}
        page = (await export_tree(loom, root.id, "html")).decode()
        assert "Root" in page
        assert "Anew" in page
        assert (await export_tree(loom, root.id, "md")).decode() == "Anew and\n"
        line = await export_tree(loom, view.current_node_id, "md")
        assert line.decode() == "Anew and\n"
        for form, data in files.items():
            assert data.count(b'"Anew"') == 1, form
            assert (await import_trees(loom, data)).added == 0, form
        stats = await loom.stats(root.id)
        assert (stats.nodes, stats.shape.size) == (4, 4)
    (world.base / "other").mkdir()
    async with World(world.kind, world.base / "other").open() as app:
        report = await import_trees(app.loom, files["json"])
        assert (report.roots, report.added) == ((root.id,), 4)
        assert len(await app.loom.tree(root.id)) == 4
        assert (await app.loom.open(root.id)).get_state().full_text == "Anew and"
        assert (await import_trees(app.loom, files["json"])).added == 0


async def test_branches_of_nodes_that_were_edited_come_back_where_they_were(world: World) -> None:
    async def outline(loom: GenerationStore, root: str) -> list[tuple[str, str | None, str, str]]:
        return [
            (node.id, node.parent_id, node.text, await loom.full_text(node.id))
            for node in await loom.tree(root)
        ]

    async with world.open() as app:
        loom = app.loom
        root, [child] = await loom.save_continuations("Once", [" up"], model="m")
        view = await loom.open(root.id)
        for text, beside in (("Twice", " down"), ("Thrice", ""), ("Often", " left")):
            view.edit_node_text(root.id, text)
            if beside:
                await view.save()
                await loom.add_child(root.id, beside)
        view.edit_node_text(child.id, " over")
        await view.save()
        await view.aclose()
        before = await outline(loom, root.id)
        children = [each.id for each in await loom.children(root.id)]
        texts = sorted(each[3] for each in before)
        assert texts == ["Often", "Often left", "Once over", "Twice down"]
        data = await export_tree(loom, root.id)
        assert (await import_trees(loom, data)).added == 0
        assert await outline(loom, root.id) == before
    (world.base / "other").mkdir()
    other = World(world.kind, world.base / "other")
    async with other.open() as app:
        assert (await import_trees(app.loom, data)).known == 0
    async with other.open() as app:
        assert sorted(await outline(app.loom, root.id)) == sorted(before)
        assert [each.id for each in await app.loom.children(root.id)] == children
        assert (await import_trees(app.loom, data)).added == 0
