"""Permission rules as they are written: `Tool`, or `Tool(pattern)`, with our names of tools or with
those of Claude Code.

In the second spelling a pattern of paths means what it means there: `./x` and `/x` are in the
project, `//x` is absolute, `~/x` is in the home folder, and a plain name is meant at any depth.  A
rule that restricts is read widely (`Edit(src/**)` holds for every tool that edits files), one that
allows narrowly: what is read wrongly must only ever lead to a question too many.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weft.permissions.policy import PermissionRule, Verdict
from weft.permissions.tool_names import our_tool_name

_EDITS: Final = ("edit", "multi_edit", "write")
_READS: Final = ("read", "grep", "find", "list")
_PATHS: Final = frozenset({*_EDITS, *_READS})
"""Tools whose patterns are paths."""


def split_rule(text: str) -> tuple[str, str]:
    """The tool and the pattern of a rule; no pattern is an empty one."""
    # Only the first parenthesis opens and only the last one closes: patterns hold some, too.
    tool, _, rest = text.partition("(")
    return tool.strip(), rest.removesuffix(")")


def read_rule(
    verdict: Verdict, text: str, *, source: str = "", home: str = ""
) -> tuple[PermissionRule, ...]:
    """The rules that a text stands for; `home` is the folder that `~` means.

    A rule in the spelling of Claude Code is kept as it is written too: a program may have a tool of
    that very name.
    """
    tool, pattern = split_rule(text)
    written = PermissionRule(verdict=verdict, tool=tool, pattern=pattern, source=source)
    ours = our_tool_name(tool)
    # A name of ours, or an unknown one: its pattern means what it says. Only the other spelling has
    # to be translated.
    if ours == tool:
        return (written,)
    restricts = verdict != "allow"
    patterns = {pattern}
    if ours in _PATHS and pattern:
        patterns = set(_path_patterns(pattern, home, restricts=restricts))
    tools = _family(ours, has_pattern=bool(pattern)) if restricts else (ours,)
    return (
        written,
        *(
            PermissionRule(verdict=verdict, tool=each, pattern=form, source=source)
            for each in tools
            for form in sorted(patterns)
        ),
    )


def taken_away(text: str) -> tuple[str, ...]:
    """The tools that a rule which denies a bare tool takes away from the model; none where it has a
    pattern."""
    tool, pattern = split_rule(text)
    return () if pattern else _family(our_tool_name(tool), has_pattern=False)


def why_unenforceable(text: str) -> str:
    """Why a rule that restricts could not be enforced; empty when it can be.

    A pattern for commands covers exactly its own text (there is no string matching on commands), so
    one that is meant for several would cover none of them: a veto that is missing.
    """
    tool, pattern = split_rule(text)
    if our_tool_name(tool) != "shell" or "*" not in pattern:
        return ""
    return (
        f"the rule {text!r} cannot be enforced: a pattern for commands covers exactly its own text "
        "here, not commands that begin like it; "
        "name the tool without a pattern, or judge commands in a PreToolUse hook"
    )


def _family(tool: str, *, has_pattern: bool) -> tuple[str, ...]:
    """The tools that a restriction of this one is meant for: several edits at once are edits,
    too."""
    if tool == "edit":
        return _EDITS if has_pattern else ("edit", "multi_edit")
    if tool == "read" and has_pattern:
        return _READS
    return (tool,)


def _path_patterns(pattern: str, home: str, *, restricts: bool) -> Iterator[str]:
    """Our patterns for one of Claude Code's."""
    if pattern.startswith("//"):
        whole = pattern[1:]
    elif pattern.startswith("~/"):
        whole = f"{home}{pattern[1:]}"
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
