"""The log says of every call that takes effect who or what allowed it, asked about or not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.hook_project import decides
from tests.support.world import World, facts, until_idle, until_status
from weft.events import CallPermission, PermissionRequest, ToolExecuting
from weft.providers.script import CallTool, Step
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


def write(path: str) -> CallTool:
    return CallTool(name="write", args={"path": path, "content": "x"})


async def recorded(
    world: World, *steps: Step, config: dict[str, Any] | None = None, **settings: Any
) -> list[CallPermission | None]:
    """What the intents of a turn without questions say."""
    async with world.open(ScriptedModel([*steps, "ok"]), config=config) as app:
        session = await app.sessions.start_session(**settings)
        assert (await session.send_message("go")).finish_reason == "stop"
        return [fact.permission for fact in await facts(session, ToolExecuting)]


@pytest.mark.parametrize(
    ("mode", "text"),
    [("accept_edits", "accept_edits mode allows edits"), ("bypass", "bypass mode never asks")],
)
async def test_a_mode_that_allows_a_call_is_on_record(world: World, mode: str, text: str) -> None:
    given = await recorded(world, write("a"), permission_mode=mode)
    assert given == [CallPermission(by="mode", text=text)]


async def test_a_rule_that_allows_a_call_is_on_record_with_its_text(world: World) -> None:
    config = {"permissions.allow": ["write(src/*)"]}
    given = await recorded(world, write("src/a"), config=config)
    assert given == [CallPermission(by="rule", text="allow write(src/*)")]


async def test_a_session_that_asks_no_one_says_so(world: World) -> None:
    [given] = await recorded(world, write("a"), auto_approve=True)
    assert given is not None
    assert given.by == "auto_approve"


@pytest.mark.process
async def test_a_hook_that_allows_a_call_is_on_record_with_its_reason(world: World) -> None:
    config = {"hooks": {"PreToolUse": [{"command": decides("allow", "it is only a test")}]}}
    given = await recorded(world, write("a"), config=config)
    assert given == [CallPermission(by="hook", text="a hook decided: it is only a test")]


@pytest.mark.parametrize(
    ("action", "second"),
    [("allow_once", "user"), ("allow_always", "grant"), ("allow_turn", "grant")],
)
async def test_a_user_who_allows_a_call_is_on_record_with_the_request(
    world: World, action: Any, second: str
) -> None:
    model = ScriptedModel([write("a"), write("a"), "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        asked = 1 if second == "grant" else 2
        for _ in range(asked):
            await until_status(session, "awaiting_permission")
            [request] = (await session.editor_snapshot()).requests
            await session.respond_to_permission(action, request_id=request.request_id)
        await until_idle(session)
        intents = [fact.permission for fact in await facts(session, ToolExecuting)]
        requests = [fact.request_id for fact in await facts(session, PermissionRequest)]
    assert intents[0] == CallPermission(by="user", request=requests[0])
    if second == "user":
        assert intents[1] == CallPermission(by="user", request=requests[1])
    else:
        assert intents[1] == CallPermission(by="grant", text="write(a)")
