"""Capacity of a deployment: how much so many sessions ask of the hosts and of the database."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from bench.simulate.assumptions import DATABASE, DAY, HOSTS, WORKLOAD, Database, Hosts, Workload
from bench.simulate.commit_queue import CommitQueue, QueueReport

LONGEST_P99: Final = 0.1
"""Seconds that an append may wait."""
MOST_APPENDS: Final = 20_000
"""Of one run of the queue; beyond that, the figures no longer move."""


class Capacity(NamedTuple):
    """What so many sessions need."""

    sessions: int
    active: float
    working: int
    """In a turn at the busiest moment."""
    appends: float
    """A second, at the busiest moment."""
    appends_on_average: float
    hosts: int
    connections: int
    paused_by_a_loss: int
    """Sessions that pause for the grace when one host dies."""
    memory: float
    """Bytes, on all hosts."""
    disk: float
    commit_log: float
    """Bytes a second that a replica receives."""
    queue: QueueReport

    @property
    def is_carried(self) -> bool:
        """Whether one database keeps up, and no append waits for too long."""
        return self.queue.keeps_up and self.queue.p99 <= LONGEST_P99


def capacity_of(
    sessions: int,
    workload: Workload = WORKLOAD,
    hosts: Hosts = HOSTS,
    database: Database = DATABASE,
) -> Capacity:
    """The row of the table for so many sessions."""
    working = max(1, round(sessions * workload.working_share))
    appends = working / workload.seconds_between_appends
    active = sessions * workload.active_share
    count = hosts_for(working, appends, hosts)
    each = workload.facts_a_session * workload.fact_bytes + workload.word_bytes
    return Capacity(
        sessions=sessions,
        active=active,
        working=working,
        appends=appends,
        appends_on_average=active * workload.turns_a_day * workload.appends_a_turn / DAY,
        hosts=count,
        connections=count * hosts.connections,
        paused_by_a_loss=math.ceil(working / count),
        memory=working * hosts.session_memory,
        disk=sessions * (each + workload.blob_bytes),
        commit_log=appends * workload.commit_log_bytes,
        queue=waiting_at(appends, count, database),
    )


def hosts_for(working: int, appends: float, hosts: Hosts = HOSTS) -> int:
    """How many hosts: by memory or by cores, whichever asks for more, and one that may be lost."""
    by_memory = working * hosts.session_memory / (hosts.memory * hosts.usable_share)
    by_cores = appends * hosts.append_cpu / (hosts.cores * hosts.usable_share)
    return math.ceil(max(by_memory, by_cores)) + 1


def waiting_at(appends: float, hosts: int, database: Database = DATABASE) -> QueueReport:
    """The commits of so many appends a second, from so many hosts."""
    seconds = min(600.0, MOST_APPENDS / appends)
    return CommitQueue(database, lanes=hosts, rate=appends).run(seconds)


def most_working(database: Database = DATABASE, workload: Workload = WORKLOAD) -> int:
    """How many sessions in a turn one database carries, found by halving."""
    low, high = 1, 1
    while _carries(high, database, workload):
        low, high = high, high * 2
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        low, high = (middle, high) if _carries(middle, database, workload) else (low, middle)
    return low


def _carries(working: int, database: Database, workload: Workload) -> bool:
    appends = working / workload.seconds_between_appends
    report = waiting_at(appends, hosts_for(working, appends), database)
    return report.keeps_up and report.p99 <= LONGEST_P99
