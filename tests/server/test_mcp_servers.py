"""The operations on MCP servers over HTTP: who sees what of them, and what an answer is about."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.served_world import ServedWorld, serving
from tests.support.world import World
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

SECRET = "sk-ant-api03-" + "Zx9" * 30
PATH = "/projects/main/mcp"


def _name(world: World, **entry: Any) -> None:
    """Let the project name a server."""
    world.write(".mcp.json", json.dumps({"mcpServers": {"far": entry}}))


async def _viewer(served: ServedWorld) -> dict[str, str]:
    code = (await served.good("POST", "/pair/codes", {"role": "viewer"}))["code"]
    token = (await served.good("POST", "/pair", {"code": code}))["token"]
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "far", "args": ["--api-key", SECRET]},
        {"command": "far", "env": {"API_TOKEN": SECRET}},
        {"type": "http", "url": "https://far.example", "headers": {"X-Api-Key": SECRET}},
    ],
)
async def test_who_only_reads_is_told_no_secret_of_a_server(
    plain_world: World, entry: dict[str, Any]
) -> None:
    """Who answers for it sees it as it is written: nothing of it may be hidden from them."""
    _name(plain_world, **entry)
    async with serving(plain_world, ScriptedModel([])) as served:
        assert SECRET in (await served.call("GET", PATH)).body.decode()
        headers = await _viewer(served)
        for path in (PATH, f"{PATH}/far"):
            answer = await served.call("GET", path, headers=headers)
            assert answer.status == 200
            assert SECRET not in answer.body.decode()


async def test_an_answer_is_about_the_server_that_was_shown(plain_world: World) -> None:
    _name(plain_world, command="harmless")
    async with serving(plain_world, ScriptedModel([])) as served:
        (asked,) = (await served.good("GET", PATH))["questions"]
        _name(plain_world, command="harmful")
        await served.good("PUT", f"{PATH}/other", {"entry": {"command": "x"}})  # reads the file
        body = {"allowed": True, "digest": asked["digest"]}
        answer = await served.call("POST", f"{PATH}/far/answer", body)
        assert (answer.status, "is another now" in answer.body.decode()) == (400, True)
        (again,) = (await served.good("GET", PATH))["questions"]
        assert again["shown"] == "harmful"
        body["digest"] = again["digest"]
        assert not (await served.good("POST", f"{PATH}/far/answer", body)).get("questions")
