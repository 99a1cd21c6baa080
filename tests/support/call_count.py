"""The calls that Python makes while something runs: a cost that no other load changes."""

from __future__ import annotations

import gc
import sys
from typing import Any


def calls_made(run: Any) -> int:
    """Python and C calls while `run` runs: a count, so that no clock is asked."""
    count = 0

    def see(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    # What a collection ends in between belongs to whatever ran before.
    collects = gc.isenabled()
    gc.disable()
    sys.setprofile(see)
    try:
        run()
    finally:
        sys.setprofile(None)
        if collects:
            gc.enable()
    return count


def lines_run(run: Any) -> int:
    """Lines of Python that run while `run` does: a loop that makes no call counts too."""
    count = 0

    def see(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return see

    before = sys.gettrace()
    sys.settrace(see)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


class StretchCount:
    """The most calls that the event loop's thread makes before the loop comes to another task.

    What runs in other threads meanwhile is not counted.
    """

    def __init__(self) -> None:
        self.longest = 0
        self._calls = 0

    def __enter__(self) -> StretchCount:
        sys.setprofile(self._see)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _see(self, frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_name == "_run_once":
            self._calls = 0
        self._calls += event in ("call", "c_call")
        self.longest = max(self.longest, self._calls)
