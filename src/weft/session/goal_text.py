"""What the model reads of a goal: the message of each round."""

from __future__ import annotations

from typing import Final

from weft.events import GoalChecked, GoalSet
from weft.state import SessionGoal

NO_SANDBOX: Final = "there is no sandbox here"
"""How a goal is refused whose check would have all rights of the user."""


def round_typed(goal: GoalSet, number: int) -> str:
    """What stands for the message of a round where the user's own words are looked at: what a check
    printed is none of them.
    """
    return goal.text if number == 1 else f"goal, round {number}"


def round_text(goal: GoalSet, stands: SessionGoal, number: int) -> str:
    """What the model is sent for a round."""
    parts = [f"Goal: {goal.text}"]
    last = stands.checked[-1] if stands.checked and number > 1 else None
    if last is None:
        parts.append(_first(goal))
    else:
        parts.append(f"Round {number} of at most {goal.max_rounds}. {_said(goal, last)}")
        parts.append(_ending(goal))
    if stands.idle and last is not None:
        parts.append(
            "The last round brought no progress: no file has changed, or the check says what it "
            "said before. If this one brings none, the goal ends. Find out why, and try another "
            "way."
        )
    return "\n\n".join(parts)


def _first(goal: GoalSet) -> str:
    return f"Work until it is reached. {_ending(goal)}"


def _ending(goal: GoalSet) -> str:
    if not goal.check:
        return (
            "When your turn ends, another model judges whether it is reached. End with what you "
            "did, and how it can be seen."
        )
    return (
        f"When your turn ends, `{goal.check}` is run: exit code 0 says that it is reached. Change "
        "what it checks by only if the goal asks for that."
    )


def _said(goal: GoalSet, last: GoalChecked) -> str:
    if last.by == "judge":
        return f"The judge says that it is not reached: {last.detail}"
    printed = f" and printed:\n\n{last.detail}" if last.detail else ", and printed nothing."
    return f"`{goal.check}` ended with exit code {last.exit_code}{printed}"
