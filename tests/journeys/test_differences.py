"""What is on the disk and not in the log is named, and nothing else is."""

from __future__ import annotations

import pytest

from tests.support.rewind_project import INFO, open_world, start, write
from tests.support.world import World
from weft.api import FileDifference
from weft.providers.script import CallTool, SayText
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


def shell(command: str) -> CallTool:
    return CallTool(name="shell", args={"command": command})


def model(*calls: CallTool) -> ScriptedModel:
    return ScriptedModel([*([each] for each in calls), [SayText(text="done")]], info=INFO)


def named(found: list[FileDifference]) -> list[tuple[str, str, str]]:
    return [(each.path, each.kind, each.by) for each in found]


@pytest.mark.requirement("session:differences")
async def test_what_others_did_is_named_and_what_the_session_did_is_not(world: World) -> None:
    world.write("a.txt", "a\n")
    world.write("b.txt", "b\n")
    world.write("c.txt", "c\n")
    async with open_world(world, model(write("new.txt", "new\n"))) as app:
        session = await start(app)
        await session.send_message("go")
        assert await session.differences() == []
        world.write("a.txt", "changed\n")
        (world.project / "b.txt").unlink()
        world.write("folder/d.txt", "d\n")
        world.write("new.txt", "not what was written\n")
        found = await session.differences()
        assert named(found) == [
            ("a.txt", "modified", "outside"),
            ("b.txt", "deleted", "outside"),
            ("folder/d.txt", "created", "outside"),
            ("new.txt", "modified", "outside"),
        ]
        assert found[0].since is not None
        world.write("a.txt", "a\n")
        assert "a.txt" not in [each.path for each in await session.differences()]


async def test_before_the_first_snapshot_only_what_tools_left_is_compared(world: World) -> None:
    world.write("a.txt", "a\n")
    async with open_world(world, model()) as app:
        session = await start(app)
        assert await session.differences() == []
        world.write("b.txt", "b\n")
        assert await session.differences() == []


async def test_a_rewind_leaves_no_difference(world: World) -> None:
    async with open_world(world, model(write("new.txt", "new\n"))) as app:
        session = await start(app)
        await session.send_message("go")
        await session.rewind(None, conversation=False)
        assert await session.differences() == []
        world.write("new.txt", "new\n")
        assert named(await session.differences()) == [("new.txt", "created", "outside")]


async def test_an_ignored_file_counts_where_a_tool_changed_it_since(world: World) -> None:
    world.write(".gitignore", "build/\n")
    async with open_world(world, model(write("build/x", "x\n"))) as app:
        session = await start(app)
        await session.send_message("go")
        world.write("build/y", "y\n")
        assert await session.differences() == []
