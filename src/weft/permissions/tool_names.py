"""Names of tools: ours, and those that settings, agents and programs written for Claude Code know.

One table for all who read such names.  A name that is not understood is a rule, a matcher or a list
that silently misses its tool, so whatever takes names of tools takes both spellings.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

CLAUDE_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "read": "Read",
        "write": "Write",
        "edit": "Edit",
        "multi_edit": "MultiEdit",
        # It has none of that kind; programs that know its names see this one in their style.
        "apply_patch": "ApplyPatch",
        "list": "LS",
        "find": "Glob",
        "grep": "Grep",
        "shell": "Bash",
        "shell_output": "BashOutput",
        "shell_stop": "KillShell",
        "todo": "TodoWrite",
        "ask": "AskUserQuestion",
        "agent": "Task",
        "skill": "Skill",
        "wait_for": "WaitFor",  # none of that kind there, as above
        "find_symbol": "FindSymbol",
        "references": "References",
        "outline": "Outline",
        "map": "Map",
        "decision_log": "DecisionLog",
        "decision_query": "DecisionQuery",
        "decision_update": "DecisionUpdate",
        "lsp": "LSP",
        "rename": "RenameSymbol",  # as above
        "fetch": "WebFetch",
        "web_search": "WebSearch",
    }
)
"""Our name of a tool → the one that Claude Code has for it."""

EDITING_TOOLS: Final = ("edit", "multi_edit", "write", "apply_patch", "rename")
"""Every tool of ours that changes files by itself."""

FILE_TOOLS: Final = frozenset({*EDITING_TOOLS, "read", "grep", "find", "list", "lsp"})
"""Tools whose patterns are paths."""

CLAUDE_ONLY: Final = frozenset(
    {
        *("NotebookEdit", "NotebookRead", "ExitPlanMode", "EnterPlanMode"),
        *("SlashCommand", "ListMcpResourcesTool", "ReadMcpResourceTool", "ToolSearch"),
        *("TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "EnterWorktree"),
    }
)
"""Tools of Claude Code that there are none of here: a rule about one has nothing to hold."""

_LATER: Final = {
    "web_fetch": "fetch",
    "agent": "agent",
    "killbash": "shell_stop",
    "taskoutput": "shell_output",
    "taskstop": "shell_stop",
}
"""Further names that its versions had or have for the same tools, in lower case."""

_FORMER: Final[Mapping[str, str]] = MappingProxyType({"wait": "wait_for"})
"""What a tool of ours was called before: models repeat the calls that stand in their line, and
settings and logs keep their names."""

# In lower case: settings write both `bash` and `Bash` for the same tool.
_OURS: Final = {
    **{name: name for name in CLAUDE_NAMES},
    **{theirs.lower(): ours for ours, theirs in CLAUDE_NAMES.items()},
    **_LATER,
    **_FORMER,
}


def our_tool_name(name: str) -> str:
    """Our name of a tool, which may be written in either spelling and any case; an unknown name
    stays as it is."""
    plain = name.strip()
    return _OURS.get(plain.lower(), plain)


def tool_named_now(name: str) -> str:
    """The name that a tool has now which was called so before; another name stays as it is."""
    return _FORMER.get(name, name)


def claude_tool_name(name: str) -> str:
    """The name that Claude Code has for our tool; a tool that it has none for keeps its own."""
    return CLAUDE_NAMES.get(name, name)


def spellings_of(name: str) -> tuple[str, ...]:
    """Every name under which a matcher may mean our tool, its own first."""
    theirs = CLAUDE_NAMES.get(name)
    if theirs is None:
        return (name,)
    former = [each for each, now in _FORMER.items() if now == name]
    return (name, theirs, "Agent") if name == "agent" else (name, theirs, *former)
