"""A sample of `tests.crash.joins`."""

from __future__ import annotations

import anyio
import pytest

from tests.crash.joins import Verdict, join_at_random

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("session:join")
@pytest.mark.parametrize("seed", [1, 2])
async def test_a_screen_that_joins_in_the_middle_shows_every_token_once(seed: int) -> None:
    verdict = Verdict()
    with anyio.fail_after(60):
        await join_at_random(30, seed, verdict)
    assert verdict.wrong == []
    assert verdict.in_flight
    assert verdict.remote
