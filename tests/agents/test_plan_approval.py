"""What the approval of a plan covers, and what it does not."""

from __future__ import annotations

from typing import Literal

import pytest

from weft.agents.plan import PlanStep
from weft.agents.plan_approval import CheckGate, approved_edits
from weft.loop import PermissionGate
from weft.permissions import PolicyDecision, ToolAction


def step(file: str, action: Literal["create", "edit", "run"] = "edit") -> PlanStep:
    return PlanStep(action=action, file=file, description="d", details="d")


def test_every_edit_of_the_file_that_a_step_names_and_of_no_other() -> None:
    rules = approved_edits(step("./src/[id].py"))
    for tool in ("edit", "multi_edit", "write"):
        named = ToolAction(tool=tool, kind="edit", target="src/[id].py")
        other = ToolAction(tool=tool, kind="edit", target="src/i.py")
        assert [rule.covers(named) for rule in rules].count(True) == 1
        assert not any(rule.covers(other) for rule in rules)


@pytest.mark.parametrize("file", ["/etc/hosts", "../x.py", ".git/hooks/pre-commit", ""])
def test_nothing_outside_the_project_and_nothing_that_programs_obey(file: str) -> None:
    assert approved_edits(step(file)) == ()
    assert approved_edits(step("a.py", action="run")) == ()


class FixedGate(PermissionGate):
    def __init__(self, decision: PolicyDecision) -> None:
        self._decision = decision

    def decide(self, action: ToolAction) -> PolicyDecision:
        return self._decision

    @property
    def when_asking(self) -> Literal["wait", "yes", "no"]:
        return "wait"


def test_a_check_is_allowed_word_for_word_in_the_sandbox_only() -> None:
    gate = CheckGate(FixedGate(PolicyDecision("ask", "")), "make test")
    inside = ToolAction(tool="shell", kind="run", target="make test", sandboxed=True)
    assert gate.decide(inside).verdict == "allow"
    bare = ToolAction(tool="shell", kind="run", target="make test")
    assert gate.decide(bare).verdict == "ask"
    more = ToolAction(tool="shell", kind="run", target="make test; rm x", sandboxed=True)
    assert gate.decide(more).verdict == "ask"


@pytest.mark.parametrize(
    "decision", [PolicyDecision("deny", "no"), PolicyDecision("ask", "a rule", is_firm=True)]
)
def test_no_plan_lifts_a_rule_of_the_user(decision: PolicyDecision) -> None:
    gate = CheckGate(FixedGate(decision), "make test")
    inside = ToolAction(tool="shell", kind="run", target="make test", sandboxed=True)
    assert gate.decide(inside) == decision
