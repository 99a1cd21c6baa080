"""A sample of `tests.crash.subscribers`."""

from __future__ import annotations

import anyio
import pytest

from tests.crash.subscribers import STALLED, Verdict, come_and_go, stall
from weft.actors.hub import CAPACITY

pytestmark = pytest.mark.anyio


async def test_a_reader_that_comes_and_goes_reads_every_fact_once_and_in_order() -> None:
    verdict = Verdict()
    with anyio.fail_after(60):
        await come_and_go(60, seed=3, verdict=verdict)
    assert verdict.wrong == []
    assert verdict.overflows
    assert verdict.facts > 100


async def test_readers_that_never_read_cost_the_session_nothing_and_miss_nothing() -> None:
    verdict = Verdict()
    with anyio.fail_after(60):
        await stall(STALLED, turns=8, verdict=verdict)
    assert verdict.wrong == []
    assert verdict.stalled_overflows == STALLED
    assert verdict.most_held <= CAPACITY
