"""`weft loom` on a terminal: branches that grow in place, colours, narrow windows, Ctrl-C."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tmux_terminal import TmuxTerminal, needs_tmux
from tests.support.weft_program import WeftProgram, text
from weft.cli.loom.node_references import short_id

pytestmark = [pytest.mark.process, needs_tmux]

LONG = " there was a loom that kept every thread anyone had cut." + " And on it went." * 200
HOSTILE = " an answer \x1b]0;taken\x07with \x1b[31mcolours\x1b[0m of its own"


@pytest.fixture
def terminal(weft: WeftProgram, tmp_path: Path) -> Iterator[TmuxTerminal]:
    window = TmuxTerminal(weft, tmp_path, width=80, height=24)
    yield window
    window.close()


def test_branches_grow_in_place_and_ctrl_c_keeps_what_has_come(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    model = weft.script([text(LONG, 4)], by="position", loop=True, pace_seconds=0.02)
    terminal.start("loom", "new", "Once upon a time", "-n", "2", "-m", model)
    screen = terminal.wait_for("· there was a loom that kept")
    assert "Ctrl-C stops and keeps what has come" in screen
    assert screen.count("· ") == 2
    terminal.keys("C-c")
    assert terminal.exit_code() == 130
    screen = terminal.wait_for("stopped; what had come is kept")
    assert "· " not in screen
    assert screen.count("broken off") == 2
    kept = json.loads(weft.run("loom", "children", "--json").stdout)
    assert [each["partial"] for each in kept] == [True, True]
    assert all(LONG.startswith(each["text"]) and each["text"] for each in kept)
    assert all(each["cost_usd"] for each in kept)


def test_without_a_key_the_embedded_model_is_offered_before_it_is_downloaded(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    planted = weft.plant("") | {"PIP_NO_INDEX": "1"}
    (weft.home / "xllamacpp.py").write_text("")
    terminal.start("loom", "new", "Once", **planted)
    assert "downloading" not in terminal.wait_for("98 MB")
    terminal.keys("n", "Enter")
    assert terminal.exit_code() == 3
    assert "weft auth login" in terminal.screen()
    terminal.again("loom", "new", "Once", **planted)
    terminal.wait_for("98 MB")
    terminal.keys("y", "Enter")
    terminal.wait_for("downloading smollm2", "could not fetch")
    assert json.loads(weft.run("loom", "list", "--json").stdout) == []


@pytest.mark.parametrize("width", [80, 40])
def test_no_line_is_wider_than_the_window_and_no_text_reaches_the_terminal_as_a_command(
    weft: WeftProgram, terminal: TmuxTerminal, width: int
) -> None:
    model = weft.script([text(LONG[:400])], [text(HOSTILE)], by="position", loop=True)
    made = weft.run("loom", "new", "Once upon a time, in a far land", "-n", "2", "-m", model)
    assert made.returncode == 0, made.stderr
    number = 1 + [LONG[:40] in part for part in made.stdout.split("\n\n")].index(False)
    terminal.start("loom", "children")
    terminal.resize(width, 24)
    for command in (["children"], ["list"], ["roots"], ["show", "--tree"], ["compare", "1", "2"]):
        terminal.again("loom", *command)
        assert terminal.exit_code() == 0
        # A line that the terminal itself has to break fills its row to the last column.
        rows = terminal.screen().split("\n")
        assert all(len(row) < width or row.endswith("…") for row in rows), rows
    terminal.again("loom", "show", str(number), "--segment")
    assert terminal.exit_code() == 0
    assert "an answer with colours of its own" in " ".join(terminal.screen().split())


def test_no_colour_of_a_model_reaches_the_terminal(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    model = weft.script([text(HOSTILE)], [text(" plain")], by="position", loop=True)
    terminal.start("loom", "new", "Once", "-n", "2", "-m", model)
    assert terminal.exit_code() == 0
    for command in ([], ["compare", "1", "2"], ["children"], ["show", "--tree"]):
        if command:
            terminal.again("loom", *command, NO_COLOR="1")
            assert terminal.exit_code() == 0
        assert "colours" in terminal.screen()
        assert "31m" not in terminal.screen(styles=True), command


def test_a_comparison_is_coloured_unless_colours_are_refused(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    model = weft.script([text(" a loom")], [text(" a song")], by="position", loop=True)
    assert weft.run("loom", "new", "Once", "-n", "2", "-m", model).returncode == 0
    terminal.start("loom", "compare", "1", "2")
    assert terminal.exit_code() == 0
    assert "31m" in terminal.screen(styles=True)
    assert "[-" not in terminal.screen()
    terminal.again("loom", "compare", "1", "2", NO_COLOR="1")
    assert terminal.exit_code() == 0
    assert "31m" not in terminal.screen(styles=True)
    assert "[-" in terminal.screen()


def test_a_deletion_is_asked_for(weft: WeftProgram, terminal: TmuxTerminal) -> None:
    model = weft.script("a branch")
    assert weft.run("loom", "new", "Once", "-n", "1", "-m", model).returncode == 0
    terminal.start("loom", "delete", "/")
    terminal.wait_for("Delete 'Once' with 1 node below? [y/N]")
    terminal.keys("n", "Enter")
    assert terminal.exit_code() == 2
    terminal.again("loom", "delete", "/")
    terminal.wait_for("[y/N]")
    terminal.keys("y", "Enter")
    assert terminal.exit_code() == 0
    terminal.wait_for("`weft loom restore ")
    assert json.loads(weft.run("loom", "list", "--json").stdout) == []


@pytest.mark.parametrize("given", ["2", "short", "/2"])
def test_the_view_opens_at_a_node_that_is_named_as_in_all_commands(
    weft: WeftProgram, terminal: TmuxTerminal, given: str
) -> None:
    model = weft.script([text(" a loom.")], [text(" a song.")], by="position", loop=True)
    made = weft.run("loom", "new", "Once", "-n", "2", "-m", model, "--json")
    branch = json.loads(made.stdout)["branches"][1]
    terminal.start("loom", "view", short_id(branch["id"]) if given == "short" else given)
    terminal.wait_for(f"Once{branch['text']}")
    terminal.keys("q")
    assert terminal.exit_code() == 0
    assert len(json.loads(weft.run("loom", "list", "--json").stdout)) == 1
