"""A sample of `tests.crash.powercut`: the cuts of one seed."""

from __future__ import annotations

from tests.crash import powercut
from tests.support.example_count import examples


def test_nothing_acknowledged_is_lost_in_a_power_cut() -> None:
    cuts = examples(25)
    verdicts = powercut.run(cuts, seed=2)
    assert len(verdicts) == cuts
    assert [wrong for wrong in verdicts if wrong] == []


def test_the_same_cuts_lose_without_full_sync() -> None:
    assert any(powercut.run(5, seed=2, synchronous="NORMAL"))
