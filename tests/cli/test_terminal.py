"""The chat in a real terminal, driven by keys and judged by its screen."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.tmux_terminal import TmuxTerminal, needs_tmux, wait_until
from tests.support.weft_program import WeftProgram, call, text

pytestmark = needs_tmux

ASK = "Esc stops the turn"
"""The hint of a question that is ready for an answer."""


@pytest.fixture
def terminal(weft: WeftProgram, tmp_path: Path) -> Iterator[TmuxTerminal]:
    window = TmuxTerminal(weft, tmp_path)
    yield window
    window.close()


def fixing(weft: WeftProgram) -> str:
    """A model that finds a bug, mends it and runs the test."""
    (weft.project / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    test = f"{sys.executable} -c 'import calc; assert calc.add(1, 2) == 3; print(\"passed\")'"
    answers: list[Any] = [
        [text("Let me look at **calc.py**.\n\n- one\n- two\n", 6), call("read", path="calc.py")],
        [
            text("`add` subtracts."),
            call("edit", path="calc.py", old_string="a - b", new_string="a + b"),
        ],
        [call("shell", command=test)],
        [text("Fixed:\n\n```python\nreturn a + b\n```\n\nThe test passes.")],
        "You are welcome.",
        "Good morning.",
    ]
    return weft.script(
        *answers,
        info={
            "provider": "scripted",
            "name": "m",
            "context_window": 100_000,
            "price_input": 1,
            "price_output": 1,
        },
    )


def slow(weft: WeftProgram) -> str:
    """A model that talks for ever, until it is asked again."""
    after = {"when": {"user_says": "again"}, "steps": [text("After that.")]}
    return weft.script(after, *[[text("word " * 20_000, 5)]] * 3, pace_seconds=0.01)


def test_a_whole_conversation_and_the_next_day(weft: WeftProgram, terminal: TmuxTerminal) -> None:
    """Ask, allow an edit after seeing it, run the test, thank, leave.

    Come back with -c and go on.
    """
    terminal.start("-m", fixing(weft))
    terminal.wait_for("›", "asks first ·")
    terminal.type("Fix @calc.py")
    terminal.keys("Space")
    terminal.type("please")
    terminal.keys("Enter")
    terminal.wait_for("Edit calc.py ─ +1 −1", "2 -     return a - b", "2 +     return a + b", ASK)
    screen = terminal.screen(history=True)
    assert "› Fix @calc.py please" in screen
    assert "+ calc.py" in screen, "the file was sent along"
    assert "Let me look at calc.py." in screen
    assert "• one" in screen
    assert "● Read calc.py" in screen
    assert "2 Yes, and every edit of calc.py in this session" in screen
    terminal.keys("1")
    screen = terminal.wait_for("Run a command ─ ", "import calc", "again in this session", ASK)
    assert "● Edited calc.py  +1 −1 · you allowed it" in screen
    assert (weft.project / "calc.py").read_text().endswith("a + b\n")
    terminal.keys("2")
    screen = terminal.wait_for("The test passes.", "you allowed it in this session")
    assert "passed" in screen
    assert "\nreturn a + b" in screen
    terminal.wait_for("context ", "% · under $0.01")
    terminal.type("thanks")
    terminal.keys("Enter")
    terminal.wait_for("You are welcome.")
    terminal.keys("C-d")
    assert terminal.exit_code() == 0
    (session,) = weft.sessions()
    assert f"weft -r {session['id']}" in terminal.screen()

    terminal.again("-c")
    screen = terminal.wait_for("You are welcome.", "› thanks", "asks first ·")
    terminal.type("good morning")
    terminal.keys("Enter")
    terminal.wait_for("Good morning.")
    assert len(weft.sessions()) == 1


def test_a_no_is_heard_with_its_reason(weft: WeftProgram, terminal: TmuxTerminal) -> None:
    terminal.start("-m", weft.script([call("shell", command="touch made")], "As you like."), "go")
    terminal.wait_for("touch made", ASK)
    terminal.keys("3")
    terminal.wait_for("What should it do instead?")
    terminal.type("not today")
    terminal.keys("Enter")
    terminal.wait_for('● Not allowed: touch made  — "not today"', "As you like.")
    assert not (weft.project / "made").exists()


def test_the_hosts_of_a_command_are_shown_and_always_proposes_the_rule_for_them(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    step = call("shell", command="echo reached", hosts=["localhost:8080"])
    terminal.start("-m", weft.script([step], "Thanks."), "go")
    screen = terminal.wait_for("echo reached", ASK)
    if "may reach" not in screen:
        pytest.skip("this machine has no sandbox")
    assert "Run a command ─ in the sandbox, may reach localhost:8080" in screen
    assert "It would reach localhost:8080." in screen
    assert "reaching localhost:8080: echo reached" in screen
    terminal.keys("2")
    screen = terminal.wait_for("What may run again without asking?")
    assert "A rule ─ domain:localhost:8080: 1 of 2 past calls" in screen
    assert "In every session of yours (your settings):  fetch(domain:localhost:8080)" in screen


@pytest.mark.parametrize("key", ["Escape", "C-c", "Enter"])
def test_no_key_but_an_answer_allows_anything(
    weft: WeftProgram, terminal: TmuxTerminal, key: str
) -> None:
    # Where a yes would reach beyond the sandbox, Enter means nothing.
    step = call("shell", command="touch made", outside_sandbox=True)
    terminal.start("-m", weft.script([step], "Never."), "go")
    terminal.wait_for("OUTSIDE the sandbox", "touch made", ASK)
    terminal.keys(key)
    if key == "Enter":
        terminal.wait_for("press 1 to 3")
        terminal.type("words")
        terminal.keys("Escape")
    terminal.wait_for("■ Stopped")
    assert not (weft.project / "made").exists()


def test_what_is_being_typed_when_a_question_comes_up_never_answers_it(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    """Digits of a sentence that is under way are dropped; the sentence is there afterwards."""
    first, second = "sleep 3; touch slept", "touch made"
    steps = [call("shell", command=first), call("shell", command=second)]
    terminal.start("-m", weft.script(steps, "Done."), "go")
    terminal.wait_for("sleep 3", ASK)
    terminal.keys("1")
    terminal.wait_for("Running sleep 3", "Running 1 command")
    terminal.type("use ")
    terminal.wait_for("touch made", "› use", "Allow this command?")
    terminal.type("1 or 2 spaces")
    screen = terminal.wait_for("just appeared: press again")
    assert "Allow this command?" in screen
    assert not (weft.project / "made").exists()
    terminal.wait_for(ASK)
    terminal.keys("1")
    terminal.wait_for("Done.", "› use")
    assert (weft.project / "made").exists()


def test_ctrl_c_stops_the_turn_and_twice_leaves(weft: WeftProgram, terminal: TmuxTerminal) -> None:
    terminal.start("-m", slow(weft), "go")
    terminal.wait_for("word word", "Writing")
    terminal.keys("C-c")
    terminal.wait_for("■ Stopped")
    terminal.wait_gone("Writing")
    terminal.keys("C-c")
    terminal.wait_for("Ctrl+C again quits")
    terminal.keys("C-c")
    assert terminal.exit_code() == 0
    assert not weft.sessions()[0]["turn_open"]
    assert "weft -r" in terminal.screen()


def test_esc_stops_the_turn_and_the_chat_goes_on(weft: WeftProgram, terminal: TmuxTerminal) -> None:
    terminal.start("-m", slow(weft), "go")
    terminal.wait_for("word word")
    terminal.keys("Escape")
    terminal.wait_for("■ Stopped")
    terminal.type("again")
    terminal.keys("Enter")
    terminal.wait_for("After that.")


def test_what_is_typed_while_it_works_waits_and_comes_back_when_it_is_stopped(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    terminal.start("-m", slow(weft), "go")
    terminal.wait_for("word word")
    terminal.type("one more thing")
    terminal.keys("Enter")
    terminal.wait_for("next   › one more thing")
    terminal.type("and a draft")
    terminal.keys("Escape")
    terminal.wait_for("■ Stopped", "› one more thing", "and a draft")
    terminal.wait_gone("next ")


def test_lines_can_be_many_and_pasted_and_recalled(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    model = weft.script(
        {"when": {"user_says": "a\nb\nc\nd\ne"}, "steps": [text("All five.")]}, "No."
    )
    terminal.start("-m", model)
    terminal.wait_for("›")
    terminal.type("a\\")
    terminal.keys("Enter")
    terminal.type("b")
    terminal.keys("M-Enter")
    terminal.type("c")
    terminal.keys("C-j")
    terminal.paste("d\ne")
    terminal.wait_for("› a\n  b\n  c\n  d\n  e")
    terminal.keys("Enter")
    terminal.wait_for("All five.")
    terminal.keys("Up")
    terminal.wait_for("\n› a\n  b\n  c\n  d\n  e")
    terminal.keys("C-c", "C-d")
    assert terminal.exit_code() == 0
    history = weft.data / "chat_history"
    assert history.stat().st_mode & 0o777 == 0o600
    assert "+e" in history.read_text()


def test_files_and_commands_are_completed(weft: WeftProgram, terminal: TmuxTerminal) -> None:
    (weft.project / "src").mkdir()
    (weft.project / "src" / "main.py").write_text("x")
    (weft.project / ".hidden.py").write_text("x")
    terminal.start("-m", weft.script("Seen."))
    terminal.wait_for("›")
    terminal.type("see @ma")
    terminal.wait_for("  src/main.py")
    terminal.keys("Tab")
    terminal.wait_for("› see @src/main.py")
    terminal.keys("Enter")
    terminal.wait_gone("  src/main.py\n")
    terminal.keys("Enter")
    terminal.wait_for("+ src/main.py", "Seen.")
    terminal.type("/cos")
    terminal.wait_for("/cost", "tokens and cost")
    terminal.keys("Tab", "Enter")
    terminal.wait_for("Tokens and cost")


def test_the_mode_is_shown_and_shift_tab_changes_it(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    terminal.start("-m", weft.script([call("write", path="a.txt", content="x")], "Done."))
    terminal.wait_for(" asks first ·")
    terminal.keys("BTab")
    terminal.wait_for(" edits allowed ·")
    terminal.type("go")
    terminal.keys("Enter")
    terminal.wait_for("● Created a.txt  1 line", "Done.")
    terminal.keys("BTab")
    terminal.wait_for(" plan only ·")


def test_a_session_is_picked_from_a_list(weft: WeftProgram, terminal: TmuxTerminal) -> None:
    for title in ("alpha", "beta", "gamma"):
        weft.run("-p", "-m", weft.script("One.", "Two."), "-n", title, f"about {title}")
    terminal.start("-r")
    terminal.wait_for("Resume · this folder", "type to filter · 1 of 3", "alpha", "beta", "gamma")
    terminal.type("bet")
    terminal.wait_gone("gamma")
    terminal.wait_for("/bet · 1 of 1", "❯ beta")
    terminal.keys("Enter")
    terminal.wait_for("› about beta", "One.")
    terminal.type("next")
    terminal.keys("Enter")
    terminal.wait_for("Two.")


def test_an_interrupted_turn_is_offered_again(weft: WeftProgram, terminal: TmuxTerminal) -> None:
    terminal.start("-m", slow(weft), "go")
    terminal.wait_for("word word")
    os.kill(terminal.pid(), signal.SIGKILL)
    assert terminal.exit_code() == 137
    terminal.again("-c")
    terminal.wait_for("The last turn was interrupted.", "1-2; Esc is no")
    terminal.keys("1")
    terminal.wait_for("word word", "Writing")
    terminal.keys("Escape")
    terminal.wait_for("■ Stopped")


@pytest.mark.parametrize("has_session", [True, False])
def test_what_was_typed_and_not_sent_is_there_again_after_a_kill(
    weft: WeftProgram, terminal: TmuxTerminal, has_session: bool
) -> None:
    terminal.start("-m", weft.script("Hello!", "Again!"))
    terminal.wait_for("asks first")
    if has_session:
        terminal.type("hi")
        terminal.keys("Enter")
        terminal.wait_for("Hello!")
    terminal.type("a long thought")
    terminal.keys("C-j")
    terminal.type("of two lines")
    terminal.wait_for("› a long thought\n  of two lines")
    drafts = weft.data / "input_drafts"
    wait_until(lambda: any(b"two lines" in each.read_bytes() for each in drafts.glob("*")))
    os.kill(terminal.pid(), signal.SIGKILL)
    terminal.exit_code()
    arguments = ("-c",) if has_session else ("-m", weft.script("Again!"))
    terminal.again(*arguments)
    terminal.wait_for("› a long thought\n  of two lines")
    terminal.keys("Enter")
    terminal.wait_for("Again!", "asks first")
    wait_until(lambda: all(not each.read_bytes()[2:] for each in drafts.glob("*")))
    terminal.keys("C-d")
    terminal.exit_code()
    assert list(drafts.iterdir()) == []


@pytest.mark.parametrize("width", [24, 40])
def test_a_narrow_window_is_enough(weft: WeftProgram, tmp_path: Path, width: int) -> None:
    terminal = TmuxTerminal(weft, tmp_path, width=width, height=24)
    try:
        terminal.start("-m", fixing(weft), "Fix it")
        terminal.wait_for("Edit calc.py", "2 +     return a + b", history=True)
        screen = terminal.wait_for("4 No")
        assert all(len(line) <= width for line in screen.split("\n"))
        terminal.wait_for(ASK[: width - 3])
        terminal.keys("1")
        terminal.wait_for("Run a command", "3 No", history=True)
        terminal.wait_for(ASK[: width - 3])
        terminal.keys("3")
        terminal.wait_for("What should it do")
        terminal.keys("Enter")
        terminal.wait_for("The test passes.")
    finally:
        terminal.close()


def test_a_window_may_change_its_size_while_something_is_said(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    terminal.start("-m", slow(weft), "go")
    terminal.wait_for("word word")
    for width, height in ((50, 20), (30, 10), (100, 30)):
        terminal.resize(width, height)
        terminal.wait_for("›", "Writing")
    terminal.keys("Escape")
    terminal.wait_for("■ Stopped", "›")


def test_without_colour_nothing_is_coloured(weft: WeftProgram, terminal: TmuxTerminal) -> None:
    terminal.start("-m", fixing(weft), "Fix it", NO_COLOR="1")
    terminal.wait_for("2 +     return a + b", ASK)
    coloured = terminal.screen(styles=True)
    assert not any(f"\x1b[{code}m" in coloured for code in (*range(30, 38), *range(90, 98)))
    terminal.keys("Escape")
    terminal.again("-m", fixing(weft), "Fix it")
    terminal.wait_for("2 +     return a + b", ASK)
    coloured = terminal.screen(styles=True)
    assert any(f"\x1b[{code}m" in coloured for code in range(30, 38)), "with colour, something is"


def test_foreign_escapes_do_nothing_to_a_real_terminal(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x1b[31m\x1b]52;c;QQ==\x07\u202etxet"
    answers = [[text(f"safe {evil} text", 3), call("shell", command=f"printf '%s' '{evil}'; true")]]
    terminal.start("-m", weft.script(*answers, "Done."), "go")
    screen = terminal.wait_for("Run a command", "<U+001B>]0;owned<U+0007>", "<U+202E>", ASK)
    assert "safe" in screen
    assert "text" in screen
    terminal.keys("1")
    terminal.wait_for("Done.")
    assert "owned" not in terminal._tmux("display-message", "-p", "-t", "main", "#{pane_title}")


def test_a_run_in_a_terminal_shows_text_as_it_comes_once_and_obeys_nothing(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    evil = "\x1b]0;owned\x07\x1b[31m"
    (weft.project / "a.txt").write_text("x")
    answers = [[text(f"First {evil}words.", 3), call("read", path="a.txt")]]
    terminal.start("-p", "-m", weft.script(*answers, [text("Last words.", 2)]), "go")
    assert terminal.exit_code() == 0
    assert terminal.wait_for("Last words.").split("\n")[:3] == ["First words.", "", "Last words."]
    terminal.again("-p", "-m", slow(weft), "go")
    terminal.wait_for("word word")
    terminal.keys("C-c")
    assert terminal.exit_code() == 130
    terminal.again("session", "show", weft.sessions()[1]["id"])
    assert terminal.exit_code() == 0
    terminal.wait_for("› go", "First words.", "● Read a.txt")


# --- the end, however it comes -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "code"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["SIGTERM", "SIGHUP"],
)
def test_a_signal_suspends_the_turn_and_puts_the_terminal_back(
    weft: WeftProgram, terminal: TmuxTerminal, sent: int, code: int
) -> None:
    terminal.start("-m", slow(weft), "go")
    terminal.wait_for("word word")
    assert "-echo" in terminal.tty()
    os.kill(terminal.pid(), sent)
    assert terminal.exit_code() == code
    assert " echo " in terminal.tty()
    assert " icanon" in terminal.tty()
    assert weft.sessions()[0]["turn_open"], "it goes on when the session is opened again"
    screen = terminal.screen()
    assert "word word" in screen, "what was said stays on the screen"
    assert "weft -r" in screen


def test_a_crash_inside_puts_the_terminal_back_and_is_one_sentence(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    """Planted: drawing fails, as no drawing should."""
    planted = weft.plant(
        "import weft.cli.chat.screens.terminal_screen as i\n"
        "def broken(*a, **k): raise RuntimeError('planted')\n"
        "i.status_row = broken\n"
    )
    terminal.start("-m", slow(weft), "go", **planted)
    assert terminal.exit_code() == 1
    screen = terminal.wait_for("something went wrong inside Weft (RuntimeError: planted)")
    assert "Traceback" not in screen
    assert " echo " in terminal.tty()
    assert "planted" in (weft.data / "weft.log").read_text()


def test_a_second_signal_puts_the_terminal_back_even_if_closing_hangs(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    """Planted: the screen never lets go, so nobody but the signal's own handler is left to
    tidy up.
    """
    planted = weft.plant(
        "import anyio, weft.cli.chat.screens.terminal_screen as t\n"
        "whole = t.TerminalScreen.run\n"
        "async def hang(self, *, task_status):\n"
        "    with anyio.CancelScope(shield=True):\n"
        "        await whole(self, task_status=task_status)\n"
        "t.TerminalScreen.run = hang\n"
        "t.TerminalScreen.close = lambda self: None\n"
    )
    terminal.start("-m", slow(weft), "go", **planted)
    terminal.wait_for("word word")
    pid = terminal.pid()
    os.kill(pid, signal.SIGTERM)
    with contextlib.suppress(ProcessLookupError):
        while Path(f"/proc/{pid}").exists():
            os.kill(pid, signal.SIGTERM)
    assert terminal.exit_code() == 143
    assert " echo " in terminal.tty()


def test_suspending_and_coming_back_keeps_the_draft(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    terminal.start_shell()
    terminal.wait_for("$")
    terminal.type(shlex.join(weft.argv("-m", weft.script("Hello."))))
    terminal.keys("Enter")
    terminal.wait_for("asks first ·")
    terminal.type("a draft")
    terminal.wait_for("› a draft")
    terminal.keys("C-z")
    terminal.wait_for("Stopped")
    terminal.type("fg")
    terminal.keys("Enter")
    terminal.wait_for("› a draft", "asks first ·")
    terminal.keys("Enter")
    terminal.wait_for("Hello.")


# --- terminals that cannot be drawn on ------------------------------------------------------------


@pytest.mark.parametrize("how", ["dumb", "--plain"])
def test_a_simple_terminal_gets_plain_lines(
    weft: WeftProgram, terminal: TmuxTerminal, how: str
) -> None:
    """A dumb terminal keeps the layout; `--plain` says everything in words, for screen readers."""
    flags = ["--plain"] if how == "--plain" else []
    terminal.start(*flags, "-m", fixing(weft), TERM="dumb" if how == "dumb" else "screen")
    terminal.wait_for("\nYou:" if flags else "\n>")
    terminal.type("Fix it")
    terminal.keys("Enter")
    change = "Added line 2: return a + b" if flags else "2 +     return a + b"
    screen = terminal.wait_for("Edit calc.py, +1", change, "4. No", "Type 1 to 4.")
    assert screen.count("Fix it") == 1, "what was typed is not repeated"
    terminal.keys("9", "Enter")
    terminal.wait_for("Type a number from 1 to 4")
    terminal.keys("1", "Enter")
    screen = terminal.wait_for("Run a command, in the sandbox", "Type 1 to 3.")
    assert "2. Yes, and again in this session: " in screen
    terminal.keys("3", "Enter")
    terminal.wait_for("What should it do instead?")
    terminal.type("no reason")
    terminal.keys("Enter")
    terminal.wait_for('— "no reason"', "The test passes.")
    screen = terminal.screen(styles=True)
    assert "\x1b" not in screen
    if flags:
        assert "Edited calc.py, 1 line added, 1 removed" in screen
        assert not any(mark in screen for mark in "●›·✗∴─")
    terminal.type("/context")
    terminal.keys("Enter")
    terminal.wait_for("Context")
    terminal.keys("C-d")
    assert terminal.exit_code() == 0
    assert "weft -r" in terminal.screen()


def test_a_resumed_conversation_is_read_before_the_next_line_is_asked_for(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    weft.run("-p", "-m", weft.script("Hello.", "Again."), "first")
    terminal.start("--plain", "-c")
    screen = terminal.wait_for("You: first\nWeft:\nHello.\n\nYou:")
    assert "You: You:" not in screen
    terminal.type("second")
    terminal.keys("Enter")
    screen = terminal.wait_for("second\nWeft:\nAgain.\n\nYou:")
    assert "You: You:" not in screen
    assert screen.count("second") == 1


def test_show_and_diff_say_all_in_words_where_nothing_is_drawn(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    (weft.project / "a.txt").write_text("old\n")
    rows = "".join(f"row {number}\n" for number in range(1, 46))
    steps = [
        [call("read", path="a.txt")],
        [call("write", path="a.txt", content=rows)],
        [call("shell", command="seq 1 12")],
        "Done.",
    ]
    terminal.start("--plain", "-m", weft.script(*steps), "--permission-mode", "bypass", "go")
    terminal.wait_for("7 more lines not shown.", "Done.", "Done in")
    terminal.type("/show")
    terminal.keys("Enter")
    terminal.wait_for("You: /show\nRan seq 1 12.\n1\n2\n3\n4\n5\n6\n7\n8", "\n12\n\nYou:")
    terminal.type("/show 2")
    terminal.keys("Enter")
    terminal.wait_for("/show 2", "Added line 45: row 45", history=True)
    terminal.type("/diff")
    terminal.keys("Enter")
    terminal.wait_for("You: /diff\nEdited a.txt", history=True)
    # What is said of this comes behind all of the change.
    terminal.type("/show 9")
    terminal.keys("Enter")
    screen = terminal.wait_for("Error:", history=True)
    shown = screen.partition("You: /diff")[2]
    assert shown.count("Added line ") == 45
    assert "@@" not in screen, "words, and not the notation of a diff"


def test_a_chat_says_at_its_start_which_thinking_level_is_used(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    info = {"provider": "scripted", "name": "m", "thinks": True, "levels": ["low", "high"]}
    terminal.start("--plain", "-m", weft.script("Hello.", info=info), "--effort", "off", "hi")
    screen = terminal.wait_for("Hello.")
    assert screen.count("cannot be switched off: it thinks at low") == 1


def test_ctrl_c_in_plain_lines_stops_the_turn_and_twice_leaves(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    terminal.start("--plain", "-m", slow(weft), "go")
    terminal.wait_for("You: go")
    terminal.keys("C-c")
    terminal.wait_for("Stopped")
    terminal.type("again")
    terminal.keys("Enter")
    terminal.wait_for("After that.\n\nYou:")
    terminal.keys("C-c")
    terminal.wait_for("Ctrl+C again quits")
    terminal.keys("C-c")
    assert terminal.exit_code() == 0


@pytest.mark.process
def test_what_is_switched_on_in_a_terminal_is_switched_off_again() -> None:
    """Among it what a bell and a paste need: focus reports and brackets."""
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    program = (
        "from weft.cli.chat.screens.terminal.terminal_device import TerminalDevice as Device\n"
        "device = Device(); device.enter(); device.leave()"
    )
    subprocess.run([sys.executable, "-c", program], stdin=theirs, stdout=theirs, check=True)
    written = os.read(ours, 4096).decode()
    switched_on = set(re.findall(r"\x1b\[\?(\d+)h", written.partition("\x1b[0m")[0]))
    assert switched_on == {"1004", "2004"}
    assert switched_on <= set(re.findall(r"\x1b\[\?(\d+)l", written))
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)
