"""The history of a repository in a session: what commands may do to it, and what comes back."""

from __future__ import annotations

import pytest

from tests.support.git_history import git, make_history, reached, refs
from tests.support.rewind_project import actions, open_world, shell, start, turns
from tests.support.sandboxed_session import skip_without_sandbox, tool_results
from tests.support.world import World

pytestmark = [pytest.mark.anyio, pytest.mark.process]


async def test_a_branch_and_a_stash_that_a_command_dropped_come_back_with_a_rewind(
    plain_world: World,
) -> None:
    world = plain_world
    make_history(world.project)
    before, named = git(world.project, "stash", "list"), refs(world.project)
    model = turns(shell("git branch -d merged; git stash drop -q"))
    async with open_world(world, model, sandbox="auto") as app:
        await skip_without_sandbox(app, world)
        session = await start(app)
        await session.send_message("go")
        assert "refs/heads/merged" not in refs(world.project)
        plan = await session.rewind(None)
        assert actions(plan) == {
            ".git/refs/heads/merged": "recreate",
            ".git/refs/stash": "restore",
            ".git/logs/refs/stash": "restore",
        }
    assert refs(world.project) == named
    assert git(world.project, "stash", "list") == before
    git(world.project, "fsck", "--full", "--strict")


async def test_a_command_that_would_lose_history_is_refused_and_the_model_learns_how_to_ask(
    plain_world: World,
) -> None:
    world = plain_world
    make_history(world.project)
    before = reached(world.project)
    attack = "git reflog expire --expire=now --all; rm -rf .git/objects/pack; echo 1 > a"
    model = turns(shell(attack))
    async with open_world(world, model, sandbox="auto") as app:
        await skip_without_sandbox(app, world)
        session = await start(app)
        await session.send_message("go")
    assert reached(world.project) == before
    assert world.read("a") == "1\n"
    assert "a command with outside_sandbox asks for it" in tool_results(model)[-1]
