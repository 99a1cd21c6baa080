"""The one source of time.  Everything that needs the time is handed a `Clock`."""

from __future__ import annotations

import time
from typing import Protocol


# Handed in and never imported where it is used: a test or a replay decides what time it is.
class Clock(Protocol):
    """Where the time comes from."""

    def now(self) -> float:
        """Wall-clock seconds since the epoch; for showing, never for ordering."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow; for durations."""
        ...


class SystemClock(Clock):
    """The machine's clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


class ManualClock(Clock):
    """A clock that moves only by `advance`; for tests and replays."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self._now = start

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Move time on by `seconds`."""
        self._now += seconds
