"""`python -m bench.simulate [--measure] [SESSIONS …]`: what so many sessions need, as a table.

--measure starts a Postgres of its own and takes the times of an append from it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from bench.simulate.assumptions import DATABASE, HOSTS, WORKLOAD, Database
from bench.simulate.capacity import LONGEST_P99, Capacity, capacity_of, most_working

SESSIONS: Final = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
HEADINGS: Final = (
    *("sessions", "active a day", "in a turn", "appends/s", "hosts", "connections"),
    *("paused by a loss", "memory GB", "disk TB", "log MB/s", "p50 ms", "p99 ms", "busy"),
)


def main(argv: Sequence[str]) -> int:
    """Print the table, and how far one database goes; exit 2 for what is no number."""
    words = [word for word in argv if word != "--measure"]
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        print(__doc__, file=sys.stderr)
        return 2
    database = measured_database() if "--measure" in argv else DATABASE
    rows = [capacity_of(int(word), database=database) for word in words or map(str, SESSIONS)]
    print_table(rows)
    print_end(database)
    return 0


def measured_database() -> Database:
    """The one of this machine, with a line about it."""
    # Only here: it needs the Postgres extra and its programs.
    from bench.simulate.calibration import calibrate

    measured = calibrate()
    print(
        f"measured here: a lone append {measured.lone_ms:.2f} ms,"
        f" {measured.appends_a_second:,.0f} appends a second from one host\n"
    )
    return measured.database


def print_table(rows: Sequence[Capacity]) -> None:
    """All rows, numbers to the right; a mark where one database does not carry it."""
    lines = [HEADINGS, *map(_cells, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    for line in lines:
        cells = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(cells).rstrip())


def print_end(database: Database) -> None:
    """How far one database goes, and every assumption by its name."""
    working = most_working(database)
    print(
        f"\nOne database of {database.cores} cores carries {working:,} sessions in a turn"
        f" with appends under {LONGEST_P99 * 1000:.0f} ms at the 99th percentile,"
        f" {working / WORKLOAD.working_share:,.0f} in all."
    )
    for part in (WORKLOAD, HOSTS, database):
        values = ", ".join(f"{name} {value:g}" for name, value in part._asdict().items())
        print(f"{type(part).__name__}: {values}")


def _cells(row: Capacity) -> tuple[str, ...]:
    queue = row.queue
    waits = [f"{wait * 1000:.1f}" for wait in (queue.p50, queue.p99)]
    return (
        *(f"{count:,.0f}" for count in (row.sessions, row.active, row.working, row.appends)),
        *(f"{count:,}" for count in (row.hosts, row.connections, row.paused_by_a_loss)),
        *(f"{row.memory / 1e9:,.2f}", f"{row.disk / 1e12:,.3f}", f"{row.commit_log / 1e6:,.2f}"),
        *(waits if row.is_carried else ["too", "long"]),
        f"{queue.busy_share:.0%}",
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
