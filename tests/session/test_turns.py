"""Turns of a whole session, where several of them meet."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest

import weft
from weft.app import App, Session
from weft.events import Event, TurnFinished
from weft.providers.script import SayText, Script, Stall, Written
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with weft.open(tmp_path, "memory") as app:
        yield app


def scripted(*answers: Written) -> ScriptedModel:
    return ScriptedModel(Script(answers=answers))


async def until(session: Session, happened: Callable[[Event], bool]) -> None:
    """Wait until such an event has come, from the session's first one on."""
    with anyio.fail_after(5):
        async with await session.subscribe(after=0) as events:
            async for event in events:
                if happened(event):
                    return


async def test_a_turn_that_is_over_does_not_work_on_the_follow_up_after_it(app: App) -> None:
    held = (Stall(gate="first"), SayText(text="one"))
    model = scripted(held, "two", "three")
    session = await app.sessions.start_session(model=model)
    await session.send_prompt("first")
    await session.queue_follow_up("second")
    model.gate("first").opened.set()

    ended = 0

    def second_turn_is_over(event: Event) -> bool:
        nonlocal ended
        ended += isinstance(event, TurnFinished)
        return ended == 2

    await until(session, second_turn_is_over)
    await anyio.wait_all_tasks_blocked()
    assert model.request_count == 2
    said = [(message.role, message.content) for message in await session.messages()]
    assert said == [
        ("user", "first"),
        ("assistant", "one"),
        ("user", "second"),
        ("assistant", "two"),
    ]
