"""A sample of `tests.crash.families`."""

from __future__ import annotations

import pytest

from tests.crash.families import prove

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]


def test_a_session_and_its_agent_in_two_processes_end_within_one_budget() -> None:
    verdict = prove(2, seed=1)
    assert verdict.wrong == []
    assert verdict.apart == 2
