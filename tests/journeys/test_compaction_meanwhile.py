"""What happens while a summary is written: people type, abort, and processes die."""

from __future__ import annotations

import pytest

from tests.support.compaction import (
    SummarizingModel,
    compactions,
    gate_reached,
    queued,
    send_prompts,
    start,
)
from tests.support.world import (
    World,
    crash,
    facts,
    message_lines,
    request_lines,
    running,
    until_idle,
    until_queued,
)
from weft.api.session import Session
from weft.errors import SessionError, SessionStopped
from weft.events import Compacted, TurnFinished, TurnStarted, UsageRecorded
from weft.providers.script import Fail, SayText, Stall

pytestmark = pytest.mark.anyio

WINDOW = 4_000
TURN = "x" * 1_600


def slow(window: int = 200_000) -> SummarizingModel:
    """Its summaries wait at the gate `s`."""
    steps = (SayText(text="slow "), Stall(gate="s"), SayText(text="summary"))
    return SummarizingModel(window=window, summary=lambda request: steps)


async def test_steering_typed_meanwhile_starts_a_turn_when_the_summary_is_there(
    world: World,
) -> None:
    teller = slow()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        async with running(session.compact):
            await gate_reached(teller, "s")
            assert await session.get_status() == "thinking"
            accepted = await session.send_prompt("two")
            assert accepted.status == "steering"
            teller.model.gate("s").opened.set()
        await until_idle(session)
        assert (await message_lines(session))[-2:] == ["user: two", "assistant: answer 2"]
        assert teller.seen == ["user: <slow summary>", "user: two"]
        assert await session.get_queued_messages() == ((), ())


async def test_follow_ups_typed_meanwhile_are_sent_one_by_one_when_the_summary_is_there(
    world: World,
) -> None:
    teller = slow()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        async with running(session.compact):
            await gate_reached(teller, "s")
            await session.queue_follow_up("two")
            await session.queue_follow_up("three")
            teller.model.gate("s").opened.set()
        await until_idle(session)
        assert (await message_lines(session))[2:] == [
            "user: two",
            "assistant: answer 2",
            "user: three",
            "assistant: answer 3",
        ]


async def test_a_message_sent_meanwhile_gets_the_reply_of_its_turn(world: World) -> None:
    teller = slow()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        replies: list[str] = []

        async def send() -> None:
            replies.append((await session.send_message("two")).text)

        async with running(session.compact):
            await gate_reached(teller, "s")
            async with running(send):
                await until_queued(session)
                teller.model.gate("s").opened.set()
        assert replies == ["answer 2"]


async def test_what_is_typed_while_a_turn_makes_room_reaches_the_model_in_that_turn(
    world: World,
) -> None:
    teller = slow(WINDOW)
    async with world.open(teller.model) as app:
        session = await start(app)
        await fill(session, teller)
        await session.send_prompt(f"the last {TURN}")
        await gate_reached(teller, "s")
        await session.queue_steering("and this")
        await session.queue_follow_up("then that")
        teller.model.gate("s").opened.set()
        await until_idle(session)
        request = teller.asked[-2]
        assert request_lines(request)[-1] == "user: and this"
        assert request_lines(request)[-2].startswith("user: the last")
        assert teller.seen[-1] == "user: then that"


async def test_what_is_typed_meanwhile_is_sent_whatever_way_the_turn_before_had_ended(
    world: World,
) -> None:
    teller = slow()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        teller.say = lambda request: Fail(error="RequestRefused", message="no")
        assert (await session.send_message("two")).finish_reason == "provider_error"
        teller.say = None
        async with running(session.compact):
            await gate_reached(teller, "s")
            await session.queue_follow_up("three")
            teller.model.gate("s").opened.set()
        await until_idle(session)
        assert (await message_lines(session))[-2:] == ["user: three", "assistant: answer 3"]


async def test_what_an_abort_had_left_in_the_queue_is_not_sent_by_a_compaction(
    world: World,
) -> None:
    teller = SummarizingModel(say=lambda request: (SayText(text="half"), Stall(gate="a")))
    async with world.open(teller.model) as app:
        session = await start(app)
        await session.send_prompt("one")
        await gate_reached(teller, "a")
        await session.queue_steering("two")
        await session.queue_follow_up("three")
        receipt = await session.abort()
        assert [entry.text for entry in receipt.surviving] == ["two", "three"]
        await session.compact()
        await until_idle(session)
        assert await queued(session) == ["two", "three"]
        assert len(await facts(session, TurnStarted)) == 1


