"""Worker processes that parse, and the time that they take from others."""

from __future__ import annotations

import os

import pytest

from weft.repo.parsers.worker_pool import WorkerPool

pytestmark = pytest.mark.process


def _place(_: int) -> bytes:
    return f"{os.sched_getscheduler(0)} {os.getsid(0)}".encode()


def _told(*, steps_aside: bool) -> set[str]:
    pool = WorkerPool(_place, 2, steps_aside=steps_aside)
    return {(outcome or b"").decode() for _, outcome in pool.run(4)}


def test_workers_that_step_aside_have_the_time_that_nothing_else_in_the_session_wants() -> None:
    assert _told(steps_aside=True) == {f"{os.SCHED_IDLE} {os.getsid(0)}"}


def test_workers_for_a_few_files_are_as_quick_as_their_parent() -> None:
    assert _told(steps_aside=False) == {f"{os.sched_getscheduler(0)} {os.getsid(0)}"}
