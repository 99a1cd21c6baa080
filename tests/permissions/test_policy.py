"""The one function that decides."""

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
    decide,
    grant_pattern,
)

SEVERITY = {"allow": 0, "ask": 1, "deny": 2}

READ = ToolAction(tool="read", kind="read", target="src/a.py", has_effect=False)
EDIT = ToolAction(tool="edit", kind="edit", target="src/a.py")
RUN = ToolAction(tool="shell", kind="run", target="git diff")

actions = st.builds(
    ToolAction,
    tool=st.sampled_from(["read", "write", "shell", "mcp__x__y"]),
    kind=st.sampled_from(["read", "edit", "run", "other"]),
    target=st.sampled_from(["a", "src/a.py", ".git/config", "git diff", "/etc/x"]),
    has_effect=st.booleans(),
    outside=st.booleans(),
    protected=st.booleans(),
)
rules = st.builds(
    PermissionRule,
    verdict=st.sampled_from(["allow", "ask", "deny"]),
    tool=st.sampled_from(["read", "write", "shell", "mcp__*", "*"]),
    pattern=st.sampled_from(["", "a", "src/**", "*", ".git/config", "git diff", "git*"]),
)
modes = st.sampled_from(MODES)
grants = st.lists(
    st.builds(PermissionGrant, pattern=st.builds(grant_pattern, actions), scope=st.just("session")),
    max_size=3,
)


@pytest.mark.parametrize(
    ("action", "verdicts"),
    [
        (
            READ,
            {
                "plan": "allow",
                "default": "allow",
                "accept_edits": "allow",
                "auto": "allow",
                "bypass": "allow",
            },
        ),
        (
            EDIT,
            {
                "plan": "deny",
                "default": "ask",
                "accept_edits": "allow",
                "auto": "allow",
                "bypass": "allow",
            },
        ),
        (
            RUN,
            {
                "plan": "deny",
                "default": "ask",
                "accept_edits": "ask",
                "auto": "ask",
                "bypass": "allow",
            },
        ),
    ],
)
def test_each_mode_has_its_answer(action: ToolAction, verdicts: dict[Mode, str]) -> None:
    assert {mode: decide(action, mode=mode).verdict for mode in MODES} == verdicts


def test_what_lies_outside_asks_even_to_be_read() -> None:
    outside = ToolAction(tool="read", kind="read", target="/etc/x", has_effect=False, outside=True)
    assert decide(outside, mode="accept_edits").verdict == "ask"
    assert "outside" in decide(outside, mode="default").reason


def test_a_shell_rule_means_the_very_same_text() -> None:
    rule = PermissionRule(verdict="allow", tool="shell", pattern="git diff")
    assert decide(RUN, mode="default", rules=[rule]).verdict == "allow"
    for command in (
        "git diff --output=x",
        "git diff; rm -rf /",
        " git diff",
        "git  diff",
        "git diff\n",
    ):
        longer = ToolAction(tool="shell", kind="run", target=command)
        assert decide(longer, mode="default", rules=[rule]).verdict == "ask"
    starred = PermissionRule(verdict="allow", tool="shell", pattern="git *")
    assert decide(RUN, mode="default", rules=[starred]).verdict == "ask"


def test_a_rule_that_allows_is_named() -> None:
    rule = PermissionRule(verdict="allow", tool="shell", pattern="git diff")
    action = ToolAction(tool="shell", kind="run", target="git diff")
    assert decide(action, mode="default", rules=[rule]).rule == "git diff"
    tool = PermissionRule(verdict="allow", tool="shell")
    assert decide(action, mode="default", rules=[tool]).rule == "shell"
    assert decide(action, mode="bypass", rules=[rule]).rule == "", "the mode allows it"


def test_a_grant_answers_an_ask_but_no_denial() -> None:
    grant = PermissionGrant(pattern=grant_pattern(EDIT), scope="turn")
    deny = PermissionRule(verdict="deny", tool="edit", pattern="src/*")
    ask = PermissionRule(verdict="ask", tool="edit")
    assert decide(EDIT, mode="default", grants=[grant]).verdict == "allow"
    assert decide(EDIT, mode="accept_edits", rules=[ask], grants=[grant]).verdict == "allow"
    assert decide(EDIT, mode="bypass", rules=[deny], grants=[grant]).verdict == "deny"
    assert decide(EDIT, mode="plan", grants=[grant]).verdict == "deny"
    other = ToolAction(tool="edit", kind="edit", target="src/b.py")
    assert decide(other, mode="default", grants=[grant]).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        *("git diff; rm -r .", "git diff\nrm -r .", "git diff HEAD", "git diff # all", "git dif"),
        *("git diff )", "(git diff)", "git diff)", "GIT DIFF", "git  diff", "sh -c 'git diff'"),
    ],
)
def test_a_grant_covers_the_whole_command_that_was_shown_and_no_other(command: str) -> None:
    grant = PermissionGrant(pattern=grant_pattern(RUN), scope="session")
    assert decide(RUN, mode="default", grants=[grant]).verdict == "allow"
    other = ToolAction(tool="shell", kind="run", target=command)
    assert decide(other, mode="default", grants=[grant]).verdict == "ask"


