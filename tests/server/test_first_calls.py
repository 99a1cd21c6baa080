"""What a program does over HTTP: start, prompt, follow, approve, rewind."""

from __future__ import annotations

import anyio
import pytest

from tests.support.served_world import serving
from tests.support.world import PATIENCE, World
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_a_program_starts_prompts_follows_approves_and_rewinds(plain_world: World) -> None:
    model = ScriptedModel(
        [CallTool(name="write", args={"path": "new.txt", "content": "two\n"}), "It is written."]
    )
    async with serving(plain_world, model) as served:
        started = await served.good("POST", "/sessions", {"title": "T"})
        path = f"/sessions/{started['id']}"
        seen: list[str] = []
        async with served.follow(f"{path}/events?after=0") as reader:
            accepted = await served.good("POST", f"{path}/prompt", {"content": "Write it."})
            assert accepted["status"] == "started"
            with anyio.fail_after(PATIENCE):
                async for event in reader.events():
                    seen.append(event["kind"])
                    if event["kind"] == "permission_request":
                        request = event["request_id"]
                        assert (
                            await served.good(
                                "POST", f"{path}/requests/{request}", {"action": "allow_once"}
                            )
                            is None
                        )
                    if event["kind"] == "turn_finished":
                        break
        assert seen[0] == "session_created"
        assert plain_world.read("new.txt") == "two\n"
        page = await served.good("GET", f"{path}/messages")
        assert [row["message"]["role"] for row in page["messages"]][-1] == "assistant"
        plan = await served.good("POST", f"{path}/rewind", {"to": None, "preview": True})
        assert plan["files"][0]["path"] == "new.txt"
        await served.good("POST", f"{path}/rewind", {"to": None})
        assert not (plain_world.project / "new.txt").exists()
