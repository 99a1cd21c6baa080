"""The property tests with ten times their examples, and others than the suite tries.

The suite tries the same few examples each time, so that a run that passed passes again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout

import pytest

from tests.support.source_code import ROOT

TIMES = 10
"""How many examples are tried for each one of the suite."""

LIMIT_SECONDS = 3600
"""Enough for the longest property on a slow machine."""


class Outcomes:
    """Sets the number of examples, and counts what came of the tests."""

    def __init__(self, times: int) -> None:
        self._times = times
        self.passed = 0
        self.wrong = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self) -> None:
        """Register the profile before the plugin of hypothesis looks for it."""
        # Not before pytest is here: it rewrites the modules of that plugin as they are loaded.
        from hypothesis import HealthCheck, settings

        from tests.support.example_count import WHOLE

        settings.register_profile(
            "proof",
            max_examples=WHOLE * self._times,
            database=None,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test once, and a failure of its fixtures as its own."""
        self.wrong += report.failed
        self.passed += report.passed and report.when == "call"


def attempt(where: Sequence[str], times: int, seed: int) -> Outcomes:
    """Run the properties below these paths."""
    outcomes = Outcomes(times)
    wanted = ("-m", "hypothesis", "--hypothesis-profile=proof", f"--hypothesis-seed={seed}")
    # Standard output takes one line, that of the claim.
    with redirect_stdout(sys.stderr):
        code = pytest.main(
            ["-q", *wanted, f"--timeout={LIMIT_SECONDS}", f"--rootdir={ROOT}", *where], [outcomes]
        )
    outcomes.wrong += code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    return outcomes


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--times", type=int, default=TIMES)
    parser.add_argument("where", nargs="*", default=[str(ROOT / "tests")])
    chosen = parser.parse_args(argv)
    start = time.monotonic()
    outcomes = attempt(chosen.where, chosen.times, chosen.seed)
    line = {
        "claim": "properties",
        "n": outcomes.passed,
        "violations": outcomes.wrong,
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - start, 1),
    }
    print(json.dumps(line))
    return int(bool(outcomes.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
