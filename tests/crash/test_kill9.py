"""A sample of `tests.crash.kill9`, in a process of its own because it forks."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.support.source_code import ROOT

pytestmark = pytest.mark.process


def prove(*argv: str) -> dict[str, Any]:
    """The line that the claim prints; what it finds wrong goes to stderr."""
    command = [sys.executable, "-m", "tests.crash.kill9", *argv]
    done = subprocess.run(command, stdout=subprocess.PIPE, cwd=ROOT, check=False)
    line: dict[str, Any] = json.loads(done.stdout)
    return line | {"exit": done.returncode}


@pytest.mark.timeout(600)  # five seconds, unless the machine has other things to do
def test_nothing_is_lost_or_repeated_when_a_turn_is_killed() -> None:
    line = prove("--n", "40", "--seed", "1", "--no-teeth")
    assert (line["exit"], line["violations"]) == (0, 0)
    assert line["kills"] >= 40
    assert {"model call", "draft", "unsettled call", "follow-up"} <= line["met"].keys()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("without", ["intents", "fencing"])
def test_the_harness_sees_what_is_missing(without: str) -> None:
    line = prove("--teeth", without, "--n", "4", "--seed", "1")
    assert line["exit"] == 0
    assert line["went_red"]
