"""Compacting by itself: before a request would not fit, and once after a vendor said that it did
not.
"""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from tests.support.compaction import (
    TURN,
    WINDOW,
    SummarizingModel,
    compactions,
    send_prompts,
    start,
)
from tests.support.world import PATIENCE, World, facts, message_lines, request_lines
from weft.context import estimate, room
from weft.events import Compacted, ErrorRaised, SystemNote, TurnFinished, UsageRecorded
from weft.messages import Usage
from weft.providers import ModelRequest
from weft.providers.script import CallTool, Fail, SayText, Spend, Stall, Step

pytestmark = pytest.mark.anyio


def fits(request: ModelRequest, window: int = WINDOW) -> bool:
    """Whether the request leaves room for an answer, by our own estimate."""
    return estimate(request.messages) <= room(window, window // 10)


@pytest.mark.requirement("session:compact")
async def test_a_long_conversation_never_outgrows_the_window(world: World) -> None:
    teller = SummarizingModel(window=WINDOW)
    async with world.open(teller.model) as app:
        session = await start(app)
        for number in range(40):
            await send_prompts(session, f"{number} {TURN}")
        assert all(fits(request) for request in teller.asked)
        assert all(fits(request) for request in teller.summaries)
        made = await compactions(session)
        assert 3 <= len(made) <= 18
        assert teller.seen[0].startswith("user: <summary ")
        assert teller.seen[-1] == f"user: 39 {TURN}"
        assert len(await session.messages()) == 80
        line = [message_id for message_id, _ in await session.messages_with_ids()]
        cuts = [line.index(each.upto) for each in made]
        assert cuts == sorted(set(cuts)), "a compaction goes beyond the one before"


async def test_one_turn_of_many_calls_is_compacted_in_its_midst(world: World) -> None:
    world.write("long.txt", "a line of the file\n" * 60)

    def say(request: ModelRequest) -> Step:
        if len(teller.asked) <= 30:
            return CallTool(name="read", args={"path": "long.txt", "offset": len(teller.asked)})
        return SayText(text="read it all")

    teller = SummarizingModel(window=WINDOW, say=say)
    async with world.open(teller.model) as app:
        session = await start(app, tools=["read"])
        reply = await session.send_message("read it, line by line")
        assert (reply.finish_reason, reply.text) == ("stop", "read it all")
        assert reply.tool_calls_made == 30
        assert all(fits(request) for request in teller.asked)
        assert len(await compactions(session)) >= 2
        assert len(await facts(session, TurnFinished)) == 1
        # The whole turn is still there for the person.
        assert sum(m.role == "tool" for m in await session.messages()) == 30


async def test_the_cost_of_a_turn_has_its_compactions_in_it(world: World) -> None:
    teller = SummarizingModel(window=WINDOW)
    async with world.open(teller.model) as app:
        session = await start(app)
        while not await compactions(session):
            reply = await session.send_message(TURN)
        rows = await facts(session, UsageRecorded)
        [row] = [each for each in rows if each.purpose == "compaction"]
        assert row.turn_id == reply.turn_id
        [turn] = [each for each in rows if each.turn_id == reply.turn_id and each is not row]
        assert reply.usage.input_tokens == row.usage.input_tokens + turn.usage.input_tokens


@pytest.mark.parametrize("steps", [(Fail(error="RequestRefused"),), (SayText(text=""),)])
async def test_a_summary_that_cannot_be_had_ends_neither_turn_nor_session(
    world: World, steps: tuple[Step, ...]
) -> None:
    """At the soft threshold the context stays as it is; at the hard one the steps are listed."""
    teller = SummarizingModel(window=WINDOW, summary=lambda request: steps)
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, *[TURN] * 7)
        assert len(teller.summaries) == 1
        assert await facts(session, Compacted) == []
        assert request_lines(teller.asked[-1]).count(f"user: {TURN}") == 7
        await send_prompts(session, *[TURN] * 12)
        assert await facts(session, ErrorRaised) == []
        assert {note.level for note in await facts(session, SystemNote)} == {"warning"}
        assert await session.get_status() == "idle"
        made = await compactions(session)
        assert all(each.summary.startswith("No summary could be written") for each in made)
    assert made
    assert all(fits(request) for request in teller.asked)


