"""Trust acts on sessions that are open: rules and hooks of the folder count from then on, or no
longer.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.hook_project import HookProject
from tests.support.world import until
from weft.errors import HookRefused
from weft.events import PermissionRequest, ToolComplete
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]


CONFIG = """
[permissions]
allow = ["write"]

[[hooks.UserPromptSubmit]]
command = "grep -q forbidden && exit 2; exit 0"
"""


@pytest.mark.parametrize("own", [False, True], ids=["no hooks before", "hooks of the user"])
async def test_trust_acts_on_an_open_session_at_once_both_ways(tmp_path: Path, own: bool) -> None:
    place = HookProject(tmp_path)
    if own:
        place.config.mkdir(parents=True)
        hook = '[[hooks.UserPromptSubmit]]\ncommand = "true"\n'
        (place.config / "config.toml").write_text(hook)
    place.write(".weft/config.toml", CONFIG)
    write = CallTool(name="write", args={"path": "a", "content": "1"})
    model = ScriptedModel([write, "One.", "Two.", write, "Three.", "Four.", write, "Five."])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, tools=["write"])
        await session.send_prompt("forbidden, but not yet")
        asked = await until(session, PermissionRequest)
        await session.respond_to_permission("deny", request_id=asked.request_id)
        await until(session, ToolComplete)

        await app.trust()
        with pytest.raises(HookRefused):
            await session.send_message("forbidden")
        await session.send_message("two")
        await session.send_message("write")
        assert (place.project / "a").read_text() == "1"

        seq = (await session.editor_snapshot()).seq
        await app.forget_trust()
        await session.send_message("forbidden, but no longer")
        await session.send_prompt("write again")
        await until(session, PermissionRequest, after=seq)
        await session.abort()
