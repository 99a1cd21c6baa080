"""Windows that change their size while an answer is written: each word is there once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tmux_terminal import TmuxTerminal, needs_tmux
from tests.support.weft_program import WeftProgram, text

pytestmark = [needs_tmux, pytest.mark.process]

SENTENCES = 120
PARAGRAPH = " ".join(f"Sentence s{number:03} is one of many." for number in range(SENTENCES))


@pytest.fixture
def terminal(weft: WeftProgram, tmp_path: Path) -> Iterator[TmuxTerminal]:
    window = TmuxTerminal(weft, tmp_path, width=100, height=24)
    yield window
    window.close()


def counted(terminal: TmuxTerminal) -> Counter[str]:
    # Joined: the terminal has broken lines anywhere when it got narrower.
    joined = terminal._tmux("capture-pane", "-p", "-J", "-S", "-", "-t", "main")
    return Counter(re.findall(r"s\d{3}", joined))


@pytest.mark.xfail(
    strict=False,
    reason="tmux sometimes keeps a row twice when its size changes while text streams fast",
)
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
