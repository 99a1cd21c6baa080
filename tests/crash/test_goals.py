"""A few goals that are cut off in every run of the suite, and that the proof can fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pytest

from tests.crash import goals
from weft.events import (
    AnyFact,
    GoalChecked,
    GoalEnded,
    GoalSet,
    PermissionRequest,
    UnattendedPermission,
)
from weft.ids import CallUid, GoalId, NodeId, RequestId, SessionId


@pytest.mark.process
@pytest.mark.parametrize("number", range(2))
def test_a_goal_that_is_killed_is_reached_all_the_same(number: int) -> None:
    assert goals.attempt(1, number) == ""


def whole() -> list[AnyFact]:
    """A log with nothing wrong, as far as the judge looks."""
    name, given = GoalId("gol_1"), UnattendedPermission(mode="auto", grants=(GRANT,))
    facts: list[AnyFact] = [
        GoalSet(goal_id=name, text="reach it", check=goals.CHECK, permission=given),
        GoalChecked(goal_id=name, round=1),
        GoalChecked(goal_id=name, round=2),
        GoalChecked(goal_id=name, round=3, done=True),
        GoalEnded(goal_id=name, reason="done"),
    ]
    return numbered(facts)


GRANT = f"shell({goals.CHECK})"


def numbered(facts: Sequence[AnyFact]) -> list[AnyFact]:
    session = SessionId("ses_1")
    return [
        msgspec.structs.replace(fact, seq=place, session_id=session)
        for place, fact in enumerate(facts, start=1)
    ]


def given_more(facts: Sequence[AnyFact]) -> list[AnyFact]:
    more = UnattendedPermission(mode="auto", grants=(GRANT, "shell(rm -r .)"))
    return [
        msgspec.structs.replace(fact, permission=more) if isinstance(fact, GoalSet) else fact
        for fact in facts
    ]


def asked(facts: Sequence[AnyFact]) -> list[AnyFact]:
    request = PermissionRequest(
        request_id=RequestId("req_1"),
        call_uid=CallUid("cal_1"),
        node=NodeId("nod_1"),
        tool_name="write",
        preview="",
        shown_hash="",
    )
    return [*facts, request]


def checked_twice(facts: Sequence[AnyFact]) -> list[AnyFact]:
    return [*facts[:2], *facts[1:]]


def never_ended(facts: Sequence[AnyFact]) -> list[AnyFact]:
    return list(facts[:-1])


def test_a_log_with_nothing_wrong_passes() -> None:
    assert goals.judge(whole()) == []


@pytest.mark.parametrize("spoil", [given_more, asked, checked_twice, never_ended])
def test_the_proof_fails_for_a_log_that_is_wrong(
    spoil: Callable[[Sequence[AnyFact]], list[AnyFact]],
) -> None:
    assert goals.judge(numbered(spoil(whole()))) != []
