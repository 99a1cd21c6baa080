"""Garbage collection of the command line."""

from __future__ import annotations

import subprocess
import sys

import pytest

LEFT_OVER = """
import gc
from weft.cli.gc import collect_early_garbage, wait_with_garbage
wait_with_garbage()
collect_early_garbage()
import datetime
print([kind for kind in gc.get_objects()
       if isinstance(kind, type) and kind.__module__ == "datetime" and "__slots__" in vars(kind)])
print(gc.isenabled())
"""


@pytest.mark.process
def test_the_classes_that_datetime_throws_away_are_not_kept_for_the_life_of_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEFT_OVER], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["[]", "False"]
