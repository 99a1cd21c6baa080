"""Pure policy: an action, the mode, the rules and the grants in; allow, ask or deny out.

Knows no tool, no session and no person: who is asked, and how, is decided above.
"""

from weft.permissions.policy import (
    MODES,
    Action,
    ActionKind,
    Decision,
    Grant,
    Mode,
    Rule,
    Verdict,
    decide,
    grant_pattern,
    with_hook,
)
from weft.permissions.protected import is_git_record, is_protected

__all__ = [
    "MODES",
    "Action",
    "ActionKind",
    "Decision",
    "Grant",
    "Mode",
    "Rule",
    "Verdict",
    "decide",
    "grant_pattern",
    "is_git_record",
    "is_protected",
    "with_hook",
]
