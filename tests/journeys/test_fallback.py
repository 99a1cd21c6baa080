"""Fallback models: another one answers for the rest of a turn whose model cannot be reached."""

from __future__ import annotations

import pytest

from tests.support.world import World, facts
from weft.errors import UsageError
from weft.events import AnswerRestarted, ErrorRaised, ModelCallStarted, TurnFinished, UsageRecorded
from weft.messages import Usage
from weft.providers import ModelInfo
from weft.providers.script import Break, CallTool, Fail, SayText, Spend, Step
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio
DOWN = Fail(error="ProviderUnavailable", status=529, message="overloaded")
BUSY = Fail(error="RateLimited", status=429)
REFUSED = Fail(error="RequestRefused", status=400)
FALLBACK = {"model.fallback": ["scripted:second", "scripted:third"]}


def model(name: str, *answers: str | Step | list[Step]) -> ScriptedModel:
    info = ModelInfo(provider="scripted", name=name, price_input=1.0, price_output=1.0)
    return ScriptedModel(list(answers), info=info)


def first(*answers: str | Step | list[Step]) -> ScriptedModel:
    """The default model of the world."""
    return ScriptedModel(list(answers))


async def test_a_fallback_answers_when_the_model_stays_down(world: World) -> None:
    one, two = first(*[DOWN] * 20), model("second", "Here.", "Again.")
    async with world.open(one, two, config=FALLBACK) as app:
        session = await app.sessions.start_session()
        reply = await session.send_message("go")
        assert (reply.finish_reason, reply.text) == ("stop", "Here.")
        # Fewer tries than without a fallback: someone waits, and another one can answer.
        assert one.request_count == 3
        [note] = await facts(session, ErrorRaised)
        assert "scripted:second answers instead" in note.message
        calls = [fact.model for fact in await facts(session, ModelCallStarted)]
        assert calls[-1] == "scripted:second"
        assert (await session.editor_snapshot()).model == calls[0], "the session keeps its model"


async def test_the_fallback_stays_for_the_turn_and_the_next_turn_begins_anew(world: World) -> None:
    world.write("a.txt", "x")
    one = first(*[DOWN] * 3, "I am back.")
    two = model("second", [CallTool(name="read", args={"path": "a.txt"})], "It says x.")
    async with world.open(one, two, config=FALLBACK) as app:
        session = await app.sessions.start_session()
        assert (await session.send_message("go")).text == "It says x."
        assert (one.request_count, two.request_count) == (3, 2)
        assert (await session.send_message("again")).text == "I am back."


async def test_fallbacks_are_taken_in_their_order_and_the_last_failure_is_told(
    world: World,
) -> None:
    one, two, three = first(*[BUSY] * 9), model("second", *[DOWN] * 9), model("third", "Here.")
    async with world.open(one, two, three, config=FALLBACK) as app:
        session = await app.sessions.start_session()
        assert (await session.send_message("go")).text == "Here."
    world.waits.clear()
    one, two = first(*[BUSY] * 99), model("second", *[DOWN] * 99)
    config = {"model.fallback": ["scripted:second"]}
    async with world.open(one, two, config=config) as app:
        session = await app.sessions.start_session()
        reply = await session.send_message("go")
        assert reply.finish_reason == "provider_error"
        assert "overloaded" in reply.detail


async def test_what_another_model_could_not_do_better_is_not_tried_with_one(world: World) -> None:
    one, two = first(REFUSED), model("second", "Here.")
    async with world.open(one, two, config=FALLBACK) as app:
        session = await app.sessions.start_session()
        assert (await session.send_message("go")).finish_reason == "provider_error"
    assert two.request_count == 0


async def test_words_of_the_model_that_failed_are_taken_back_and_counted(world: World) -> None:
    half: list[Step] = [
        Spend(usage=Usage(input_tokens=5, output_tokens=77)),
        SayText(text="I beg"),
        Break(times=99),
    ]
    one, two = first(half, half, half, half), model("second", "Here.")
    async with world.open(one, two, config=FALLBACK) as app:
        session = await app.sessions.start_session()
        taken_back = 0
        async with await session.subscribe() as events:
            reply = await session.send_message("go")
            while not isinstance(event := await anext(events), TurnFinished):
                taken_back += isinstance(event, AnswerRestarted)
        assert reply.text == "Here."
        assert taken_back == 3
        used = await facts(session, UsageRecorded)
        assert sum(fact.usage.output_tokens == 77 for fact in used) == 3


async def test_a_fallback_that_is_no_model_is_refused_at_the_start(world: World) -> None:
    for wrong in ("nobody:x", "bare-nonsense"):
        config = {"model.fallback": ["scripted:second", wrong]}
        with pytest.raises(UsageError, match=wrong.partition(":")[0]):
            async with world.open(first("Here."), config=config):
                pass
