"""A sample of the proof of bisections, and that it can fail."""

from __future__ import annotations

import pytest

from tests.crash import bisect

pytestmark = pytest.mark.process


@pytest.mark.timeout(300)
def test_a_border_that_is_found_is_one_and_whose_it_is() -> None:
    tally = bisect.run(4, seed=3)
    assert tally.wrong == []
    assert tally.sessions == 4


@pytest.mark.timeout(120)
def test_a_killed_bisection_leaves_no_process_no_mount_and_an_untouched_project() -> None:
    tally = bisect.killed(5)
    assert tally.wrong == []
    assert tally.kinds == {"killed in a check": 1}


@pytest.mark.timeout(300)
def test_without_what_it_rests_on_the_proof_is_red() -> None:
    assert bisect.run(6, 3, "outside").wrong != []
