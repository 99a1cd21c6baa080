"""What a decision costs, in calls of Python: a count that no other load changes."""

from __future__ import annotations

import subprocess
import sys
from random import Random

import pytest

from tests.support.attack_corpus import action_of, rules_of
from tests.support.call_count import calls_made
from tests.support.shell_lines import grammar_line
from weft.permissions import decide
from weft.permissions.shell import judge

RULES = rules_of(
    (
        *("allow shell(git diff *)", "allow shell(ls:*)", "allow shell(cat *)"),
        *("allow edit(src/**)", "deny shell(rm *)", "ask shell(git push *)"),
        *("deny read(.env)", "deny edit(.git/**)"),
    )
)
MOST_CALLS = 64_000
"""Of a line of 2,000 characters: some 5 ms."""
PIECES = (
    *("ls; ", "a ", "$(ls) ", "ls | ", "(", "<<E ", "* ", "a=b ", "'", "cat src/a.py | ", "x:"),
    *("git diff && ", "a=b:c=d@e ", "bash -c 'ls' ; ", "find . -name x -exec cat {} + ; "),
    *(
        "sudo ",
        "timeout 5 ",
        "env A=b ",
        "xargs ",
        "case x in a) ls;; esac; ",
        "(ls); ",
        "{ ls; }; ",
    ),
    *("rm -rf a ", "sed -n p a; ", "jq . a | ", "eval 'ls' ; ", ">a ", "cd a && ls b; ", "é "),
    *("for i in a b; do ls; done; ", "f() { ls; }; ", "cat <<E\nx\nE\n", "[a-z]* ", "~/x "),
)


def cost_of(line: str) -> int:
    decide(action_of("shell", line), mode="default", rules=RULES)  # tables, expressions
    judge._program.cache_clear()
    return calls_made(lambda: decide(action_of("shell", line), mode="default", rules=RULES))


@pytest.mark.parametrize("piece", PIECES)
def test_a_line_of_2000_characters_is_judged_in_few_steps(piece: str) -> None:
    for start in ("", "echo "):
        assert cost_of((start + piece * 2_000)[:2_000]) < MOST_CALLS


def test_so_is_one_with_everything_in_it() -> None:
    random = Random(3)
    for _ in range(20):
        line = ""
        while len(line) < 2_000:
            line += grammar_line(random) + random.choice(("; ", " | ", " && ", "\n"))
        assert cost_of(line[:2_000]) < MOST_CALLS


FIRST = """
import sys
from weft.permissions import ToolAction, decide
decide(ToolAction(tool="shell", kind="run", target="ls", line="ls", root="/p"), mode="default")
print(*sys.modules)
"""


@pytest.mark.process
def test_the_first_command_loads_the_grammar_without_its_package() -> None:
    run = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}\n{FIRST}"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(run.stdout.split())
    assert "tree_sitter._binding" in loaded
    assert not {"importlib.resources", "tempfile", "random", "pathlib"} & loaded
