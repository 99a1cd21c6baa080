"""A sample of the proof of git history, and that it can fail."""

from __future__ import annotations

import pytest

from tests.crash import history

pytestmark = pytest.mark.process


@pytest.mark.timeout(120)
def test_random_attacks_lose_nothing_that_was_reachable() -> None:
    tally = history.run(6, seed=3)
    assert tally.wrong == []
    assert tally.refused >= 3
    assert tally.commands > tally.refused


@pytest.mark.timeout(120)
def test_without_the_guard_the_proof_is_red() -> None:
    assert history.run(4, 3, "guard").wrong != []
