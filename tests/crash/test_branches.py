"""A few generations that are killed in every run of the suite, and that the proof can fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pytest

from tests.crash import branches
from weft.events import AnyFact, BranchesEnded, NewMessage, UsageRecorded

pytestmark = pytest.mark.process


def unpaid(facts: Sequence[AnyFact]) -> list[AnyFact]:
    return [fact for fact in facts if not isinstance(fact, UsageRecorded)]


def paid_twice(facts: Sequence[AnyFact]) -> list[AnyFact]:
    return [*facts, *(fact for fact in facts if isinstance(fact, UsageRecorded))]


def never_ended(facts: Sequence[AnyFact]) -> list[AnyFact]:
    return [fact for fact in facts if not isinstance(fact, BranchesEnded)]


def doubled(facts: Sequence[AnyFact]) -> list[AnyFact]:
    return [*facts, *(fact for fact in facts if isinstance(fact, NewMessage) and fact.node.model)]


def lost(facts: Sequence[AnyFact]) -> list[AnyFact]:
    """Without the branches of which nothing, or something, was kept."""
    return [fact for fact in facts if not (isinstance(fact, NewMessage) and fact.node.is_partial)]


def dearer(facts: Sequence[AnyFact]) -> list[AnyFact]:
    return [
        msgspec.structs.replace(fact, usage=fact.usage + fact.usage)
        if isinstance(fact, UsageRecorded)
        else fact
        for fact in facts
    ]


@pytest.mark.parametrize("number", range(3))
def test_killed_branches_are_nodes_or_partial_ones_and_the_proof_can_fail(number: int) -> None:
    said, facts = branches.attempt(1, number)
    assert said == ""
    changes: list[Callable[[Sequence[AnyFact]], list[AnyFact]]] = [unpaid, paid_twice, never_ended]
    if any(isinstance(fact, NewMessage) and fact.node.model for fact in facts):
        changes += [doubled, dearer]
    if any(isinstance(fact, NewMessage) and fact.node.is_partial for fact in facts):
        changes.append(lost)
    for change in changes:
        assert branches.judge(change(facts)), change.__name__
