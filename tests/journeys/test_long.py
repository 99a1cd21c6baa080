"""A sample of `tests.crash.long`: forty turns on each store."""

from __future__ import annotations

import pytest

from tests.crash.long import STORES, Led, differing, lead

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

TURNS = 40


async def test_a_long_conversation_replays_to_the_same_state_on_every_store() -> None:
    led: dict[str, Led] = {}
    for kind in STORES:
        led[kind] = await lead(kind, TURNS, seed=4)
        assert led[kind].wrong == []
        assert led[kind].turns >= TURNS
    assert differing(led) == []
    happened = {name for name in led["memory"].counts if not name.endswith("refused")}
    assert {"compacted", "crash", "abort", "steer", "branch", "switch branch", "rewind"} <= happened
