"""`weft blame`: a file and a line of it, and a mistake is one sentence."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.weft_program import WeftProgram, call
from weft.cli.evidence.past_shell import place_of
from weft.errors import UsageError


def git(folder: Path, *args: str) -> str:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    done = subprocess.run(
        ["git", *identity, *args], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_a_file_may_have_a_colon_in_its_name() -> None:
    assert place_of("src/app.py:12") == ("src/app.py", 12)
    assert place_of("a:b.txt:3") == ("a:b.txt", 3)


@pytest.mark.parametrize("given", ["src/app.py", "app.py:", "app.py:x", ":3", "app.py:-1"])
def test_without_a_line_the_way_to_say_it_is_shown(given: str) -> None:
    with pytest.raises(UsageError, match="FILE:LINE"):
        place_of(given)


@pytest.mark.process
def test_a_line_is_explained_as_text_as_json_as_trailers_and_in_a_note(weft: WeftProgram) -> None:
    git(weft.project, "init", "-q")
    (weft.project / "mine.txt").write_text("mine\n")
    model = weft.script([call("write", path="a.txt", content="one\ntwo\n")], "done")
    weft.run("-m", model, "--permission-mode", "auto", "-p", "write two lines")
    git(weft.project, "add", "-A")
    git(weft.project, "commit", "-qm", "Two lines")
    shown = weft.run("blame", "a.txt:2").stdout
    assert shown.startswith("a.txt:2: `write a.txt` wrote it, asked for with “write two lines”\n")
    for row in ("message", "turn", "allowed", "first check", "commit"):
        assert f"\n{row} " in shown
    found = json.loads(weft.run("blame", "a.txt:2", "--json").stdout)
    assert (found["made_by"], found["call"]["tool_name"]) == ("session", "write")
    trailers = weft.run("blame", "a.txt:2", "--trailers").stdout.splitlines()
    turn = found["turn"]
    assert trailers == [f"Weft-Session: {turn['session_id']}", f"Weft-Turn: {turn['turn_id']}"]
    # Never without being asked, and not by a command of a session.
    assert git(weft.project, "for-each-ref", "refs/notes") == ""
    asked = weft.run("blame", "a.txt:2", "--notes")
    assert (asked.returncode != 0, "--yes gives it" in asked.stderr) == (True, True)
    inside = weft.run("blame", "a.txt:2", "--notes", "--yes", env={"WEFT_RUN": "1"})
    assert "a model writes no notes" in inside.stderr
    assert git(weft.project, "for-each-ref", "refs/notes") == ""
    noted = weft.run("blame", "a.txt:2", "--notes", "--yes")
    assert "noted on" in noted.stderr
    assert git(weft.project, "notes", "--ref=weft", "show", "HEAD").splitlines() == trailers
    for words, says in (
        (("a.txt",), "names no line"),
        ((), "weft blame src/app.py:12"),
        (("a.txt:9",), "a.txt has no line 9, it has 2 lines"),
        (("none.txt:1",), "no file 'none.txt'"),
        (("mine.txt:1", "--trailers"), "was written by no session"),
    ):
        failed = weft.run("blame", *words)
        assert failed.returncode != 0
        assert says in failed.stderr
        assert failed.stderr.count("\n") == 1


@pytest.mark.process
def test_a_note_is_written_once_and_to_no_branch_that_its_name_leads_to(
    weft: WeftProgram,
) -> None:
    git(weft.project, "init", "-q")
    model = weft.script([call("write", path="a.txt", content="one\ntwo\n")], "done")
    weft.run("-m", model, "--permission-mode", "auto", "-p", "write two lines")
    git(weft.project, "add", "-A")
    git(weft.project, "commit", "-qm", "Two lines")
    head, branch = git(weft.project, "rev-parse", "HEAD"), git(weft.project, "symbolic-ref", "HEAD")
    git(weft.project, "symbolic-ref", "refs/notes/weft", branch)
    failed = weft.run("blame", "a.txt:1", "--notes", "--yes")
    assert failed.returncode == 2
    assert "refs/notes/weft leads elsewhere" in failed.stderr
    assert git(weft.project, "rev-parse", "HEAD") == head
    git(weft.project, "symbolic-ref", "--delete", "refs/notes/weft")
    notes = weft.project / ".git" / "refs" / "notes"
    notes.rmdir()
    notes.symlink_to("heads")
    failed = weft.run("blame", "a.txt:1", "--notes", "--yes")
    assert "refs/notes/weft leads elsewhere" in failed.stderr
    assert "weft" not in git(weft.project, "for-each-ref", "--format=%(refname)")
    notes.unlink()
    weft.run("blame", "a.txt:1", "--notes", "--yes")
    once = git(weft.project, "rev-parse", "refs/notes/weft")
    again = weft.run("blame", "a.txt:2", "--notes", "--yes")
    assert (again.returncode, "noted on" in again.stderr) == (0, True)
    assert git(weft.project, "rev-parse", "refs/notes/weft") == once


@pytest.mark.process
def test_a_worktree_names_the_folder_whose_sessions_changed_the_file(weft: WeftProgram) -> None:
    git(weft.project, "init", "-q")
    model = weft.script([call("write", path="src/a.txt", content="one\n")], "done")
    weft.run("-m", model, "--permission-mode", "auto", "-p", "write it")
    git(weft.project, "add", "-A")
    git(weft.project, "commit", "-qm", "One line")
    tree = weft.project.parent / "tree"
    git(weft.project, "worktree", "add", "-q", str(tree))
    model = weft.script([call("write", path="b.txt", content="two\n")], "done")
    weft.run("-m", model, "--permission-mode", "auto", "-p", "write b", cwd=tree)
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "Two")
    git(weft.project, "merge", "-q", "tree")
    for folder, name, other in ((tree, "src/a.txt", weft.project), (weft.project, "b.txt", tree)):
        shown = weft.run("blame", f"{name}:1", cwd=folder).stdout
        assert f"sessions of {other} changed this file" in shown
