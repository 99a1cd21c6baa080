"""A sample of `tests.crash.long`: forty turns on each store, ten in the inner loop."""

from __future__ import annotations

import pytest

from tests.crash.long import STORES, Led, differing, lead
from tests.support.example_count import is_whole_suite

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

# Everything that is asked for below happens in both.
TURNS, SEED = (40, 4) if is_whole_suite() else (10, 8)


async def test_a_long_conversation_replays_to_the_same_state_on_every_store() -> None:
    led: dict[str, Led] = {}
    for kind in STORES:
        led[kind] = await lead(kind, TURNS, SEED)
        assert led[kind].wrong == []
        assert led[kind].turns >= TURNS
    assert differing(led) == []
    happened = {name for name in led["memory"].counts if not name.endswith("refused")}
    assert {"compacted", "crash", "abort", "steer", "branch", "switch branch", "rewind"} <= happened
