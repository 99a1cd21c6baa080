"""Where the chat is: the branch, whether something is uncommitted, and the sandbox."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tmux_terminal import TmuxTerminal, needs_tmux
from tests.support.weft_program import WeftProgram, call
from weft.cli.chat.screens.terminal.status_line import PlaceReader

pytestmark = pytest.mark.process


def git(folder: Path, *arguments: str) -> None:
    own = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    subprocess.run(["git", *own, *arguments], cwd=folder, check=True, capture_output=True)


def repository(folder: Path) -> None:
    git(folder, "init", "-qb", "main")
    (folder / "a.txt").write_text("one\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")


def test_a_changed_file_is_seen_and_a_commit_too(tmp_path: Path) -> None:
    repository(tmp_path)
    place = PlaceReader(str(tmp_path))
    place.look()
    assert (place.read().branch, place.read().is_changed) == ("main", False)
    (tmp_path / "a.txt").write_text("two\n")
    place.look()
    assert place.read().is_changed
    git(tmp_path, "commit", "-qam", "second")
    place.look()
    assert not place.read().is_changed


def test_a_folder_without_git_has_no_changes(tmp_path: Path) -> None:
    place = PlaceReader(str(tmp_path))
    place.look()
    assert place.read().is_changed is False


@pytest.fixture
def terminal(weft: WeftProgram, tmp_path: Path) -> Iterator[TmuxTerminal]:
    window = TmuxTerminal(weft, tmp_path, width=100)
    yield window
    window.close()


@needs_tmux
def test_the_status_line_follows_what_is_done(weft: WeftProgram, terminal: TmuxTerminal) -> None:
    repository(weft.project)
    step = call("shell", command="echo two > a.txt")
    terminal.start("-m", weft.script([step], "Done."))
    assert "sandbox" not in terminal.wait_for("asks first", "main  project")
    terminal.type("go")
    terminal.keys("Enter")
    terminal.wait_for("Allow this command?", "Esc stops the turn")
    terminal.keys("y")
    terminal.wait_for("Done.", "· sandbox", "main*  project")
    git(weft.project, "commit", "-qam", "second")
    terminal.type("!true")
    terminal.keys("Enter")
    terminal.wait_for("main  project")
