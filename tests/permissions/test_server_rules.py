"""Rules about tools of MCP servers: what they cover, and what is refused."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.permissions import (
    MODES,
    Mode,
    PermissionGrant,
    PermissionRule,
    ToolAction,
    Verdict,
    decide,
    grant_pattern,
    read_rule,
    rule_problem,
)


def action(args: object = None, *, tool: str = "mcp__files__write", **more: str) -> ToolAction:
    text = msgspec.json.encode({} if args is None else args, order="deterministic").decode()
    return ToolAction(tool=tool, kind="other", target=text, arguments=text, **more)  # type: ignore[arg-type]


def verdict(rule: str, acted: ToolAction, by: Verdict = "deny", mode: Mode = "bypass") -> str:
    return decide(acted, mode=mode, rules=read_rule(by, rule)).verdict


@pytest.mark.parametrize(
    ("rule", "covers"),
    [
        ("mcp__files", True),
        ("mcp__files__*", True),
        ("mcp__files__write", True),
        ("mcp__*", True),
        ("mcp__file", False),
        ("mcp__files__writ", False),
        ("mcp__files__write_more", False),
        ("mcp__other", False),
        ("write", False),
    ],
)
def test_a_rule_names_a_server_or_a_tool(rule: str, covers: bool) -> None:
    assert (verdict(rule, action()) == "deny") is covers
    assert (verdict(rule, action(), "allow", "default") == "allow") is covers


@pytest.mark.parametrize(
    ("pattern", "args", "denied", "allowed"),
    [
        ("path:docs/*", {"path": "docs/a"}, True, True),
        ("path:docs/*", {"path": "src/docs/a"}, False, False),
        # Servers in Go do not tell these names apart, and take the last of them.
        ("path:docs/*", {"Path": "docs/a"}, True, False),
        ("path:docs/*", {"path": "docs/a", "Path": "src/a"}, True, False),
        ("task:docs/*", {"task": "docs/a", "tas\u212a": "src/a"}, True, False),
        ("path:docs/*", {"other": "docs/a"}, False, False),
        # At any depth, and in lists, only where it restricts.
        ("path:docs/*", {"edits": [{"path": "docs/a"}]}, True, False),
        ("path:docs/*", {"path": ["src/a", "docs/a"]}, True, False),
        ("path:docs/*", {"path": {"x": "docs/a"}}, True, False),
        # The same file in other words.
        ("path:docs/*", {"path": "./docs/a"}, True, False),
        ("path:./docs/*", {"path": "docs/a"}, True, False),
        ("path:docs/*", {"path": ".//docs//a"}, True, False),
        ("path:docs/*", {"path": "src/../docs/a"}, True, False),
        ("path:docs/*", {"path": "docs\\a"}, True, False),
        ("path:/p/docs/*", {"path": "//p/./docs/a"}, True, False),
        ("uri:/p/docs/*", {"uri": "file:///p/d%6fcs/a"}, True, False),
        ("path:docs/*", {"path": "docs/%2e%2e/src/a"}, True, False),
        ("url:https://a.example/*", {"url": "https://a.example/x"}, True, True),
        ("n:7", {"n": 7}, True, True),
        ("on:true", {"on": True}, True, True),
        ('*"docs/a"*', {"path": "docs/a"}, True, True),
        ('{"a":1,"b":2}', {"b": 2, "a": 1}, True, True),
        ("*a; rm*", {"path": "a; rm -r ."}, True, True),
        # A quote in a value cannot end it: JSON escapes it.
        ('{"path":"a"*', {"path": 'a"x'}, False, False),
    ],
)
def test_a_pattern_is_about_the_arguments(
    pattern: str, args: dict[str, object], denied: bool, allowed: bool
) -> None:
    rule = f"mcp__files__write({pattern})"
    assert (verdict(rule, action(args)) == "deny") is denied
    assert (verdict(rule, action(args), "allow", "default") == "allow") is allowed


@pytest.mark.parametrize("mode", MODES)
def test_what_the_user_does_not_know_is_asked_whatever_else_allows_it(mode: Mode) -> None:
    acted = action({"a": 1}, unfamiliar="it is new")
    rules = (
        *read_rule("allow", "mcp__files"),
        PermissionRule(
            verdict="allow", tool=acted.tool, pattern=acted.target, is_exact=True, source="saved"
        ),
    )
    grants = (PermissionGrant(pattern=f"{acted.tool}({acted.target})", scope="session"),)
    found = decide(acted, mode=mode, rules=rules, grants=grants)
    assert found.verdict == ("deny" if mode == "plan" else "ask")
    assert found.is_firm or mode == "plan"
    assert grant_pattern(acted) == ""


@given(
    args=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
    pattern=st.text(min_size=1, max_size=8),
)
def test_a_rule_that_denies_never_makes_a_decision_laxer(
    args: dict[str, str], pattern: str
) -> None:
    order = ("allow", "ask", "deny")
    acted = action(args)
    plain = decide(acted, mode="default").verdict
    rule = PermissionRule(verdict="deny", tool="mcp__files__write", pattern=pattern)
    assert order.index(decide(acted, mode="default", rules=[rule]).verdict) >= order.index(plain)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("mcp__files", ""),
        ("mcp__files__write(path:x)", ""),
        ("mcp__files__write({*})", ""),
        ("mcp__files__write(docs/*)", "write key:pattern for one argument"),
        ("mcp__fles__write", "no MCP server 'fles' is configured; did you mean 'files'?"),
        ("mcp__*", ""),
    ],
)
def test_a_rule_that_holds_nothing_is_refused(rule: str, why: str) -> None:
    found = rule_problem(rule, servers=["files", "time"])
    assert why in found
    assert bool(found) is bool(why)
