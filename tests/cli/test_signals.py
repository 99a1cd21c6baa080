"""Signals: everything is settled, then the program ends with the code that says why."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import subprocess
import termios
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.weft_program import WeftProgram, call, lines, text
from weft.cli.signals import DEADLINE_SECONDS

HANGS = """
import os
import anyio
import weft.api.turn_waiter

async def hang(port, turn_id, reason):
    os.write(2, b"it hangs\\n")
    await anyio.sleep_forever()

weft.api.turn_waiter._abort = hang
"""
"""Planted: settling a turn never comes to an end."""

STUCK = """
import os
import time
import weft.api.turn_waiter

async def stick(port, turn_id, reason):
    os.write(2, b"it hangs\\n")
    while True:
        time.sleep(3600)

weft.api.turn_waiter._abort = stick
"""
"""Planted: what settles the turn holds up the event loop itself."""


IGNORES_HANG_UP = """
import signal
import weft.cli.signals

weft.cli.signals.SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""
"""Planted: the write to the closed terminal always comes before the signal."""


def started(
    weft: WeftProgram, model: str, *flags: str, env: dict[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """A run whose first line is out: the turn has begun."""
    running = weft.start(
        *("-p", "-m", model, "--output-format", "stream-json", "--include-partial-messages"),
        *flags,
        "hi",
        env=env,
    )
    assert running.stdout is not None
    while b"content_block_delta" not in running.stdout.readline():
        pass
    return running


def never_ending(weft: WeftProgram) -> str:
    return weft.script([text("word " * 50_000, 5)], pace_seconds=0.002)


@pytest.mark.parametrize(
    ("sent", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["SIGINT", "SIGTERM", "SIGHUP"],
)
def test_a_signal_settles_the_turn_and_ends_with_its_code(
    weft: WeftProgram, sent: int, code: int
) -> None:
    running = started(weft, never_ending(weft))
    running.send_signal(sent)
    stdout, stderr = running.communicate(timeout=5)
    assert running.returncode == code
    assert stderr == b""
    last = lines(stdout.decode().partition("\n")[2])[-1]
    assert (last["type"], last["terminal_reason"]) == ("result", "aborted")
    (session,) = weft.sessions()
    assert not session["turn_open"]
    shown = weft.run("session", "show", session["id"]).stdout
    assert "word" in shown, "what was said so far is kept"


def test_a_command_that_runs_is_killed_with_everything_it_started(weft: WeftProgram) -> None:
    """Found from outside by what they run: the command has no other way to be heard from in its
    sandbox.
    """
    seconds = f"9{uuid.uuid4().int % 10**12:012}"
    model = weft.script(
        [text("Go."), call("shell", command=f"sleep {seconds} & sleep {seconds}")], "Never."
    )
    running = started(weft, model, "--yolo")
    with deadline(20) as is_over:
        while count(seconds) < 2:
            assert running.poll() is None
            assert not is_over()
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=10)
    assert running.returncode == 143
    assert count(seconds) == 0


def count(seconds: str) -> int:
    """Living processes `sleep SECONDS`."""
    found = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found += (process / "cmdline").read_bytes() == f"sleep\0{seconds}\0".encode()
    return found


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[Callable[[], bool]]:
    until = time.monotonic() + seconds
    yield lambda: time.monotonic() > until


@pytest.mark.parametrize("fault", [HANGS, STUCK], ids=["hangs", "holds up the loop"])
def test_a_second_signal_ends_it_at_once_whatever_hangs(weft: WeftProgram, fault: str) -> None:
    running = started(weft, never_ending(weft), env=weft.plant(fault))
    begun = time.monotonic()
    running.send_signal(signal.SIGTERM)
    assert running.stderr is not None
    assert running.stderr.readline() == b"it hangs\n"
    while running.poll() is None:
        running.send_signal(signal.SIGTERM)
        assert time.monotonic() - begun < DEADLINE_SECONDS, "the second one was not heard"
    assert running.returncode == 143


@pytest.mark.parametrize("fault", [HANGS, STUCK], ids=["hangs", "holds up the loop"])
def test_one_signal_is_enough_in_the_end_whatever_hangs(weft: WeftProgram, fault: str) -> None:
    running = started(weft, never_ending(weft), env=weft.plant(fault))
    running.send_signal(signal.SIGTERM)
    _, stderr = running.communicate(timeout=DEADLINE_SECONDS + 10)
    assert (running.returncode, stderr) == (143, b"it hangs\n")


def test_an_interrupted_turn_goes_on_with_continue_and_no_prompt(weft: WeftProgram) -> None:
    """The program is killed outright, so the turn stays open; `-p -c` goes on with it."""
    model = weft.script(
        [text("Let me wait. " * 200, 5), call("read", path="a.txt")],
        *["And here is the end."] * 3,
        pace_seconds=0.001,
    )
    (weft.project / "a.txt").write_text("x")
    running = started(weft, model)
    running.kill()
    running.communicate(timeout=5)
    assert weft.sessions()[0]["turn_open"]
    done = weft.run("-p", "-c")
    assert (done.returncode, done.stdout) == (0, "And here is the end.\n")
    again = weft.run("-p", "-c")
    assert again.returncode == 2
    assert "nothing to continue" in again.stderr


def test_a_killed_session_is_listed_by_its_first_message(weft: WeftProgram) -> None:
    running = started(weft, never_ending(weft))
    running.kill()
    running.communicate(timeout=5)
    (row,) = weft.sessions()
    assert row["turn_open"]
    assert row["title"] == row["first_prompt"] != ""
    listed = weft.run("session", "list").stdout
    assert f"{row['title']} (interrupted)" in listed


@pytest.mark.process
def test_a_pipe_that_nobody_reads_leaves_no_empty_session(weft: WeftProgram) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    running = weft.start(
        "-p", "-m", weft.script("Hi."), "--output-format", "stream-json", "hi", stdout=writing
    )
    os.close(writing)
    assert running.wait(20) == 141
    assert weft.sessions() == []


@pytest.mark.process
@pytest.mark.parametrize("has_signal", [True, False])
def test_a_terminal_that_is_closed_in_mid_stream_exits_129(
    weft: WeftProgram, has_signal: bool
) -> None:
    """Whichever of the two comes first, the signal or the failing write: where the signal is
    ignored (`nohup`), the write alone.
    """
    ours, theirs = pty.openpty()

    def begin() -> None:
        os.setsid()
        fcntl.ioctl(1, termios.TIOCSCTTY, 0)
        if not has_signal:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

    model = never_ending(weft)
    planted = "" if has_signal else IGNORES_HANG_UP
    running = weft.start(
        "-p", "-m", model, "hi", stdout=theirs, preexec_fn=begin, env=weft.plant(planted)
    )
    os.close(theirs)
    assert b"word" in os.read(ours, 4096)
    os.close(ours)
    assert running.wait(20) == 129
    (session,) = weft.sessions()
    assert not session["turn_open"]
