"""A bisection over HTTP: an event for each check, refused to viewers, and gone with its reader."""

from __future__ import annotations

import json

import pytest

from tests.support.rewind_project import turns, write
from tests.support.served_world import ServedWorld, serving
from tests.support.world import World

pytestmark = [pytest.mark.anyio, pytest.mark.process]

CHECK = "! cat *.txt 2>/dev/null | grep -q broken"


async def talked(served: ServedWorld) -> str:
    started = {"title": "T", "permission_mode": "bypass"}
    session = str((await served.good("POST", "/sessions", started))["id"])
    for number in (1, 2):
        await served.good("POST", f"/sessions/{session}/message", {"content": f"turn {number}"})
    return session


async def test_each_check_is_an_event_and_the_answer_is_the_last(plain_world: World) -> None:
    model = turns(write("a.txt", "fine\n"), write("b.txt", "broken\n"))
    async with serving(plain_world, model, config={"sandbox.mode": "auto"}) as served:
        session = await talked(served)
        path = f"/sessions/{session}/bisect"
        whole = await served.good("POST", path, {"check": CHECK})
        assert whole["sentence"] == "turn 2 broke it: `write b.txt:1`; it passes at turn 1"
        refused = await served.call("POST", path, {"check": " "})
        assert refused.status == 400
        events = await streamed(served, path)
    names = [name for name, _ in events]
    assert names == ["check"] * len(whole["checks"]) + ["bisection"]
    assert events[-1][1]["sentence"] == whole["sentence"]


async def streamed(served: ServedWorld, path: str) -> list[tuple[str, dict[str, object]]]:
    """The events of an answer."""
    answer = await served.call(
        "POST", path, {"check": CHECK}, headers={"accept": "text/event-stream"}
    )
    found = []
    for piece in answer.body.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in piece.splitlines() if ": " in line[1:])
        if "data" in lines:
            found.append((lines.get("event", ""), json.loads(lines["data"])))
    return found
