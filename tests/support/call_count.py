"""The calls that Python makes while something runs: a cost that no other load changes."""

from __future__ import annotations

import sys
from typing import Any


def calls_made(run: Any) -> int:
    """Python and C calls while `run` runs: a count, so that no clock is asked."""
    count = 0

    def see(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        run()
    finally:
        sys.setprofile(None)
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
