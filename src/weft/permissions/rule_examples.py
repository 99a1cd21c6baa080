"""Examples of rules: calls that a rule has to mean, and calls that it must not.

A pattern that covers more or less than its writer thinks is found out too late; examples are
checked when the rule is read, in the judgement that counts later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from weft.permissions.policy import ActionKind, PermissionRule, ToolAction, Verdict
from weft.permissions.rule_text import read_rule, rule_problem, split_rule
from weft.permissions.tool_names import our_tool_name
from weft.permissions.verdict import decide, judge_line

MATCH: Final = "match"
NOT_MATCH: Final = "not_match"
_READS: Final = frozenset({"read", "grep", "find", "list", "lsp"})
_VERDICTS: Final[tuple[Verdict, ...]] = ("allow", "ask", "deny")


def example_problem(
    verdict: Verdict,
    rule: str,
    match: Iterable[str] = (),
    not_match: Iterable[str] = (),
    *,
    home: str = "",
) -> str:
    """What is wrong with the examples of a rule; empty when all of them are as they are said to be.

    An example is a command, a path or an address, as the rule's tool is given it; `home` is the
    folder that `~` means in a path.
    """
    tool = our_tool_name(split_rule(rule)[0])
    rules = read_rule(verdict, rule, home=home)
    named = f"`{verdict} {rule}`"
    for text in match:
        if why := _why_not_meant(_action(tool, text, home), rules):
            return f"the example {text!r} is not covered by the rule {named}: {why}"
    for text in not_match:
        if not _why_not_meant(_action(tool, text, home), rules):
            return f"the example {text!r} must not be covered by the rule {named}, and it is"
    return ""


def table_problem(name: str, examples: object, *, home: str = "") -> str:
    """What is wrong with one table of examples, which is called `VERDICT RULE`."""
    verdict, _, rule = name.partition(" ")
    known = next((each for each in _VERDICTS if each == verdict), None)
    if known is None or not rule.strip():
        return f"examples are named like their rule: 'deny shell(rm *)', not {name!r}"
    if why := rule_problem(rule, tools=None):
        return why
    lists = examples if isinstance(examples, dict) else {}
    if odd := next((each for each in lists if each not in (MATCH, NOT_MATCH)), ""):
        return f"examples are lists called {MATCH} and {NOT_MATCH}, not {odd!r}"
    match, not_match = lists.get(MATCH, ()), lists.get(NOT_MATCH, ())
    return example_problem(known, rule, match, not_match, home=home)


def _action(tool: str, text: str, home: str) -> ToolAction:
    if tool == "shell":
        return ToolAction(tool=tool, kind="run", target=text, line=text)
    if tool == "fetch":
        return ToolAction(tool=tool, kind="other", target=text)
    kind: ActionKind = "read" if tool in _READS else "edit"
    path = f"{home}{text[1:]}" if text.startswith("~/") else text
    is_outside = path.startswith("/") or ".." in path.split("/")
    place = path if path.startswith("/") else ""
    return ToolAction(tool=tool, kind=kind, target=path, place=place, outside=is_outside)


def rules_mean(rules: Sequence[PermissionRule], action: ToolAction) -> bool:
    """Whether rules of one verdict speak of an action: those that allow decide it, those that
    restrict at least ask."""
    if decide(action, mode="default", rules=rules).by == "rule":
        return True
    if all(rule.verdict == "allow" for rule in rules):
        return False
    line = judge_line(action, rules)
    return any(rule.covers(action) for rule in rules) or bool(line and line.restrictions)


def _why_not_meant(action: ToolAction, rules: Sequence[PermissionRule]) -> str:
    """Why rules do not speak of an action; empty when they do."""
    if rules_mean(rules, action):
        return ""
    line = judge_line(action, rules)
    reasons = [part.reason for part in line.parts if part.decision != "allow"] if line else []
    return (line.doubt if line else "") or next(filter(None, reasons), "its words are others")
