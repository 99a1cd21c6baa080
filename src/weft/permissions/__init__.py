"""Pure policy: an action, the mode, the rules and the grants in; allow, ask or deny out.

Knows no tool, no session and no user: who is asked, and how, is decided above.
"""

from weft.permissions.grant_text import grant_text
from weft.permissions.policy import (
    MODES,
    ActionKind,
    Mode,
    PermissionGrant,
    PermissionRule,
    PolicyDecision,
    ToolAction,
    Verdict,
    decide,
    grant_pattern,
    with_hook,
)
from weft.permissions.protected import is_changed_by_hand, is_git_record, is_protected
from weft.permissions.rule_text import (
    problem_of,
    read_rule,
    rule_problem,
    split_rule,
    taken_away,
)
from weft.permissions.tool_names import (
    CLAUDE_NAMES,
    claude_tool_name,
    our_tool_name,
    spellings_of,
)

__all__ = [
    "CLAUDE_NAMES",
    "MODES",
    "ActionKind",
    "Mode",
    "PermissionGrant",
    "PermissionRule",
    "PolicyDecision",
    "ToolAction",
    "Verdict",
    "claude_tool_name",
    "decide",
    "grant_pattern",
    "grant_text",
    "is_changed_by_hand",
    "is_git_record",
    "is_protected",
    "our_tool_name",
    "problem_of",
    "read_rule",
    "rule_problem",
    "spellings_of",
    "split_rule",
    "taken_away",
    "with_hook",
]
