"""Usage by day: what the model calls of all stored sessions used, by day, project and model.

Read from the logs when it is asked for.  What was counted of a session is kept for as long as the
application is open, so that the next look reads new facts alone.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Final

import anyio
import msgspec

from weft.clock import Clock
from weft.errors import Corrupt, UsageError
from weft.events import ChildFinished, UsageRecorded, decode
from weft.ids import SessionId
from weft.messages import NOTHING_USED, Usage
from weft.state.ledger import used_by
from weft.store import Record, SessionRow, Store

MOST_DAYS: Final = 366
PAGE: Final = 1_000
DAY_SECONDS: Final = 86_400.0
_KINDS: Final = ("usage_recorded", "child_finished")
"""The facts that tell of usage."""


class DailyUsage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one model used in one project on one day."""

    day: str
    """As `2026-11-18`, by the clock of the machine that was asked."""
    project_path: str = ""
    model: str = ""
    """Empty where an old record does not say."""
    calls: int = 0
    usage: Usage = NOTHING_USED


class _UsedPart(msgspec.Struct, frozen=True):
    """What one fact says was used."""

    day: str
    model: str
    usage: Usage
    child: SessionId | None = None
    """The session that used it; a session's own calls have none."""


class _SessionCount:
    """What was read of one session's log."""

    def __init__(self) -> None:
        self.seq = 0
        self.parts: list[_UsedPart] = []

    def take(self, record: Record) -> None:
        self.seq = record.seq
        if record.kind not in _KINDS:
            return
        try:
            fact = decode(record.body)
        except Corrupt:
            return  # `weft store verify` tells of it
        child = fact.child if isinstance(fact, ChildFinished) else None
        if isinstance(fact, UsageRecorded | ChildFinished):
            day = day_of(record.at)
            self.parts += [_UsedPart(day, *used, child) for used in used_by(fact).items()]


class UsageCounter:
    """Counts what the sessions of a store have used."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[SessionId, _SessionCount] = {}
        self._lock = anyio.Lock()

    async def by_day(self, days: int) -> list[DailyUsage]:
        """The last days, the newest first; today is one of them.

        Raises:
            UsageError: too many, or none.
        """
        if not 1 <= days <= MOST_DAYS:
            raise UsageError(f"days is a number from 1 to {MOST_DAYS}, not {days}")
        now = self._clock.now()
        first = day_of(now - (days - 1) * DAY_SECONDS)
        async with self._lock:
            rows = await self._rows(now - days * DAY_SECONDS)
            # Only what may be asked for again: a session that is gone, or older, is forgotten.
            self._known = {row.id: await self._counted(row) for row in rows.values()}
            return _summed(rows, self._known, first)

    async def _rows(self, since: float) -> dict[SessionId, SessionRow]:
        """The sessions that were active since, agents and candidates included."""
        found: dict[SessionId, SessionRow] = {}
        place: tuple[float, SessionId] | None = None
        while page := await self._store.rows(limit=PAGE, archived=True, children=True, after=place):
            found |= {row.id: row for row in page if row.last_active >= since and not row.damaged}
            place = page[-1].last_active, page[-1].id
            if page[-1].last_active < since:
                break
        return found

    async def _counted(self, row: SessionRow) -> _SessionCount:
        counted = self._known.get(row.id) or _SessionCount()
        # While a turn runs, its row may be behind the log.
        if counted.seq == row.last_seq and not row.turn_open:
            return counted
        while records := await self._store.read(row.id, after=counted.seq, limit=PAGE):
            for record in records:
                counted.take(record)
            if len(records) < PAGE:
                break
        return counted


def _summed(
    rows: dict[SessionId, SessionRow], counted: dict[SessionId, _SessionCount], first: str
) -> list[DailyUsage]:
    sums: dict[tuple[str, str, str], list[Usage]] = defaultdict(list)
    for session_id, count in counted.items():
        project = _project_of(rows[session_id], rows)
        for part in count.parts:
            # What an agent used stands in its own log, call by call; its parent's sum counts only
            # where that log is gone.
            if part.day >= first and part.child not in counted:
                sums[part.day, project, part.model].append(part.usage)
    return [
        DailyUsage(
            day=day,
            project_path=project,
            model=model,
            calls=len(used),
            usage=sum(used, NOTHING_USED),
        )
        for (day, project, model), used in sorted(sums.items(), reverse=True)
    ]


def _project_of(row: SessionRow, rows: dict[SessionId, SessionRow]) -> str:
    """The project that a session was paid for; a candidate works in a copy of it."""
    while row.is_child and row.parent_id in rows:
        row = rows[row.parent_id]
    return row.project_path


def day_of(at: float) -> str:
    """The day of a moment, by the clock of this machine."""
    return time.strftime("%Y-%m-%d", time.localtime(at))
