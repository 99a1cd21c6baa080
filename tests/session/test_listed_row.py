"""The row of a list, before an append: what the folded state says after it."""

from __future__ import annotations

import msgspec

from weft.events import (
    ChildFinished,
    ChildStarted,
    Fact,
    SessionCreated,
    ToolComplete,
    TurnFinished,
    TurnStarted,
    TurnWaiting,
    TurnWoken,
    UsageRecorded,
    WaitSubject,
)
from weft.ids import CallUid, NodeId, SessionId, TurnId, WaitId
from weft.messages import ToolResult, Usage
from weft.session.log.append import row_after
from weft.state import SessionState, fold

SESSION, TURN, CALL, WAIT = SessionId("ses_1"), TurnId("trn_1"), CallUid("cal_1"), WaitId("wai_1")
USED = Usage(input_tokens=5, cost_usd=0.5)

HISTORY: tuple[Fact, ...] = (
    SessionCreated(title="T", model="a:b"),
    TurnStarted(turn_id=TURN),
    UsageRecorded(usage=USED, model="a:b", turn_id=TURN),
    TurnWaiting(
        wait_id=WAIT, turn_id=TURN, on=WaitSubject(kind="time"), until=900.0, call_uid=CALL
    ),
    TurnWoken(wait_id=WAIT, turn_id=TURN, by="time"),
    ToolComplete(
        call_uid=CALL, node=NodeId("nod_1"), result=ToolResult(call_uid=CALL, text="awake")
    ),
    ChildStarted(child=SessionId("ses_2")),
    ChildFinished(child=SessionId("ses_2"), reason="stop", usage=USED, models={"c:d": USED}),
    TurnFinished(turn_id=TURN, reason="stop"),
)


def stamped() -> list[Fact]:
    return [
        msgspec.structs.replace(fact, session_id=SESSION, seq=number, at=100.0 + number)
        for number, fact in enumerate(HISTORY, 1)
    ]


def test_a_row_is_the_same_however_its_facts_were_cut_into_appends() -> None:
    facts = stamped()
    for end in range(1, len(facts) + 1):
        rows = []
        for start in range(end):
            state = fold(facts[:start], SessionState(session_id=SESSION))
            before = msgspec.json.encode(state.turn)
            rows.append(row_after(state, facts[start:end]))
            assert msgspec.json.encode(state.turn) == before, "looking ahead changes nothing"
        assert all(row == rows[0] for row in rows), f"after {type(facts[end - 1]).__name__}"
        state = fold(facts[:end], SessionState(session_id=SESSION))
        assert rows[0].turn_open == (state.turn.open is not None)
        assert rows[0].cost_usd == state.ledger.total.cost_usd


def test_a_turn_that_waits_is_due_at_its_time_and_at_once_when_woken() -> None:
    facts = stamped()
    due = [row_after(SessionState(session_id=SESSION), facts[:end]).wake_at for end in (3, 4, 5, 6)]
    assert due == [None, 900.0, 105.0, None]
