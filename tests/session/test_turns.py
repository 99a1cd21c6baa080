"""Turns of a whole session, where several of them meet."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest

import weft
from tests.support.idle_loop import all_tasks_blocked
from weft.api.session import Session
from weft.app import App
from weft.events import Event, TurnFinished
from weft.messages import ChatMessage, Text
from weft.providers import ModelRequest
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
    await all_tasks_blocked()
    assert model.request_count == 2
    said = [(message.role, message.content) for message in await session.messages()]
    assert said == [
        ("user", "first"),
        ("assistant", "one"),
        ("user", "second"),
        ("assistant", "two"),
    ]


LONG = "word " * 10_000 + "the end"
"""Longer than the log keeps in one place."""


async def test_the_model_is_told_the_whole_of_a_long_message_that_steers_it(app: App) -> None:
    model = scripted((Stall(gate="first"), SayText(text="one")), "two")
    session = await app.sessions.start_session(model=model)
    await session.send_prompt("first")
    await session.queue_steering(LONG)
    model.gate("first").opened.set()

    await until(session, lambda event: isinstance(event, TurnFinished))
    assert LONG in said_by_user(model.last_request)


async def test_a_long_message_comes_back_whole_from_the_queue(app: App) -> None:
    model = scripted((Stall(gate="first"), SayText(text="one")))
    session = await app.sessions.start_session(model=model)
    await session.send_prompt("first")
    await session.queue_steering(f"1 {LONG}")
    await session.queue_steering(f"2 {LONG}")
    await session.queue_follow_up(f"3 {LONG}")

    shown = (await session.editor_snapshot()).queue
    assert [entry.text for entry in shown] == [f"{number} {LONG}" for number in (1, 2, 3)]
    steering, follow_up = await session.get_queued_messages()
    assert (*steering, *follow_up) == shown
    taken = await session.dequeue_steering()
    assert taken == shown[:2]
    receipt = await session.abort()
    assert receipt.surviving == shown[2:]
    assert await session.recall_queues() == ((), (shown[2],))


def said_by_user(request: ModelRequest) -> list[str]:
    return [
        part.text
        for message in request.messages
        if isinstance(message, ChatMessage) and message.role == "user"
        for part in message.parts
        if isinstance(part, Text)
    ]
