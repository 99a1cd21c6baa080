"""Which of the messages that wait starts the next turn."""

from __future__ import annotations

import msgspec

from weft.events import Fact, InputPromoted, InputQueued, TurnFinished, TurnStarted
from weft.ids import EntryId, SessionId, TurnId
from weft.messages import Text
from weft.session.turns.follow_ups import FollowUps
from weft.state import SessionState

TURN, ENTRY = TurnId("trn_1"), EntryId("ent_1")
QUEUED = InputQueued(entry_id=ENTRY, delivery="steering", parts=(Text(text="listen"),))


def state_after(*facts: Fact) -> SessionState:
    state = SessionState(session_id=SessionId("ses_1"))
    for number, fact in enumerate(facts, 1):
        state.apply(msgspec.structs.replace(fact, session_id=state.session_id, seq=number))
    return state


def test_what_an_aborted_turn_did_not_take_along_starts_a_turn_where_its_sender_waits() -> None:
    aborted = TurnFinished(turn_id=TURN, reason="aborted")
    state = state_after(TurnStarted(turn_id=TURN), QUEUED, aborted)
    follow_ups = FollowUps()
    assert not follow_ups.next(state), "after an abort the user looks first"
    follow_ups.awaits(ENTRY)
    assert follow_ups.next(state).also_steering
    follow_ups.take(InputPromoted(entries=(ENTRY,)))
    assert not follow_ups.next(state)


def test_no_turn_is_started_while_one_is_open() -> None:
    follow_ups = FollowUps()
    follow_ups.awaits(ENTRY)
    assert not follow_ups.next(state_after(TurnStarted(turn_id=TURN), QUEUED))
