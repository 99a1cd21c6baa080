"""A sample of `tests.crash.powercut`: the cuts of one seed."""

from __future__ import annotations

from tests.crash import powercut


def test_nothing_acknowledged_is_lost_in_a_power_cut() -> None:
    verdicts = powercut.run(25, seed=2)
    assert len(verdicts) == 25
    assert [wrong for wrong in verdicts if wrong] == []


def test_the_same_cuts_lose_without_full_sync() -> None:
    assert any(powercut.run(5, seed=2, synchronous="NORMAL"))
