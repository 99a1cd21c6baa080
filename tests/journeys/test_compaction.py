"""Compacting on demand: the older part of the line is told as a summary from then on, and the log
is untouched.
"""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from tests.support.compaction import (
    SummarizingModel,
    compactions,
    gate_reached,
    send_prompts,
    start,
)
from tests.support.world import PATIENCE, World, crash, facts, message_lines, running, until_idle
from weft.errors import SessionBusy, SessionError, StaleInput, UsageError
from weft.events import Compacted, ErrorRaised, TurnFinished, UsageRecorded
from weft.messages import Usage
from weft.providers import ModelRequest
from weft.providers.script import Break, Fail, SayText, Spend, Stall, Step, Think

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("session:compact")
async def test_the_model_reads_a_summary_and_the_user_the_whole_history(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "two")
        before = await session.messages_with_ids()
        report = await session.compact()
        assert (report.summary, report.upto) == ("summary 1", before[-1][0])
        assert report.tokens_before > 0
        assert report.tokens_after > 0
        assert await session.messages_with_ids() == before
        await send_prompts(session, "three")
        assert teller.seen == ["user: <summary 1>", "user: three"]
        assert (await message_lines(session))[:4] == [
            "user: one",
            "assistant: answer 1",
            "user: two",
            "assistant: answer 2",
        ]
    async with world.open(teller.model) as app:
        session = await app.sessions.get("s")
        await send_prompts(session, "four")
        assert teller.seen == [
            "user: <summary 1>",
            "user: three",
            "assistant: answer 3",
            "user: four",
        ]


async def test_the_summarising_model_is_told_the_conversation_and_what_matters(
    plain_world: World,
) -> None:
    teller = SummarizingModel()
    async with plain_world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "the door is blue")
        await session.compact(focus="the colour of doors")
    [request] = teller.summaries
    asked = str(request.messages)
    assert "USER: the door is blue" in asked
    assert "AGENT: answer 1" in asked
    assert "the colour of doors" in asked
    assert request.tools == ()


async def test_the_newest_turns_stay_word_for_word(plain_world: World) -> None:
    """The last five answers stay, from something that the user said."""
    teller = SummarizingModel(window=4_000)
    async with plain_world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, *(f"{number} " + "x" * 1_000 for number in range(8)))
        before = await session.messages_with_ids()
        report = await session.compact()
        await send_prompts(session, "now")
    told = [line[:8] for line in teller.seen]
    assert told[0] == "user: <s"
    assert told[1:] == [
        *(word for number in range(3, 8) for word in (f"user: {number} ", "assistan")),
        "user: no",
    ]
    [asked] = [str(request.messages) for request in teller.summaries]
    assert asked.index("USER: 2 x") < asked.index("<kept>") < asked.index("USER: 3 x")
    assert report.upto == before[5][0]


