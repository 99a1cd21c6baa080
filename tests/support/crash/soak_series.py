"""What a soak measures over its time, and whether it stayed flat."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

import msgspec

WARM_UP = 0.1
"""The share of the samples at the beginning that fill what is filled once: caches, sessions that
are still short, the allocator's pools.
"""
WARM_UP_LIVES = 5
"""Sessions that each seat has ended by then, on average.

Python's pools hold values of up to 512 bytes, in arenas of a megabyte that go back only when not
one value is left in them: there are as many as the busiest moment needed.  Measured on 44,000 steps
in six minutes: 27 arenas after 10 ended sessions, 31 after 20, 32 after 80, and 32 after 630; the
bytes in use stayed at 18 MB all the time.  At a user's pace 80 ended sessions take six minutes.
"""


class SoakSample(msgspec.Struct, frozen=True, kw_only=True):
    """One look at the process, while no session works."""

    minute: float
    ended: int
    """Sessions that were deleted so far."""
    memory_mb: float
    descriptors: float
    threads: float
    tasks: float
    """Without those of open sessions."""
    latency: float
    """A turn with one tool call, as a multiple of the floor that was measured beside it."""


class SoakTrend(msgspec.Struct, frozen=True):
    """How one measure went, from the middle of the first quarter to that of the last."""

    name: str
    first: float
    last: float
    grew: float
    """By the fitted line, between those two middles."""
    allowed: float
    """In the measure's own unit."""

    @property
    def is_flat(self) -> bool:
        """It did not grow by more than is allowed; to shrink is no fault."""
        return self.grew <= self.allowed


TOLERANCES: dict[str, tuple[float, float]] = {
    # A share of the first quarter, and an amount that is always allowed.  The pools of the
    # allocator make steps of a megabyte; counts have no reason to move at all, but one sample may
    # meet a thread of the pool or a background task that another does not.
    "memory_mb": (0.05, 2.0),
    "descriptors": (0.0, 1.0),
    "threads": (0.0, 1.0),
    "tasks": (0.0, 1.0),
    "latency": (0.2, 0.1),
}


def trends(samples: Sequence[SoakSample], seats: int) -> list[SoakTrend]:
    """The trend of each measure, without the warm-up."""
    kept = samples[warm_up(samples, seats) :]
    return [_trend(name, kept) for name in TOLERANCES]


def warm_up(samples: Sequence[SoakSample], seats: int) -> int:
    """How many samples are of the warm-up; at most half of them, so that a short run is judged."""
    lives = sum(each.ended < WARM_UP_LIVES * seats for each in samples)
    return min(max(int(len(samples) * WARM_UP), lives), len(samples) // 2)


def _trend(name: str, samples: Sequence[SoakSample]) -> SoakTrend:
    values = [float(getattr(each, name)) for each in samples]
    minutes = [each.minute for each in samples]
    quarter = max(1, len(values) // 4)
    first, last = statistics.median(values[:quarter]), statistics.median(values[-quarter:])
    apart = statistics.mean(minutes[-quarter:]) - statistics.mean(minutes[:quarter])
    share, amount = TOLERANCES[name]
    return SoakTrend(name, first, last, _slope(minutes, values) * apart, max(share * first, amount))


def _slope(minutes: Sequence[float], values: Sequence[float]) -> float:
    """The slope of the fitted line, by Theil and Sen: the median of the slopes of all pairs.

    Least squares would follow the few samples that a busy machine has disturbed.
    """
    points = list(zip(minutes, values, strict=True))
    slopes = [
        (two[1] - one[1]) / (two[0] - one[0])
        for one, two in itertools.combinations(points, 2)
        if two[0] != one[0]
    ]
    return statistics.median(slopes) if slopes else 0.0


def table(found: Sequence[SoakTrend]) -> str:
    """The trends for people."""
    rows = [f"{'measure':<12} {'first':>9} {'last':>9} {'grew':>9} {'allowed':>9}"]
    rows += [
        f"{each.name:<12} {each.first:>9.2f} {each.last:>9.2f} {each.grew:>+9.2f} "
        f"{each.allowed:>9.2f}{'' if each.is_flat else '  NOT FLAT'}"
        for each in found
    ]
    return "\n".join(rows)
