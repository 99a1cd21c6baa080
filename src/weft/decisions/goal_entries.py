"""Automatic entries of a goal that has ended: the goal, what was tried, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from weft.decisions.entry import decision_id, linked, shortened
from weft.decisions.facts import (
    CheckEvidence,
    DecisionAdded,
    DecisionEvidence,
    DecisionFact,
    DecisionNode,
)
from weft.decisions.graph import ATTEMPT

MOST_ATTEMPTS: Final = 10


class GoalAttempt(msgspec.Struct, frozen=True):
    """A round whose check failed."""

    round: int
    said: str
    """What the check, or the judge, said."""
    evidence: DecisionEvidence


def goal_entries(
    goal_id: str,
    text: str,
    *,
    is_done: bool,
    why: str,
    check: tuple[str, int] | None,
    attempts: Sequence[GoalAttempt],
    evidence: DecisionEvidence,
    at: float = 0.0,
) -> list[DecisionFact]:
    """The facts of a goal: it is the user's own, reached or given up; its failed rounds were
    rejected by the check, whose command and exit code are `check`.
    """
    goal = DecisionNode(
        id=decision_id("goal", goal_id),
        kind="goal",
        title=shortened(text),
        status="done" if is_done else "abandoned",
        by="user",
        evidence=(evidence,),
        at=at,
    )
    said = "Reached" if is_done else f"Not reached, {why}"
    outcome = DecisionNode(
        id=decision_id("outcome", goal_id),
        kind="outcome",
        title=shortened(f"{said}: {text}"),
        status="done",
        by="auto",
        evidence=(CheckEvidence(command=check[0], exit=check[1]),) if check else (evidence,),
        at=at,
    )
    facts: list[DecisionFact] = [
        DecisionAdded(node=goal),
        DecisionAdded(node=outcome),
        linked(goal.id, outcome.id, "leads_to"),
    ]
    for each in list(attempts)[-MOST_ATTEMPTS:]:
        tried = DecisionNode(
            id=decision_id("attempt", goal_id, str(each.round)),
            kind="action",
            title=shortened(
                f"Round {each.round}: {each.said}"
                if each.said
                else f"Round {each.round} did not reach it"
            ),
            status="abandoned",
            by="auto",
            evidence=(each.evidence,),
            tags=(ATTEMPT,),
            at=at,
        )
        facts += [DecisionAdded(node=tried), linked(goal.id, tried.id, "leads_to")]
    return facts
