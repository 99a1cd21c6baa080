"""A few rounds of command lines on one session in every run of the suite, and that the proof can
fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from tests.crash import shells
from tests.crash.shells import FaultPlan, RoundPlan, ShellRound
from weft.events import AnyFact, NewMessage, TurnFinished
from weft.ids import NodeId

pytestmark = pytest.mark.process


@pytest.mark.parametrize("number", range(3))
def test_every_accepted_prompt_is_answered_once_to_its_own_sender(number: int) -> None:
    assert shells.attempt(1, number) == ""


def plain(*faults: FaultPlan) -> RoundPlan:
    return RoundPlan(
        formats=("text", "json"),
        names_session=(True, False),
        starts=(0, 0),
        styles=("whole", "tool"),
        faults=faults,
    )


def without_an_end(facts: Sequence[AnyFact]) -> list[AnyFact]:
    ends = [fact for fact in facts if isinstance(fact, TurnFinished)]
    return [fact for fact in facts if fact is not ends[1]]


def without_an_answer(facts: Sequence[AnyFact]) -> list[AnyFact]:
    return [
        fact
        for fact in facts
        if not (isinstance(fact, NewMessage) and fact.node.text == shells.answer(0))
    ]


def said_twice(facts: Sequence[AnyFact]) -> list[AnyFact]:
    [asked] = [
        fact
        for fact in facts
        if isinstance(fact, NewMessage) and fact.node.text == shells.question(1)
    ]
    again = NewMessage(node=msgspec.structs.replace(asked.node, id=NodeId("nod_again")))
    return [*facts, again]


def test_the_proof_notices_a_lost_end_a_lost_answer_a_double_and_an_answer_of_another(
    tmp_path: Path,
) -> None:
    played = ShellRound(tmp_path, plain())
    try:
        assert played.run() == ""
        facts = played.settle()
        assert shells.judge(played, facts) == []
        changes: list[Callable[[Sequence[AnyFact]], list[AnyFact]]] = [
            without_an_end,
            without_an_answer,
            said_twice,
        ]
        for change in changes:
            assert shells.judge(played, change(facts)), change.__name__
        played.shells.reverse()
        assert len(shells.judge(played, facts)) == 2
    finally:
        played.close()