def test_a_protected_file_asks_although_edits_are_accepted_and_a_rule_allows_all() -> None:
    hook = ToolAction(tool="write", kind="edit", target=".git/hooks/pre-commit", protected=True)
    wide = [
        PermissionRule(verdict="allow", tool="write"),
        PermissionRule(verdict="allow", tool="write", pattern="**"),
    ]
    assert decide(hook, mode="accept_edits", rules=wide).verdict == "ask"
    named = PermissionRule(verdict="allow", tool="write", pattern=".git/hooks/pre-commit")
    assert decide(hook, mode="accept_edits", rules=[named]).verdict == "allow"
    assert (
        decide(
            hook,
            mode="default",
            grants=[PermissionGrant(pattern=grant_pattern(hook), scope="turn")],
        ).verdict
        == "allow"
    )


def test_rules_may_come_from_a_generator() -> None:
    rule = PermissionRule(verdict="allow", tool="edit")
    assert decide(EDIT, mode="default", rules=(each for each in [rule])).verdict == "allow"


@given(actions, modes, st.lists(rules, max_size=4), rules, grants)
def test_a_rule_that_denies_or_asks_never_loosens_anything(
    action: ToolAction,
    mode: Mode,
    some: list[PermissionRule],
    more: PermissionRule,
    given_grants: list[PermissionGrant],
) -> None:
    before = decide(action, mode=mode, rules=some, grants=given_grants).verdict
    after = decide(action, mode=mode, rules=[*some, more], grants=given_grants).verdict
    if more.verdict == "allow":
        assert SEVERITY[after] <= SEVERITY[before]
    else:
        assert SEVERITY[after] >= SEVERITY[before]


@given(actions, modes, st.lists(rules, max_size=4), grants)
def test_the_order_of_the_rules_does_not_matter(
    action: ToolAction, mode: Mode, some: list[PermissionRule], given_grants: list[PermissionGrant]
) -> None:
    shuffled = sorted(some, key=lambda rule: (rule.pattern, rule.tool, rule.verdict))
    one = decide(action, mode=mode, rules=some, grants=given_grants).verdict
    assert decide(action, mode=mode, rules=shuffled, grants=given_grants).verdict == one
    assert decide(action, mode=mode, rules=some[::-1], grants=given_grants).verdict == one


@given(actions, modes, st.lists(rules, max_size=4), grants)
def test_what_is_denied_by_a_rule_is_denied_in_every_mode(
    action: ToolAction, mode: Mode, some: list[PermissionRule], given_grants: list[PermissionGrant]
) -> None:
    if any(rule.verdict == "deny" and rule.covers(action) for rule in some):
        assert decide(action, mode=mode, rules=some, grants=given_grants).verdict == "deny"


@given(actions, modes, st.lists(rules, max_size=4), grants)
def test_protected_and_outside_never_loosen_and_a_grant_never_forbids(
    action: ToolAction, mode: Mode, some: list[PermissionRule], given_grants: list[PermissionGrant]
) -> None:
    plain = msgspec.structs.replace(action, protected=False, outside=False)
    now = decide(action, mode=mode, rules=some, grants=given_grants).verdict
    assert (
        SEVERITY[now] >= SEVERITY[decide(plain, mode=mode, rules=some, grants=given_grants).verdict]
    )
    assert SEVERITY[now] <= SEVERITY[decide(action, mode=mode, rules=some).verdict]


# --- the sandbox


INSIDE = ToolAction(tool="shell", kind="run", target="make", sandboxed=True)
ESCAPE = ToolAction(tool="shell", kind="run", target="# outside the sandbox\nmake", escapes=True)


def test_only_auto_mode_runs_a_command_unasked_for_being_in_the_sandbox() -> None:
    verdicts = {mode: decide(INSIDE, mode=mode).verdict for mode in MODES}
    assert verdicts == {
        "plan": "deny",
        "default": "ask",
        "accept_edits": "ask",
        "auto": "allow",
        "bypass": "allow",
    }
    bare = msgspec.structs.replace(INSIDE, sandboxed=False)
    assert decide(bare, mode="auto").verdict == "ask"
    elsewhere = msgspec.structs.replace(INSIDE, outside=True)
    assert decide(elsewhere, mode="auto").verdict == "ask"


def test_leaving_the_sandbox_asks_and_without_a_user_to_ask_it_is_denied() -> None:
    verdicts = {mode: decide(ESCAPE, mode=mode).verdict for mode in MODES}
    assert verdicts == {
        "plan": "deny",
        "default": "ask",
        "accept_edits": "ask",
        "auto": "ask",
        "bypass": "deny",
    }
    assert decide(ESCAPE, mode="auto").is_firm


def test_a_rule_that_allows_the_tool_lets_nothing_out_unless_it_names_it() -> None:
    sweeping = PermissionRule(verdict="allow", tool="shell")
    assert decide(ESCAPE, mode="auto", rules=[sweeping]).verdict == "ask"
    exact = PermissionRule(verdict="allow", tool="shell", pattern=ESCAPE.target)
    assert decide(ESCAPE, mode="auto", rules=[exact]).verdict == "allow"
    for_inside = PermissionGrant(pattern=grant_pattern(INSIDE), scope="session")
    assert decide(ESCAPE, mode="auto", grants=[for_inside]).verdict == "ask"
