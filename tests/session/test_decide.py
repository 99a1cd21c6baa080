"""What a command means: a pure function of the state."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.turn_scenes import TurnScene
from weft.errors import NoPendingRequest, SessionBusy, UsageError
from weft.events import (
    InputQueued,
    NewMessage,
    PermissionResolved,
    SessionRestarted,
    SystemNote,
    TurnStarted,
)
from weft.ids import CallUid, RequestId
from weft.messages import Image, Text
from weft.session import AddNote, ContinueTurn, RespondToPermission, SendPrompt
from weft.session.commands import checked, digest
from weft.session.decide import DecisionContext, decide
from weft.state import GONE_ON_BY_USER

IDLE = DecisionContext(now=1.0, running=False)
BUSY = DecisionContext(now=1.0, running=True)
ONE, TWO = CallUid("cal_1"), CallUid("cal_2")


def say(text: str, **fields: Any) -> SendPrompt:
    return SendPrompt(parts=(Text(text=text),), **fields)


def test_saying_something_to_an_idle_session_starts_a_turn_at_its_head() -> None:
    scene = TurnScene()
    plan = decide(say("hi", options={"max_turns": 2}), scene.state, IDLE)
    message, started = plan.facts
    assert isinstance(message, NewMessage)
    assert isinstance(started, TurnStarted)
    assert (started.node, started.options) == (message.node.id, {"max_turns": 2})
    assert (plan.then, plan.answer.status) == ("start_turn", "started")
    assert plan.answer.seq == scene.state.seq


@pytest.mark.parametrize("delivery", ["steering", "follow_up"])
def test_saying_something_to_a_busy_session_queues_it(delivery: Any) -> None:
    scene = TurnScene().prompt("hi")
    plan = decide(say("more", when_busy=delivery), scene.state, BUSY)
    [queued] = plan.facts
    assert isinstance(queued, InputQueued)
    assert queued.delivery == plan.answer.status == delivery
    assert plan.then == "nothing"
    with pytest.raises(SessionBusy):
        decide(say("more", when_busy="refuse"), scene.state, BUSY)


def test_steering_that_waits_goes_before_the_next_prompt() -> None:
    scene = TurnScene().queued("s", "steering", "steer").queued("f", "follow_up", "later")
    facts = decide(say("hi"), scene.state, IDLE).facts
    said = [fact.node.text for fact in facts if isinstance(fact, NewMessage)]
    assert said == ["steer", "hi"]


def test_going_on_with_an_open_turn_says_that_the_user_wants_it_and_nothing_else() -> None:
    scene = TurnScene().prompt("hi")
    plan = decide(ContinueTurn(), scene.state, IDLE)
    assert (plan.facts, plan.then) == ((SessionRestarted(reason=GONE_ON_BY_USER),), "go_on")
    with pytest.raises(SessionBusy):
        decide(ContinueTurn(), scene.state, BUSY)
    with pytest.raises(UsageError, match="nothing to continue"):
        decide(ContinueTurn(), TurnScene().state, IDLE)


@pytest.mark.requirement("session:respond_to_permission:several")
def test_with_several_requests_open_one_must_be_named() -> None:
    scene = TurnScene().prompt("hi").answered("", calls=[ONE, TWO])
    with pytest.raises(NoPendingRequest):
        decide(RespondToPermission(action="allow_once"), scene.state, BUSY)
    scene.asked(ONE, "req_1").asked(TWO, "req_2")
    with pytest.raises(UsageError, match="req_1, req_2"):
        decide(RespondToPermission(action="allow_once"), scene.state, BUSY)
    named = RespondToPermission(action="allow_always", request_id=RequestId("req_2"))
    [resolved] = decide(named, scene.state, BUSY).facts
    assert isinstance(resolved, PermissionResolved)
    assert (resolved.request_id, resolved.pattern) == ("req_2", "act(x)")


@pytest.mark.parametrize("action", ["allow_once", "deny"])
def test_an_answer_for_once_grants_nothing_beyond(action: Any) -> None:
    scene = TurnScene().prompt("hi").answered("", calls=[ONE]).asked(ONE)
    [resolved] = decide(RespondToPermission(action=action), scene.state, BUSY).facts
    assert isinstance(resolved, PermissionResolved)
    assert resolved.pattern == ""


def test_a_note_is_said_after_what_the_turn_stands_on() -> None:
    scene = TurnScene().prompt("hi").answered("ok")
    [note] = decide(AddNote(text="careful"), scene.state, BUSY).facts
    assert isinstance(note, SystemNote)
    assert note.node == scene.state.tree.head


@pytest.mark.parametrize(
    "image",
    [
        Image(media_type="image/png", data="!!!"),
        Image(media_type="image/png", data="abc"),
        Image(media_type="text/html", data="aGk="),
        Image(media_type="image/png", data=""),
    ],
)
def test_a_picture_must_be_one(image: Image) -> None:
    with pytest.raises(UsageError):
        decide(SendPrompt(parts=(image,)), TurnScene().state, IDLE)


def test_a_picture_may_be_wrapped_in_lines() -> None:
    image = Image(media_type="image/png", data="aGVs\nbG8=\n")
    message = decide(SendPrompt(parts=(image,)), TurnScene().state, IDLE).facts[0]
    assert isinstance(message, NewMessage)
    assert message.node.parts == (msgspec.structs.replace(image, data="aGVsbG8="),)


# --- commands as data ------------------------------------------------------------------------


def test_a_command_is_the_same_after_it_was_carried() -> None:
    command = say("hi", options={"tools": ["a"], "max_turns": 3}, client="c")
    assert checked(command) == command


def test_text_that_no_codec_takes_is_cleaned_on_the_way() -> None:
    carried = checked(say("a\ud800", options={"x\ud800": "\udfff"}))
    assert isinstance(carried, SendPrompt)
    msgspec.json.encode(carried)
    assert carried.parts != ()


@pytest.mark.parametrize(
    "wrong", [{"options": {"x": object()}}, {"when_busy": "never"}, {"waits": 5}]
)
def test_what_is_no_plain_data_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="cannot be asked"):
        checked(say("hi", **wrong))


def test_who_asks_is_no_part_of_what_is_asked() -> None:
    assert digest(say("hi", client="a")) == digest(say("hi", client="b"))
    assert digest(say("hi")) != digest(say("ho"))
    assert digest(say("hi")) != digest(say("hi", when_busy="follow_up"))
