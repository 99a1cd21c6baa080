"""Publishing never waits: a reader that falls behind loses, is told so, and costs nobody else
anything.
"""

from __future__ import annotations

import anyio
import pytest
from anyio import fail_after
from hypothesis import given
from hypothesis import strategies as st

from tests.support.idle_loop import all_tasks_blocked
from weft.actors import Hub, Inbox
from weft.actors.hub import MOST_WEIGHT

pytestmark = pytest.mark.anyio


def drained(inbox: Inbox[int]) -> list[int]:
    """Everything that can be read now."""
    found: list[int] = []
    while (event := inbox.take_nowait()) is not None:
        found.append(event)
    return found


def test_every_reader_gets_every_event_in_order_from_when_it_came() -> None:
    hub: Hub[int] = Hub()
    early = hub.open_inbox()
    hub.publish(1)
    late = hub.open_inbox()
    hub.publish(2)
    hub.publish(3)
    assert drained(early) == [1, 2, 3]
    assert drained(late) == [2, 3]
    assert (early.lost, late.lost) == (0, 0)


def test_stalled_readers_hold_no_more_than_their_bound_and_others_lose_nothing() -> None:
    hub: Hub[int] = Hub()
    stalled = [hub.open_inbox(capacity=4) for _ in range(100)]
    awake = hub.open_inbox(capacity=4)
    read: list[int] = []
    for event in range(1, 1001):
        hub.publish(event)
        read += drained(awake)
    assert read == list(range(1, 1001))
    assert awake.lost == 0
    for inbox in stalled:
        left = drained(inbox)
        assert len(left) <= 4
        assert inbox.lost + len(left) == 1000


@given(pauses=st.lists(st.integers(0, 7), max_size=30), capacity=st.integers(1, 5))
def test_whatever_a_reader_did_not_get_is_counted(pauses: list[int], capacity: int) -> None:
    """Read and lost together are what was published, and what is read comes in order."""
    hub: Hub[int] = Hub()
    inbox = hub.open_inbox(capacity=capacity)
    read: list[int] = []
    published = 0
    for pause in pauses:
        for _ in range(pause):
            published += 1
            hub.publish(published)
        read += drained(inbox)
    assert len(read) + inbox.lost == published
    assert read == sorted(set(read))


def test_after_a_loss_only_newer_events_are_left() -> None:
    """A reader makes up for a loss from the store, up to now.

    Nothing it reads afterwards may be older.
    """
    hub: Hub[int] = Hub()
    inbox = hub.open_inbox(capacity=3)
    for event in range(1, 6):
        hub.publish(event)
    assert inbox.lost == 4
    assert drained(inbox) == [5]
    inbox.forget_loss()
    hub.publish(6)
    assert (inbox.lost, drained(inbox)) == (0, [6])


async def test_a_reader_that_waits_is_woken_by_an_event_a_loss_and_the_end() -> None:
    hub: Hub[int] = Hub()
    inbox = hub.open_inbox(capacity=1)
    woken: list[tuple[int, int, bool]] = []

    async def read() -> None:
        while not inbox.closed:
            await inbox.wait()
            woken.append((len(drained(inbox)), inbox.lost, inbox.closed))
            inbox.forget_loss()

    with fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await all_tasks_blocked()
            hub.publish(1)
            await all_tasks_blocked()
            hub.publish(2)
            hub.publish(3)
            await all_tasks_blocked()
            hub.close()
    assert woken == [(1, 0, False), (0, 2, False), (0, 0, True)]


async def test_waiting_ends_at_once_when_there_is_something_to_read() -> None:
    hub: Hub[int] = Hub()
    inbox = hub.open_inbox()
    hub.publish(1)
    with fail_after(5):
        await inbox.wait()
    assert drained(inbox) == [1]


async def test_waiting_ends_at_once_when_something_was_lost() -> None:
    hub: Hub[int] = Hub()
    inbox = hub.open_inbox(capacity=1)
    hub.publish(1)
    hub.publish(2)
    with fail_after(5):
        await inbox.wait()
    assert (drained(inbox), inbox.lost) == ([], 2)


async def test_a_reader_that_was_cancelled_can_come_back() -> None:
    hub: Hub[int] = Hub()
    inbox = hub.open_inbox()
    with anyio.move_on_after(0.01):
        await inbox.wait()
    hub.publish(1)
    with fail_after(5):
        await inbox.wait()
    assert drained(inbox) == [1]


def test_a_reader_that_left_gets_nothing_more() -> None:
    hub: Hub[int] = Hub()
    inbox, other = hub.open_inbox(), hub.open_inbox()
    hub.drop(inbox)
    hub.publish(1)
    assert (drained(inbox), inbox.closed) == ([], True)
    assert (drained(other), other.closed) == ([1], False)
    assert len(hub) == 1
    hub.drop(inbox)


def test_an_inbox_can_listen_to_several_hubs() -> None:
    first: Hub[int] = Hub()
    second: Hub[int] = Hub()
    inbox = first.open_inbox()
    second.add(inbox)
    first.publish(1)
    second.publish(2)
    assert drained(inbox) == [1, 2]


def test_a_reader_may_throw_away_what_it_has_not_read() -> None:
    hub: Hub[int] = Hub()
    inbox = hub.open_inbox()
    hub.publish(1)
    inbox.drop_all()
    hub.publish(2)
    assert (drained(inbox), inbox.lost) == ([2], 0)


def test_a_reader_that_leaves_much_unread_loses_it_before_it_is_many_events() -> None:
    hub: Hub[str] = Hub()
    stalled, empty = hub.open_inbox(), hub.open_inbox()
    for _ in range(10):
        hub.publish("half", MOST_WEIGHT // 2)
        assert empty.take_nowait() == "half"
    assert stalled.lost
    hub.publish("huge", MOST_WEIGHT * 2)
    assert empty.take_nowait() == "huge", "one event is taken whatever it weighs"
    assert not empty.lost


class LeavingInbox(Inbox[int]):
    """Makes another reader leave in the middle of a publication, as the garbage collector can."""

    def __init__(self, hub: Hub[int], other: Inbox[int]) -> None:
        super().__init__(capacity=4)
        self._hub, self._other = hub, other

    def put(self, event: int, weight: int = 0) -> None:
        super().put(event, weight)
        self._hub.drop(self._other)


def test_a_reader_that_leaves_while_an_event_is_published_costs_the_others_nothing() -> None:
    hub: Hub[int] = Hub()
    leaving = hub.open_inbox()
    hub.add(LeavingInbox(hub, leaving))
    last = hub.open_inbox()
    hub.publish(1)
    hub.publish(2)
    assert drained(last) == [1, 2]
    assert (leaving.closed, len(hub)) == (True, 2)


def test_an_abandoned_reader_counts_no_more_and_is_let_go_at_the_next_event() -> None:
    hub: Hub[int] = Hub()
    inbox, other = hub.open_inbox(), hub.open_inbox()
    inbox.abandoned = True
    assert len(hub) == 1
    hub.publish(1)
    assert (drained(inbox), drained(other), inbox.closed) == ([], [1], True)
