"""Making room in a long line holds up nothing else: what it costs, other threads pay."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.call_count import StretchCount
from tests.support.compaction import SummarizingModel, compactions, send_prompts, start
from tests.support.world import World

pytestmark = pytest.mark.anyio

MOST_CALLS = 20_000
"""About five milliseconds."""
SAID = "The shop is slow today. Never push to main. What does cart.py do about it? " * 200
PROMPTS = tuple(f"{number} {SAID}" for number in range(12))


async def test_a_compaction_on_demand_never_holds_the_loop(plain_world: World) -> None:
    teller = SummarizingModel(window=1_000_000)
    async with plain_world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, *PROMPTS)
        with StretchCount() as stretch:
            await session.compact()
    assert stretch.longest < MOST_CALLS
    [asked] = teller.summaries
    assert SAID[:200] in str(asked.messages)


async def test_one_that_is_made_by_itself_does_not_hold_it_either(plain_world: World) -> None:
    teller = SummarizingModel(window=1_000_000)
    async with plain_world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, *PROMPTS)
        teller.model.info = msgspec.structs.replace(teller.model.info, context_window=50_000)
        with StretchCount() as stretch:
            await send_prompts(session, "now")
        assert len(await compactions(session)) == 1
    assert stretch.longest < MOST_CALLS
