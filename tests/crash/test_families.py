"""A sample of `tests.crash.families`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import anyio
import pytest

from tests.crash.families import Worker, begun, prove, read_logs
from weft.ids import SessionId

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]


def test_a_session_and_its_agent_in_two_processes_end_within_one_budget() -> None:
    verdict = prove(2, seed=1)
    assert verdict.wrong == []
    assert verdict.apart == 2


def test_an_agent_that_goes_on_when_its_session_is_over_is_at_rest_and_counted() -> None:
    """As on a busy machine, where the second process comes late."""
    with tempfile.TemporaryDirectory(prefix="fam-") as base:
        folder = Path(base) / "begun"
        child = begun(folder)
        lead = Worker(folder, "lead")
        assert lead.says() == "ready"
        work = Worker(folder, "work", child)
        try:
            assert work.says() == "ready"
            lead.go()
            assert lead.says() == "over"
            work.go()
            assert work.says() == "apart"
            assert work.says() == "rests"
            work.go()
            assert work.says() == "left"
        finally:
            lead.kill()
            work.kill()
        assert anyio.run(read_logs, folder, SessionId(child)) == []
