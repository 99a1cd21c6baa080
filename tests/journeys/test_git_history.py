"""The history of a repository in a session: what commands may do to it, and what comes back."""

from __future__ import annotations

import pytest

from tests.support.git_history import GIT, git, make_history, reached, refs
from tests.support.rewind_project import actions, open_world, shell, start, turns
from tests.support.sandboxed_session import skip_without_sandbox, tool_results
from tests.support.world import World, facts
from weft.events import SystemNote

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


async def test_the_last_name_of_what_another_repository_had_comes_back_with_a_rewind(
    plain_world: World,
) -> None:
    world = plain_world
    make_history(world.project)
    theirs = git(world.project, "commit-tree", "HEAD^{tree}", "-m", "theirs").strip()
    git(world.project, "update-ref", "refs/remotes/origin/theirs", theirs)
    named = refs(world.project)
    async with open_world(
        world, turns(shell("git branch -dr origin/theirs")), sandbox="auto"
    ) as app:
        await skip_without_sandbox(app, world)
        session = await start(app)
        await session.send_message("go")
        # As `git fetch --prune` does: nothing asks.
        assert "refs/remotes/origin/theirs" not in refs(world.project)
        await session.rewind(None)
    assert refs(world.project) == named


@pytest.mark.parametrize(
    "line",
    [
        *("rm .git/index", ": > .git/index", "echo broken > .git/index"),
        *("rm .git/index; git status", "truncate -s 40 .git/index"),
        "printf XX | dd of=.git/index bs=1 seek=60 conv=notrunc status=none",
        "git update-index --split-index; rm .git/sharedindex.*",
    ],
)
async def test_an_index_that_a_command_destroyed_comes_back_with_a_rewind(
    plain_world: World, line: str
) -> None:
    world = plain_world
    make_history(world.project)
    world.write("staged", "not committed\n")
    git(world.project, "add", "staged")
    staged = git(world.project, "diff", "--cached", "--name-only")
    model = turns(shell(line))
    async with open_world(world, model, sandbox="auto") as app:
        await skip_without_sandbox(app, world)
        session = await start(app)
        await session.send_message("go")
        assert "`.git/index` was lost" in tool_results(model)[-1]
        plan = await session.rewind(None)
        assert actions(plan)[".git/index"] in ("recreate", "restore")
    assert "staged" in staged
    assert git(world.project, "diff", "--cached", "--name-only") == staged


async def test_the_shared_part_of_an_index_comes_back_with_a_rewind(plain_world: World) -> None:
    world = plain_world
    make_history(world.project)
    world.write("staged", "not committed\n")
    git(world.project, "add", "staged")
    git(world.project, "update-index", "--split-index")
    staged = git(world.project, "diff", "--cached", "--name-only")
    model = turns(shell("rm .git/sharedindex.*"))
    async with open_world(world, model, sandbox="auto") as app:
        await skip_without_sandbox(app, world)
        session = await start(app)
        await session.send_message("go")
        assert "was lost, and with it what was staged" in tool_results(model)[-1]
        await session.rewind(None)
    assert git(world.project, "diff", "--cached", "--name-only") == staged


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


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        ("git branch -D apart", "it removes refs/heads/apart, with commits"),
        ("git reflog expire --expire=now --all HEAD main apart", "it drops 2 stashes"),
        ("find .git/logs -type f ! -name stash -delete", "it loses commits"),
        ("rm -rf .git/objects/pack", "it removes commits that refs"),
        ("rm -rf .git/objects/??", "it removes commits that refs"),
        (
            "for f in .git/objects/pack/*.pack; do chmod 600 $f; echo x > $f; done",
            "it leaves a damaged pack",
        ),
        ("echo junk > .git/HEAD", "it leaves HEAD with nothing"),
        ("rm -rf .git", "it leaves no repository"),
    ],
)
async def test_without_a_sandbox_lost_history_is_reported(
    plain_world: World, attack: str, why: str
) -> None:
    world = plain_world
    make_history(world.project)
    model = turns(shell(attack))
    async with open_world(world, model, sandbox="off") as app:
        session = await start(app)
        await session.send_message("go")
        notes = [note.text for note in await facts(session, SystemNote)]
    assert "- .git: " in tool_results(model)[-1]
    assert why in tool_results(model)[-1]
    assert "Ask the user whether this may stay" in tool_results(model)[-1]
    [note] = [note for note in notes if ".git: " in note]
    assert "Nothing was put back" in note


@pytest.mark.parametrize(
    "line",
    [
        f"echo 1 > x && git add x && {GIT} commit -qm x && {GIT} commit -q --amend -m y",
        f"git checkout -q apart && {GIT} rebase -q main",
        "git branch -d merged",
        "git stash pop -q",
        "git gc -q",
        "git repack -adq && git pack-refs --all",
        "git clone -q . ../clone && git fetch -q ../clone",
        "rm -f x",
    ],
)
async def test_without_a_sandbox_everyday_git_is_not_reported(
    plain_world: World, line: str
) -> None:
    world = plain_world
    make_history(world.project)
    git(world.project, "config", "user.name", "a")
    git(world.project, "config", "user.email", "a@b.c")
    model = turns(shell(line))
    async with open_world(world, model, sandbox="off") as app:
        session = await start(app)
        await session.send_message("go")
    result = tool_results(model)[-1]
    assert "may not change" not in result
    assert "exit code" not in result
    git(world.project, "fsck", "--full", "--strict")


async def test_a_branch_that_a_command_without_a_sandbox_removed_comes_back_with_a_rewind(
    plain_world: World,
) -> None:
    world = plain_world
    make_history(world.project)
    named = refs(world.project)
    model = turns(shell("git branch -D apart merged"))
    async with open_world(world, model, sandbox="off") as app:
        session = await start(app)
        await session.send_message("go")
        assert refs(world.project) != named
        await session.rewind(None)
    assert refs(world.project) == named
