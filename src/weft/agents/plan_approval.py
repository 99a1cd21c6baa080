"""What the approval of a plan covers: the files that its steps name, and its checks word for word.

Nothing else: a step that changes another file, leaves the sandbox or touches what programs obey is
asked about like any call.
"""

from __future__ import annotations

import posixpath
from typing import Final, Literal

from weft.agents.plan import PlanStep
from weft.loop import PermissionGate
from weft.permissions import PermissionRule, PolicyDecision, ToolAction, is_protected

# Without apply_patch, which deletes files, too: a patch that changes or adds one counts as edit or
# write.
_EDITS: Final = ("edit", "multi_edit", "write")


def approved_edits(step: PlanStep) -> tuple[PermissionRule, ...]:
    """The rules for a step that changes a file: they allow every edit of that file.

    Rules and not grants: a rule of the user's own that says ask or deny is stronger.
    """
    path = posixpath.normpath(step.file) if step.file else ""
    # A plan says in words what is to be changed.  That is enough for a file of the project, whose
    # old version is kept, but not for one outside it or one that programs run by themselves.
    is_outside = path.startswith(("/", ".."))
    if step.action not in ("create", "edit") or not path or is_outside or is_protected(path):
        return ()
    return tuple(
        PermissionRule(verdict="allow", tool=tool, pattern=path, is_exact=True) for tool in _EDITS
    )


class CheckGate(PermissionGate):
    """The session's gate, for the check of a step: the command that the approved plan shows is not
    asked about again where it runs in the sandbox."""

    def __init__(self, gate: PermissionGate, command: str) -> None:
        self._gate = gate
        self._command = command

    def decide(self, action: ToolAction) -> PolicyDecision:
        decision = self._gate.decide(action)
        # A firm ask is one of the user's own rules, or about something delicate: no plan lifts it.
        is_open = decision.verdict == "ask" and not decision.is_firm
        if is_open and action.sandboxed and action.target == self._command:
            return PolicyDecision("allow", "the approved plan has it", by="plan")
        return decision

    @property
    def read_rules(self) -> tuple[PermissionRule, ...]:
        return self._gate.read_rules

    @property
    def network_rules(self) -> tuple[PermissionRule, ...]:
        return self._gate.network_rules

    @property
    def reads_lines(self) -> bool:
        return self._gate.reads_lines

    @property
    def when_asking(self) -> Literal["wait", "yes", "no"]:
        return self._gate.when_asking
