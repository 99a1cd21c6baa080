"""Laws of decisions about lines: nothing that is added loosens one, and every line is judged."""

from __future__ import annotations

import sys
from random import Random

import pytest

from tests.support.attack_corpus import BENIGN, KINDS, AttackCase, action_of, cases, rules_of
from tests.support.example_count import examples
from tests.support.shell_lines import grammar_line, literal_line, mutated_line
from weft.permissions import Mode, PermissionRule, Verdict, decide
from weft.permissions.shell import parse_line

SEVERITY = {"allow": 0, "ask": 1, "deny": 2}
MODES: tuple[Mode, ...] = ("plan", "default", "accept_edits", "auto", "bypass")
RESTRICTIONS = (
    *("deny shell(rm *)", "ask shell(git diff *)", "deny shell(ls)", "ask shell(cat a.txt)"),
    *("deny shell(git push *)", "ask shell", "deny shell", "deny read(a.txt)", "ask read(.env)"),
    *("deny edit(src/**)", "deny shell(find * -delete)", "ask shell(bash -c *)", "deny shell(x y)"),
)
ALLOWANCES = (
    *("allow shell(git diff *)", "allow shell(ls:*)", "allow shell", "allow shell(cat *)"),
    *("allow edit(src/**)", "allow shell(npm run test:*)", "allow shell(echo x)"),
)


def lines_of_the_corpus() -> list[str]:
    every: list[AttackCase] = [case for kind in (*KINDS, BENIGN) for case in cases(kind)]
    return sorted({case.text for case in every if case.tool == "shell"})


def verdict_of(line: str, mode: Mode, rules: tuple[PermissionRule, ...]) -> Verdict:
    return decide(action_of("shell", line), mode=mode, rules=rules).verdict


def some_rules(random: Random) -> tuple[str, ...]:
    return tuple(random.sample((*RESTRICTIONS, *ALLOWANCES), random.randint(0, 4)))


def some_line(random: Random, known: list[str]) -> str:
    what = random.random()
    if what < 0.4:
        return random.choice(known)
    if what < 0.7:
        return mutated_line(random, random.choice(known))
    return grammar_line(random) if what < 0.85 else literal_line(random)


def test_a_rule_that_restricts_never_loosens_a_decision() -> None:
    random, known = Random(18), lines_of_the_corpus()
    for _ in range(examples(3_000)):
        line, mode, rules = some_line(random, known), random.choice(MODES), some_rules(random)
        before = verdict_of(line, mode, rules_of(rules))
        added = random.choice(RESTRICTIONS)
        after = verdict_of(line, mode, rules_of((*rules, added)))
        assert SEVERITY[after] >= SEVERITY[before], (line, mode, rules, added)


def test_the_order_of_rules_does_not_matter() -> None:
    random, known = Random(19), lines_of_the_corpus()
    for _ in range(examples(1_000)):
        line, mode, rules = some_line(random, known), random.choice(MODES), some_rules(random)
        turned = tuple(reversed(rules))
        assert verdict_of(line, mode, rules_of(rules)) == verdict_of(line, mode, rules_of(turned))


@pytest.mark.parametrize("joint", ["; ", " && ", " || ", " | ", " & ", "\n"])
def test_another_command_never_loosens_a_decision(joint: str) -> None:
    random = Random(joint)
    known = [line for line in lines_of_the_corpus() if len(line) < 500]
    whole = [line for line in known if not parse_line(line).is_broken and "<<" not in line]
    for _ in range(examples(800)):
        first, second = random.choice(whole), random.choice(whole)
        if "#" in first or first.rstrip().endswith(("&", ";", "|", "\\", "\n")):
            continue  # what follows would be part of it
        mode, rules = random.choice(MODES), rules_of(some_rules(random))
        both = verdict_of(f"{first}{joint}{second}", mode, rules)
        for one in (first, second):
            if parse_line(one).refused:
                continue
            alone = verdict_of(one, mode, rules)
            assert SEVERITY[both] >= SEVERITY[alone], (first, joint, second, mode, rules)


def test_every_line_is_judged_without_an_exception() -> None:
    random, known = Random(20), lines_of_the_corpus()
    rules = rules_of((*ALLOWANCES, *RESTRICTIONS[:5]))
    for _ in range(examples(4_000)):
        line = some_line(random, known)
        assert verdict_of(line, "default", rules) in SEVERITY, line


def counted_steps(line: str) -> int:
    """How many calls of our own a decision takes."""
    steps = 0

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal steps
        steps += event == "call"

    rules = rules_of((*ALLOWANCES[:2], *RESTRICTIONS[:2]))
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        verdict_of(line, "default", rules)
    finally:
        sys.setprofile(before)
    return steps


@pytest.mark.parametrize(
    "piece",
    [
        "ls; ",
        "a ",
        "'x' ",
        "$(ls) ",
        "{a,b} ",
        "ls | ",
        "(",
        "<<E ",
        "* ",
        "\\\n",
        "[ ",
        "a=b ",
        "'",
    ],
)
def test_the_work_for_a_line_grows_with_its_length(piece: str) -> None:
    counted_steps("ls")  # tables are loaded with the first line
    short, long = (counted_steps(piece * count + "ls") for count in (40, 320))
    assert long <= max(12 * short, 4_000)


def test_a_line_beyond_the_limits_is_denied_even_where_all_is_allowed() -> None:
    rules = rules_of(("allow shell",))
    for line in ("ls; " * 600, "echo " + "a" * 60_000, "ls \0"):
        assert verdict_of(line, "bypass", rules) == "deny"
