"""Pure policy: an action, the mode, the rules and the grants in; allow, ask or deny out.

Knows no tool, no session and no user: who is asked, and how, is decided above.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.permissions.policy import (
    CLOSED_RULES,
    MODES,
    NOT_LOOKED_UP,
    ActionKind,
    Mode,
    PermissionGrant,
    PermissionRule,
    PolicyDecision,
    ToolAction,
    Verdict,
    grant_pattern,
    names_tool,
)
from weft.permissions.protected import (
    is_changed_by_hand,
    is_git_record,
    is_protected,
    protected_below,
)
from weft.permissions.verdict import (
    MOST_NAMED,
    decide,
    is_broken_line,
    judge_line,
    with_hook,
    words_in_line,
)

if TYPE_CHECKING:  # loaded when they are first used
    from weft.permissions.domains import plain_host
    from weft.permissions.network_rules import read_host
    from weft.permissions.rule_examples import example_problem, rules_mean, table_problem
    from weft.permissions.rule_text import (
        problem_of,
        read_rule,
        rule_problem,
        saved_rule_problem,
        split_rule,
        taken_away,
    )
    from weft.permissions.tool_names import (
        CLAUDE_NAMES,
        EDITING_TOOLS,
        claude_tool_name,
        our_tool_name,
        spellings_of,
        tool_named_now,
    )

__all__ = [
    "CLAUDE_NAMES",
    "CLOSED_RULES",
    "EDITING_TOOLS",
    "MODES",
    "MOST_NAMED",
    "NOT_LOOKED_UP",
    "ActionKind",
    "Mode",
    "PermissionGrant",
    "PermissionRule",
    "PolicyDecision",
    "ToolAction",
    "Verdict",
    "claude_tool_name",
    "decide",
    "example_problem",
    "grant_pattern",
    "is_broken_line",
    "is_changed_by_hand",
    "is_git_record",
    "is_protected",
    "judge_line",
    "names_tool",
    "our_tool_name",
    "plain_host",
    "problem_of",
    "protected_below",
    "read_host",
    "read_rule",
    "rule_problem",
    "rules_mean",
    "saved_rule_problem",
    "spellings_of",
    "split_rule",
    "table_problem",
    "taken_away",
    "tool_named_now",
    "with_hook",
    "words_in_line",
]

_HOMES = {
    "example_problem": "rule_examples",
    "rules_mean": "rule_examples",
    "table_problem": "rule_examples",
    "plain_host": "domains",
    "read_host": "network_rules",
    "problem_of": "rule_text",
    "read_rule": "rule_text",
    "rule_problem": "rule_text",
    "saved_rule_problem": "rule_text",
    "split_rule": "rule_text",
    "taken_away": "rule_text",
    "CLAUDE_NAMES": "tool_names",
    "EDITING_TOOLS": "tool_names",
    "claude_tool_name": "tool_names",
    "our_tool_name": "tool_names",
    "spellings_of": "tool_names",
    "tool_named_now": "tool_names",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
