"""When an indexer looks for what no watch tells of."""

from __future__ import annotations

from weft.repo.project_watch import LOOK_SECONDS, SOON_SECONDS, LookTimer


def test_a_change_brings_the_next_look_near_and_never_puts_it_off() -> None:
    timer = LookTimer(100.0)
    assert timer.left(100.0) == LOOK_SECONDS
    timer.changed(101.0)
    assert timer.left(101.0) == SOON_SECONDS
    timer.changed(101.4)
    assert timer.left(101.4) < SOON_SECONDS
    assert timer.left(200.0) == 0.0


def test_a_long_look_puts_off_the_next_one_only_where_all_files_are_looked_at() -> None:
    timer = LookTimer(0.0)
    timer.looked(10.0, 12.0, is_watched=True)
    assert timer.left(12.0) == LOOK_SECONDS
    timer.looked(22.0, 24.0, is_watched=False)
    assert timer.left(24.0) == 100.0
