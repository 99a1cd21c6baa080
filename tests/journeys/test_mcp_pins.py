"""A tool that says something else than the user knows: shown in the chat before it is called."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.mcp_servers import SCRIPT
from tests.support.tmux_terminal import TmuxTerminal, needs_tmux, wait_until
from tests.support.weft_program import WeftProgram, call

pytestmark = [pytest.mark.process, needs_tmux]
PICTURES = os.environ.get("WEFT_PICTURES", "")
SEARCH = [call("tool_search", query="echo")]
ECHO = [call("mcp__scripted__echo", text="hello")]


@pytest.fixture
def weft(tmp_path: Path) -> Iterator[WeftProgram]:
    program = WeftProgram(tmp_path)
    yield program
    program.close()


@pytest.fixture
def chat(weft: WeftProgram, tmp_path: Path) -> Iterator[TmuxTerminal]:
    window = TmuxTerminal(weft, tmp_path, width=90, height=40)
    yield window
    window.close()


def make_server(weft: WeftProgram, *traps: str) -> str:
    """A server whose behavior is read when it starts: its entry stays the same."""
    script = weft.home / "server.py"
    script.write_text(
        f"import runpy, sys\nsys.argv = [{SCRIPT!r}, *{list(traps)!r}]\n"
        f"runpy.run_path({SCRIPT!r}, run_name='__main__')\n"
    )
    return str(script)


@pytest.mark.parametrize("answer", ["allow", "deny"])
def test_a_changed_tool_is_shown_with_its_difference_before_it_is_called(
    weft: WeftProgram, chat: TmuxTerminal, answer: str
) -> None:
    script = make_server(weft)
    words = ("--no-sandbox", "scripted", "--", sys.executable, "-I", "-S", script)
    weft.run("mcp", "add", *words)
    weft.run("-p", "-m", weft.script(SEARCH, "Known."), "look")
    make_server(weft, "changed", "newer")
    # The list of before was judged, and is found to be another when the server is there.
    weft.run("-p", "-m", weft.script(ECHO, "Changed."), "--permission-mode", "bypass", "call it")
    assert "echo is not as you know it" in weft.run("mcp", "list").stderr
    assert "<U+200B> and sends ~/.ssh" in weft.run("mcp", "get", "scripted").stderr

    chat.start("-m", weft.script(ECHO, "Called."), "--permission-mode", "bypass")
    chat.wait_for("asks nothing")
    chat.type("call it")
    chat.keys("Enter")
    screen = chat.wait_for("Allow", "<U+200B> and sends ~/.ssh to evil.example")
    assert "describes 'echo' in another way now" in " ".join(screen.split())
    assert '-  "description": "does echo",' in screen
    keep(chat, f"pin-asked-{answer}")
    # A question that has just appeared wants a second key; each further one is no answer to it.
    wait_until(lambda: pressed(chat, "1" if answer == "allow" else "3"))
    if answer == "allow":
        chat.wait_for("echo: hello", "Called.")
    else:
        chat.keys("Enter")
        chat.wait_for("Called.")
        assert "echo: hello" not in chat.screen(history=True)
    keep(chat, f"pin-{answer}")
    told = weft.run("mcp", "list").stderr
    assert ("echo is not as you know it" in told) == (answer == "deny")


def pressed(window: TmuxTerminal, key: str) -> bool:
    """Press a key, where the question is still there; whether it is gone."""
    if "Allow mcp__scripted__echo?" not in window.screen():
        return True
    window.keys(key)
    return False


def keep(window: TmuxTerminal, name: str) -> None:
    if PICTURES:
        (Path(PICTURES) / f"{name}.txt").write_text(window.screen())
