"""The capacity model: its queue against the theory of queues, and its table in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench.simulate.__main__ import SESSIONS, main
from bench.simulate.assumptions import DATABASE, HOSTS, Database
from bench.simulate.calibration import database_of
from bench.simulate.capacity import capacity_of, hosts_for, most_working
from bench.simulate.commit_queue import CommitQueue
from hypothesis import given
from hypothesis import strategies as st

DOCS = Path(__file__).parents[2] / "docs" / "scale.md"


def test_a_lone_append_waits_for_its_group_its_cpu_and_the_flush() -> None:
    report = CommitQueue(DATABASE, lanes=1, rate=1).run(200)
    least = DATABASE.group_cpu + DATABASE.append_cpu + DATABASE.flush
    assert report.p50 == pytest.approx(least)
    assert report.appends > 100


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_many_lanes_before_one_core_wait_as_the_theory_of_queues_says(load: float) -> None:
    # Lanes so many that each group is one append: one server, constant service, random arrivals.
    database = Database(cores=1, flush=0.0, group_cpu=0.0, append_cpu=0.001)
    report = CommitQueue(database, lanes=50_000, rate=load / 0.001).run(60)
    in_theory = 0.001 * (1 + load / (2 * (1 - load)))
    assert report.mean == pytest.approx(in_theory, rel=0.1)
    assert report.busy_share == pytest.approx(load, rel=0.05)


@given(rate=st.floats(1, 5_000), lanes=st.integers(1, 50), seed=st.integers(0, 9))
def test_no_append_is_answered_before_it_is_on_the_disk(rate: float, lanes: int, seed: int) -> None:
    report = CommitQueue(DATABASE, lanes=lanes, rate=rate, seed=seed).run(200 / rate)
    if report.appends:
        least = DATABASE.group_cpu + DATABASE.append_cpu + DATABASE.flush
        assert least - 1e-9 <= report.p50 <= report.p99
    assert report == CommitQueue(DATABASE, lanes=lanes, rate=rate, seed=seed).run(200 / rate)


def test_a_database_that_gets_more_than_it_can_do_does_not_keep_up() -> None:
    most = DATABASE.cores / DATABASE.append_cpu
    assert CommitQueue(DATABASE, lanes=4, rate=most / 2).run(0.5).keeps_up
    assert not CommitQueue(DATABASE, lanes=4, rate=most * 1.2).run(0.5).keeps_up


@given(working=st.integers(1, 10**6))
def test_the_other_hosts_carry_all_when_one_is_lost(working: int) -> None:
    left = hosts_for(working, working / 5) - 1
    assert left * HOSTS.memory * HOSTS.usable_share >= working * HOSTS.session_memory * 0.999


def test_what_is_carried_ends_where_it_is_said_to_end() -> None:
    database = Database(cores=1)
    most = most_working(database)
    assert capacity_of(most * 100, database=database).is_carried
    assert not capacity_of(most * 120, database=database).is_carried


def test_a_measured_database_does_in_the_model_what_it_did() -> None:
    database = database_of(lone_ms=2.0, rate=5_000, cores=1)
    assert CommitQueue(database, lanes=1, rate=1).run(100).p50 == pytest.approx(0.002)
    assert CommitQueue(database, lanes=1, rate=4_500).run(5).keeps_up
    assert not CommitQueue(database, lanes=1, rate=5_500).run(5).keeps_up


def test_the_docs_show_the_table_that_is_computed() -> None:
    documented = re.findall(r"^\| ([\d,]+) \|(.*)\|$", DOCS.read_text(), re.MULTILINE)
    rows = {int(sessions.replace(",", "")): cells.split("|") for sessions, cells in documented}
    assert list(rows) == list(SESSIONS)
    for sessions, cells in rows.items():
        row = capacity_of(sessions)
        assert [cell.strip() for cell in cells] == [
            f"{row.working:,}",
            f"{row.appends:,.0f}",
            f"{row.hosts}",
            f"{row.memory / 1e9:,.2f} GB",
            f"{row.disk / 1e12:,.3f} TB",
            f"{row.queue.p99 * 1000:.1f} ms",
            f"{row.queue.busy_share:.0%}",
        ]


@pytest.mark.parametrize("words", [["many"], ["0"], ["-5"], ["--bogus"], ["1e6"]])
def test_what_is_no_number_of_sessions_is_refused_with_the_usage(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert "bench.simulate" in capsys.readouterr().err


def test_the_table_has_a_row_for_each_number_that_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["2000", "30000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["2,000", "30,000"]
