"""Tasks with an owner: one that fails hurts itself alone, and closing waits for all."""

from __future__ import annotations

import asyncio
import logging

import anyio
import pytest
from anyio import fail_after
from hypothesis import given
from hypothesis import strategies as st

from tests.support.idle_loop import all_tasks_blocked
from weft.actors import ForeignCancellation, RestartBudget, Supervisor, without_foreign_cancel
from weft.clock import ManualClock

pytestmark = pytest.mark.anyio


class Witness:
    """A task that lives until it is cancelled, and remembers how it went."""

    def __init__(self) -> None:
        self.started = anyio.Event()
        self.cancelled = False

    @property
    def lives(self) -> bool:
        return self.started.is_set() and not self.cancelled

    async def run(self) -> None:
        self.started.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            self.cancelled = True
            raise


async def fails() -> None:
    raise RuntimeError("boom")


async def awaits_what_was_cancelled_elsewhere() -> None:
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


async def is_cancelled_natively() -> None:
    task = asyncio.current_task()
    if task is not None:
        task.cancel()
    await anyio.sleep(60)


@pytest.mark.parametrize(
    "ends", [fails, awaits_what_was_cancelled_elsewhere, is_cancelled_natively]
)
async def test_a_task_that_fails_hurts_itself_alone_and_is_named(
    ends: object, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor, witness = Supervisor(), Witness()
    with fail_after(5), caplog.at_level(logging.ERROR):
        await supervisor.open()
        supervisor.start(witness.run, "witness")
        await witness.started.wait()
        supervisor.start(ends, "unlucky")  # type: ignore[arg-type]  # the three coroutines above
        await all_tasks_blocked()
        assert witness.lives
        later = Witness()
        supervisor.start(later.run, "later")
        await later.started.wait()
        await supervisor.aclose()
    assert [record.__dict__["task"] for record in caplog.records] == ["unlucky"]
    assert witness.cancelled
    assert later.cancelled


async def test_closing_cancels_all_and_waits_for_their_clean_up() -> None:
    supervisor = Supervisor()
    cleaned: list[int] = []
    running = anyio.Event()

    async def work(number: int) -> None:
        try:
            running.set()
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
                cleaned.append(number)

    with fail_after(5):
        await supervisor.open()
        for number in range(3):
            # Binds the number.
            supervisor.start(lambda number=number: work(number), f"work {number}")  # type: ignore[misc]
        await running.wait()
        await all_tasks_blocked()
        await supervisor.aclose()
    assert sorted(cleaned) == [0, 1, 2]


async def test_it_may_be_opened_in_one_task_and_closed_in_another() -> None:
    supervisor, witness = Supervisor(), Witness()

    async def opens() -> None:
        await supervisor.open()
        supervisor.start(witness.run, "witness")

    with fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(opens)
        await witness.started.wait()
        assert witness.lives
        async with anyio.create_task_group() as group:
            group.start_soon(supervisor.aclose)
    assert witness.cancelled


async def test_cancelling_the_caller_that_started_a_task_does_not_reach_it() -> None:
    supervisor, witness = Supervisor(), Witness()
    with fail_after(5):
        await supervisor.open()
        async with anyio.create_task_group() as group:

            async def starts() -> None:
                supervisor.start(witness.run, "witness")
                await anyio.sleep_forever()

            group.start_soon(starts)
            await witness.started.wait()
            group.cancel_scope.cancel()
        await all_tasks_blocked()
        assert witness.lives
        await supervisor.aclose()


async def test_those_who_cannot_wait_may_still_end_all() -> None:
    supervisor, witness = Supervisor(), Witness()
    with fail_after(5):
        await supervisor.open()
        supervisor.start(witness.run, "witness")
        await witness.started.wait()
        supervisor.close_soon()
        await all_tasks_blocked()
        assert witness.cancelled
        await supervisor.aclose()


async def test_what_is_not_open_starts_nothing() -> None:
    supervisor = Supervisor()
    with pytest.raises(RuntimeError, match="not open"):
        supervisor.start(fails, "early")
    await supervisor.open()
    await supervisor.aclose()
    await supervisor.aclose()
    with pytest.raises(RuntimeError, match="not open"):
        supervisor.start(fails, "late")


# --- cancellations that nobody asked for


async def test_a_stray_cancellation_is_an_error_like_any_other() -> None:
    with pytest.raises(ForeignCancellation):
        await without_foreign_cancel(awaits_what_was_cancelled_elsewhere())


async def test_a_cancellation_that_was_meant_is_passed_on() -> None:
    async def guarded() -> None:
        await without_foreign_cancel(anyio.sleep_forever())

    with fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(guarded)
            await all_tasks_blocked()
            group.cancel_scope.cancel()
        with anyio.move_on_after(0.01) as scope:
            await without_foreign_cancel(anyio.sleep_forever())
        assert scope.cancelled_caught
        task = asyncio.get_running_loop().create_task(guarded())
        await all_tasks_blocked()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_work_that_ends_well_gives_its_value() -> None:
    async def value() -> int:
        return 7

    assert await without_foreign_cancel(value()) == 7


# --- restarts


def test_a_budget_is_spent_and_comes_back_with_time() -> None:
    clock = ManualClock()
    budget = RestartBudget(restarts=3, seconds=60, clock=clock)
    assert [budget.spend() for _ in range(5)] == [True, True, True, False, False]
    clock.advance(60.0)
    assert not budget.spend()
    clock.advance(0.5)
    assert [budget.spend() for _ in range(4)] == [True, True, True, False]


@given(pauses=st.lists(st.floats(0, 40), max_size=40), restarts=st.integers(1, 4))
def test_no_window_ever_holds_more_than_its_restarts(pauses: list[float], restarts: int) -> None:
    clock = ManualClock(start=0.0)
    budget = RestartBudget(restarts=restarts, seconds=60, clock=clock)
    at: list[float] = []
    for pause in pauses:
        clock.advance(pause)
        if budget.spend():
            at.append(clock.monotonic())
    for first, last in zip(at, at[restarts:], strict=False):
        assert last - first > 60


def test_each_child_has_a_budget_of_its_own() -> None:
    clock = ManualClock()
    first, second = RestartBudget(restarts=1, clock=clock), RestartBudget(restarts=1, clock=clock)
    assert (first.spend(), first.spend(), second.spend()) == (True, False, True)
