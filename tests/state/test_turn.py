"""The open turn: all that recovery needs to know, and nothing of what is settled."""

from __future__ import annotations

from hypothesis import given
from msgspec.structs import replace

from tests.support.history_generator import History
from tests.support.strategies import histories
from weft.events import (
    Compacted,
    Fact,
    ModelCallStarted,
    NewMessage,
    PermissionRequest,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    SessionRestarted,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
    TurnStarted,
    TurnWaiting,
    WaitSubject,
)
from weft.ids import CallUid, NodeId, RequestId, TurnId, WaitId
from weft.messages import Node, Role, ToolResult
from weft.state import OpenTurnState, fold

T1, T2 = TurnId("t1"), TurnId("t2")
CALL, OTHER = CallUid("c1"), CallUid("c2")
REQUEST = RequestId("r1")
NODE = NodeId("n1")

START = TurnStarted(turn_id=T1, node=NODE, options={"max_turns": 3})
CALLING = ModelCallStarted(turn_id=T1, node=NodeId("n2"), model="a:m", attempt=2)
INTENT = ToolExecuting(call_uid=CALL, node=NODE, tool_name="shell", args={"command": "ls"})
ASKED = PermissionRequest(request_id=REQUEST, call_uid=CALL, node=NODE, tool_name="shell")
ALLOWED = PermissionResolved(request_id=REQUEST, action="allow_once")
DONE = ToolComplete(call_uid=CALL, node=NODE, result=ToolResult(call_uid=CALL))


def said(name: str, role: Role = "assistant", *, partial: bool = False) -> NewMessage:
    return NewMessage(
        node=Node(id=NodeId(name), role=role, metadata={"partial": True} if partial else {})
    )


def after(*facts: Fact) -> OpenTurnState:
    turn = OpenTurnState()
    for fact in facts:
        turn.apply(fact)
    return turn


def given_answers(turn: OpenTurnState) -> dict[CallUid, PermissionResolved | QuestionAnswered]:
    """The answers that wait for their call."""
    return {call: answered.answer for call, answered in turn.answers.items()}


def test_a_turn_is_open_from_its_start_to_its_end() -> None:
    assert after().open is None
    started = after(START).open
    assert started is not None
    assert (started.turn_id, started.tip, started.options) == (T1, NODE, {"max_turns": 3})
    ended = after(START, TurnFinished(turn_id=T1, reason="no_progress", detail="three times"))
    assert ended.open is None
    assert (ended.last_turn, ended.last_reason) == (T1, "no_progress")
    assert ended.last_detail == "three times"


def test_a_new_turn_forgets_how_the_last_one_ended() -> None:
    turn = after(START, TurnFinished(turn_id=T1, reason="aborted", detail="d"), START)
    assert (turn.last_reason, turn.last_detail) == (None, "")


def test_a_model_call_is_open_until_its_answer_is_a_node() -> None:
    calling = after(START, CALLING).open
    assert calling is not None
    assert calling.call is not None
    assert (calling.call.node, calling.call.model, calling.call.attempt) == ("n2", "a:m", 2)
    for role, is_open in (("assistant", False), ("user", True)):
        # The two roles.
        answered = after(START, CALLING, said("n2", role)).open  # type: ignore[arg-type]
        assert answered is not None
        assert (answered.call is not None) == is_open


def test_a_call_for_a_title_is_no_part_of_the_turn() -> None:
    title = ModelCallStarted(turn_id=T1, node=NodeId("x"), model="a:m", purpose="title")
    turn = after(START, title)
    assert turn.open is not None
    assert turn.open.call is None
    assert after(CALLING).open is None


def test_the_turn_has_a_tip_of_its_own_and_counts_whole_answers() -> None:
    turn = after(START, said("n2"), said("n3", partial=True), said("n4", "user"), said("n5")).open
    assert turn is not None
    assert turn.tip == "n5"
    assert turn.iterations == 2


