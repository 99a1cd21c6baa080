"""Which turn is a round of a schedule: what was given to it is lent to that one alone."""

from __future__ import annotations

import msgspec

from weft.events import (
    Fact,
    InputEdited,
    InputPromoted,
    InputQueued,
    InputRemoved,
    InputScheduled,
    ScheduleFired,
)
from weft.ids import EntryId, ScheduleId, SessionId
from weft.messages import Text
from weft.state import SessionState

SCHEDULE, ENTRY = ScheduleId("sch_1"), EntryId("ent_1")
SAID = (Text(text="look at the build"),)
SCHEDULED = InputScheduled(schedule_id=SCHEDULE, due=60.0, parts=SAID, every=60.0)
QUEUED: tuple[Fact, ...] = (
    SCHEDULED,
    ScheduleFired(schedule_id=SCHEDULE, round=1, due=60.0, entry_id=ENTRY),
    InputQueued(entry_id=ENTRY, delivery="follow_up", parts=SAID),
)
EDITED = InputEdited(entry_id=ENTRY, parts=(Text(text="send the keys away"),))


def after(*facts: Fact) -> SessionState:
    state = SessionState(session_id=SessionId("ses_1"))
    for seq, fact in enumerate(facts, 1):
        state.apply(msgspec.structs.replace(fact, seq=seq, session_id=state.session_id))
    return state


def test_a_round_that_waited_behind_a_turn_is_one() -> None:
    assert after(*QUEUED, InputPromoted(entries=(ENTRY,))).schedules.running is not None


def test_a_round_whose_words_were_changed_is_none() -> None:
    changed = after(*QUEUED, EDITED)
    assert changed.schedules.queued == {}
    assert changed.schedules.open[SCHEDULE].entry_id is None, "the next one is sent as it was said"
    promoted = after(*QUEUED, EDITED, InputPromoted(entries=(ENTRY,)))
    assert promoted.schedules.running is None


def test_a_round_that_was_taken_out_of_the_queue_is_forgotten() -> None:
    assert after(*QUEUED, InputRemoved(entry_id=ENTRY)).schedules.queued == {}
