"""Discrete-event simulation of group commits: the lanes of all hosts before one database.

A host commits what waits as one group, and nothing else while that group is under way.  A group
first takes a core of the database, then waits for the flush of the log, which groups share.
"""

from __future__ import annotations

import heapq
import random
import statistics
from collections import deque
from typing import Literal, NamedTuple

from bench.simulate.assumptions import Database

Step = Literal["append", "commit", "flush"]
"""What comes next: an append arrives, a group leaves its core, or is on the disk."""


class QueueReport(NamedTuple):
    """How long appends waited, in seconds, and how busy the database was."""

    appends: int
    mean: float
    p50: float
    p99: float
    busy_share: float
    """Work handed in, of what the database's cores can do in that time; beyond one, they do not
    keep up."""

    @property
    def keeps_up(self) -> bool:
        """Whether the queue ends: the database does more than comes."""
        return self.busy_share < 1


class CommitQueue:
    """One run, deterministic by its seed."""

    def __init__(self, database: Database, *, lanes: int, rate: float, seed: int = 1) -> None:
        self._database = database
        self._rate = rate / lanes
        self._random = random.Random(seed)
        self._waiting: list[list[float]] = [[] for _ in range(lanes)]
        self._under_way: list[list[float]] = [[] for _ in range(lanes)]
        self._ready: deque[int] = deque()
        self._free_cores = database.cores
        self._busy_seconds = 0.0
        self._waits: list[float] = []
        self._steps: list[tuple[float, int, Step]] = []
        for lane in range(lanes):
            self._push(self._random.expovariate(self._rate), lane, "append")

    def run(self, seconds: float) -> QueueReport:
        """Play so many seconds of arrivals, and then what still waits."""
        begins = {"append": self._append, "commit": self._commit, "flush": self._flush}
        while self._steps:
            now, lane, step = heapq.heappop(self._steps)
            if step == "append" and now > seconds:
                continue
            begins[step](now, lane)
            self._give_cores(now)
        return self._report(seconds)

    def _append(self, now: float, lane: int) -> None:
        self._waiting[lane].append(now)
        self._push(now + self._random.expovariate(self._rate), lane, "append")
        self._begin_group(lane)

    def _begin_group(self, lane: int) -> None:
        if self._waiting[lane] and not self._under_way[lane]:
            self._under_way[lane], self._waiting[lane] = self._waiting[lane], []
            self._ready.append(lane)

    def _give_cores(self, now: float) -> None:
        while self._ready and self._free_cores:
            lane = self._ready.popleft()
            self._free_cores -= 1
            size = len(self._under_way[lane])
            takes = self._database.group_cpu + size * self._database.append_cpu
            self._busy_seconds += takes
            self._push(now + takes, lane, "commit")

    def _commit(self, now: float, lane: int) -> None:
        self._free_cores += 1
        self._push(now + self._database.flush, lane, "flush")

    def _flush(self, now: float, lane: int) -> None:
        self._waits += [now - since for since in self._under_way[lane]]
        self._under_way[lane] = []
        self._begin_group(lane)

    def _push(self, at: float, lane: int, step: Step) -> None:
        heapq.heappush(self._steps, (at, lane, step))

    def _report(self, seconds: float) -> QueueReport:
        waits = sorted(self._waits) or [0.0]
        busy = self._busy_seconds / (seconds * self._database.cores)
        p50, p99 = (waits[round((len(waits) - 1) * share)] for share in (0.5, 0.99))
        return QueueReport(len(self._waits), statistics.fmean(waits), p50, p99, busy)
