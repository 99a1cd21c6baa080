"""The settings of a Postgres store: the times of its leases, and its patience with an outage."""

from __future__ import annotations

import msgspec

from weft.errors import UsageError


class LeaseTimes(msgspec.Struct, frozen=True, kw_only=True):
    """When an owner that is not heard of counts as dead."""

    beat_seconds: float = 2.0
    """A process that writes nothing says so often that it lives."""
    grace_seconds: float = 4.0
    """After this, an owner whose advisory lock is gone is dead: its connection was closed."""
    ttl_seconds: float = 15.0
    """After this, any owner is: a lost machine closes no connection."""

    def __post_init__(self) -> None:
        if not 0 < self.beat_seconds < self.grace_seconds <= self.ttl_seconds:
            raise UsageError("the times of leases must grow: beat, grace, time to live")


class PostgresSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a store uses its database."""

    dsn: str
    tenant: str = "main"
    times: LeaseTimes = LeaseTimes()
    patience_seconds: float = 30.0
    """How long an outage of the database is waited for before a caller is told."""
    answer_seconds: float = 10.0
    """How long one statement may take: without a limit, a partition hangs for a quarter of an
    hour."""
    readers: int = 4
    """Connections for reading."""
    slot: str = ""
    """The place of this process in its deployment (a StatefulSet's ordinal, a systemd unit): the
    next one in the same slot may take over at once."""
