"""The prompt before the program: keys are taken from the first moment on, and none is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tmux_terminal import TmuxTerminal, needs_tmux
from tests.support.weft_program import WeftProgram
from weft.cli.early_prompt import greeting, rows_below
from weft.cli.git_branch import branch_of


@pytest.fixture
def terminal(weft: WeftProgram, tmp_path: Path) -> Iterator[TmuxTerminal]:
    window = TmuxTerminal(weft, tmp_path)
    yield window
    window.close()


@needs_tmux
@pytest.mark.process
def test_every_key_from_the_start_on_is_in_the_line(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    terminal.start("-m", weft.script("Hello."))
    typed = "".join(f"{number:02}" for number in range(30))
    for letter in typed:
        terminal.type(letter)
    screen = terminal.wait_for(f"› {typed}", "asks first ·")
    assert screen.count("Weft 0.1.0") == 1
    assert screen.count(typed) == 1


@needs_tmux
@pytest.mark.process
def test_an_enter_that_was_typed_early_sends_the_line(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    terminal.start("-m", weft.script("Heard."))
    terminal.type("early words")
    terminal.keys("Enter")
    terminal.type("and a draft")
    screen = terminal.wait_for("› early words", "Heard.", "› and a draft")
    # Before the program began, the kernel may have echoed it above; that is not ours.
    assert screen.partition("Weft 0.1.0")[2].count("early words") == 1


@needs_tmux
@pytest.mark.process
def test_a_start_that_fails_leaves_one_sentence_and_the_terminal_as_it_was(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    terminal.start("-C", str(weft.home / "nowhere"))
    assert terminal.exit_code() == 2
    screen = terminal.wait_for("nowhere")
    assert "›" not in screen
    assert "starting" not in screen
    assert " echo " in terminal.tty()
    assert " icanon" in terminal.tty()


@pytest.mark.parametrize(
    ("typed", "rows"),
    [
        ("", 0),
        ("hello", 0),
        ("hello\n", 1),
        ("hello\r", 0),
        ("x" * 8, 0),
        ("x" * 9, 1),
        ("x" * 19, 2),
        ("\x1b[A", 0),
        ("中中中中中", 1),
        ("\n\n", 2),
    ],
)
def test_the_echo_moves_the_cursor_as_the_kernel_does(typed: str, rows: int) -> None:
    assert rows_below(typed, 10) == rows


def test_the_branch_is_read_from_git_files_alone(tmp_path: Path) -> None:
    project = tmp_path / "calc"
    (project / "src").mkdir(parents=True)
    assert branch_of(str(project)) == ""
    (project / ".git").mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/feat/x\n")
    assert branch_of(str(project / "src")) == "feat/x"
    assert greeting(str(project), "1.0", "m") == "Weft 1.0 · calc (feat/x) · m"
    (project / ".git" / "HEAD").write_text("0123456789abcdef0123456789abcdef01234567\n")
    assert branch_of(str(project)) == "0123456"
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / ".git").write_text(f"gitdir: {project / '.git'}\n")
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert branch_of(str(copy)) == "main"
    (project / ".git" / "HEAD").write_text("ref: refs/heads/\x1b[2Jevil\n")
    assert branch_of(str(project)) == "", "what a terminal could obey is not shown"


@needs_tmux
@pytest.mark.process
def test_a_new_line_that_is_typed_early_is_not_taken_for_enter(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    terminal.start("-m", weft.script("Hello."))
    terminal.wait_for("›")
    terminal.type("one")
    terminal.keys("C-j")
    terminal.type("two")
    terminal.wait_for("› one\n  two", "asks first ·")
