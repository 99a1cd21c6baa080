"""Numbers that the capacity model starts from: what was measured, and what is taken for granted."""

from __future__ import annotations

from typing import Final, NamedTuple

KB: Final = 1_000
MB: Final = 1_000_000
DAY: Final = 86_400


class Workload(NamedTuple):
    """What sessions do: shares of all sessions, rates, and bytes."""

    active_share: float = 0.1
    """Of all sessions, those that get a message on a day.  Taken for granted."""
    working_share: float = 0.01
    """Of all sessions, those in a turn at the busiest moment.  Taken for granted."""
    turns_a_day: float = 10
    """Of an active session.  Taken for granted."""
    appends_a_turn: float = 10
    """Four were measured for a turn with two rounds of tools; this is a turn with eight."""
    seconds_between_appends: float = 5
    """Of a session in a turn: a model call or a command lies between two appends."""
    facts_a_session: float = 300
    """Twenty turns of 14.6 facts, as measured."""
    fact_bytes: float = 560
    """A row with its index, as measured."""
    word_bytes: float = 50 * KB
    """The text of a session in the index for searches, as measured."""
    blob_bytes: float = 600 * KB
    """The contents of files that twenty turns of a session touch.  Taken for granted."""
    commit_log_bytes: float = 4 * KB
    """What an append adds to the log that a replica receives, as measured."""


class Hosts(NamedTuple):
    """What one host carries."""

    memory: float = 4_000 * MB
    """Of a host, for sessions."""
    session_memory: float = 1 * MB
    """Of a session in a turn; a short one takes 0.16, one at rest nothing."""
    cores: float = 4
    append_cpu: float = 0.0015
    """Seconds of a core between two appends: the loop, the codec and the stream of the answer."""
    usable_share: float = 0.6
    """Of cores and memory, what is used while no host is missing."""
    connections: int = 6
    """Of a host: its lane, its lock, and a pool of four for reads."""


class Database(NamedTuple):
    """What one group commit costs; `calibration` measures the last three where it is asked to."""

    cores: int = 8
    flush: float = 0.0012
    """Seconds until the log is on the disk, a synchronous replica's round trip included."""
    group_cpu: float = 0.0003
    """Seconds of a core for a group, however many appends are in it."""
    append_cpu: float = 0.0000725
    """Seconds of a core for each append of a group."""


WORKLOAD: Final = Workload()
HOSTS: Final = Hosts()
DATABASE: Final = Database()
