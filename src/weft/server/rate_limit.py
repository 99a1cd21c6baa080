"""Rate limits: so many calls in so many seconds, for each key."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from weft.clock import Clock

MOST_KEYS: Final = 1_000
"""Keys that are counted; the one that was quiet for longest is forgotten."""


class RateLimit:
    """A token bucket for each key: `calls` at once, and as many again in `seconds`."""

    def __init__(self, calls: int, seconds: float, clock: Clock) -> None:
        self._calls = float(calls)
        self._per_second = calls / seconds
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_seconds(self, key: str) -> float:
        """Count one call; 0 where it may be made, otherwise how long to wait for the next."""
        now = self._clock.monotonic()
        left, at = self._buckets.pop(key, (self._calls, now))
        left = min(self._calls, left + (now - at) * self._per_second)
        may = left >= 1
        self._buckets[key] = (left - 1 if may else left, now)
        if len(self._buckets) > MOST_KEYS:
            self._buckets.popitem(last=False)
        return 0.0 if may else (1 - left) / self._per_second
