"""A chat in a folder in which another session is due."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from tests.support.chat_driver import driven_chat
from weft.app import open_app
from weft.clock import ManualClock
from weft.events import TurnWaiting
from weft.providers.script import CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel
from weft.store import MemoryData, MemoryStore
from weft.view import NoteBlock

pytestmark = pytest.mark.anyio


async def test_the_chat_says_which_session_goes_on_and_which_it_leaves(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    data, clock = MemoryData(), ManualClock()
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}

    async def never(seconds: float) -> None:
        await anyio.sleep_forever()

    wait = CallTool(name="wait", args={"seconds": 600})
    model = ScriptedModel([wait, (Stall(gate="g"), SayText(text="rested"))])

    first = open_app(
        tmp_path / "project", MemoryStore(data=data), environ=environ, clock=clock, sleep=never
    )
    async with first:
        session = await first.sessions.start_session(
            session_id="ses_due", model=model, title="Nightly\x1b[2J"
        )
        events = await session.subscribe()
        await session.send_prompt("go")
        async for event in events:
            if isinstance(event, TurnWaiting):
                break
    clock.advance(601)
    second = open_app(
        tmp_path / "project", MemoryStore(data=data), environ=environ, clock=clock, sleep=never
    )
    async with second as app, driven_chat(app, "unused") as talk:
        app.host.model_named(model)
        assert await app.host.wake_due() == ["ses_due"]
        [said] = [block.text for block in talk.screen.of(NoteBlock) if "goes on" in block.text]
        assert said.startswith("“Nightly")
        assert "the time that it waited for has come" in said
        assert "mode default" in said
        assert "/resume ses_due" in said
        assert "\x1b" not in said
        await model.gate("g").reached.wait()
        [left] = talk.chat.left_at_work()
        assert "is interrupted with this chat; weft -r ses_due goes on" in left
        model.gate("g").opened.set()
        port = await app.host.port(session.id)
        while port.state.turn.open is not None:
            await anyio.lowlevel.checkpoint()
        assert talk.chat.left_at_work() == []