async def test_undoing_brings_the_words_back_and_undoing_again_is_refused(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        await session.compact()
        await session.undo_compaction()
        await send_prompts(session, "two")
        assert teller.seen == ["user: one", "assistant: answer 1", "user: two"]
        with pytest.raises(UsageError, match="nothing on this line"):
            await session.undo_compaction()
    async with world.open(teller.model) as app:
        await send_prompts(await app.sessions.get("s"), "three")
        assert teller.seen[0] == "user: one"


async def test_a_second_compaction_begins_where_the_first_ended(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        await session.compact()
        await send_prompts(session, "two")
        await session.compact()
        await send_prompts(session, "three")
        assert teller.seen == ["user: <summary 2>", "user: three"]
        first, second = (str(request.messages) for request in teller.summaries)
        assert "USER: one" in first
        assert "USER: one" not in second
        assert "summary 1" in second
        assert "USER: two" in second
        await session.undo_compaction()
        await send_prompts(session, "four")
        assert teller.seen[:3] == ["user: <summary 1>", "user: two", "assistant: answer 2"]


async def test_the_same_content_is_never_compacted_twice(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        await session.compact()
        with anyio.fail_after(PATIENCE), pytest.raises(SessionError, match="nothing to compact"):
            await session.compact()
        assert len(await compactions(session)) == 1
        assert await session.get_status() == "idle"
        await send_prompts(session, "two")
    assert len(teller.summaries) == 1


async def test_an_empty_session_has_nothing_to_compact(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        with pytest.raises(UsageError, match="empty"):
            await session.compact()
        with pytest.raises(UsageError, match="nothing on this line"):
            await session.undo_compaction()
    assert teller.summaries == []


async def test_what_a_summary_costs_is_on_the_ledger_as_such(world: World) -> None:
    spent = Usage(input_tokens=1_000, output_tokens=50)
    teller = SummarizingModel(summary=lambda request: (SayText(text="short"), Spend(usage=spent)))
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        before = await session.usage()
        await session.compact()
        after = await session.usage()
        [row] = [r for r in await facts(session, UsageRecorded) if r.purpose == "compaction"]
        assert (row.usage.input_tokens, row.model, row.estimated) == (
            1_000,
            "scripted:script",
            False,
        )
        assert row.usage.cost_usd == pytest.approx(0.00105)
        assert after.total.input_tokens == before.total.input_tokens + 1_000
        assert (await session.metadata()).cost_usd == pytest.approx(after.total.cost_usd)


@pytest.mark.parametrize(
    "steps",
    [
        (Fail(error="RequestRefused", message="no"),),
        (SayText(text="half a sum"), Fail(error="RequestRefused", message="no")),
        (SayText(text="  \n"),),
        (Think(text="I only think.", signature="p"),),
    ],
    ids=["refused", "broken", "blank", "only-thoughts"],
)
async def test_a_summary_that_cannot_be_had_changes_nothing(
    world: World, steps: tuple[Step, ...]
) -> None:
    teller = SummarizingModel(summary=lambda request: steps)
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        with pytest.raises(SessionError, match="was not compacted"):
            await session.compact()
        assert await session.get_status() == "idle"
        assert await facts(session, Compacted) == []
        [raised] = await facts(session, ErrorRaised)
        assert raised.where == "compaction"
        await send_prompts(session, "two")
        assert teller.seen == ["user: one", "assistant: answer 1", "user: two"]


async def test_a_summary_is_tried_again_after_a_broken_stream(world: World) -> None:
    broken: list[Sequence[Step]] = [(SayText(text="half"), Break()), (SayText(text="whole"),)]
    teller = SummarizingModel(summary=lambda request: broken.pop(0))
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        assert (await session.compact()).summary == "whole"
        rows = [r for r in await facts(session, UsageRecorded) if r.purpose == "compaction"]
        assert len(rows) == 2
    assert world.waits


async def test_a_summary_that_is_too_long_to_ask_for_is_asked_for_with_less(world: World) -> None:
    """The vendor's window is smaller than we think: what is told is halved until it fits."""
    lengths: list[int] = []

    def summary(request: ModelRequest) -> Step:
        lengths.append(len(str(request.messages)))
        if lengths[-1] > 12_000:
            return Fail(error="ContextTooLong", message="too long")
        return SayText(text="short")

    teller = SummarizingModel(window=16_000, summary=summary)
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, *("x" * 9_000 for _ in range(4)))
        assert (await session.compact()).summary == "short"
    assert len(lengths) >= 2
    assert lengths == sorted(lengths, reverse=True)


async def test_a_model_that_breaks_our_program_breaks_the_compaction_only(world: World) -> None:
    """A bug in an adapter: whoever waits for the compaction is told, and the session goes on."""

    def summary(request: ModelRequest) -> Step:
        raise RuntimeError("a bug, planted")

    teller = SummarizingModel(summary=summary)
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        with anyio.fail_after(PATIENCE), pytest.raises(SessionError, match="a bug, planted"):
            await session.compact()
        await send_prompts(session, "two")
        assert teller.seen == ["user: one", "assistant: answer 1", "user: two"]


async def test_a_turn_that_runs_cannot_be_compacted_nor_can_its_line_be_uncompacted(
    world: World,
) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        await session.compact()
        teller.say = lambda request: (Stall(gate="g"), SayText(text="done"))
        await session.send_prompt("two")
        await gate_reached(teller, "g")
        with pytest.raises(SessionBusy):
            await session.compact()
        with pytest.raises(SessionBusy):
            await session.undo_compaction()
        teller.model.gate("g").opened.set()
        await until_idle(session)
        assert len(await compactions(session)) == 1


async def test_a_compaction_can_wait_for_the_turn_that_runs(world: World) -> None:
    teller = SummarizingModel(say=lambda request: (Stall(gate="g"), SayText(text="done")))
    async with world.open(teller.model) as app:
        session = await start(app)
        await session.send_prompt("one")
        await gate_reached(teller, "g")
        summaries: list[str] = []

        async def compact() -> None:
            summaries.append((await session.compact(queue=True)).summary)

        async with running(compact):
            await session.queue_follow_up("two")
            assert teller.summaries == []
            teller.say = None
            teller.model.gate("g").opened.set()
        assert summaries == ["summary 1"]
        assert [each.reason for each in await facts(session, TurnFinished)] == ["stop", "stop"]
        assert "USER: two" in str(teller.summaries[0].messages)


async def test_a_compaction_that_is_asked_for_again_is_made_once_even_by_another_process(
    world: World,
) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        first = await session.compact(input_id="c")
        assert await session.compact(input_id="c") == first
        with pytest.raises(StaleInput):
            await session.compact("something else", input_id="c")
    async with world.open(teller.model) as app:
        session = await app.sessions.get("s")
        assert await session.compact(input_id="c") == first
    assert len(teller.summaries) == 1


async def test_compacting_what_a_dead_process_left_ends_its_turn_and_starts_none(
    world: World,
) -> None:
    """Coming back never runs anything by itself.

    Whoever compacts an interrupted session does not ask it to go on.
    """
    teller = SummarizingModel(say=lambda request: (SayText(text="half"), Stall(gate="g")))
    app = await world.open(teller.model).__aenter__()
    session = await start(app)
    await session.send_prompt("one")
    await gate_reached(teller, "g")
    await crash(app)
    later = SummarizingModel()
    async with world.open(later.model) as app:
        session = await app.sessions.get("s")
        assert await session.get_status() == "interrupted"
        with anyio.fail_after(PATIENCE):
            await session.compact()
        assert await session.get_status() == "idle"
        assert [each.reason for each in await facts(session, TurnFinished)] == ["halted"]
        assert later.asked == []
        await send_prompts(session, "two")
        assert later.seen == ["user: <summary 1>", "user: two"]


async def test_going_on_after_everything_was_compacted_works(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        await session.compact()
        assert (await session.continue_and_wait()).finish_reason == "stop"
        assert teller.seen == ["user: <summary 1>"]
