"""Windows that are narrow or simple: forty columns in words, a terminal that cannot be drawn on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tmux_terminal import TmuxTerminal, needs_tmux
from tests.support.weft_program import WeftProgram, call, text

pytestmark = [needs_tmux, pytest.mark.process]


@pytest.fixture
def weft(tmp_path: Path) -> Iterator[WeftProgram]:
    program = WeftProgram(tmp_path)
    yield program
    program.close()


def fixes(weft: WeftProgram) -> str:
    (weft.project / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    # What only prints is not asked about.
    rows = "; ".join(["touch made", *(f"echo row {number}" for number in range(12))])
    return weft.script(
        [call("read", path="calc.py")],
        [call("edit", path="calc.py", old_string="a - b", new_string="a + b")],
        [call("shell", command=rows)],
        [text("It was the sign of the second summand that had been wrong all along.")],
    )


@pytest.mark.parametrize("columns", [40, 80])
def test_words_are_whole_in_a_narrow_window(
    weft: WeftProgram, tmp_path: Path, columns: int
) -> None:
    window = TmuxTerminal(weft, tmp_path, width=columns, height=60)
    try:
        window.start("--plain", "-m", fixes(weft))
        window.wait_for("You:")
        window.type("fix add, please")
        window.keys("Enter")
        window.wait_for("Type 1 to")
        window.type("1")
        window.keys("Enter")
        window.wait_for("Command: ")
        window.wait_for("Type 1 to")
        window.keys("1", "Enter")
        screen = window.wait_for("all along.", "Done in")
    finally:
        window.close()
    rows = [row for row in screen.split("\n") if "echo" not in row]
    words = [
        "all",
        "edits",
        "in",
        "this",
        "session",
        "every",
        "edit",
        "of",
        "calc.py",
        "the",
        "second",
        "summand",
    ]
    assert all(word in " ".join(rows).split() for word in words)
    assert not any(row.startswith(" ") for row in rows), "no row begins with what was cut off"


def test_a_simple_terminal_prints_each_thing_once_and_names_no_key_that_it_cannot_read(
    weft: WeftProgram, tmp_path: Path
) -> None:
    window = TmuxTerminal(weft, tmp_path, height=60)
    try:
        window.start("-m", fixes(weft), TERM="dumb")
        window.wait_for(">")
        window.type("fix add")
        window.keys("Enter")
        window.wait_for("Type 1 to 4.")
        window.keys("1", "Enter")
        window.wait_for("Type 1 to 3.")
        window.keys("1", "Enter")
        screen = window.wait_for("all along.", "3 calls")
        assert screen.count("return a + b") == 1, "with its question, and not again with its card"
        assert "● Edited calc.py  +1 −1 · you allowed it" in screen
        assert "more lines · /show" in screen
        assert "Ctrl+O" not in screen
        window.type("/show 1")
        window.keys("Enter")
        window.wait_for("row 7")
    finally:
        window.close()


def test_a_list_in_words_is_left_with_ctrl_c_and_the_chat_from_it_with_ctrl_d(
    weft: WeftProgram, tmp_path: Path
) -> None:
    window = TmuxTerminal(weft, tmp_path, width=80, height=40)
    try:
        window.start("--plain", "-m", weft.script("Hello."))
        window.wait_for("You:")
        window.type("/model")
        window.keys("Enter")
        window.wait_for("nothing to go back")
        window.keys("C-c")
        screen = window.wait_for("\nYou:\n")
        assert "again quits" not in screen
        window.type("hi")
        window.keys("Enter")
        window.wait_for("Hello.")
        window.type("/config")
        window.keys("Enter")
        window.wait_for("Settings, ")
        window.keys("C-d")
        assert window.exit_code() == 0
    finally:
        window.close()
