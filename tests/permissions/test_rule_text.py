"""Rules and names of tools are understood in both spellings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.permissions import (
    CLAUDE_NAMES,
    ActionKind,
    ToolAction,
    Verdict,
    claude_tool_name,
    decide,
    our_tool_name,
    read_rule,
    spellings_of,
    taken_away,
    why_unenforceable,
)

HOME = "/home/ann"


def covers(verdict: Verdict, text: str, tool: str, target: str) -> bool:
    """True when a rule, as written, speaks of this use of a tool."""
    kind: ActionKind = "run" if tool == "shell" else "edit"
    action = ToolAction(tool=tool, kind=kind, target=target)
    return any(rule.covers(action) for rule in read_rule(verdict, text, home=HOME))


@given(st.sampled_from(sorted(CLAUDE_NAMES)), st.sampled_from([str, str.lower, str.upper]))
def test_a_name_is_understood_in_both_spellings_and_any_case(name: str, written: type[str]) -> None:
    for spelling in spellings_of(name):
        assert our_tool_name(written(spelling)) == name
    assert our_tool_name(claude_tool_name(name)) == name


def test_a_name_that_is_not_known_stays_as_it_is() -> None:
    for name in ("mcp__git__Log", "MyTool", "WebSearch"):
        assert our_tool_name(name) == claude_tool_name(name) == name
        assert spellings_of(name) == (name,)


@pytest.mark.parametrize(
    ("text", "tool", "target"),
    [
        ("Bash", "shell", "ls"),
        ("Bash(rm -rf /)", "shell", "rm -rf /"),
        ("Task", "agent", "general"),
        ("Read(./.env)", "read", ".env"),
        ("Read(.env)", "read", "config/.env"),
        ("Read(/secrets/**)", "read", "secrets/a/key"),
        ("Read(secrets)", "grep", "secrets/key"),
        ("Read(secrets/)", "read", "secrets/key"),
        ("Read(//etc/passwd)", "read", "/etc/passwd"),
        ("Read(~/.ssh/**)", "read", "/home/ann/.ssh/id"),
        ("Read(**/*.pem)", "read", "top.pem"),
        ("Edit(src/**/gen.py)", "edit", "src/gen.py"),
        ("Edit(src/**)", "write", "src/a.py"),
        ("Edit(src/**)", "multi_edit", "src/a.py"),
        ("Edit", "multi_edit", "a.py"),
    ],
)
def test_a_restriction_covers_what_it_means_where_it_comes_from(
    text: str, tool: str, target: str
) -> None:
    assert covers("deny", text, tool, target)
    assert covers("ask", text, tool, target)


@pytest.mark.parametrize(
    ("text", "tool", "target", "is_covered"),
    [
        ("Edit(/src/**)", "edit", "src/a.py", True),
        ("Edit(./a.py)", "edit", "a.py", True),
        ("Edit(src/**)", "write", "src/a.py", False),
        ("Edit", "multi_edit", "a.py", False),
        ("Write(a.py)", "write", "b/a.py", False),
        ("Write(/etc/x)", "write", "/etc/x", False),
        ("write(/etc/x)", "write", "/etc/x", True),
    ],
)
def test_what_is_allowed_is_only_what_is_named(
    text: str, tool: str, target: str, is_covered: bool
) -> None:
    assert covers("allow", text, tool, target) == is_covered


def test_a_rule_in_the_other_spelling_counts_in_the_decision() -> None:
    run = ToolAction(tool="shell", kind="run", target="ls")
    assert decide(run, mode="bypass", rules=read_rule("deny", "Bash")).verdict == "deny"
    assert decide(run, mode="default", rules=read_rule("allow", "Bash(ls)")).verdict == "allow"


@pytest.mark.parametrize("text", ["Bash(rm:*)", "Bash(git push *)", "shell(rm *)"])
def test_a_restriction_of_commands_that_covers_nothing_is_named(text: str) -> None:
    assert repr(text) in why_unenforceable(text)


@pytest.mark.parametrize("text", ["Bash", "Bash(rm -rf /)", "Read(*.pem)", "mcp__x__*"])
def test_a_restriction_that_can_be_held_to_is_fine(text: str) -> None:
    assert why_unenforceable(text) == ""


def test_a_bare_tool_that_is_denied_is_taken_away_with_its_kind() -> None:
    assert taken_away("Edit") == ("edit", "multi_edit")
    assert taken_away("Task") == ("agent",)
    assert taken_away("Bash(ls)") == ()
