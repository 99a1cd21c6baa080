"""The limits of a turn are those of the settings as they are at each of its rounds."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft
from weft.config.settings import Config, SettingValue
from weft.providers.script import CallTool, SayText
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


def six_rounds() -> ScriptedModel:
    return ScriptedModel([*([CallTool(name="tighten", args={})] for _ in range(6)), SayText("end")])


@pytest.mark.parametrize(
    ("where", "end"), [("config", ("max_turns", 3)), ("session", ("max_budget", 1))]
)
async def test_a_limit_that_is_set_during_a_turn_counts_in_it(
    tmp_path: Path, where: str, end: tuple[str, int]
) -> None:
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    async with weft.open(tmp_path, store="memory", environ=environ) as app:
        session = await app.sessions.start_session(model=six_rounds(), auto_approve=True)

        async def tighten() -> str:
            """Set a limit."""
            if where == "config":
                given = {"session.max_turns": (SettingValue(3, "the test"),)}
                app.config.take_over(Config(given))
            else:
                await session.set_budget(tokens=1)
            return "done"

        reply = await session.send_message("go", tools=[weft.tool(tighten)])
    assert (reply.finish_reason, reply.tool_calls_made) == end
