"""What an answer claims stands beside what is on record: green, grey or amber."""

from __future__ import annotations

import stat

import pytest

from tests.support.rewind_project import INFO, open_world, start, write
from tests.support.world import World
from weft.api import Reply
from weft.providers.script import CallTool, SayText
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]


def shell(command: str) -> CallTool:
    return CallTool(name="shell", args={"command": command})


def model(*turns: tuple[CallTool, ...] | str) -> ScriptedModel:
    """A model that makes the calls of each turn, and says its text."""
    steps = [[SayText(text=each)] if isinstance(each, str) else list(each) for each in turns]
    return ScriptedModel(steps, info=INFO)


def runner(world: World, name: str, text: str = "3 passed", code: int = 0) -> None:
    """A program of the project that runs its tests."""
    world.write(name, f"#!/bin/sh\necho '{text}'\nexit {code}\n")
    (world.project / name).chmod(stat.S_IRWXU)


def colors(reply: Reply) -> list[tuple[str, str]]:
    return [(each.kind, each.color) for each in reply.receipts]


@pytest.mark.requirement("session:receipts")
async def test_a_claim_is_green_as_long_as_the_files_are_those_that_were_tested(
    world: World,
) -> None:
    runner(world, "pytest")
    turns = model((write("a.txt", "a\n"), shell("./pytest")), "Done. All 3 tests pass.")
    async with open_world(world, turns) as app:
        session = await start(app)
        reply = await session.send_message("go")
        [receipt] = reply.receipts
        assert (receipt.color, receipt.command, receipt.exit_code) == ("green", "./pytest", 0)
        assert receipt.tree
        assert await session.receipts() == reply.receipts
        world.write("a.txt", "changed by the user\n")
        [later] = await session.receipts()
        assert (later.color, later.why) == (
            "grey",
            "`./pytest` ended with 0; files have changed since",
        )
        world.write("a.txt", "a\n")
        assert [each.color for each in await session.receipts()] == ["green"]


async def test_a_claim_without_a_run_or_against_one_is_amber(world: World) -> None:
    runner(world, "pytest", "1 failed", code=1)
    turns = model("All tests pass.", (shell("./pytest"),), "All tests pass.", "It works now.")
    async with open_world(world, turns) as app:
        session = await start(app)
        assert colors(await session.send_message("one")) == [("test", "amber")]
        failed = await session.send_message("two")
        assert colors(failed) == [("test", "amber")]
        assert failed.receipts[0].why == "`./pytest` ended with 1"
        assert colors(await session.send_message("three")) == [("other", "none")]


async def test_an_edit_of_the_session_itself_makes_it_grey(world: World) -> None:
    runner(world, "pytest")
    turns = model((shell("./pytest"),), (write("a.txt", "a\n"),), "All tests pass.")
    async with open_world(world, turns) as app:
        session = await start(app)
        assert colors(await session.send_message("go")) == [("test", "grey")]


async def test_a_rewind_to_the_tested_files_makes_it_green_again(world: World) -> None:
    runner(world, "pytest")
    turns = model(
        (shell("./pytest"),), "All tests pass.", (write("a.txt", "a\n"),), "All tests pass."
    )
    async with open_world(world, turns) as app:
        session = await start(app)
        assert colors(await session.send_message("one")) == [("test", "green")]
        assert colors(await session.send_message("two")) == [("test", "grey")]
        await session.rewind(3)
        assert [each.color for each in await session.receipts()] == ["green"]


async def test_a_search_shows_that_nothing_else_uses_a_name(world: World) -> None:
    world.write("a.py", "def old_name():\n    pass\n")
    world.write("b.py", "old_name()\n")
    grep = CallTool(name="grep", args={"pattern": r"\bold_name\b"})
    edit = CallTool(
        name="edit", args={"path": "b.py", "old_string": "old_name()", "new_string": "pass"}
    )
    said = "There are no other callers of `old_name`."
    read = CallTool(name="read", args={"path": "b.py"})
    turns = model((grep,), said, (read,), (edit,), (grep,), said)
    async with open_world(world, turns) as app:
        session = await start(app)
        first = await session.send_message("one")
        assert colors(first) == [("search", "amber")]
        assert "b.py:1" in first.receipts[0].why
        second = await session.send_message("two")
        assert colors(second) == [("search", "green")], second.receipts
        world.write("c.py", "old_name()\n")
        assert [each.color for each in await session.receipts()] == ["grey"]
