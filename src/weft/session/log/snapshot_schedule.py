"""When a session keeps a snapshot of its state."""

from __future__ import annotations

from typing import Final

FACTS_BETWEEN: Final = 2_000
"""Facts since the last snapshot that make a new one worth its while."""
LOG_SHARE: Final = 8
"""The part of a log that is worth a snapshot, however long it is."""


def is_snapshot_due(seq: int, kept_seq: int, after: int = FACTS_BETWEEN) -> bool:
    """Whether so many facts came since the last snapshot that a new one is worth its while."""
    return seq - kept_seq >= _distance(seq, after)


def is_snapshot_overdue(seq: int, kept_seq: int) -> bool:
    """Whether it was put off for so long that it must not be any more: what came since then has to
    be read again after a crash, and messages may never cease to come.
    """
    return seq - kept_seq >= 2 * _distance(seq, FACTS_BETWEEN)


def _distance(seq: int, after: int) -> int:
    # A part of the whole, because a snapshot is as long as the session: at fixed distances, all
    # snapshots of a session together would cost the square of its length.
    return max(after, seq // LOG_SHARE)
