"""The gate of a goal's check: the session's policy, but for what the user has written."""

from __future__ import annotations

from weft.agents.goals.goal_check import CheckGate
from weft.events import GoalSet
from weft.ids import GoalId, SessionId
from weft.permissions import PermissionRule
from weft.session.permission_gate import GrantedPermissions, SessionPermissionGate
from weft.state import SessionState

RULES = (
    PermissionRule(verdict="allow", tool="fetch", pattern="domain:example.org"),
    PermissionRule(verdict="deny", tool="read", pattern="*.pem"),
)


def test_its_sandbox_is_that_of_the_calls_of_the_session() -> None:
    gate = SessionPermissionGate(
        SessionState(session_id=SessionId("ses_1")),
        rules=RULES,
        asking="wait",
        granted=GrantedPermissions(),
    )
    goal = GoalSet(goal_id=GoalId("gol_1"), text="a", check="make test")
    checked = CheckGate(gate, goal, may_leave=False)
    assert checked.network_rules == gate.network_rules == RULES[:1]
    assert checked.read_rules == gate.read_rules == RULES[1:]
