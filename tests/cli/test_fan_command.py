"""`weft fan`: the stop rule, the table, and the whole way through real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.support.fan_project import git
from weft.api.fan import FanCandidate
from weft.cli.commands.fan_table.rows import row
from weft.cli.commands.fan_table.stop_rule import stop_rule
from weft.errors import UsageError

SCRIPT = {
    "by": "content",
    "answers": [
        {"steps": [{"do": "call", "name": "shell", "args": {"command": "echo 2 > a.txt"}}]},
        {"steps": [{"do": "text", "text": "Done."}]},
    ],
}


def weft(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    home = str(project.parent)
    environ = {"HOME": home, "WEFT_HOME": home, "PATH": os.environ["PATH"]}
    return subprocess.run(
        [sys.executable, "-m", "weft", "fan", *words],
        cwd=project,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.process
def test_a_fan_out_is_begun_shown_and_kept_by_three_processes(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("1\n")
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT))
    begun = weft(
        project, "make it 2", "-n", "2", "-m", f"scripted:{script}", "--verify", "grep 2 *.txt"
    )
    assert begun.returncode == 0, begun.stdout + begun.stderr
    assert "★" in begun.stdout
    assert "✓ 1/1 (✗ base)" in begun.stdout
    assert (project / "a.txt").read_text() == "1\n"
    (found,) = json.loads(weft(project, "list", "--json").stdout)
    assert "+2" in weft(project, "diff", found["id"], "1").stdout
    preview = weft(project, "keep", found["id"], "1", "--dry-run")
    assert "take      a.txt" in preview.stdout
    kept = weft(project, "keep", found["id"], "1")
    assert (kept.returncode, "kept;" in kept.stdout) == (0, True), kept.stderr
    assert (project / "a.txt").read_text() == "2\n"
    assert weft(project, "keep", found["id"], "1").returncode == 2


@pytest.mark.process
@pytest.mark.timeout(120)
def test_what_cannot_be_done_is_said_in_one_sentence_with_what_can(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("1\n")
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT))
    assert weft(project, "make it 2", "-n", "1", "-m", f"scripted:{script}").returncode == 0
    (found,) = json.loads(weft(project, "list", "--json").stdout)
    fan = found["id"]
    steps = [
        (("show",), 2, "write `weft fan show ID`: the id of a fan-out (`weft fan list`"),
        (("diff", fan), 2, "write `weft fan diff ID N`: the id of a fan-out"),
        (("compare", fan, "1"), 2, "and the numbers of two candidates"),
        (("lesson", fan, "1"), 2, "there is no `weft fan lesson`; there are list, show,"),
        (("diff", "fan_x", "1"), 2, "there is no fan-out 'fan_x'; `weft fan list` shows them"),
        (("compare", fan, "1", "1"), 0, "candidates 1 and 1 changed the same"),
        (("resume", fan), 2, f"every candidate of {fan} has ended; there is nothing to resume"),
        (("prune", fan, "1"), 0, f"candidate 1 is pruned; `weft fan restore {fan} 1` undoes it"),
        (("keep", fan, "1"), 2, f"candidate 1 was pruned; `weft fan restore {fan} 1` brings it"),
        (("prune", fan, "1"), 0, "candidate 1 was pruned already"),
        (("close", fan), 0, f"{fan} is closed: nothing of it is left on disk but its record"),
        (("keep", fan, "1"), 2, f"{fan} is closed, and its overlays are gone; `weft fan diff"),
        (("prune", fan, "1"), 2, f"{fan} is closed, and its overlays are gone; `weft fan diff"),
        (("close", fan), 0, f"{fan} was closed already"),
    ]
    for words, code, sentence in steps:
        done = weft(project, *words)
        assert (words, done.returncode) == (words, code), done.stderr
        assert sentence in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.fixture
def stage(tmp_path: Path) -> tuple[Path, str]:
    """A project, and a model that writes in it."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("1\n")
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT))
    return project, f"scripted:{script}"


