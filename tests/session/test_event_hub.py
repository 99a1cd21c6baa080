"""The hub of a session's events: what a subscriber that is a little behind gets without a read, and
what is made for none.
"""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.events import AnyFact, SessionStatus, Signal, SystemNote, TextDelta, encode
from weft.ids import NodeId, SessionId
from weft.session.subscriptions.event_hub import RECENT_BYTES, EventHub, RecentFacts
from weft.store.memory import MemoryStore


def note(seq: int) -> SystemNote:
    return SystemNote(text=f"note {seq}", seq=seq, session_id=SessionId("ses_1"))


@given(
    steps=st.lists(st.tuples(st.integers(1, 3), st.integers(0, RECENT_BYTES // 2)), max_size=30),
    after=st.integers(0, 60),
    upto=st.integers(0, 90),
)
def test_recent_facts_are_whole_or_none(
    steps: list[tuple[int, int]], after: int, upto: int
) -> None:
    recent, seq = RecentFacts(), 0
    for step, weight in steps:  # a step of more than one is a gap
        seq += step
        recent.add(note(seq), weight)
    found = [fact.seq for fact in recent.between(after, upto)]
    assert found in ([], list(range(after + 1, upto + 1)))


@pytest.mark.anyio
async def test_a_subscriber_a_little_behind_reads_nothing_from_the_store() -> None:
    class UnreadStore(MemoryStore):
        async def read(self, *args: object, **more: object) -> list[object]:  # type: ignore[override]
            raise AssertionError("the store was read")

    hub = EventHub("ses_1", UnreadStore(), applied=lambda: 3)
    published: list[AnyFact] = [note(seq) for seq in (1, 2, 3)]
    for fact in published:
        hub.publish(fact, len(encode(fact)))
    async with hub.subscribe(after=1, live=False, closed=False) as events:
        assert [event async for event in events] == published[1:]


TEXT = TextDelta(node_id=NodeId("n"), offset=0, text="hello")
STATUS = SessionStatus(status="thinking")
STOPPED = SessionStatus(status="error")


@pytest.mark.parametrize(
    ("live", "signal", "is_wanted"),
    [
        (True, TEXT, True),
        ("status", TEXT, False),
        (False, TEXT, False),
        (True, STATUS, True),
        ("status", STATUS, True),
        (False, STATUS, False),
        ("status", STOPPED, True),
    ],
)
def test_a_signal_is_made_only_where_a_subscriber_gets_it(
    live: bool | Literal["status"], signal: Signal, is_wanted: bool
) -> None:
    hub = EventHub("ses_1", MemoryStore(), applied=lambda: 0)
    assert not hub.wants(signal), "there is no subscriber"
    subscription = hub.subscribe(after=None, live=live, closed=False)
    assert hub.wants(signal) is is_wanted
    subscription.close()
    assert not hub.wants(signal)
    assert not hub.is_read


@pytest.mark.anyio
async def test_a_subscriber_that_does_not_show_work_is_told_only_where_it_stops() -> None:
    hub = EventHub("ses_1", MemoryStore(), applied=lambda: 0)
    shows = hub.subscribe(after=None, live="status", closed=False)
    waits = hub.subscribe(after=None, live="status", closed=False)
    waits.leave_out_work()
    told = [STATUS, SessionStatus(status="awaiting_permission"), STOPPED]
    for signal in told:
        assert hub.wants(signal)
        hub.publish_signal(signal, 0)
    shows.close()
    assert not hub.wants(STATUS), "no one shows it any more"
    assert hub.wants(STOPPED)
    waits.close()
    assert [event async for event in shows] == told
    assert [event async for event in waits] == told[1:]


def test_a_subscriber_that_was_abandoned_is_let_go_by_every_hub() -> None:
    hub = EventHub("ses_1", MemoryStore(), applied=lambda: 0)
    subscription = hub.subscribe(after=None, live=True, closed=False)
    inbox = subscription._inbox
    del subscription
    assert not any(hub.wants(signal) for signal in (TEXT, STATUS, STOPPED))
    assert inbox not in [*hub._facts._inboxes, *hub._signals._inboxes, *hub._work._inboxes]
