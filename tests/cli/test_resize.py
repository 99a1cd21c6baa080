"""Windows that change their size while an answer is written: each word is there once."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.tmux_terminal import TmuxTerminal, needs_tmux, wait_until
from tests.support.weft_program import WeftProgram, call, text

pytestmark = [needs_tmux, pytest.mark.process]

SENTENCES = 120
PARAGRAPH = " ".join(f"Sentence s{number:03} is one of many." for number in range(SENTENCES))
HELD_FRAMES = """
import os
import time
import weft.file_io
plain = weft.file_io.write_all
def held(fd, data):
    if fd == 1 and b"Writing" in data and os.path.exists({hold!r}):
        open({held!r}, "w").close()
        while os.path.exists({hold!r}):
            time.sleep(0.002)  # another program changes the window
        os.unlink({held!r})
    plain(fd, data)
weft.file_io.write_all = held
"""


@pytest.fixture
def terminal(weft: WeftProgram, tmp_path: Path) -> Iterator[TmuxTerminal]:
    window = TmuxTerminal(weft, tmp_path, width=100, height=24)
    yield window
    window.close()


def is_drawn(terminal: TmuxTerminal, width: int) -> bool:
    """The region stands there at this width: tmux breaks a rule that is wider over several rows."""
    rules = [row for row in terminal.screen().split("\n") if row and not row.strip("─")]
    return rules == ["─" * width]


def counted(terminal: TmuxTerminal) -> Counter[str]:
    # Joined: the terminal has broken lines anywhere when it got narrower.
    joined = terminal._tmux("capture-pane", "-p", "-J", "-S", "-", "-t", "main")
    return Counter(re.findall(r"s\d{3}", joined))


@pytest.mark.parametrize("pace", [0.004, 0.002])
def test_each_sentence_is_once_in_the_scrollback_after_every_resize(
    weft: WeftProgram, terminal: TmuxTerminal, pace: float
) -> None:
    model = weft.script([text(f"{PARAGRAPH}\n\nThe end.", 5)], pace_seconds=pace)
    terminal.start("-m", model)
    terminal.wait_for("asks first")
    terminal.type("go")
    terminal.keys("Enter")
    terminal.wait_for("s010", history=True)
    for width, sentence in ((60, "s025"), (40, "s045"), (110, "s070")):
        terminal.resize(width, 24)
        terminal.wait_for(sentence, history=True)
    terminal.wait_for("The end.", "asks first")
    terminal.resize(70, 30)
    terminal.wait_for("The end.", "asks first")
    found = counted(terminal)
    assert found == {f"s{number:03}": 1 for number in range(SENTENCES)}
    screen = terminal.screen(history=True)
    assert screen.count("› go") == 1
    assert screen.count("asks first") == 1, "no stale copy of the region"


@pytest.mark.parametrize(
    "widths", [(60,), (40,), (140,), (60, 40), (40, 110), (60, 100)], ids=lambda each: str(each)
)
def test_a_frame_that_meets_another_width_than_it_was_drawn_for_is_mended(
    weft: WeftProgram, terminal: TmuxTerminal, tmp_path: Path, widths: tuple[int, ...]
) -> None:
    hold, held = tmp_path / "hold", tmp_path / "held"
    planted = weft.plant(HELD_FRAMES.format(hold=str(hold), held=str(held)))
    model = weft.script([text(f"{PARAGRAPH}\n\nThe end.", 5)], pace_seconds=0.004)
    terminal.start("-m", model, **planted)
    terminal.wait_for("asks first")
    terminal.type("go")
    terminal.keys("Enter")
    terminal.wait_for("s020", history=True)
    for width in widths:
        hold.touch()
        wait_until(held.exists)
        terminal.resize(width, 24)
        hold.unlink()
        # Mended and drawn at its width: tmux joins what a torn frame wrote with rows that it had
        # broken, so a second change before that cannot be counted.
        wait_until(partial(is_drawn, terminal, width))
    terminal.wait_for("The end.", "asks first")
    wait_until(lambda: "Writing" not in terminal.screen())
    assert counted(terminal) == {f"s{number:03}": 1 for number in range(SENTENCES)}
    assert terminal.screen(history=True).count("asks first") == 1


def test_no_answer_of_the_terminal_is_left_for_the_shell(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    model = weft.script([text(f"{PARAGRAPH}\n\nThe end.", 5)], pace_seconds=0.02)
    terminal.start_shell()
    terminal.type(shlex.join(weft.argv("-m", model)))
    terminal.keys("Enter")
    terminal.wait_for("asks first")
    terminal.type("go")
    terminal.keys("Enter")
    terminal.wait_for("s003", history=True)
    for _ in range(5):
        terminal.keys("C-z")
        terminal.wait_for("Stopped")
        terminal.type("clear; fg")
        terminal.keys("Enter")
        terminal.wait_for("asks first")
    terminal.keys("C-z")
    screen = terminal.wait_for("Stopped")
    assert not re.search(r"\d+;\d+R|\^\[", screen), screen


def test_a_resize_while_idle_leaves_one_region(weft: WeftProgram, terminal: TmuxTerminal) -> None:
    # A full screen: tmux counts the empty rows below the region too, and moves rows at the top of
    # the screen into its history for each that it breaks.
    lines = "\n".join(f"- row {number}" for number in range(60))
    terminal.start("-m", weft.script(lines))
    terminal.wait_for("asks first")
    terminal.type("go")
    terminal.keys("Enter")
    terminal.wait_for("row 59", "asks first")
    terminal.type("a draft that is long enough to be wrapped at forty columns, and then some more")
    for width, height in ((60, 24), (40, 20), (110, 40), (50, 24), (100, 24)):
        terminal.resize(width, height)
        terminal.wait_for("some more")
    terminal.keys("C-e")
    terminal.type("!")
    terminal.wait_for("some more!", "asks first")
    screen = terminal.screen(history=True)
    assert screen.count("a draft that") == 1
    assert screen.count("asks first") == 1
    assert screen.count("Weft 0.1.0") == 1
    assert screen.count("────") * 4 <= 100, "one rule"


@pytest.mark.parametrize("answer", ["Done.", "row\n" * 30], ids=["empty", "full"])
def test_a_question_that_was_too_large_for_a_while_leaves_nothing_behind(
    weft: WeftProgram, tmp_path: Path, answer: str
) -> None:
    (weft.project / "calc.py").write_text("".join(f"row {number}\n" for number in range(9)))
    edit = call("edit", path="calc.py", old_string="row 4\n", new_string="ROW 4\nROW 5\n")
    model = weft.script([text(answer), call("read", path="calc.py")], [edit], "Done.")
    window = TmuxTerminal(weft, tmp_path, width=80, height=24)
    window.start("-m", model)
    window.wait_for("asks first")
    window.type("go")
    window.keys("Enter")
    window.wait_for("Edit calc.py ─", "ROW 5", "Esc stops the turn")
    for _ in range(2):
        window.resize(80, 12)
        window.wait_for("Allow this edit?", "❯ 1 Yes", "asks first")
        wait_until(lambda: "4 No" not in window.screen() or "Esc stops" not in window.screen())
        window.resize(80, 24)
        window.wait_for("Edit calc.py ─", "4 No", "Esc stops the turn")
    try:
        shown = window.screen(history=True)
        assert shown.count("Edit calc.py ─") == 1, shown
        assert shown.count("Allow this edit?") == 1, shown
        assert shown.count("asks first") == 1, shown
    finally:
        window.close()
