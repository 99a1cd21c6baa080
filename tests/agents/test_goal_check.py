"""The gate of a goal's check: the session's policy, but for what the user has written."""

from __future__ import annotations

from weft.agents.goals.goal_check import CheckGate
from weft.events import GoalSet
from weft.ids import GoalId, SessionId
from weft.permissions import PermissionRule, PolicyDecision, ToolAction
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
    checked = CheckGate(gate, goal, is_granted=False)
    assert checked.network_rules == gate.network_rules == RULES[:1]
    assert checked.read_rules == gate.read_rules == RULES[1:]


def judged(*rules: PermissionRule, is_granted: bool = False) -> PolicyDecision:
    gate = SessionPermissionGate(
        SessionState(session_id=SessionId("ses_1")),
        rules=rules,
        asking="wait",
        granted=GrantedPermissions(),
    )
    goal = GoalSet(goal_id=GoalId("gol_1"), text="a", check="make test")
    action = ToolAction(
        tool="shell", kind="run", target="make test", line="make test", sandboxed=True
    )
    return CheckGate(gate, goal, is_granted=is_granted).decide(action)


def test_having_written_it_answers_the_mode_and_no_rule_of_the_user() -> None:
    asks = PermissionRule(verdict="ask", tool="shell", pattern="make *")
    assert judged().verdict == "allow"
    decision = judged(asks)
    assert decision.verdict == "ask"
    assert "shell(make *)" in decision.reason
    # A grant for this very command was given by a user who saw it.
    assert judged(asks, is_granted=True).verdict == "allow"
    denies = PermissionRule(verdict="deny", tool="shell", pattern="make *")
    assert judged(denies, is_granted=True).verdict == "deny"
