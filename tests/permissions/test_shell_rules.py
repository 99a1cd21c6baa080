"""Rules for commands: compared with the words of each parsed command, never with the text."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.attack_corpus import action_of, rules_of
from weft.permissions import PermissionGrant, ToolAction, decide, judge_line
from weft.permissions.shell import compile_pattern


def verdict(line: str, *rules: str, sandboxed: bool = True) -> str:
    action = action_of("shell", line, sandboxed=sandboxed)
    return decide(action, mode="default", rules=rules_of(rules)).verdict


def test_a_pattern_covers_the_words_of_one_command() -> None:
    rule = "allow shell(npm test *)"
    assert verdict("npm test", rule) == "allow"
    assert verdict("npm  'test'  -v", rule) == "allow"
    assert verdict("npm test; touch x", rule) == "ask"
    assert verdict("npm test | sh", rule) == "ask"
    assert verdict("npm tests", rule) == "ask"
    assert verdict("npm test $x", rule) == "ask"


def test_every_part_needs_a_rule_of_its_own() -> None:
    first, second = "allow shell(npm test *)", "allow shell(make lint)"
    assert verdict("npm test && make lint", first) == "ask"
    assert verdict("npm test && make lint", first, second) == "allow"
    assert verdict("npm test && make lint", first, second, "ask shell(make *)") == "ask"
    assert verdict("npm test && make lint", first, second, "deny shell(make)") == "deny"


def test_a_line_that_is_the_very_pattern_is_no_match_for_its_star() -> None:
    assert verdict("git diff *", "allow shell(git diff *)") == "ask"
    assert verdict("npm test *", "allow shell(npm test *)") == "ask"


@pytest.mark.parametrize("text", ["Bash(npm run test:*)", "shell(npm run test:*)"])
def test_the_other_spelling_of_a_prefix_ends_at_a_word(text: str) -> None:
    for line in ("npm run test", "npm run test -v", "npm run test:unit"):
        assert verdict(line, f"allow {text}") == "allow", line
    for line in ("npm run testing", "npm run", "npm run build"):
        assert verdict(line, f"allow {text}") == "ask", line


def test_a_rule_may_name_the_option_that_its_star_does_not_cover() -> None:
    assert verdict("find . -name x -delete", "allow shell(find *)") == "ask"
    assert verdict("find . -name x -delete", "allow shell(find * -delete)") == "allow"
    assert verdict("sort -o a b", "allow shell(sort *)") == "ask"
    assert verdict("sort -o a b", "allow shell(sort -o *)") == "allow"


def test_a_rule_that_is_a_whole_line_covers_that_line_alone() -> None:
    rule = "allow shell(npm test && npm run lint)"
    assert verdict("npm test && npm run lint", rule) == "allow"
    assert verdict("npm test && npm run lint && x", rule) == "ask"
    assert verdict("x; npm test; npm run lint", "allow shell", rule.replace("allow", "deny")) == (
        "deny"
    )


def test_without_a_sandbox_a_command_that_only_reads_needs_a_rule() -> None:
    assert verdict("git diff | head", sandboxed=False) == "ask"
    assert verdict("git diff", "allow shell(git diff *)", sandboxed=False) == "allow"
    # `head` has none.
    assert verdict("git diff | head", "allow shell(git diff *)", sandboxed=False) == "ask"


def test_a_command_elsewhere_or_outside_the_sandbox_is_covered_by_no_pattern() -> None:
    rules = rules_of(("allow shell(make *)",))
    inside = action_of("shell", "make x")
    assert decide(inside, mode="default", rules=rules).verdict == "allow"
    escapes = ToolAction(
        tool="shell", kind="run", target="# outside\nmake x", line="make x", escapes=True
    )
    assert decide(escapes, mode="default", rules=rules).verdict == "ask"
    outside = ToolAction(
        tool="shell", kind="run", target="make x", line="make x", sandboxed=True, outside=True
    )
    assert decide(outside, mode="default", rules=rules).verdict == "ask"


def test_git_in_a_folder_of_the_project_asks_for_it_may_be_a_repository_of_its_own() -> None:
    there = ToolAction(
        tool="shell", kind="run", target="x", line="git status", sandboxed=True, folder="sub"
    )
    assert decide(there, mode="default").verdict == "ask"
    assert verdict("git status") == "allow"


def test_rules_about_files_count_where_the_command_runs() -> None:
    rules = rules_of(("deny read(keys/**)", "allow shell"))
    there = ToolAction(
        tool="shell", kind="run", target="x", line="cat a", sandboxed=True, root="/p", folder="keys"
    )
    assert decide(there, mode="default", rules=rules).verdict == "deny"


def test_a_redirection_is_an_edit_of_its_file() -> None:
    assert verdict("echo x > src/a") == "ask"
    assert verdict("echo x > src/a", "allow edit(src/**)") == "allow"
    assert verdict("echo x > lib/a", "allow edit(src/**)") == "ask"
    assert verdict("echo x > src/a", "allow shell", "deny edit(src/**)") == "deny"
    assert verdict("echo x > .git/hooks/pre-commit", "allow edit(*)") == "ask"


def test_a_grant_answers_only_for_the_very_same_text() -> None:
    grants = [PermissionGrant(pattern="shell(make x)", scope="session")]
    for line, expected in (("make x", "allow"), ("make  x", "ask"), ("make x; make y", "ask")):
        found = decide(action_of("shell", line), mode="default", grants=grants)
        assert found.verdict == expected, line


def test_what_a_rule_may_mean_asks_even_where_all_is_allowed() -> None:
    rules = ("allow shell", "deny shell(rm *)")
    for line in ("$x y", "echo rm | sh", "python -c 'x'", "ls 'open", "eval $x"):
        assert verdict(line, *rules) == "ask", line
    assert verdict("echo hello", *rules) == "allow"


def test_every_part_is_explained() -> None:
    judged = judge_line(action_of("shell", "ls; timeout 5 rm x > y"), ())
    assert judged is not None
    assert [(part.text, part.argv, part.decision) for part in judged.parts] == [
        ("ls", ("ls",), "allow"),
        ("timeout 5 rm x >y", ("timeout", "5", "rm", "x"), "ask"),
        ("rm x", ("rm", "x"), "ask"),
    ]
    assert all(part.reason for part in judged.parts)


@pytest.mark.parametrize("pattern", ["git diff *", "ls", "npm run test:*", "find * -name *.py"])
def test_a_pattern_is_split_like_a_line(pattern: str) -> None:
    assert compile_pattern(pattern).words[0].text == pattern.split()[0]


@pytest.mark.process
def test_no_character_behind_a_brace_ends_the_process() -> None:
    """The grammar looks it up in a short table, beyond which each process has other memory."""
    program = (
        "from weft.permissions.shell import parse_line\n"
        "for wide in map(chr, (0x3000, 0x1F600, 0x80000, 0xE0001, 0x10FFFF)):\n"
        "    for line in ('echo {%s}', '{%s..3}', 'x{12%s', 'x{1..%s}', '{1..3%s}'):\n"
        "        parse_line(line % wide)\n"
    )
    ends = [subprocess.run([sys.executable, "-c", program]).returncode for _ in range(6)]
    assert ends == [0] * 6


def test_wide_characters_in_braces_are_words_as_others_are() -> None:
    rule = "allow shell(echo *)"
    assert verdict("echo {文,字}", rule) == verdict("echo {a,b}", rule)
    assert verdict("echo 'x{文}'", rule) == "allow"
    assert verdict("echo {文,字}; rm x", rule) == "ask"
    assert verdict("{文; rm x; }", "deny shell(rm *)") == "deny"
