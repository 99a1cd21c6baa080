"""A few rounds of waits that are cut off in every run of the suite, and that the proof can fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from tests.crash import waits
from tests.crash.waits import WaitPlan, WaitRound
from weft.events import (
    AnyFact,
    ModelCallStarted,
    ScheduleEnded,
    ScheduleFired,
    ToolComplete,
    TurnFinished,
    TurnWoken,
)
from weft.ids import NodeId, TurnId, WaitId

pytestmark = pytest.mark.process


@pytest.mark.parametrize("number", range(8))
def test_a_turn_that_waits_is_woken_once_and_asks_no_model_meanwhile(number: int) -> None:
    said, _ = waits.attempt(1, number)
    assert said == ""


def numbered(facts: Sequence[AnyFact]) -> list[AnyFact]:
    return [msgspec.structs.replace(fact, seq=place) for place, fact in enumerate(facts, start=1)]


def woken_twice(facts: Sequence[AnyFact]) -> list[AnyFact]:
    return [*facts, *(fact for fact in facts if isinstance(fact, TurnWoken))]


def never_woken(facts: Sequence[AnyFact]) -> list[AnyFact]:
    return [fact for fact in facts if not isinstance(fact, TurnWoken)]


def woken_for_nothing(facts: Sequence[AnyFact]) -> list[AnyFact]:
    return [*facts, TurnWoken(wait_id=WaitId("wai_x"), turn_id=TurnId("t"), by="time")]


def woken_early(facts: Sequence[AnyFact]) -> list[AnyFact]:
    return [
        msgspec.structs.replace(fact, at=fact.at - 10) if isinstance(fact, TurnWoken) else fact
        for fact in facts
    ]


def asked_meanwhile(facts: Sequence[AnyFact]) -> list[AnyFact]:
    asked = ModelCallStarted(turn_id=TurnId("t"), node=NodeId("n"), model="m:m")
    place = next(place for place, fact in enumerate(facts) if isinstance(fact, TurnWoken))
    return [*facts[:place], asked, *facts[place:]]


def answered_twice(facts: Sequence[AnyFact]) -> list[AnyFact]:
    return [*facts, *(fact for fact in facts if isinstance(fact, ToolComplete))]


def never_ended(facts: Sequence[AnyFact]) -> list[AnyFact]:
    return [fact for fact in facts if not isinstance(fact, TurnFinished)]


def fired_twice(facts: Sequence[AnyFact]) -> list[AnyFact]:
    return [*facts, *(fact for fact in facts if isinstance(fact, ScheduleFired))]


def fired_early(facts: Sequence[AnyFact]) -> list[AnyFact]:
    return [
        msgspec.structs.replace(fact, at=fact.due - 1) if isinstance(fact, ScheduleFired) else fact
        for fact in facts
    ]


def goes_on_for_ever(facts: Sequence[AnyFact]) -> list[AnyFact]:
    return [fact for fact in facts if not isinstance(fact, ScheduleEnded)]


def test_the_proof_notices_what_must_not_be_of_a_schedule(tmp_path: Path) -> None:
    played = WaitRound(tmp_path, WaitPlan("at", ()))
    assert played.run() == ""
    facts = played.facts()
    assert waits.judge(facts) == []
    for change in (fired_twice, fired_early, goes_on_for_ever, never_ended):
        assert waits.judge(numbered(change(facts))), change.__name__


def test_the_proof_notices_what_must_not_be(tmp_path: Path) -> None:
    played = WaitRound(tmp_path, WaitPlan("time", ()))
    assert played.run() == ""
    facts = played.facts()
    assert waits.judge(facts) == []
    changes: list[Callable[[Sequence[AnyFact]], list[AnyFact]]] = [
        woken_twice,
        never_woken,
        woken_for_nothing,
        woken_early,
        asked_meanwhile,
        answered_twice,
        never_ended,
    ]
    for change in changes:
        assert waits.judge(numbered(change(facts))), change.__name__
