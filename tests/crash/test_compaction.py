"""A sample of `tests.crash.compaction`."""

from __future__ import annotations

import anyio
import pytest

from tests.crash.compaction import Verdict, compact_at_random, talk_long
from tests.support.planted_session import HELD, SUMMARIZERS

pytestmark = [pytest.mark.anyio, pytest.mark.process]


@pytest.mark.parametrize("summarizer", SUMMARIZERS)
async def test_what_was_planted_outlives_a_summarizer_that_cannot_be_trusted(
    summarizer: str,
) -> None:
    verdict = Verdict()
    with anyio.fail_after(60):
        await compact_at_random(
            11, verdict, windows=[16_000], compactions=[1], summarizers=[summarizer]
        )
    assert verdict.wrong == []
    assert set(HELD) <= set(verdict.found)


async def test_what_was_planted_outlives_several_compactions_by_one_who_lies() -> None:
    verdict = Verdict()
    with anyio.fail_after(60):
        await compact_at_random(
            12, verdict, windows=[16_000], compactions=[3], summarizers=["lies"]
        )
    assert verdict.wrong == []
    assert (verdict.compactions, verdict.done_as_open) == (3, 0)


async def test_a_long_session_never_overflows_and_hardly_loses_its_cache() -> None:
    verdict = Verdict()
    with anyio.fail_after(60):
        await talk_long(40, 3, verdict, window=12_000)
    assert verdict.wrong == []
    assert verdict.long_compactions >= 2