async def test_a_model_that_hangs_over_a_summary_holds_no_turn(plain_world: World) -> None:
    teller = SummarizingModel(
        window=WINDOW, summary=lambda request: (SayText(text="half"), Stall(gate="never"))
    )
    async with plain_world.open(teller.model, config={"compaction.timeout": 0.01}) as app:
        session = await start(app)
        await send_prompts(session, *[TURN] * 9)
        [made] = await compactions(session)
        assert made.summary.startswith("No summary could be written: the model took longer")
        rows = [r for r in await facts(session, UsageRecorded) if r.purpose == "compaction"]
        assert len(rows) >= len(teller.summaries) >= 1


async def test_at_the_soft_threshold_a_turn_is_not_compacted_in_its_midst(
    plain_world: World,
) -> None:
    """Only when a task is finished; the room is not full yet."""
    plain_world.write("long.txt", "a line of the file\n" * 60)
    done = {"todos": [{"text": "read", "status": "done"}]}

    def say(request: ModelRequest) -> Step:
        match len(teller.asked):
            case number if number <= 8:
                return CallTool(name="read", args={"path": "long.txt", "offset": number})
            case 9:
                assert teller.summaries == []
                return CallTool(name="todo", args=done)
            case _:
                return SayText(text="read it all")

    teller = SummarizingModel(window=WINDOW, say=say)
    async with plain_world.open(teller.model) as app:
        session = await start(app, tools=["read", "todo"])
        reply = await session.send_message("read it, line by line")
        assert reply.text == "read it all"
        assert len(teller.summaries) == 1
        assert len(await compactions(session)) == 1


async def test_a_turn_that_only_fetches_again_what_compactions_took_is_stopped(
    world: World,
) -> None:
    world.write("long.txt", "a line of the file\n" * 60)
    teller = SummarizingModel(
        window=WINDOW,
        say=lambda request: CallTool(
            name="read", args={"path": "long.txt", "offset": len(teller.asked) % 12}
        ),
    )
    async with world.open(teller.model) as app:
        session = await start(app, tools=["read"])
        reply = await session.send_message("read it for ever")
        assert reply.finish_reason == "no_progress"
        assert "only repeated calls" in reply.detail
        assert 2 <= len(await compactions(session)) <= 6


async def test_what_a_vendor_finds_too_long_is_compacted_once_and_asked_again(
    world: World,
) -> None:
    def say(request: ModelRequest) -> Step:
        if not request_lines(request)[0].startswith("user: [What came before"):
            return Fail(error="ContextTooLong", message="too long", status=400)
        return SayText(text="now it fits")

    teller = SummarizingModel(say=lambda request: SayText(text="fine"))
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "two", "three")
        teller.say = say
        reply = await session.send_message("four")
        assert (reply.finish_reason, reply.text) == ("stop", "now it fits")
        assert teller.seen[-1] == "user: four"
        assert len(await compactions(session)) == 1
        assert (await message_lines(session))[-1] == "assistant: now it fits"


async def test_a_window_that_is_smaller_than_we_think_is_made_to_fit(world: World) -> None:
    """The catalogue is wrong, or the text is not English: by our estimate everything fits easily,
    and the vendor still says no.
    """
    real = 3_000

    def say(request: ModelRequest) -> Step:
        if estimate(request.messages) > real:
            return Fail(error="ContextTooLong", message="too long", status=400)
        return SayText(text="fine")

    teller = SummarizingModel(window=200_000, say=say)
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, *[TURN] * 20)
        assert await facts(session, ErrorRaised) == []


async def test_what_cannot_be_made_to_fit_ends_with_context_overflow(world: World) -> None:
    too_long = Fail(error="ContextTooLong", message="too long", status=400)
    teller = SummarizingModel(say=lambda request: too_long)
    async with world.open(teller.model) as app:
        session = await start(app)
        reply = await session.send_message(TURN)
        assert reply.finish_reason == "context_overflow"
        assert len(teller.asked) == 1
        assert teller.summaries == []
        reply = await session.send_message("two")
        assert reply.finish_reason == "context_overflow"
        assert (len(teller.asked), len(teller.summaries)) == (3, 1)
        teller.say = None
        await send_prompts(session, "three")


async def test_an_overflow_that_cannot_be_summarised_ends_with_context_overflow(
    world: World,
) -> None:
    refused = Fail(error="RequestRefused", message="no")
    teller = SummarizingModel(summary=lambda request: refused)
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "two")
        teller.say = lambda request: Fail(error="ContextTooLong", message="too long")
        reply = await session.send_message("three")
        assert reply.finish_reason == "context_overflow"
        assert len(teller.summaries) == 1
        assert await session.get_status() == "idle"


