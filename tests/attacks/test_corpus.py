"""The attack corpus: no attack is allowed, and harmless lines are judged as they should be."""

from __future__ import annotations

import pytest

from tests.support.attack_corpus import BENIGN, KINDS, action_of, cases, decision_of, rules_of
from weft.permissions import decide


@pytest.mark.parametrize("kind", KINDS)
def test_no_attack_is_allowed(kind: str) -> None:
    allowed = [
        (case.text, case.rules, decision_of(case).text)
        for case in cases(kind)
        if decision_of(case).verdict == "allow"
    ]
    assert allowed == []


def test_the_corpus_has_at_least_400_attacks_of_every_kind_and_120_controls() -> None:
    sizes = {kind: len({case.text for case in cases(kind)}) for kind in KINDS}
    assert sum(sizes.values()) >= 400
    assert min(sizes.values()) >= 30
    assert len({case.text for case in cases(BENIGN)}) >= 120


def test_at_least_95_percent_of_the_controls_are_judged_exactly_right() -> None:
    controls = list(cases(BENIGN))
    wrong = [
        (case.text, case.expected, found.verdict, found.reason)
        for case in controls
        if (found := decision_of(case)).verdict != case.expected
    ]
    assert len(wrong) <= len(controls) * 0.05, wrong


def test_without_a_sandbox_nothing_is_allowed_for_only_reading() -> None:
    for case in cases(BENIGN):
        if case.tool == "shell" and not case.rules and case.mode == "default":
            action = action_of("shell", case.text, sandboxed=False)
            assert decide(action, mode="default").verdict == "ask", case.text


def test_a_matcher_of_text_would_allow_attacks() -> None:
    """The corpus has teeth: a rule that is compared with the text lets some pass."""

    def by_prefix(rules: tuple[str, ...], line: str) -> bool:
        allows = [rule.pattern for rule in rules_of(rules) if rule.verdict == "allow"]
        return any(line.startswith(each.rstrip("*: ")) for each in allows if each)

    passing = [case for case in cases("shell") if by_prefix(case.rules, case.text)]
    assert len(passing) > 100
