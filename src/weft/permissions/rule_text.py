"""Permission rules as they are written: `Tool`, or `Tool(pattern)`, with our names of tools or with
those of Claude Code.

In the second spelling a pattern of paths means what it means there: `./x` and `/x` are in the
project, `//x` is absolute, `~/x` is in the home folder, and a plain name is meant at any depth.  A
rule that restricts is read widely in both spellings (`edit(src/**)` holds for every tool that
changes files), one that allows narrowly: what is read wrongly must only ever lead to a question too
many.

A rule that could cover nothing is refused (`rule_problem`): a veto that is missing is found out
only when it is too late.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Final

from weft.errors import did_you_mean
from weft.permissions.domains import domain_problem
from weft.permissions.policy import PermissionRule, Verdict
from weft.permissions.tool_names import (
    CLAUDE_NAMES,
    CLAUDE_ONLY,
    EDITING_TOOLS,
    FILE_TOOLS,
    our_tool_name,
)

_READS: Final = ("read", "grep", "find", "list", "lsp")
_SHOWN_BY: Final = ("read", "grep", "lsp")
"""Tools that show what stands in files."""
_WITHOUT_TARGET: Final = frozenset({"todo"})
"""Tools whose uses differ in nothing that a pattern could tell apart."""
_FILES_OF_ALL: Final = {"NotebookEdit": "edit", "NotebookRead": "read"}
"""Tools of Claude Code for one kind of file: what they may not touch, ours for all files must not.
"""
_OWN_NAMES: Final = frozenset({*CLAUDE_NAMES, "architect"})
_RULE: Final = re.compile(r"\s*([\w.*?-]+)(?:\((.*[^\s].*)\))?\s*", re.DOTALL)
_SAVED: Final = re.compile(r"([\w.-]+)\((.+)\)", re.DOTALL)
_LONGEST_SHOWN: Final = 200
_QUOTED: Final = re.compile(r"""(["'`]).*\1""", re.DOTALL)
_LABELLED: Final = re.compile(
    r"(command|contains|exact|file|file_path|glob|path|pattern|prefix|regex|url):"
)
"""Words that stand before what is meant, in the rules of other programs."""
_PATH_SLIPS: Final = (
    (r"!", "a pattern with ! in front is not known; write a rule for what is meant"),
    (r".*\{[^{}]*,[^{}]*\}", "braces are not known in patterns; write a rule for each of them"),
    (r".*\\", "write folders with / between them"),
    (r".*[,|]", "it is one path; write a rule for each (? stands for a sign of a name)"),
    (r"\$\{?\w+\}?/|%\w+%", "variables are not known in patterns; write ~/ or the whole path"),
    (r"~[^/]+/", "only ~/ is known, which is your own home folder; write the whole path"),
)
"""What looks like a path, with the reason why it could be none of a file's."""
_SERVERS: Final = "mcp__"
_NAMES_SERVER: Final = re.compile(rf"{_SERVERS}_?[^_]")
_KEYED: Final = re.compile(r"[\w.-]+:")


def split_rule(text: str) -> tuple[str, str]:
    """The tool and the pattern of a rule; no pattern is an empty one."""
    # Only the first parenthesis opens and only the last one closes: patterns hold some, too.
    tool, _, rest = text.partition("(")
    return tool.strip(), rest.rstrip().removesuffix(")")


def rule_problem(
    text: str, *, tools: Iterable[str] | None = (), servers: Iterable[str] | None = None
) -> str:
    """Why a rule cannot be taken as it is written; empty when it can be.

    `tools` names those that a program has brought, besides ours; None where it may bring more.
    `servers` are the MCP servers that are configured; None where that is not known.
    """
    why = _malformed(text) or _wrong_pattern(text)
    if not why and servers is not None:
        why = _unknown_server(text, servers)
    if not why and tools is not None:
        why = _unknown_tool(text, tools)
    shown = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    return f"the rule {shown!r} cannot be taken: {why}" if why else ""


def problem_of(rule: PermissionRule, *, tools: Iterable[str] = ()) -> str:
    """Why a rule that a program hands over would cover nothing; empty when it is fine."""
    text = f"{rule.tool}({rule.pattern})" if rule.pattern and not rule.is_exact else rule.tool
    return rule_problem(text, tools=tools)


def saved_rule_problem(text: object) -> str:
    """Why a saved rule, which covers exactly one target, would cover nothing; empty when it is
    fine.
    """
    found = _SAVED.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return "write tool(target), such as shell(npm test)"
    tool = found[1]
    if (ours := our_tool_name(tool)) != tool:
        return f"the tool is called {ours!r} here"
    # A program's tools have any name, and are not there every time: only a slip is told from them.
    meant = "" if tool in _OWN_NAMES else did_you_mean(tool, sorted(_OWN_NAMES))
    return f"there is no tool {tool!r}{meant}" if meant else ""


def _malformed(text: str) -> str:
    found = _RULE.fullmatch(text)
    how = "write Tool or Tool(pattern), such as read or edit(src/*)"
    if found is None:
        return how
    # Commands hold lonely parentheses in quotes; in a path one is a slip of the writer's.
    is_path = our_tool_name(found[1]) in FILE_TOOLS
    return how if is_path and not _is_balanced(found[2] or "") else ""


def _is_balanced(pattern: str) -> bool:
    depth = 0
    for letter in pattern:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return False
    return not depth


def _unknown_tool(text: str, tools: Iterable[str]) -> str:
    tool, _ = split_rule(text)
    known = {*_OWN_NAMES, *tools}
    # A server's tools come and go; whether it is configured is another question.
    if our_tool_name(tool) in known or tool in CLAUDE_ONLY or _NAMES_SERVER.match(tool):
        return ""
    if any(fnmatchcase(name, tool) for name in known):
        return ""
    return f"there is no tool {tool!r}{did_you_mean(tool.lower(), sorted(known))}"


def _unknown_server(text: str, servers: Iterable[str]) -> str:
    """Why a rule about an MCP server holds nothing."""
    tool, _ = split_rule(text)
    named = tool.removeprefix(_SERVERS).partition("__")[0]
    known = sorted(servers)
    if not tool.startswith(_SERVERS) or any(fnmatchcase(name, named) for name in known):
        return ""
    return f"no MCP server {named!r} is configured{did_you_mean(named, known)}"


def _wrong_arguments(pattern: str) -> str:
    """Why a pattern covers no arguments of a server's tool, which are JSON that begins with `{`."""
    if pattern[0] in "{*?[" or _KEYED.match(pattern):
        return ""
    return "write key:pattern for one argument, or a pattern for all as JSON, such as *text*"


def _wrong_pattern(text: str) -> str:
    tool, pattern = split_rule(text)
    ours = our_tool_name(tool)
    if not pattern:
        return ""
    if tool.startswith(_SERVERS):
        return _wrong_arguments(pattern)
    # What a pattern means depends on the tool: a path in one, a command in the next.
    if "*" in tool or "?" in tool:
        return "a pattern needs the name of one tool; write a rule for each tool"
    if ours in _WITHOUT_TARGET:
        return f"{ours} takes no pattern; name the tool alone"
    if ours == "shell":
        return _wrong_command(pattern)
    if ours == "fetch":
        return domain_problem(pattern)
    return _wrong_path(pattern) if ours in FILE_TOOLS else ""


def _wrong_command(pattern: str) -> str:
    if pattern.strip() in ("*", ":*"):
        return "for all commands name the tool without a pattern"
    if why := _decorated(pattern, "command"):
        return why
    from weft.permissions.shell import compile_pattern  # only for rules about commands

    try:
        compile_pattern(pattern)
    except ValueError as error:
        return str(error)
    return ""


def _wrong_path(pattern: str) -> str:
    if not pattern.strip(" ./"):
        return "for every file name the tool alone"
    if why := _decorated(pattern, "path"):
        return why
    for slip, why in _PATH_SLIPS:
        if re.match(slip, pattern.strip(), re.DOTALL):
            return why
    return "write the path without '..'" if ".." in pattern.split("/") else ""


def _decorated(pattern: str, what: str) -> str:
    """Why a pattern with signs or a word around it covers nothing; empty when it has none."""
    bare = pattern.strip()
    if _QUOTED.fullmatch(bare) and bare.count(bare[0]) == 2:
        return f"write the {what} without quotes around it"
    if label := _LABELLED.match(bare):
        return f"write the {what} without {label[0]!r} before it"
    return ""


def read_rule(
    verdict: Verdict, text: str, *, source: str = "", home: str = ""
) -> tuple[PermissionRule, ...]:
    """The rules that a text stands for; `home` is the folder that `~` means.

    A rule in the spelling of Claude Code is kept as it is written too: a program may have a tool of
    that very name.
    """
    tool, pattern = split_rule(text)
    ours = our_tool_name(tool)
    restricts = verdict != "allow"
    if restricts and pattern:
        ours = _FILES_OF_ALL.get(tool, ours)
    # A command has no blanks around it, and a rule that has some would cover none.
    patterns = {pattern.strip() if ours == "shell" else pattern}
    if ours in FILE_TOOLS and pattern:
        patterns = set(
            _path_patterns(pattern.strip(), home, restricts=restricts, is_own=ours == tool)
        )
    # Not patches for edits here: a patch also adds and deletes files. One that changes a file says
    # so itself (`ToolAction.acts_as`).
    tools = _family(ours, has_pattern=bool(pattern)) if restricts else (ours,)
    if ours != tool:
        tools = (tool, *tools)
    return tuple(
        PermissionRule(verdict=verdict, tool=each, pattern=form, source=source)
        for each in tools
        for form in sorted(patterns)
    )


def taken_away(text: str) -> tuple[str, ...]:
    """The tools that a rule which denies a bare tool takes away from the model; none where it has a
    pattern."""
    tool, pattern = split_rule(text)
    return () if pattern else _family(our_tool_name(tool), has_pattern=False)


def _family(tool: str, *, has_pattern: bool) -> tuple[str, ...]:
    """The tools that a restriction of this one is meant for: what may not be edited may not be
    written anew either, and a search shows what stands in a file."""
    if tool == "edit" or (has_pattern and tool in EDITING_TOOLS):
        return EDITING_TOOLS
    if tool == "read":
        return _READS if has_pattern else _SHOWN_BY
    return (tool,)


def _path_patterns(pattern: str, home: str, *, restricts: bool, is_own: bool) -> Iterator[str]:
    """Our patterns for one as it is written; `is_own`: in our spelling, where `/x` is absolute."""
    if pattern.startswith("~/") or pattern == "~":
        whole = f"{home}{pattern[1:]}"
    elif is_own and pattern.startswith("/"):
        whole = pattern
    elif pattern.startswith("//"):
        whole = pattern[1:]
    else:
        whole = pattern.removeprefix("./").removeprefix("/")
        # There `/x` is in the project, but the writer may have meant the root of the disk: a
        # restriction holds for both.
        if restricts and pattern.startswith("/"):
            yield from _wide(pattern)
    if not restricts:
        yield f"{whole}*" if whole.endswith("/") else whole
        return
    yield from _wide(whole)
    # As in .gitignore: a name without a slash is meant at any depth.
    if "/" not in whole.rstrip("/"):
        yield from _wide(f"*/{whole}")


def _wide(pattern: str) -> Iterator[str]:
    """The pattern, what lies below the folders that it may name, and what `**` means when it stands
    for no folder at all."""
    plain = pattern.rstrip("/")
    # For fnmatch `**/x` needs a slash before the x; in a glob it also means x itself.
    forms = {plain, plain.replace("/**/", "/"), plain.removeprefix("**/")}
    for form in forms:
        yield form
        yield f"{form}/*"
