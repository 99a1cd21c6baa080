"""What a word on the command line means: a node, a file, or a text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.loom_stage import scripted
from tests.support.world import World
from weft.cli.loom_view.start_node import find_start
from weft.errors import NodeNotFound, UsageError

pytestmark = pytest.mark.anyio


async def test_an_id_or_its_beginning_is_a_node(world: World) -> None:
    async with world.open() as app:
        root = await app.loom.create_root("Once")
        child = await app.loom.add_child(root.id, " upon")
        assert await find_start(app, child.id) == child.id
        assert await find_start(app, child.id[:-2]) == child.id
        with pytest.raises(NodeNotFound):
            await find_start(app, "nod_none")


async def test_a_text_becomes_a_tree_once(world: World) -> None:
    model = scripted("m")
    async with world.open(model, config={"model.default": "scripted:m"}) as app:
        first = await find_start(app, "Once upon a time")
        assert (await app.loom.get(first)).text == "Once upon a time"
        assert await find_start(app, "Once upon a time") == first
        assert await find_start(app, "Once") != first
        assert len(await app.loom.roots()) == 2
        [entry] = (await app.loom.tree_settings(first)).model_plan
        assert (entry.model, entry.n_branches, entry.max_tokens) == ("scripted:m", 3, 40)


async def test_a_text_file_becomes_a_tree_that_has_its_name(plain_world: World) -> None:
    async with plain_world.open() as app:
        (plain_world.project / "tale.txt").write_text("Once upon\r\na time\n\n")
        found = await find_start(app, "tale.txt")
        assert (await app.loom.get(found)).text == "Once upon\na time"
        assert (await app.loom.tree_settings(found)).name == "tale.txt"
        assert await find_start(app, str(plain_world.project / "tale.txt")) == found


async def test_a_file_with_trees_is_imported_once(plain_world: World) -> None:
    nodes = [
        {"id": "r", "parent_id": None, "text": "Once"},
        {"id": "c", "parent_id": "r", "text": " upon"},
    ]
    tree = {"format": "weft-loom", "version": 1, "trees": [{"root_id": "r", "nodes": nodes}]}
    async with plain_world.open() as app:
        path: Path = plain_world.project / "tale.json"
        path.write_text(json.dumps(tree))
        assert await find_start(app, "tale.json") == "r"
        assert await find_start(app, "tale.json") == "r"
        assert [child.text for child in await app.loom.children("r")] == [" upon"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("some.json", b'{"a": 1}', "not a tree that is known"),
        ("some.json", b"{", "some.json"),
        ("empty.txt", b"\n", "is empty"),
        ("some.bin", b"\xff\xfe\x00", "neither a tree nor a text"),
    ],
)
async def test_a_file_with_neither_is_one_sentence(
    plain_world: World, name: str, content: bytes, words: str
) -> None:
    async with plain_world.open() as app:
        (plain_world.project / name).write_bytes(content)
        with pytest.raises(UsageError, match=words) as raised:
            await find_start(app, name)
        assert "\n" not in str(raised.value)
        assert await app.loom.roots() == []


async def test_a_folder_is_none(plain_world: World) -> None:
    async with plain_world.open() as app:
        (plain_world.project / "docs").mkdir()
        with pytest.raises(UsageError, match="is a folder"):
            await find_start(app, "docs")


@pytest.mark.parametrize("text", ["a\x00b c", "x" * 5000, "~", "é è", "/"])
async def test_any_other_text_is_a_text(plain_world: World, text: str) -> None:
    async with plain_world.open() as app:
        found = await app.loom.get(await find_start(app, text))
        assert found.parent_id is None
