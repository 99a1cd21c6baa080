"""An evening with a text tree, in a real terminal: what a user does, and what the screen shows.

`make screens` runs this too and keeps its pictures in docs/images.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.terminal_picture import keep_picture
from tests.support.tmux_terminal import TmuxTerminal, needs_tmux, wait_until
from tests.support.weft_program import WeftProgram, text

pytestmark = [needs_tmux, pytest.mark.process]

BEGINNING = "Once upon a time there was a loom that"
BRANCHES = (
    " kept every thread anyone had cut, and wound them on spools by colour."
    "\n\nEvery evening it asked for one more story.",
    " remembered the hands that built it; 織機は静かに歌った 🧵, and the valley listened.",
    " wove two stories at once: one for the morning, and one for the dark.",
)


@pytest.fixture
def weft(tmp_path: Path) -> Iterator[WeftProgram]:
    program = WeftProgram(tmp_path)
    yield program
    program.close()


@pytest.fixture
def window_of(weft: WeftProgram, tmp_path: Path) -> Iterator[Callable[..., TmuxTerminal]]:
    windows: list[TmuxTerminal] = []

    def window(columns: int = 80, rows: int = 24) -> TmuxTerminal:
        windows.append(TmuxTerminal(weft, tmp_path, width=columns, height=rows))
        return windows[-1]

    yield window
    for each in windows:
        each.close()


def model(weft: WeftProgram, *answers: Any, name: str = "haiku", pace: float = 0.0) -> str:
    """A scripted model; its name is on the screen."""
    info = {"provider": "scripted", "name": name, "price_input": 1, "price_output": 5}
    written = weft.script(*answers, by="position", loop=True, pace_seconds=pace, info=info)
    path = Path(written.partition(":")[2])
    return f"scripted:{path.rename(weft.home / name)}"


def configure(weft: WeftProgram, *lines: str) -> None:
    weft.config.mkdir(parents=True, exist_ok=True)
    (weft.config / "config.toml").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_an_evening_with_a_tree(
    weft: WeftProgram, window_of: Callable[..., TmuxTerminal], columns: int
) -> None:
    window = window_of(columns, 30)
    name = model(weft, *[[text(each, 6)] for each in BRANCHES], pace=0.04)
    window.start("loom", "view", BEGINNING, "--set", f"model.default={name}")
    window.wait_for("Once upon a time", "1 node", "n 3 · 40 tok")
    window.keys("Space")
    window.wait_for("1 ○ kept every thread", "3 ○ wove two stories", "3 growing")
    keep_picture(window, f"loom-grows-{columns}", "Three branches grow at once", columns)
    # Another size in mid-stream; then back again.
    window.resize(columns + 20, 24)
    window.resize(columns, 30)
    screen = window.wait_for("▸1 ● kept every thread", "2 ● remembered", "3 ● wove", "4 nodes")
    assert all(len(row) <= columns for row in screen.split("\n"))
    window.keys("l")
    window.wait_for("one more story.▏" if columns > 40 else "story.▏", "depth 1")
    window.keys("2")
    window.wait_for("2 ● ", "2 new branches", "6 nodes")
    window.keys("h", "=", "j", "=")
    window.wait_for("Compare ▸1 haiku")
    keep_picture(window, f"loom-compare-{columns}", "Two branches, word by word", columns)
    window.keys("q", "v")
    window.wait_for("┌ Tree", "├ ", "└ ", "● here")
    keep_picture(window, f"loom-tree-{columns}", "The whole tree", columns)
    window.keys("v")
    window.wait_for("└ root")
    window.keys("q")
    assert window.exit_code() == 0
    screen = window.wait_for("Come back with: weft loom view nod_")
    assert "┌" not in screen, "the alternate screen is gone"
    window.again("loom", "view", BEGINNING, "--set", f"model.default={name}")
    window.wait_for("▸2 ● remembered", "6 nodes")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, 137)]
)
def test_a_signal_in_mid_stream_loses_nothing(
    weft: WeftProgram, window_of: Callable[..., TmuxTerminal], number: int, code: int
) -> None:
    window = window_of()
    steps = [text(" half a thread that was", 4), {"do": "stall"}]
    name = model(weft, steps, steps, steps)
    window.start("loom", "view", "The loom had", "--set", f"model.default={name}")
    window.wait_for("The loom had", "1 node")
    window.keys("Space")
    window.wait_for("1 ○ half a thread", "2 ○ half a thread", "3 ○ half a thread")
    wait_for_drafts(weft, 3)
    os.kill(window.pid(), number)
    assert window.exit_code() == code
    # After a kill, too: another program gives the terminal back then.
    window.wait_gone("┌")
    wait_until(lambda: " echo " in window.tty() and " icanon " in window.tty())
    if number != signal.SIGKILL:
        window.wait_for("Come back with: weft loom view nod_")
    window.again("loom", "view", "The loom had", "--set", f"model.default={name}")
    window.wait_for("1 ◐ (partial) half a", "3 ◐ (partial) half a", "4 nodes")
    assert "┌ The loom had" in window.screen()


def test_the_whole_line_is_edited_in_the_users_editor(
    weft: WeftProgram, window_of: Callable[..., TmuxTerminal]
) -> None:
    editor = weft.home / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i "s/loom/LOOM/" "$1"\n')
    editor.chmod(0o755)
    window = window_of()
    window.start("loom", "view", "Once a loom", EDITOR=str(editor))
    window.wait_for("Once a loom▏")
    window.keys("E")
    window.wait_for("Once a LOOM▏", "changed; u undoes it")
    window.keys("u")
    window.wait_for("Once a loom▏", "undone")


def test_keys_are_set_in_the_config(
    weft: WeftProgram, window_of: Callable[..., TmuxTerminal]
) -> None:
    configure(weft, "[loom.keys]", 'quit = "Q ctrl+x"', 'next_fork = "f"')
    window = window_of()
    window.start("loom", "view", "Once a loom")
    window.wait_for("Q quits")
    window.keys("f")
    window.wait_for("there is no other fork")
    window.keys("C-x")
    assert window.exit_code() == 0
    configure(weft, "[loom.keys]", 'next_frok = "f"')
    window.again("loom", "view", "Once a loom")
    assert window.exit_code() == 2
    assert "there is no action 'next_frok'" in window.screen().replace("\n", "")


def test_the_view_is_suspended_and_brought_back(
    weft: WeftProgram, window_of: Callable[..., TmuxTerminal]
) -> None:
    window = window_of()
    window.start_shell()
    window.wait_for("$")
    window.type(" ".join(weft.argv("loom", "view", "Loom")))
    window.keys("Enter")
    window.wait_for("└ root")
    window.keys("C-z")
    window.wait_for("Stopped")
    window.type("fg")
    window.keys("Enter")
    window.wait_for("└ root", "┌ Loom")
    window.keys("q")
    window.wait_for("Come back with")


def test_without_a_terminal_one_sentence_says_so(weft: WeftProgram) -> None:
    done = weft.run("loom", "view", "Once")
    assert done.returncode == 2
    assert done.stderr == "weft: `weft loom view` needs a terminal for its keys and its screen\n"
    assert done.stdout == ""


def wait_for_drafts(weft: WeftProgram, number: int) -> None:
    """Wait until what has come of so many branches is kept beside the log."""

    def is_kept() -> bool:
        with sqlite3.connect(weft.data / "weft.db") as store:
            [[count]] = store.execute("select count(*) from drafts")
            return int(count) >= number

    wait_until(is_kept)
