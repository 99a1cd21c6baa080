"""Rules and names of tools are understood in both spellings."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.permissions import (
    CLAUDE_NAMES,
    ActionKind,
    PermissionRule,
    ToolAction,
    Verdict,
    claude_tool_name,
    decide,
    our_tool_name,
    problem_of,
    read_rule,
    rule_problem,
    spellings_of,
    taken_away,
)

HOME = "/home/ann"
PROJECT = "/work/app"


def covers(verdict: Verdict, text: str, tool: str, target: str) -> bool:
    """True when a rule, as written, speaks of this use of a tool."""
    kind: ActionKind = "run" if tool == "shell" else "edit"
    place = target if target.startswith("/") else f"{PROJECT}/{target}"
    action = ToolAction(tool=tool, kind=kind, target=target, place=place)
    return any(rule.covers(action) for rule in read_rule(verdict, text, home=HOME))


@given(st.sampled_from(sorted(CLAUDE_NAMES)), st.sampled_from([str, str.lower, str.upper]))
def test_a_name_is_understood_in_both_spellings_and_any_case(name: str, written: type[str]) -> None:
    for spelling in spellings_of(name):
        assert our_tool_name(written(spelling)) == name
    assert our_tool_name(claude_tool_name(name)) == name


def test_a_name_that_is_not_known_stays_as_it_is() -> None:
    for name in ("mcp__git__Log", "MyTool", "NotebookEdit"):
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
        ("Bash( git push )", "shell", "git push"),
        ("Bash(git push)", "shell", " git push\n"),
        ("NotebookEdit(a.ipynb)", "edit", "docs/a.ipynb"),
        ("NotebookEdit(a.ipynb)", "write", "a.ipynb"),
        ("NotebookRead(a.ipynb)", "grep", "a.ipynb"),
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
        ("NotebookEdit(a.ipynb)", "edit", "a.ipynb", False),
        ("NotebookEdit", "edit", "a.ipynb", False),
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


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Bash(git diff * && npm test *)", "shell(git diff *), shell(npm test *)"),
        ("shell(git log * | head *)", "a rule for each"),
        ("shell(* --force)", "begin with the name of a command"),
        ("shell(git diff {a,b} *)", "expanded by the shell"),
        ("shell(cat ~/* )", "expanded by the shell"),
        ("shell(echo $(date) *)", "it has a substitution"),
        ("shell(git diff 'x *)", "no end"),
        ("Bash(:*)", "without a pattern"),
        ("Bash(*)", "without a pattern"),
        ("", "Tool(pattern)"),
        ("  ", "Tool(pattern)"),
        ("Bash(ls", "Tool(pattern)"),
        ("Bash ls)", "Tool(pattern)"),
        ("Bash()", "Tool(pattern)"),
        ("(ls)", "Tool(pattern)"),
        ("Bash(ls) now", "Tool(pattern)"),
        ("deny shell", "Tool(pattern)"),
        ("Read(.env))", "Tool(pattern)"),
        ("read(!.env)", "!"),
        ("read(*.{env,pem})", "each"),
        ("edit(src/../.env)", ".."),
        ("edit(.)", "name the tool alone"),
        ("Edit(./)", "name the tool alone"),
        ("read(/)", "name the tool alone"),
        ("todo(x)", "no pattern"),
        ("Shel", "did you mean 'shell'"),
        ("Shel(ls)", "did you mean 'shell'"),
        ("run_shell_command(git)", "there is no tool"),
        ("bsh*", "there is no tool"),
        ("mcp__", "there is no tool"),
        ("mcp____read", "there is no tool"),
        ("*(*.env)", "one tool"),
        ("re*(.env)", "one tool"),
        ("r?ad(.env)", "one tool"),
        ("*(git *)", "one tool"),
        ("Read(.env)(.pem)", "Tool(pattern)"),
        ("edit(src\\a.py)", "/ between"),
        ('read(".env")', "without quotes"),
        ("Read('.env')", "without quotes"),
        ("read(`.env`)", "without quotes"),
        ('Bash("git push")', "without quotes"),
        ("read(.env,.env.local)", "one path"),
        ("edit(src/*.py, tests/*.py)", "one path"),
        ("read(.env|.envrc)", "one path"),
        ("read($HOME/.ssh/**)", "variables"),
        ("read(${HOME}/x)", "variables"),
        ("Read(%USERPROFILE%/x)", "variables"),
        ("read(~root/.ssh)", "~/"),
        ("read(file:.env)", "'file:'"),
        ("Grep(pattern: secret)", "'pattern:'"),
        ("shell(regex:^git)", "'regex:'"),
        ("Bash(prefix: git)", "'prefix:'"),
    ],
)
def test_a_rule_that_would_do_nothing_is_refused_with_a_sentence(text: str, says: str) -> None:
    why = rule_problem(text)
    assert repr(text) in why
    assert says in why


@pytest.mark.parametrize(
    "text",
    [
        *("Bash", "Bash(rm -rf /)", "Read(*.pem)", "mcp__x__*", "mcp__git__log", "WebSearch"),
        *("shell(echo $(date) | tee (x))", "read(app/[id]/page.ts)", "*", "shell_*"),
        *("Task(general)", "architect", "NotebookEdit", "read(a b.txt)", "shell(a\nb)"),
        *("shell('my tool' \"$HOME\")", "shell(a, b | c)", "read(it's.txt)", "edit(a$b.java)"),
        *("read(a:b)", "read(~)", "read(~/.ssh)", "read(*~)", "read(#a~b)", "shell(file x)"),
    ],
)
def test_a_rule_that_is_understood_is_fine(text: str) -> None:
    assert rule_problem(text) == ""


def test_a_tool_that_a_program_brings_is_known() -> None:
    assert "there is no tool" in rule_problem("deploy(prod)")
    assert rule_problem("deploy(prod)", tools=["deploy"]) == ""
    assert rule_problem("dep*", tools=["deploy"]) == ""


def test_a_rule_of_a_program_is_checked_like_one_that_is_written() -> None:
    starred = PermissionRule(verdict="deny", tool="shell", pattern="* rm")
    assert "name of a command" in problem_of(starred)
    assert problem_of(msgspec.structs.replace(starred, is_exact=True)) == ""
    assert "there is no tool" in problem_of(PermissionRule(verdict="deny", tool="shel"))
    assert problem_of(PermissionRule(verdict="deny", tool="Bash")) == ""


@pytest.mark.parametrize(
    ("text", "tool", "target"),
    [
        ("read(.env)", "read", ".env"),
        ("read(.env)", "grep", ".env"),
        ("read( .env )", "read", ".env"),
        ("read(.env)", "read", "deep/er/.env"),
        ("read(./.env)", "read", ".env"),
        ("read(secrets)", "read", "secrets/key"),
        ("read(secrets/)", "find", "secrets/key"),
        ("read(~/.ssh)", "read", "/home/ann/.ssh/id"),
        ("read(/work/app/.env)", "read", ".env"),
        ("read(/work/*/.env)", "read", ".env"),
        ("Read(//work/app/.env)", "read", ".env"),
        ("read(app/[id]/page.ts)", "read", "app/[id]/page.ts"),
        ("read", "grep", "a.py"),
        ("edit(a.py)", "write", "a.py"),
        ("edit(a.py)", "multi_edit", "a.py"),
        ("write(a.py)", "edit", "a.py"),
        ("edit", "write", "a.py"),
        ("Edit", "write", "a.py"),
    ],
)
def test_a_restriction_holds_for_every_tool_that_does_the_same(
    text: str, tool: str, target: str
) -> None:
    assert covers("deny", text, tool, target)
    assert covers("ask", text, tool, target)


@pytest.mark.parametrize(
    ("text", "tool", "target", "is_covered"),
    [
        ("read(./a.py)", "read", "a.py", True),
        ("write(/work/app/a.py)", "write", "a.py", True),
        ("write(~/a.py)", "write", "/home/ann/a.py", True),
        ("write(a.py)", "write", "deep/a.py", False),
        ("write(a.py)", "edit", "a.py", False),
        ("write(*app/a.py)", "write", "a.py", False),
        ("edit", "write", "a.py", False),
    ],
)
def test_what_is_allowed_in_our_spelling_is_only_what_is_named(
    text: str, tool: str, target: str, is_covered: bool
) -> None:
    assert covers("allow", text, tool, target) == is_covered


def test_a_bare_tool_that_is_denied_is_taken_away_with_its_kind() -> None:
    edits = ("edit", "multi_edit", "write", "apply_patch", "rename")
    assert taken_away("Edit") == taken_away("edit") == edits
    assert taken_away("Task") == ("agent",)
    assert taken_away("Bash(ls)") == ()