async def test_a_prefix_that_fills_most_of_the_window_does_not_compact_before_every_call(
    world: World,
) -> None:
    """Instructions and tools are never compacted.

    A compaction that frees next to nothing is not worth its call.
    """
    teller = SummarizingModel(window=WINDOW)
    async with world.open(teller.model) as app:
        session = await start(app, system_prompt="y" * 4 * 2_900)
        with anyio.fail_after(2 * PATIENCE):
            await send_prompts(
                session, *(f"short prompt {number} {'z' * 80}" for number in range(40))
            )
        assert 1 <= len(await compactions(session)) <= 5
        assert all(
            estimate(request.messages) <= room(WINDOW, WINDOW // 10) - 2_900
            for request in teller.asked
        )


async def test_a_summary_that_is_too_long_is_cut(world: World) -> None:
    teller = SummarizingModel(window=WINDOW, summary=lambda request: SayText(text="s" * 4 * 3_000))
    async with world.open(teller.model) as app:
        session = await start(app)
        with anyio.fail_after(2 * PATIENCE):
            await send_prompts(session, *(f"{number} {TURN}" for number in range(12)))
        made = await compactions(session)
        assert made
        assert all(each.summary.endswith("too long and ends here]") for each in made)
        assert await facts(session, ErrorRaised) == []
        assert all(fits(request) for request in teller.asked)


async def test_a_summary_that_cannot_be_had_is_asked_for_once_a_turn(world: World) -> None:
    world.write("long.txt", "a line of the file\n" * 60)

    def say(request: ModelRequest) -> Step:
        if len(teller.asked) <= 20:
            return CallTool(name="read", args={"path": "long.txt", "offset": len(teller.asked)})
        return SayText(text="read it all")

    refused = Fail(error="RequestRefused", message="no")
    teller = SummarizingModel(window=WINDOW, say=say, summary=lambda request: refused)
    async with world.open(teller.model) as app:
        session = await start(app, tools=["read"])
        reply = await session.send_message("read it, line by line")
        assert reply.text == "read it all"
    assert len(teller.summaries) == 1


async def test_the_user_sees_that_there_was_a_compaction(world: World) -> None:
    teller = SummarizingModel(window=WINDOW)
    async with world.open(teller.model) as app:
        session = await start(app)
        async with await session.subscribe() as events:
            await send_prompts(session, *[TURN] * 10)
            seen: list[Compacted] = []
            end = (await session.editor_snapshot()).seq
            async for event in events:
                if isinstance(event, Compacted):
                    seen.append(event)
                if events.cursor >= end:
                    break
        assert [each.summary for each in seen] == [
            f"summary {number}" for number in range(1, len(seen) + 1)
        ]
        assert seen
        assert all(each.tokens_after < each.tokens_before for each in seen)


async def test_the_summariser_is_asked_within_the_window_as_the_vendor_counts(world: World) -> None:
    window, ratio = 4 * WINDOW, 3

    def say(request: ModelRequest) -> Sequence[Step]:
        counted = ratio * sum(map(len, request_lines(request))) // 4
        spent = Spend(usage=Usage(input_tokens=counted, output_tokens=1))
        return (SayText(text="fine"), *([spent] if len(teller.asked) == 4 else []))

    teller = SummarizingModel(window=window, say=say)
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, *(4 * TURN for _ in range(4)))
        await session.compact()
    [asked] = teller.summaries
    assert ratio * len("".join(request_lines(asked))) // 4 < window


async def test_a_summary_that_cannot_be_had_is_not_asked_for_at_every_turn(world: World) -> None:
    teller = SummarizingModel(window=WINDOW, summary=lambda request: Fail(error="RequestRefused"))
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, *(f"{number} {TURN[:1_000]}" for number in range(8)))
        while not teller.summaries:
            await send_prompts(session, "short")
        await send_prompts(session, *("short" for _ in range(5)))
        assert len(teller.summaries) == 1
    async with world.open(teller.model) as app:
        again = await app.sessions.get("s")
        await send_prompts(again, "short")
        assert len(teller.summaries) == 1, "it is known from the record"
        await send_prompts(again, TURN, TURN)
        assert len(teller.summaries) == 2
