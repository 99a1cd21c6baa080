"""A sample of the proof of blame, and that it can fail."""

from __future__ import annotations

import pytest

from tests.crash import blame

pytestmark = pytest.mark.process


@pytest.mark.timeout(300)
def test_each_line_is_of_the_session_or_the_user_who_wrote_it() -> None:
    tally = blame.run(30, seed=3)
    assert tally.wrong == []
    assert tally.lines >= 25


@pytest.mark.timeout(300)
def test_without_what_it_rests_on_the_proof_is_red() -> None:
    assert blame.run(20, 3, "newest").wrong != []