async def test_an_aborted_compaction_changes_nothing_and_sends_nothing(world: World) -> None:
    teller = slow()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")

        async def fails() -> None:
            with pytest.raises(SessionError, match="it was stopped"):
                await session.compact()

        async with running(fails):
            await gate_reached(teller, "s")
            await session.queue_steering("two")
            await session.queue_follow_up("three")
            receipt = await session.abort("enough")
            assert [entry.text for entry in receipt.surviving] == ["two", "three"]
        await until_idle(session)
        assert await facts(session, Compacted) == []
        assert len(await facts(session, TurnStarted)) == 1
        assert await queued(session) == ["two", "three"]
        await send_prompts(session, "four")
        await until_idle(session)
        assert (await message_lines(session))[:4] == [
            "user: one",
            "assistant: answer 1",
            "user: two",
            "user: four",
        ]


async def test_what_an_aborted_summary_had_used_is_counted(world: World) -> None:
    teller = slow()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")

        async def fails() -> None:
            with pytest.raises(SessionError):
                await session.compact()

        async with running(fails):
            await gate_reached(teller, "s")
            await session.abort()
        [row] = [r for r in await facts(session, UsageRecorded) if r.purpose == "compaction"]
        assert row.estimated
        assert row.usage.output_tokens > 0


async def test_an_abort_while_a_turn_makes_room_ends_that_turn(world: World) -> None:
    teller = slow(WINDOW)
    async with world.open(teller.model) as app:
        session = await start(app)
        await fill(session, teller)
        await session.send_prompt(f"the last {TURN}")
        await gate_reached(teller, "s")
        await session.abort("enough")
        assert [each.reason for each in await facts(session, TurnFinished)][-1] == "aborted"
        assert await facts(session, Compacted) == []
        rows = [r for r in await facts(session, UsageRecorded) if r.purpose == "compaction"]
        assert len(rows) == 1
        teller.summary = None
        await send_prompts(session, "another")
        assert teller.seen[-2:] == [f"user: the last {TURN}", "user: another"]
        assert len(await compactions(session)) == 1


async def test_stopping_the_session_stops_the_summary(world: World) -> None:
    teller = slow()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")

        async def fails() -> None:
            with pytest.raises((SessionError, SessionStopped)):
                await session.compact()

        async with running(fails):
            await gate_reached(teller, "s")
            await session.stop()
        again = await app.sessions.get("s")
        assert await again.get_status() == "idle"
        assert await facts(again, Compacted) == []


async def test_a_process_that_dies_while_a_summary_is_written_loses_only_the_summary(
    world: World,
) -> None:
    teller = slow()
    app = await world.open(teller.model).__aenter__()
    session = await start(app)
    await send_prompts(session, "one")

    async def fails() -> None:
        with pytest.raises(SessionStopped):
            await session.compact()

    async with running(fails):
        await gate_reached(teller, "s")
        await session.queue_steering("two")
        await session.queue_follow_up("three")
        await crash(app)
    async with world.open(teller.model) as app:
        session = await app.sessions.get("s")
        assert await session.get_status() == "idle"
        assert await facts(session, Compacted) == []
        assert await queued(session) == ["two", "three"]
        teller.summary = None
        await session.compact()
        await send_prompts(session, "four")
        await until_idle(session)


async def test_a_turn_that_died_while_it_made_room_goes_on_and_makes_it(world: World) -> None:
    teller = slow(WINDOW)
    app = await world.open(teller.model).__aenter__()
    session = await start(app)
    await fill(session, teller)
    await session.send_prompt(f"the last {TURN}")
    await gate_reached(teller, "s")
    await crash(app)
    async with world.open(teller.model) as app:
        teller.summary = None
        session = await app.sessions.get("s")
        assert await session.get_status() == "interrupted"
        reply = await session.continue_and_wait()
        assert reply.finish_reason == "stop"
        assert teller.seen[0].startswith("user: <summary ")
        assert teller.seen[-1] == f"user: the last {TURN}"
        assert len(await facts(session, Compacted)) == 1


async def fill(session: Session, teller: SummarizingModel) -> None:
    """Talk until the next message makes it compact."""
    for _ in range(6):
        await send_prompts(session, TURN)
    assert teller.summaries == []
