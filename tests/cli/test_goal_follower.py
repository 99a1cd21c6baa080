"""What a terminal says of a goal that it works for."""

from __future__ import annotations

import pytest

from tests.support.world import World
from weft.cli.exit_codes import FAILED
from weft.cli.unattended.goal_follower import GoalFollower
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]


async def test_a_call_that_was_denied_is_counted_once(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    write = CallTool(name="write", args={"path": "a.txt", "content": "a"})
    async with world.open(ScriptedModel([write, "I may not.", "I still may not."])) as app:
        session = await app.sessions.start_session()
        after = (await session.editor_snapshot()).seq
        await session.set_goal("make a file", check="test -f a.txt", outside_sandbox=True)
        assert await GoalFollower(session, after, 0, is_verbose=False).run() == FAILED
    said = capsys.readouterr()
    assert "1 call needed approval and was denied" in said.err
    assert "round 2" in said.out
