"""A sample of `tests.crash.races`, in a process of its own because it forks."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.process


def test_a_stale_holder_is_refused_alone_and_without_the_fence_it_is_not() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.races", "--n", "10", "--seed", "3"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    line = json.loads(done.stdout)
    assert line["violations"] == 0
    assert line["teeth"]["violations"] > 0
    assert line["groups_with_a_refusal_and_a_success"] > 0
