"""Long sessions in small windows: requests fit, by the vendor's count, and begin alike."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from tests.support.counting_model import CountingModel
from tests.support.request_parts import prefix
from tests.support.world import World, facts
from weft.errors import UsageError
from weft.events import ErrorRaised, SystemNote, TurnFinished
from weft.messages import CallResults
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

WORDS = "the total of the cart is off by one when a row is empty; " * 16


@pytest.mark.timeout(120)
async def test_three_hundred_turns_in_a_window_of_32k_never_overflow(tmp_path: Path) -> None:
    world = World("memory", tmp_path)
    counting = CountingModel(window=32_000, ratio=1.7, answer=WORDS)
    world.write("AGENTS.md", "Use tabs.\n" * 2_000)
    async with world.open(counting.model, clock=world.clock) as app:
        session = await app.sessions.start_session(session_id="s")
        for number in range(300):
            if number % 50 == 20:
                await app.memory.add(f"note {number}")
            if number % 50 == 40:
                world.write("AGENTS.md", f"Use tabs, {number}.\n" * 2_000)
            await session.send_message(f"{number}: {WORDS}")
        ends = await facts(session, TurnFinished)
        assert [end.reason for end in ends] == ["stop"] * 300
        assert await facts(session, ErrorRaised) == []
    assert counting.refused == 0
    assert counting.summaries > 5
    assert max(map(counting.count, counting.asked)) <= 32_000
    same = [prefix(one) == prefix(other) for one, other in pairwise(counting.asked)]
    assert same.count(True) >= 0.9 * len(same)


async def test_instructions_take_their_share_of_a_small_window_and_more_of_a_larger_one(
    tmp_path: Path,
) -> None:
    world = World("memory", tmp_path)
    small = CountingModel(window=32_000, ratio=1.0)
    large = CountingModel(window=400_000, ratio=1.0, name="large")
    world.write("AGENTS.md", "Use tabs, always and everywhere.\n" * 800)
    async with world.open(small.model, large.model, clock=world.clock) as app:
        session = await app.sessions.start_session()
        await session.send_message("a")
        await session.send_message("b")
        await session.set_model("scripted:large")
        await session.send_message("c")
        await session.set_model("scripted:script")
        await session.send_message("d")
    assert 4 * 3_500 < small.asked[0].system.count("tabs") * 33 < 4 * 4_000
    assert "context.instructions and the model's window allow 4,000 tokens" in small.asked[0].system
    assert prefix(small.asked[1]) == prefix(small.asked[0])
    assert large.asked[0].system.count("tabs") == 800
    assert small.asked[2].system == small.asked[0].system


async def test_a_setting_leaves_a_zone_out_or_makes_it_smaller(tmp_path: Path) -> None:
    world = World("memory", tmp_path)
    counting = CountingModel(window=400_000, ratio=1.0)
    world.write("AGENTS.md", "Use tabs.\n" * 800)
    for tokens, least, most in ((0, 0, 0), (400, 100, 160), (100_000, 800, 800)):
        async with world.open(counting.model, config={"context.instructions": tokens}) as app:
            await (await app.sessions.start_session()).send_message("a")
        assert least <= counting.asked[-1].system.count("Use tabs.") <= most


async def test_what_a_vendor_counts_is_known_again_after_a_restart(tmp_path: Path) -> None:
    world = World("memory", tmp_path)
    counting = CountingModel(window=32_000, ratio=1.7)
    async with world.open(counting.model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("a")
    async with world.open(counting.model) as app:
        session = await app.sessions.get("s")
        await session.send_message("b")
        port = await session._port()
    assert port.state.ledger.ratio("scripted:script") == pytest.approx(1.7, abs=0.1)


async def test_a_result_leaves_room_for_others_in_a_small_window(tmp_path: Path) -> None:
    world = World("memory", tmp_path)
    world.write("long.txt", "some words of a long file\n" * 3_000)
    reads = [CallTool(name="read", args={"path": "long.txt"}) for _ in range(3)]
    for window, most in ((16_000, 2_000), (400_000, 8_000)):
        info = msgspec.structs.replace(ScriptedModel([]).info, context_window=window)
        model = ScriptedModel([reads, "Read."], info=info)
        async with world.open(model) as app:
            await (await app.sessions.start_session()).send_message("a")
        [*_, results] = model.last_request.messages
        assert isinstance(results, CallResults)
        assert all(most * 3.5 < len(each.text) <= most * 4 + 400 for each in results.results)


async def test_a_message_that_can_never_fit_is_refused_in_a_sentence_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    world = World("memory", tmp_path)
    counting = CountingModel(window=16_000, ratio=1.0)
    async with world.open(counting.model) as app:
        session = await app.sessions.start_session()
        with pytest.raises(UsageError, match=r"about 25,000 tokens, with room for 1\d,\d{3}; send"):
            await session.send_message("word " * 20_000)
        assert await session.messages() == []
        await session.send_message("a")
        assert (await facts(session, TurnFinished))[-1].reason == "stop"
    assert counting.refused == 0


async def test_a_prefix_that_fills_the_window_is_said_once_and_no_summary_is_asked_for(
    tmp_path: Path,
) -> None:
    world = World("memory", tmp_path)
    small = msgspec.structs.replace(ScriptedModel([]).info, context_window=1_000)
    models = [ScriptedModel(["a", "b", "c"], info=info) for info in (small, ScriptedModel([]).info)]
    for model, said in zip(models, (1, 0), strict=True):
        async with world.open(model) as app:
            session = await app.sessions.start_session()
            for text in ("one", "two", "three"):
                await session.send_message(f"{text}: {WORDS}")
            notes = await facts(session, SystemNote)
            told = [note.text for note in notes if "alone take about" in note.text]
            assert len(told) == said
            assert [end.reason for end in await facts(session, TurnFinished)] == ["stop"] * 3
        assert len(model.requests) == 3
