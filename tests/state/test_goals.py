"""What of a goal is left when it has ended, and what a late check of it says to the next one."""

from __future__ import annotations

from weft.events import Fact, GoalChecked, GoalEnded, GoalPaused, GoalSet, TurnFinished, TurnStarted
from weft.ids import GoalId, TurnId
from weft.state import GOAL_OPTION, SessionGoal

OLD, NEW, TURN = GoalId("gol_1"), GoalId("gol_2"), TurnId("trn_1")
ROUND = TurnStarted(turn_id=TURN, node=None, options={GOAL_OPTION: OLD})


def folded(*facts: Fact) -> SessionGoal:
    goal = SessionGoal()
    for fact in facts:
        goal.apply(fact)
    return goal


def test_nothing_is_a_round_behind_the_turn_in_which_the_goal_ended() -> None:
    cleared = (GoalSet(goal_id=OLD, text="a"), ROUND, GoalEnded(goal_id=OLD, reason="cleared"))
    assert folded(*cleared).round_at_work is not None
    ended = folded(*cleared, TurnFinished(turn_id=TURN, reason="stop"))
    assert ended.round_at_work is None
    assert ended.ended is not None


def test_a_late_check_of_a_goal_says_nothing_of_the_next_one() -> None:
    late = (
        GoalChecked(goal_id=OLD, round=1, done=True),
        GoalPaused(goal_id=OLD, reason="stopped"),
        GoalEnded(goal_id=OLD, reason="done"),
    )
    cleared = (GoalSet(goal_id=OLD, text="a"), GoalEnded(goal_id=OLD, reason="cleared"))
    goal = folded(*cleared, GoalSet(goal_id=NEW, text="b"), *late)
    assert goal.is_active
    assert goal.checked == ()
