"""Rules about reading hold for every way to a file: `read`, `grep`, `@file` and commands."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.bounded_code import read
from tests.support.rewind_project import open_world, shell, start, turns
from tests.support.sandboxed_session import skip_without_sandbox, tool_results
from tests.support.world import World, until
from weft.errors import UsageError
from weft.events import PermissionRequest, ToolComplete, TurnFinished
from weft.messages import File
from weft.providers.script import CallTool, ScriptedAnswer
from weft.testing import ScriptedModel
from weft.workspace.concealed import MOST_HIDDEN

pytestmark = pytest.mark.anyio

HIDDEN = ("notes/plan.txt", "deep/er/plan.txt", "keys/a/b.key")
RULES = ["read(plan.txt)", "Read(keys/**)"]


def make(world: World) -> None:
    for name in HIDDEN:
        world.write(name, f"needle in {name}: TOPSECRET\n")
    world.write("open.txt", "needle in the open\n")


@pytest.mark.process
@pytest.mark.parametrize("verdict", ["deny", "ask"])
async def test_a_search_shows_nothing_of_what_may_not_be_read(
    plain_world: World, verdict: str
) -> None:
    make(plain_world)
    search = CallTool(name="grep", args={"pattern": "needle"})
    inside = CallTool(name="grep", args={"pattern": "needle", "path": "deep"})
    model = turns([search, inside])
    rules: dict[str, Any] = {f"permissions__{verdict}": RULES}
    async with open_world(plain_world, model, **rules) as app:
        await (await start(app)).send_message("go")
    whole, below = tool_results(model)
    assert "open.txt:1:" in whole
    assert "TOPSECRET" not in whole + below
    assert "plan.txt" not in whole + below


async def test_a_mention_attaches_nothing_that_may_not_be_read(plain_world: World) -> None:
    make(plain_world)
    asked: list[str] = []

    async def ask(path: str) -> bool:
        asked.append(path)
        return True

    config = {"permissions.deny": ["read(plan.txt)"], "permissions.ask": ["read(keys/*)"]}
    async with plain_world.open(ScriptedModel(["x"]), config=config) as app:
        with pytest.raises(UsageError, match="deny read"):
            await app.attach_files(["look at @notes/plan.txt"], ask=ask)
        with pytest.raises(UsageError, match="deny read"):
            await app.attach_files([f"@{plain_world.project}/deep/er/plan.txt"], ask=ask)
        with pytest.raises(UsageError, match="ask read"):
            await app.attach_files(["@keys/a/b.key"])
        [attached] = await app.attach_files(["@keys/a/b.key"], ask=ask)
    assert isinstance(attached, File)
    assert asked == [str(plain_world.project / "keys/a/b.key")]


@pytest.mark.process
async def test_a_command_in_the_sandbox_does_not_see_it(plain_world: World) -> None:
    make(plain_world)
    plain_world.write("../beside/other.txt", "TOPSECRET beside\n")
    beside = plain_world.project.parent / "beside"
    # In a script, whose words are not judged before it runs.
    look = (
        "cat notes/plan.txt deep/er/plan.txt keys/a/b.key; "
        f"find . {beside} -type f | xargs cat; cat open.txt"
    )
    plain_world.write("look.sh", look)
    model = turns(shell("sh look.sh"))
    config = {"permissions__deny": [*RULES, f"read({beside})"]}
    async with open_world(plain_world, model, sandbox="auto", **config) as app:
        await skip_without_sandbox(app, plain_world)
        session = await app.sessions.start_session(permission_mode="auto", asking="no")
        await session.send_message("go")
    [result] = tool_results(model)
    assert "needle in the open" in result
    assert "TOPSECRET" not in result
    assert plain_world.read("notes/plan.txt").endswith("TOPSECRET\n")


@pytest.mark.process
@pytest.mark.parametrize(
    "command", ["cat notes/plan.txt", "ls; head -1 < keys/a/b.key", "cp ./notes/plan.txt x"]
)
async def test_a_command_that_names_it_is_not_run(plain_world: World, command: str) -> None:
    make(plain_world)
    model = turns(shell(command))
    async with open_world(plain_world, model, sandbox="auto", permissions__deny=RULES) as app:
        session = await app.sessions.start_session(permission_mode="auto", asking="no")
        await session.send_message("go")
    [result] = tool_results(model)
    assert "Denied: the rule `deny read(" in result


@pytest.mark.process
async def test_nor_does_it_see_it_in_a_folder_that_was_added(plain_world: World) -> None:
    added = plain_world.project.parent / "added"
    plain_world.write("../added/deep/plan.txt", "TOPSECRET\n")
    plain_world.write("../added/open.txt", "needle in the open\n")
    plain_world.write("look.sh", f"cat {added}/deep/plan.txt; cat {added}/open.txt")
    model = turns(shell("sh look.sh"))
    config = {"sandbox.mode": "auto", "permissions.deny": RULES}
    async with plain_world.open(model, config=config, added=[str(added)]) as app:
        await skip_without_sandbox(app, plain_world)
        session = await app.sessions.start_session(permission_mode="auto", asking="no")
        await session.send_message("go")
    [result] = tool_results(model)
    assert "needle in the open" in result
    assert "TOPSECRET" not in result


@pytest.mark.process
async def test_a_command_that_the_user_allowed_runs_though_nothing_can_be_hidden(
    plain_world: World,
) -> None:
    for number in range(MOST_HIDDEN + 1):
        plain_world.write(f"{number}.key", "TOPSECRET\n")
    model = ScriptedModel([ScriptedAnswer(steps=(shell("echo fine"),)), "ok"])
    async with plain_world.open(model, config={"permissions.deny": ["read(*.key)"]}) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await until(session, PermissionRequest)
        await session.respond_to_permission("allow_once")
        await until(session, TurnFinished)
    assert "fine" in tool_results(model)[0]


@pytest.mark.process
@pytest.mark.parametrize("verdict", ["deny", "ask"])
@pytest.mark.parametrize("mode", ["default", "auto", "bypass"])
async def test_without_a_sandbox_a_command_asks(
    plain_world: World, verdict: str, mode: str
) -> None:
    make(plain_world)
    model = ScriptedModel([ScriptedAnswer(steps=(shell("cat open.txt"),)), "ok"])
    rules = {"permissions.allow": ["shell"], f"permissions.{verdict}": RULES}
    async with plain_world.open(model, config=rules) as app:
        session = await app.sessions.start_session(permission_mode=mode)
        await session.send_prompt("go")
        kinds: list[type[PermissionRequest | ToolComplete]] = [PermissionRequest, ToolComplete]
        came = await until(session, *kinds)
        assert isinstance(came, PermissionRequest)
        assert "read" in came.reason
        assert "sandbox" in came.reason
        await session.respond_to_permission("allow_once")
        await until(session, TurnFinished)
    assert "needle in the open" in tool_results(model)[0]


@pytest.mark.process
async def test_where_not_all_can_be_hidden_a_command_asks(plain_world: World) -> None:
    for number in range(MOST_HIDDEN + 1):
        plain_world.write(f"{number}.key", "TOPSECRET\n")
    model = ScriptedModel([ScriptedAnswer(steps=(shell("echo fine"),)), "ok"])
    config = {"sandbox.mode": "auto", "permissions.deny": ["read(*.key)"]}
    async with plain_world.open(model, config=config) as app:
        await skip_without_sandbox(app, plain_world)
        session = await app.sessions.start_session(permission_mode="auto")
        await session.send_prompt("go")
        came = await until(session, PermissionRequest)
        assert "too large to hide" in came.reason
        await session.respond_to_permission("allow_once")
        await until(session, TurnFinished)
    assert "fine" in tool_results(model)[0]


@pytest.mark.process
async def test_yes_to_everything_does_not_stand_for_the_user_there(plain_world: World) -> None:
    make(plain_world)
    model = turns([shell("cat notes/plan.txt"), read("open.txt")])
    async with open_world(plain_world, model, permissions__deny=RULES) as app:
        await (await start(app)).send_message("go")
    command, other = tool_results(model)
    assert "TOPSECRET" not in command
    assert "needle in the open" in other


@pytest.mark.process
async def test_a_command_changes_nothing_that_may_not_be_edited(plain_world: World) -> None:
    plain_world.write("deep/lock.txt", "old\n")
    model = turns(shell("p=lock; echo new > deep/$p.txt; echo 1 > free"))
    async with open_world(
        plain_world, model, sandbox="auto", permissions__deny=["edit(lock.txt)"]
    ) as app:
        await skip_without_sandbox(app, plain_world)
        await (await start(app)).send_message("go")
    assert plain_world.read("deep/lock.txt") == "old\n"
    assert plain_world.read("free") == "1\n"
    assert "the rule `deny" in tool_results(model)[0]
