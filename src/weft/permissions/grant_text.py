"""What a grant covers, in words.

A grant is bound to a tool and its target.  For a command that is the very text that was shown; for
a file it is the file, and not only the change that was shown.
"""

from __future__ import annotations

from typing import Final

from weft.permissions.rule_text import split_rule

_LONGEST: Final = 60
_EDITS: Final = ("edit", "multi_edit", "write")


def grant_text(pattern: str) -> str:
    """What a grant (`tool(target)`) covers, on one line that can be printed."""
    tool, target = split_rule(pattern)
    is_short = len(pattern) <= _LONGEST and pattern.isprintable()
    if tool in _EDITS:
        return f"any {tool} of {target if is_short else 'this file'}"
    if tool == "agent":
        return f"any task for {f'the agent {target}' if is_short else 'this agent'}"
    return pattern if is_short else "exactly what is shown above"
