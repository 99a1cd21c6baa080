"""Command lines that the user types: rules, hooks, records, and what the model reads of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.hook_project import decides
from tests.support.world import World, facts, request_lines
from weft.errors import UsageError
from weft.events import ToolExecuting
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]


def hook(event: str, command: str) -> dict[str, Any]:
    return {"hooks": {event: [{"command": command, "matcher": "shell"}]}}


@pytest.mark.parametrize("is_first", [True, False])
async def test_the_model_reads_what_it_printed_with_the_next_message(
    world: World, is_first: bool
) -> None:
    model = ScriptedModel(["ok", "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        if not is_first:
            await session.send_message("go")
        await app.host.run_as_user(session.id, "echo one", to_model=True)
        await app.host.run_as_user(session.id, "echo secret", to_model=False)
        assert len(model.requests) == (0 if is_first else 1)
        await session.send_message("and now?")
        heard = "\n".join(request_lines(model.last_request))
        assert "[The user ran a command:]\n$ echo one\none" in heard
        assert "secret" not in heard
        assert heard.index("echo one") < heard.index("and now?")
        names = [each.tool_name for each in await facts(session, ToolExecuting)]
        assert names == ["user_shell", "user_shell_private"]


@pytest.mark.parametrize("mode", ["default", "accept_edits", "auto"])
async def test_nothing_is_asked_whatever_the_mode_and_a_hook_say(world: World, mode: str) -> None:
    config = hook("PreToolUse", decides("ask", "better ask"))
    async with world.open(ScriptedModel(["ok"]), config=config) as app:
        session = await app.sessions.start_session(session_id="s", permission_mode=mode)
        await app.host.run_as_user(session.id, "touch made", to_model=True)
        assert (world.project / "made").exists()


async def test_a_rule_and_a_hook_that_deny_are_obeyed(world: World) -> None:
    config = {
        **hook("PreToolUse", "grep -q hands && { echo hands off >&2; exit 2; } || exit 0"),
        "permissions.deny": ["shell(touch denied)"],
    }
    model = ScriptedModel(["ok"])
    async with world.open(model, config=config) as app:
        session = await app.sessions.start_session(session_id="s")
        with pytest.raises(UsageError, match=r"`touch denied` was not run\. Denied: the rule"):
            await app.host.run_as_user(session.id, "touch denied", to_model=True)
        with pytest.raises(UsageError, match="hands off"):
            await app.host.run_as_user(session.id, "touch hands", to_model=True)
        assert not {"denied", "hands"} & {each.name for each in world.project.iterdir()}
        await session.send_message("go")
        assert "The user ran" not in "\n".join(request_lines(model.last_request))


async def test_a_rewind_takes_back_what_it_changed(plain_world: World) -> None:
    world = plain_world
    world.write("notes", "remember\n")
    async with world.open(ScriptedModel(["ok"])) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("go")
        await app.host.run_as_user(
            session.id, "echo changed > notes; echo made > new", to_model=True
        )
        touched = {(each.path, each.action) for each in await session.touched_files()}
        assert touched == {("notes", "modified"), ("new", "created")}
        await session.rewind(0)
        assert world.read("notes") == "remember\n"
        assert not (world.project / "new").exists()


async def test_a_session_without_a_shell_has_none_for_the_user_either(world: World) -> None:
    async with world.open(ScriptedModel(["ok"])) as app:
        session = await app.sessions.start_session(session_id="s", tools=["read"])
        with pytest.raises(UsageError, match="this session has no shell"):
            await app.host.run_as_user(session.id, "touch made", to_model=True)
