"""A message that is withdrawn takes its own turn with it, and no other."""

from __future__ import annotations

import pytest

from tests.support.world import World, facts, message_lines, until_idle, until_status
from weft.api.session import Session
from weft.api.turn_waiter import withdraw
from weft.events import TurnFinished
from weft.providers.script import SayText, Stall
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


async def reasons(session: Session) -> list[str]:
    return [fact.reason for fact in await facts(session, TurnFinished)]


async def test_only_the_turn_of_the_message_is_aborted(plain_world: World) -> None:
    model = ScriptedModel([Stall(gate="g")])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("a", input_id="inp_a")
        await model.gate("g").reached.wait()
        # As when the message of another has begun a turn that was not seen yet.
        assert not await withdraw(session, "inp_b", None, "Ctrl-C")
        assert await session.get_status() == "thinking"
        assert await withdraw(session, "inp_a", None, "Ctrl-C")
        await until_idle(session)
        assert await reasons(session) == ["aborted"]
        assert not await withdraw(session, "inp_a", None, "Ctrl-C")


async def test_one_that_waits_is_taken_out_of_the_queue(plain_world: World) -> None:
    model = ScriptedModel([(Stall(gate="g"), SayText(text="one"))])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("a", input_id="inp_a")
        await model.gate("g").reached.wait()
        await session.queue_follow_up("b", input_id="inp_b")
        assert await withdraw(session, "inp_b", None, "Ctrl-C")
        model.gate("g").opened.set()
        await until_idle(session)
        assert await message_lines(session) == ["user: a", "assistant: one"]


async def test_one_that_waited_is_known_by_the_turn_that_it_has_now(plain_world: World) -> None:
    model = ScriptedModel([(Stall(gate="g"), SayText(text="one")), Stall(gate="h")])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("a", input_id="inp_a")
        await model.gate("g").reached.wait()
        await session.queue_follow_up("b", input_id="inp_b")
        model.gate("g").opened.set()
        await model.gate("h").reached.wait()
        await until_status(session, "thinking")
        turn = (await session._port()).state.turn.open
        assert turn is not None
        assert not await withdraw(session, "inp_a", None, "Ctrl-C")
        assert await withdraw(session, "inp_b", turn.turn_id, "Ctrl-C")
        await until_idle(session)
        assert await reasons(session) == ["stop", "aborted"]
