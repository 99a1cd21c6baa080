"""A chat and runs with `-p` on one session at the same time, in a real terminal: every prompt that
was accepted is answered, to the one that gave it, whoever is killed or closed.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from tests.support.tmux_terminal import TmuxTerminal, needs_tmux
from tests.support.weft_program import WeftProgram, call, text
from weft.events import NewMessage, decode
from weft.store.sqlite import open_sqlite

pytestmark = [needs_tmux, pytest.mark.process]

SESSION = "ses_shared"
PARTIALS = ("--output-format", "stream-json", "--include-partial-messages")


@pytest.fixture
def window(weft: WeftProgram, tmp_path: Path) -> Iterator[TmuxTerminal]:
    """A terminal."""
    made = TmuxTerminal(weft, tmp_path, width=100, height=30)
    yield made
    made.close()


@pytest.fixture
def model(weft: WeftProgram) -> str:
    """A model that answers "to NAME" to "NAME", the slow ones letter by letter."""
    names = ("first", "slow run", "quick run", "slow chat", "quick chat")
    answers = [
        {"when": {"user_says": name}, "steps": [text(f"to {name}", int("slow" in name))]}
        for name in names
    ]
    made = weft.script(*answers, "and so on", loop=True, pace_seconds=0.3)
    done = weft.run("-p", "-m", made, "--session-id", SESSION, "first")
    assert done.returncode == 0, done.stderr
    return made


def run(weft: WeftProgram, model: str, prompt: str, *flags: str) -> subprocess.Popen[bytes]:
    return weft.start("-p", "-r", SESSION, "-m", model, *flags, prompt)


def until_it_answers(running: subprocess.Popen[bytes]) -> None:
    """Wait for the first piece of an answer."""
    assert running.stdout is not None
    while b"content_block_delta" not in running.stdout.readline():
        assert running.poll() is None


def ended(running: subprocess.Popen[bytes]) -> tuple[int, str]:
    out, err = running.communicate(timeout=60)
    return running.returncode, out.decode().strip() or err.decode().strip()


def said(weft: WeftProgram) -> list[str]:
    """What was said in the session, in the order of the log."""

    async def read() -> list[str]:
        async with await open_sqlite(weft.data / "weft.db") as store:
            facts = [decode(record.body) for record in await store.read(SESSION)]
        return [fact.node.text for fact in facts if isinstance(fact, NewMessage)]

    return anyio.run(read)


def chat(window: TmuxTerminal, model: str) -> None:
    window.start("-r", SESSION, "-m", model)
    window.wait_for("to first")


def type_line(window: TmuxTerminal, line: str) -> None:
    window.type(line)
    window.keys("Enter")


def until_answered(window: TmuxTerminal, answer: str) -> None:
    """Wait for the end of the turn: an answer is on the screen before it is in the log."""
    window.wait_for(answer)
    window.wait_gone("Esc stops")


def test_a_run_beside_a_chat_is_answered_and_so_is_the_chat(
    weft: WeftProgram, window: TmuxTerminal, model: str
) -> None:
    chat(window, model)
    assert ended(run(weft, model, "quick run")) == (0, "to quick run")
    window.wait_for("to quick run")
    type_line(window, "quick chat")
    until_answered(window, "to quick chat")
    assert said(weft)[2:] == ["quick run", "to quick run", "quick chat", "to quick chat"]


def test_what_is_typed_while_a_run_is_answered_has_an_answer_of_its_own(
    weft: WeftProgram, window: TmuxTerminal, model: str
) -> None:
    running = run(weft, model, "slow run")
    chat(window, model)
    window.wait_for("slow run")
    type_line(window, "quick chat")
    assert ended(running) == (0, "to slow run")
    until_answered(window, "to quick chat")
    assert said(weft)[2:] == ["slow run", "to slow run", "quick chat", "to quick chat"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_run_is_answered_when_the_chat_that_has_the_session_goes(
    weft: WeftProgram, window: TmuxTerminal, model: str, number: int
) -> None:
    chat(window, model)
    running = run(weft, model, "slow run", *PARTIALS)
    until_it_answers(running)
    os.kill(window.pid(), number)
    code, out = ended(running)
    assert code == 0
    assert '"terminal_reason":"stop"' in out
    # What had arrived of the answer is kept, and the answer goes on.
    found = said(weft)[2:]
    assert found[0] == "slow run"
    assert "to slow run".startswith(found[1])
    assert found[2:] == ["and so on"]


def test_a_run_is_answered_when_the_chat_that_has_the_session_is_left(
    weft: WeftProgram, window: TmuxTerminal, model: str
) -> None:
    chat(window, model)
    running = run(weft, model, "slow run", *PARTIALS)
    until_it_answers(running)
    type_line(window, "/quit")
    code, out = ended(running)
    assert code == 0
    assert '"terminal_reason":"stop"' in out
    assert window.exit_code() == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_chat_is_answered_when_the_run_that_has_the_session_goes(
    weft: WeftProgram, window: TmuxTerminal, model: str, number: int
) -> None:
    running = run(weft, model, "slow run", *PARTIALS)
    until_it_answers(running)
    chat(window, model)
    window.wait_for("slow run")
    type_line(window, "quick chat")
    window.wait_for("quick chat")
    running.send_signal(number)
    running.communicate()
    until_answered(window, "to quick chat")
    assert said(weft).count("quick chat") == 1
    assert said(weft).count("to quick chat") == 1


def test_steer_reaches_a_turn_of_another_process_at_once(
    weft: WeftProgram, window: TmuxTerminal, model: str
) -> None:
    running = run(weft, model, "slow run")
    chat(window, model)
    window.wait_for("slow run")
    type_line(window, "/steer quick chat")
    assert ended(running) == (0, "to quick chat")
    assert said(weft)[2:] == ["slow run", "to slow run", "quick chat", "to quick chat"]


def test_a_second_window_names_what_runs_and_takes_its_message_back_with_a_stop(
    weft: WeftProgram, window: TmuxTerminal, tmp_path: Path
) -> None:
    command = "until test -e go; do echo tick; sleep 0.1; done"
    work = {"when": {"user_says": "work"}, "steps": [call("shell", command=command)]}
    made = weft.script(work, "to first", loop=True)
    weft.run("-p", "-m", made, "--session-id", SESSION, "first")
    window.start("-r", SESSION, "-m", made, "--permission-mode", "bypass")
    window.wait_for("to first")
    type_line(window, "work")
    window.wait_for("Running until test", "Running 1 command", "tick")
    (tmp_path / "second").mkdir()
    second = TmuxTerminal(weft, tmp_path / "second", width=100, height=30)
    try:
        chat(second, made)
        second.wait_for("Running until test", "Running 1 command")
        type_line(second, "me too")
        second.wait_for("Esc stops and brings them back")
        second.keys("Escape")
        second.wait_gone("Esc stops")
        assert "› me too" in second.wait_for("■ Stopped.")
        window.wait_gone("Esc stops")
        assert "me too" not in said(weft)
    finally:
        second.close()


def test_a_run_that_waits_is_answered_when_the_chat_stops_its_turn(
    weft: WeftProgram, window: TmuxTerminal
) -> None:
    work = {"when": {"user_says": "work"}, "steps": [call("shell", command="sleep 1000")]}
    quick = {"when": {"user_says": "quick run"}, "steps": [text("to quick run")]}
    made = weft.script(work, quick, "to first", loop=True)
    weft.run("-p", "-m", made, "--session-id", SESSION, "first")
    window.start("-r", SESSION, "-m", made, "--permission-mode", "bypass")
    window.wait_for("to first")
    type_line(window, "work")
    window.wait_for("Running sleep")
    running = run(weft, made, "quick run")
    window.wait_for("› quick run")
    window.keys("Escape")
    assert ended(running) == (0, "to quick run")
    until_answered(window, "to quick run")


def test_a_stop_brings_back_the_messages_of_its_own_window_only(
    weft: WeftProgram, window: TmuxTerminal, tmp_path: Path
) -> None:
    work = {"when": {"user_says": "work"}, "steps": [call("shell", command="sleep 1000")]}
    theirs = {"when": {"user_says": "of the second"}, "steps": [text("to the second")]}
    made = weft.script(work, theirs, "to first", loop=True)
    weft.run("-p", "-m", made, "--session-id", SESSION, "first")
    window.start("-r", SESSION, "-m", made, "--permission-mode", "bypass")
    window.wait_for("to first")
    type_line(window, "work")
    window.wait_for("Running sleep")
    (tmp_path / "second").mkdir()
    second = TmuxTerminal(weft, tmp_path / "second", width=100, height=30)
    try:
        chat(second, made)
        second.wait_for("Running sleep")
        type_line(window, "of the first")
        window.wait_for("› of the first")
        type_line(second, "of the second")
        window.wait_for("› of the second")
        second.wait_for("› of the first")
        window.keys("Escape")
        until_answered(second, "to the second")
        screen = window.wait_for("■ Stopped", "to the second", "\n› of the first")
        assert screen.count("of the second") == 1, "it is in the record, not in this window's input"
        assert "of the first" not in second.screen()
    finally:
        second.close()
    assert said(weft)[-2:] == ["of the second", "to the second"]
