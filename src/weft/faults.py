"""Named fail-points: the instants at which a crash is worth testing.

A module declares its points at import, so that they enumerate themselves:

    _BEFORE_CALL = faults.point("loop.request.before_call")
    ...
    _BEFORE_CALL.hit()

In production a hit is one attribute test.  A test process arms one point (`arm("name", at=3)`) and
dies there by `os._exit`, without any clean-up, on the third pass.  `weft.faults` is reachable from
everywhere, like `errors`, because a crash is.
"""

from __future__ import annotations

import os
from collections.abc import Callable

EXIT_CODE = 137
"""What the process dies with at an armed point: the code a shell shows for SIGKILL."""


def _die(name: str) -> None:
    # Not `sys.exit`: that would run `finally` blocks and flush buffers, which no kill does.
    os._exit(EXIT_CODE)


class FailPoint:
    """One named instant.  `passes` counts the hits of this process while any point is armed."""

    __slots__ = ("_action", "_countdown", "armed", "name", "passes")

    def __init__(self, name: str) -> None:
        self.name = name
        self.armed = False
        self.passes = 0
        self._countdown = 0
        self._action: Callable[[str], None] = _die

    def hit(self) -> None:
        """Pass this point; when armed for this pass, act (by default: die at once)."""
        if not self.armed:
            return
        self.passes += 1
        self._countdown -= 1
        if self._countdown == 0:
            # Disarmed before the action: an action that does not die may pass this point again.
            self.armed = False
            self._action(self.name)

    def arm(self, at: int, action: Callable[[str], None]) -> None:
        """Act on the `at`-th hit from now, counted from 1."""
        self.armed = True
        self._countdown = at
        self._action = action

    def disarm(self) -> None:
        """Let every hit pass again."""
        self.armed = False
        self.passes = 0


_POINTS: dict[str, FailPoint] = {}


def point(name: str) -> FailPoint:
    """Declare the point called `name`; each name is declared once in the whole program."""
    if name in _POINTS:
        # Two points of one name would make a crash test arm the wrong one.
        raise ValueError(f"fail-point {name!r} is declared twice")
    _POINTS[name] = FailPoint(name)
    return _POINTS[name]


def names() -> tuple[str, ...]:
    """Every point declared by the modules imported so far."""
    return tuple(sorted(_POINTS))


def arm(name: str, *, at: int = 1, action: Callable[[str], None] = _die) -> FailPoint:
    """Arm the point called `name`."""
    _POINTS[name].arm(at, action)
    return _POINTS[name]


def disarm_all() -> None:
    """Disarm every point."""
    for known in _POINTS.values():
        known.disarm()


class FailPointPair:
    """The two instants around a commit: just before it is asked for, and just after it is
    durable.
    """

    __slots__ = ("after", "before")

    def __init__(self, name: str) -> None:
        self.before = point(f"{name}.before")
        self.after = point(f"{name}.after")
