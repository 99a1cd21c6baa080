"""What a hook's word counts for, and the one thing the Runner had to learn for hooks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.permissions import (
    MODES,
    Mode,
    PermissionRule,
    PolicyDecision,
    ToolAction,
    Verdict,
    decide,
    with_hook,
)
from weft.workspace import ProcessCommand
from weft.workspace.process.runner import LocalRunner

SEVERITY = {"allow": 0, "ask": 1, "deny": 2}
EDIT = ToolAction(tool="edit", kind="edit", target="src/a.py")
HOOK_FILE = ToolAction(tool="edit", kind="edit", target=".git/hooks/x", protected=True)

verdicts = st.sampled_from(["allow", "ask", "deny", None])
modes = st.sampled_from(MODES)


def test_a_hook_may_answer_what_only_the_mode_asks() -> None:
    asked = decide(EDIT, mode="default")
    assert with_hook(asked, "allow", "checked").verdict == "allow"


@pytest.mark.parametrize("verdict", ["ask", "deny"])
def test_a_hook_lifts_no_rule_of_the_user(verdict: Verdict) -> None:
    rule = PermissionRule(verdict=verdict, tool="edit")
    for mode in MODES:
        judged = decide(EDIT, mode=mode, rules=[rule])
        assert with_hook(judged, "allow", "") == judged


def test_a_hook_gives_no_permission_for_what_programs_obey() -> None:
    judged = decide(HOOK_FILE, mode="accept_edits")
    assert with_hook(judged, "allow", "").verdict == "ask"


@given(verdicts, modes, st.lists(st.sampled_from(["allow", "ask", "deny"]), max_size=3), verdicts)
def test_only_an_allow_loosens_and_only_an_ask_of_the_mode(
    said: Verdict | None, mode: Mode, ruled: list[Verdict], then: Verdict | None
) -> None:
    rules = [PermissionRule(verdict=verdict, tool="edit") for verdict in ruled]
    judged = decide(EDIT, mode=mode, rules=rules)
    after = with_hook(judged, said, "")
    if SEVERITY[after.verdict] < SEVERITY[judged.verdict]:
        assert (said, judged.verdict, judged.is_firm) == ("allow", "ask", False)
    # What one hook asks or denies, no other one allows.
    if said in ("ask", "deny"):
        assert SEVERITY[with_hook(after, then, "").verdict] >= SEVERITY[said]


def test_the_reason_is_the_hooks_when_its_word_counts() -> None:
    assert with_hook(PolicyDecision("allow"), "deny", "no pushing").reason == "no pushing"
    assert (
        with_hook(PolicyDecision("deny", "plan mode"), "deny", "no pushing").reason == "plan mode"
    )


@pytest.mark.process
@pytest.mark.anyio
async def test_standard_error_can_be_kept_apart(tmp_path: Path) -> None:
    argv = ("sh", "-c", "echo out; echo err >&2; cat; exit 3")
    command = ProcessCommand(argv=argv, cwd=str(tmp_path), stdin=b"in\n", errors_apart=True)
    result = await LocalRunner({"PATH": "/usr/bin:/bin"}).run(command)
    assert (result.output, result.errors, result.exit_code) == ("out\nin\n", "err\n", 3)
    mixed = ProcessCommand(argv=argv, cwd=str(tmp_path), stdin=b"in\n")
    result = await LocalRunner({"PATH": "/usr/bin:/bin"}).run(mixed)
    assert (result.output, result.errors) == ("out\nerr\nin\n", "")