@pytest.mark.process
@pytest.mark.timeout(120)
def test_what_is_refused_leaves_no_session(stage: tuple[Path, str]) -> None:
    project, model = stage
    refused = [
        (("x", "-n", "65", "-m", model), 2, "a fan-out has 1 to 64 candidates, not 65"),
        (("x", "--verify", " ", "-m", model), 2, "--verify needs a command"),
        (("x", "--stop-when", "verified", "-m", model), 2, "there must be a verify command"),
        (("x", "-n", "1"), 3, "no API key was found, so there is no model to answer."),
    ]
    for words, code, sentence in refused:
        done = weft(project, *words)
        assert (words, done.returncode) == (words, code), done.stderr
        assert sentence in done.stderr
    assert json.loads(weft(project, "list", "--json").stdout) == []
    home = project.parent
    listed = subprocess.run(
        [sys.executable, "-m", "weft", "session", "list", "--json"],
        cwd=project,
        env={"HOME": str(home), "WEFT_HOME": str(home), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(listed.stdout) == []


@pytest.mark.process
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("verify", "why"),
    [
        ("nosuchcommand", "nosuchcommand: not found"),
        ("sleep 600", "it was ended after 1 s, by fan.verify_seconds"),
        ("exit 3", "exit code 3"),
    ],
)
def test_a_check_that_fails_on_the_base_as_well_is_said_with_its_last_words(
    stage: tuple[Path, str], verify: str, why: str
) -> None:
    project, model = stage
    settings = project.parent / ".config" / "weft"
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text("[fan]\nverify_seconds = 1\n")
    begun = weft(project, "make it 2", "-n", "1", "-m", model, "--verify", verify)
    assert begun.returncode == 1
    said = "the check fails on the project as it was, too, so it tells nothing of the candidates"
    assert said in begun.stderr
    assert why in begun.stderr
    (found,) = json.loads(weft(project, "list", "--json").stdout)
    assert said in weft(project, "show", found["id"]).stderr
    kept = weft(project, "keep", found["id"], "1")
    assert (kept.returncode, why in kept.stdout) == (1, True), kept.stdout


@pytest.mark.process
@pytest.mark.timeout(120)
def test_conflicts_come_with_what_can_be_done(stage: tuple[Path, str]) -> None:
    project, model = stage
    begun = weft(project, "make it 2", "-n", "1", "-m", model)
    assert "Ctrl-C pauses it, `weft fan resume fan_" in begun.stderr
    (found,) = json.loads(weft(project, "list", "--json").stdout)
    (project / "a.txt").write_text("3\n")
    kept = weft(project, "keep", found["id"], "1")
    assert kept.returncode == 1
    assert "where both changed the same lines yours stayed; the candidate's versions are in" in (
        kept.stdout
    )
    assert "--conflicts markers puts both versions there" in kept.stdout
    marked = weft(project, "keep", found["id"], "1", "--conflicts", "markers")
    assert "kept; to take it back: `weft -r ses_" in marked.stdout
    assert "<<<<<<<" in (project / "a.txt").read_text()


@pytest.mark.parametrize(
    ("given", "rule"),
    [(None, ("all", None)), ("verified", ("verified", None)), ("$0.50", ("all", 0.5))],
)
def test_the_stop_rule(given: str | None, rule: tuple[str, float | None]) -> None:
    assert stop_rule(given) == rule


@pytest.mark.parametrize("given", ["", "soon", "$-1", "$0", "nan"])
def test_another_stop_rule_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match="--stop-when"):
        stop_rule(given)


def test_the_table_marks_the_best_and_the_one_that_edits_tests() -> None:
    best = FanCandidate(
        index=2,
        model="anthropic:claude-haiku",
        session="ses_1",
        state="done",
        verify="passed",
        verify_passed=3,
        verify_runs=3,
        base_verify="failed",
        files=("a", "b"),
        added=14,
        removed=3,
        agree=2,
        of=4,
        cost_usd=0.12,
        seconds=100.0,
        is_best=True,
    )
    assert row(best) == (
        *("2★", "claude-haiku", "done", "✓ 3/3 (✗ base)", "–", "+14 −3  2f", "2 of 4"),
        *("$0.1200", "1:40"),
    )
    edits = msgspec.structs.replace(best, touches_checks=True, base_tests="failed", is_best=False)
    assert row(edits)[4] == "⚠ edits tests (✗ base's)"
