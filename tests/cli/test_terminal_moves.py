"""Moving, planning, agents and trust in a real terminal, judged by the screen."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tmux_terminal import TmuxTerminal, needs_tmux
from tests.support.weft_program import WeftProgram, call, text

pytestmark = needs_tmux


@pytest.fixture(params=[80, 40])
def terminal(
    weft: WeftProgram, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[TmuxTerminal, int]]:
    """A window, wide or narrow; the narrow one without colours."""
    window = TmuxTerminal(weft, tmp_path, width=request.param, height=30)
    yield window, request.param
    window.close()


def colours(width: int) -> dict[str, str]:
    return {"NO_COLOR": "1"} if width < 80 else {}


def fits(screen: str, width: int) -> bool:
    return all(len(line) <= width for line in screen.split("\n"))


def test_the_tree_is_drawn_and_moved_in_and_esc_esc_goes_back_with_files(
    weft: WeftProgram, terminal: tuple[TmuxTerminal, int]
) -> None:
    window, width = terminal
    model = weft.script(
        {"when": {"user_says": "another way"}, "steps": [text("Another.")]},
        [call("write", path="a.txt", content="one\n")],
        "Made a.",
        [call("write", path="b.txt", content="b\n")],
        "Made b.",
    )
    window.start("-m", model, "--permission-mode", "accept_edits", **colours(width))
    window.wait_for("edits allowed ·")
    for said, answer in (("make a", "Made a."), ("make b", "Made b.")):
        window.type(said)
        window.keys("Enter")
        window.wait_for(answer)
    window.type("/tree")
    window.keys("Enter")
    window.wait_for("Tree", "make a", "❯ ● make b", "here, main", "Enter go there")
    window.keys("Up", "Enter")
    window.wait_for("b.txt  delete", "Restore files too?", "1-2, Esc goes back")
    window.keys("2")
    window.wait_for("now on branch-1, 2 messages")
    assert [path.name for path in weft.project.iterdir()] == ["a.txt"]
    window.type("another way")
    window.keys("Enter")
    window.wait_for("Another.")
    window.keys("Escape")
    window.wait_for("Esc again: back to an earlier message")
    window.keys("Escape")
    screen = window.wait_for("Rewind to just before…", "make a", "another way", "❯ ● you are here")
    assert fits(screen, width)
    window.keys("Up", "Up", "Enter")
    screen = window.wait_for("→ Before “make a”", "a.txt +1 −0 is deleted", "Esc changes nothing")
    assert fits(screen, width)
    window.keys("1")
    window.wait_for("Rewound to before “make a”; deleted", "/undo takes it back.", "› make a")
    assert list(weft.project.iterdir()) == []
    window.keys("C-u")
    window.type("/undo")
    window.keys("Enter")
    window.wait_for("the rewind is undone")
    assert (weft.project / "a.txt").read_text() == "one\n"
    if width < 80:
        assert re.search(r"\x1b\[([0-9;]*;)?(3[0-8]|9[0-7])", window.screen(styles=True)) is None
    else:
        assert re.search(r"\x1b\[([0-9;]*;)?(3[0-8]|9[0-7])", window.screen(styles=True))


def test_a_plan_is_changed_in_the_editor_and_carried_out(
    weft: WeftProgram, terminal: tuple[TmuxTerminal, int]
) -> None:
    window, width = terminal
    step = {"action": "create", "file": "1.txt", "description": "make it", "details": "It holds 1."}
    planner = weft.script([call("submit", summary="Make a file.", steps=[step])], "Done.")
    editor = weft.script([call("write", path="1.txt", content="1\n")], "Wrote it.")
    person = weft.home / "editor"
    person.write_text("#!/bin/sh\nsed -i 's/make it/make it well/' \"$1\"\n")
    person.chmod(0o755)
    window.start(
        *("-m", planner, "--edit-model", editor, "--permission-mode", "accept_edits"),
        EDITOR=str(person),
        **colours(width),
    )
    window.wait_for("edits allowed, architect")
    window.type("make a file")
    window.keys("Enter")
    window.wait_for("1. create 1.txt: make it", "It holds 1.", "Esc stops the turn")
    window.keys("2")
    window.wait_for("1. create 1.txt: make it well", "Esc stops the turn")
    window.keys("1")
    screen = window.wait_for("step 1 of 1 done", "1 of 1 steps done.")
    assert fits(screen, width)
    assert (weft.project / "1.txt").read_text() == "1\n"


def test_trust_is_asked_for_and_enter_trusts_nothing(
    weft: WeftProgram, terminal: tuple[TmuxTerminal, int]
) -> None:
    window, width = terminal
    (weft.project / ".weft").mkdir()
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": "echo \u202e > made"}]}]}
    (weft.project / ".weft" / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    window.start("-m", weft.script("Hello."), **colours(width))
    screen = window.wait_for("This folder has hooks and settings", "Do you trust", "1-2; Esc is no")
    assert "<U+202E>" in screen, "what would be run is shown with nothing hidden"
    window.keys("Enter")
    window.keys("Escape")
    window.wait_for("not trusted")
    window.type("hi")
    window.keys("Enter")
    screen = window.wait_for("Hello.")
    assert fits(screen, width)
    assert not (weft.project / "made").exists()


def test_alt_enter_says_it_after_the_turn_and_is_a_new_line_otherwise(
    weft: WeftProgram, terminal: tuple[TmuxTerminal, int]
) -> None:
    window, width = terminal
    model = weft.script([text("word " * 600, 5)], "Heard you.", pace_seconds=0.005)
    window.start("-m", model, **colours(width))
    window.wait_for("asks first ·")
    window.type("two")
    window.keys("M-Enter")
    window.type("lines")
    window.wait_for("› two\n  lines")
    window.keys("Enter")
    window.wait_for("word word")
    window.type("later")
    window.keys("M-Enter")
    screen = window.wait_for("after  › later")
    assert fits(screen, width)
    window.wait_for("› later", "Heard you.")


def test_esc_twice_clears_what_stands_in_the_line(
    weft: WeftProgram, terminal: tuple[TmuxTerminal, int]
) -> None:
    window, width = terminal
    window.start("-m", weft.script("Hello."), **colours(width))
    window.wait_for("asks first ·")
    window.type("never mind")
    window.wait_for("› never mind")
    window.keys("Escape")
    window.wait_for("Esc again clears the line")
    window.keys("Escape")
    window.wait_gone("never mind")
    window.keys("Up")
    window.wait_for("› never mind")


def test_a_request_that_comes_up_waits_until_an_open_list_is_closed(
    weft: WeftProgram, terminal: tuple[TmuxTerminal, int]
) -> None:
    window, width = terminal
    steps = [text("word " * 1000, 5), call("shell", command="touch made")]
    window.start("-m", weft.script(steps, "Done.", pace_seconds=0.005), **colours(width))
    window.wait_for("asks first ·")
    window.type("go")
    window.keys("Enter")
    window.wait_for("word word")
    window.type("/effort")
    window.keys("Enter")
    window.wait_for("Thinking level?", "1-8, Esc goes back")
    window.keys("6")
    window.wait_for("touch made", "Allow this command?", "Esc stops the turn")
    assert not (weft.project / "made").exists()
    window.keys("1")
    screen = window.wait_for("effort: high", "Done.", history=True)
    assert "touch made" in screen
    assert (weft.project / "made").exists()


def test_a_conversation_that_is_resumed_shows_its_diffs(
    weft: WeftProgram, terminal: tuple[TmuxTerminal, int]
) -> None:
    window, width = terminal
    (weft.project / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    steps = [
        [call("read", path="calc.py")],
        [call("edit", path="calc.py", old_string="a - b", new_string="a + b")],
        "Fixed.",
    ]
    allowed = ("--permission-mode", "accept_edits")
    window.start("-m", weft.script(*steps), *allowed, "fix it", **colours(width))
    rows = ("● Edited calc.py", "+1 −1", "2 -     return a - b", "2 +     return a + b")
    window.wait_for("Fixed.", *rows)
    window.keys("C-d")
    assert window.exit_code() == 0
    window.again("-c", **colours(width))
    window.wait_for("Fixed.", *rows)