def test_an_intent_is_open_until_its_call_is_settled() -> None:
    assert after(START, INTENT).intents == {CALL: INTENT}
    assert after(START, INTENT, DONE).intents == {}


def test_a_request_waits_for_its_answer_and_the_answer_for_its_call() -> None:
    assert after(START, ASKED).requests == {REQUEST: ASKED}
    answered = after(START, ASKED, ALLOWED)
    assert answered.requests == {}
    assert given_answers(answered) == {CALL: ALLOWED}
    assert after(START, ASKED, ALLOWED, DONE).answers == {}


def test_a_question_waits_like_a_permission() -> None:
    asked = QuestionAsked(request_id=REQUEST, call_uid=CALL, node=NODE, question="?")
    answer = QuestionAnswered(request_id=REQUEST, answer="yes")
    assert after(START, asked).requests == {REQUEST: asked}
    assert given_answers(after(START, asked, answer)) == {CALL: answer}


def test_an_answer_to_nothing_approves_nothing() -> None:
    assert after(START, ALLOWED).answers == {}
    late = PermissionResolved(request_id=REQUEST, action="deny")
    assert given_answers(after(START, ASKED, ALLOWED, late)) == {CALL: ALLOWED}


def test_settling_a_call_takes_its_requests_along_and_no_others() -> None:
    mine = QuestionAsked(request_id=RequestId("r2"), call_uid=OTHER, node=NODE, question="?")
    assert after(START, ASKED, mine, DONE).requests == {RequestId("r2"): mine}


def test_the_end_of_a_turn_leaves_nothing_open() -> None:
    end = TurnFinished(turn_id=T1, reason="stop")
    other = PermissionRequest(
        request_id=RequestId("r2"), call_uid=OTHER, node=NODE, tool_name="shell"
    )
    turn = after(START, INTENT, ASKED, ALLOWED, other, end)
    assert (turn.intents, turn.requests, turn.answers) == ({}, {}, {})


def test_going_on_keeps_what_is_open() -> None:
    again = TurnStarted(turn_id=T2, node=NODE, continued=True)
    turn = after(START, INTENT, ASKED, again)
    assert turn.open is not None
    assert turn.open.turn_id == T2
    assert turn.intents == {CALL: INTENT}
    assert turn.requests == {REQUEST: ASKED}


@given(history=histories())
def test_no_settled_call_is_ever_open(history: History) -> None:
    state = history.empty()
    settled: set[CallUid] = set()
    for fact in history.facts:
        state.apply(fact)
        if isinstance(fact, ToolComplete):
            settled.add(fact.call_uid)
            assert fact.call_uid not in state.turn.intents
            assert fact.call_uid not in state.turn.answers
            assert fact.call_uid not in {each.call_uid for each in state.turn.requests.values()}
    assert (state.turn.open is None) <= (not state.turn.intents)
    assert fold([], state) is state


def test_what_is_asked_beside_a_turn_that_nobody_works_on_is_no_work_of_it() -> None:
    aside = ModelCallStarted(
        turn_id=T2, node=NodeId("n9"), model="a:m", purpose="summary", exact="aside"
    )
    facts: list[Fact] = [
        START,
        CALLING,
        aside,
        Compacted(summary="s", upto=NODE, at=7_200.0),
        SessionRestarted(),
        CALLING,
    ]
    times = (0.0, 10.0, 3_600.0, 7_200.0, 9_000.0, 9_005.0)
    turn = after(*(replace(fact, at=at) for fact, at in zip(facts, times, strict=True)))
    assert turn.worked(9_006.0) == 16.0


def test_a_sleep_does_not_count_while_an_agent_in_the_background_asks() -> None:
    asked = replace(ASKED, outlives_turn=True)
    wait = TurnWaiting(turn_id=T1, wait_id=WaitId("w1"), on=WaitSubject(kind="time"))
    facts: list[Fact] = [START, asked, wait]
    turn = after(*(replace(fact, at=at) for fact, at in zip(facts, (0.0, 1.0, 2.0), strict=True)))
    assert turn.worked(1_000.0) == 2.0
