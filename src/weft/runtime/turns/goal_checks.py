"""The check of a session's goal, put together: its gate, its command's environment, its judge."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from weft.agents.goals.goal_check import CheckGate, GoalCheck
from weft.agents.goals.goal_judge import GoalJudge
from weft.config.models import ModelRegistry
from weft.loop import ModelEnvironment, PermissionGate, ToolCallEnvironment, TurnJournal
from weft.session.decide.goals import check_grant


def goal_check(
    journal: TurnJournal,
    gate: PermissionGate,
    environment: Callable[[PermissionGate], ToolCallEnvironment],
    models: ModelEnvironment,
    registry: ModelRegistry,
) -> GoalCheck:
    """A check of the goal as it is now; `models` is what a turn would ask."""
    stands = journal.state.goal
    assert stands.goal is not None, "a check is begun for a goal alone"
    goal = stands.goal
    grants = goal.permission.grants if goal.permission is not None else ()
    checked = CheckGate(gate, goal, is_granted=check_grant(goal.check) in grants)
    judge = None
    if goal.judge:
        name = registry.named(goal.judge).name
        limits = models.limits
        if goal.max_budget_usd is not None:
            most = goal.max_budget_usd + stands.cost_before
            own = limits.max_budget_usd
            least = most if own is None else min(most, own)
            limits = msgspec.structs.replace(limits, max_budget_usd=least)
        asked = msgspec.structs.replace(
            models,
            model=registry.resolve(name),
            model_name=name,
            thinking="default",
            limits=limits,
            fallback=None,
        )
        judge = GoalJudge(asked, goal)
    return GoalCheck(environment(checked), journal, judge)
