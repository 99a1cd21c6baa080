"""The row of an open goal: where it stands, in a line.  Pure, and part of every snapshot."""

from __future__ import annotations

from typing import Final

import msgspec

from weft.events import Event, GoalEnded, GoalPaused, GoalSet, TurnStarted
from weft.state import GOAL_OPTION, SessionGoal

GOAL_PAUSES: Final = {
    "user": "you paused it",
    "stopped": "it was stopped",
    "moved": "the conversation went elsewhere",
    "failed": "it cannot go on",
    "unsealed": "what it may do was given on another machine, or by another user",
    "restarts": "its process ended too often",
}
"""By the words of `goal_paused`."""
LONGEST_TEXT: Final = 60
LEAST_SHOWN: Final = 0.005
"""Dollars below which nothing is said of them."""


class GoalRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A goal that has not ended, as far as a line tells of it."""

    goal_id: str
    text: str
    round: int = 0
    max_rounds: int = 0
    max_budget_usd: float | None = None
    cost_before: float = 0.0
    """What the session had cost when it began."""
    paused: str = ""
    """Why it is paused."""

    def line(self, cost_usd: float | None) -> str:
        """Where it stands, given what the session has cost."""
        parts = [f"goal: {cut_line(self.text, LONGEST_TEXT)}"]
        if self.round:
            parts.append(f"round {self.round} of {self.max_rounds}")
        spent = max(0.0, (cost_usd or 0.0) - self.cost_before)
        if self.max_budget_usd is not None:
            parts.append(f"${spent:.2f} of ${self.max_budget_usd:g}")
        elif spent >= LEAST_SHOWN:
            parts.append(f"${spent:.2f}")
        if self.paused:
            parts.append(f"paused: {self.paused}")
        return " · ".join(parts)


def goal_row(stands: SessionGoal) -> GoalRow | None:
    """The row of a session's goal; None where none is open."""
    goal = stands.goal
    if goal is None or not stands.is_open:
        return None
    why = "" if stands.paused is None else stands.paused.reason
    row = _row(goal)
    return msgspec.structs.replace(
        row, round=stands.rounds, cost_before=stands.cost_before, paused=GOAL_PAUSES.get(why, why)
    )


def _row(goal: GoalSet) -> GoalRow:
    return GoalRow(
        goal_id=goal.goal_id,
        text=goal.text,
        max_rounds=goal.max_rounds,
        max_budget_usd=goal.max_budget_usd,
    )


def row_after(row: GoalRow | None, event: Event, cost_usd: float | None) -> GoalRow | None:
    """The row when this has happened."""
    replace = msgspec.structs.replace
    match event:
        case GoalSet(goal_id=goal_id) if row is not None and row.goal_id == goal_id:
            kept = {"round": row.round, "cost_before": row.cost_before, "paused": row.paused}
            return replace(_row(event), **kept)
        case GoalSet():
            return replace(_row(event), cost_before=cost_usd or 0.0)
        case GoalEnded():
            return None
        case GoalPaused(paused=paused, reason=reason) if row is not None:
            return replace(row, paused=GOAL_PAUSES.get(reason, reason) if paused else "")
        case TurnStarted(options=options) if row is not None:
            is_round = options.get(GOAL_OPTION) == row.goal_id
            return replace(row, round=row.round + 1) if is_round else row
        case _:
            return row


def cut_line(text: str, most: int) -> str:
    """A text in one line of so many letters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
