"""Every interrupt point × abort, kill -9 and stream break, once.

`tests.crash.interrupts` has them with every vendor's model.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.interrupts import Case, interrupt_and_go_on, sampled_cases
from tests.support.source_code import ROOT


@pytest.fixture(scope="module")
def after_kills() -> dict[str, list[str]]:
    """The verdicts on the cases that kill; they fork, so they have a process of their own."""
    command = [sys.executable, "-m", "tests.crash.interrupts", "--sampled-kills"]
    done = subprocess.run(command, stdout=subprocess.PIPE, cwd=ROOT, check=True)
    verdicts: dict[str, list[str]] = json.loads(done.stdout)
    return verdicts


@pytest.mark.anyio
@pytest.mark.parametrize("case", [case for case in sampled_cases() if case.kind != "kill"], ids=str)
async def test_the_history_is_legal_and_the_next_prompt_works_after(
    case: Case, tmp_path: Path
) -> None:
    assert await interrupt_and_go_on(tmp_path, case) == []


@pytest.mark.process
@pytest.mark.timeout(600)  # the first of them waits for the process that has them all
@pytest.mark.parametrize("case", [case for case in sampled_cases() if case.kind == "kill"], ids=str)
def test_a_new_process_finds_a_legal_history_and_the_next_prompt_works_after(
    case: Case, after_kills: dict[str, list[str]]
) -> None:
    assert after_kills[str(case)] == []


def test_there_are_nine_points_and_three_ways_to_be_interrupted_at_each() -> None:
    assert len({(case.point, case.kind) for case in sampled_cases()}) == 27
