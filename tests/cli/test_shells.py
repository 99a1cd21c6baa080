"""Several command lines on one session at once: each gets the answer to its own prompt, whoever has
the session, and however that one ends.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess

import anyio
import apsw
import pytest

from tests.support.weft_program import WeftProgram, lines, text
from weft.events import AnyFact, InputQueued, NewMessage, decode
from weft.store.sqlite import open_sqlite

pytestmark = pytest.mark.process


def echo(weft: WeftProgram, *names: str, pace_seconds: float = 0.0) -> str:
    """A model that answers "to NAME" to the prompt "NAME", and "goes on" to what was cut short."""
    answers = [
        {"when": {"user_says": name}, "steps": [text(f"to {name}", int(name == "slow"))]}
        for name in names
    ]
    return weft.script(*answers, "goes on", loop=True, pace_seconds=pace_seconds)


def begun(weft: WeftProgram, model: str) -> str:
    """The id of a session that has one turn."""
    first = weft.run("-p", "-m", model, "--output-format", "json", "first")
    assert first.returncode == 0, first.stderr
    session: str = json.loads(first.stdout)["session_id"]
    return session


def asked(
    weft: WeftProgram, session: str, model: str, prompt: str, *flags: str
) -> subprocess.Popen[bytes]:
    return weft.start("-p", "--resume", session, "-m", model, *flags, prompt)


def ended(running: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = running.communicate(timeout=60)
    return running.returncode, out.decode().strip(), err.decode()


def facts(weft: WeftProgram, session: str) -> list[AnyFact]:
    """What stands in the log."""

    async def read() -> list[AnyFact]:
        async with await open_sqlite(weft.data / "weft.db") as store:
            return [decode(record.body) for record in await store.read(session)]

    return anyio.run(read)


def said(weft: WeftProgram, session: str) -> list[str]:
    """What was said in the session."""
    return [each.node.text for each in facts(weft, session) if isinstance(each, NewMessage)]


def queued(weft: WeftProgram, session: str) -> int:
    """How many messages were ever queued."""
    return sum(isinstance(each, InputQueued) for each in facts(weft, session))


@pytest.mark.parametrize("count", [2, 5])
def test_command_lines_at_once_get_each_their_own_answer(weft: WeftProgram, count: int) -> None:
    names = [f"prompt {number}" for number in range(count)]
    model = echo(weft, "first", *names, pace_seconds=0.01)
    session = begun(weft, model)
    shells = {name: asked(weft, session, model, name) for name in names}
    for name, running in shells.items():
        assert ended(running) == (0, f"to {name}", "")
    found = said(weft, session)
    assert sorted(found) == sorted(
        each for name in ("first", *names) for each in (name, f"to {name}")
    )


def test_a_killed_command_line_leaves_its_prompt_and_its_guests_to_the_next(
    weft: WeftProgram,
) -> None:
    names = [f"prompt {number}" for number in range(3)]
    model = echo(weft, "first", "slow", *names, pace_seconds=1.0)
    session = begun(weft, model)
    flags = ("--output-format", "stream-json", "--include-partial-messages")
    owner = asked(weft, session, model, "slow", *flags)
    assert owner.stdout is not None
    while b'"text":"t"' not in owner.stdout.readline():
        pass
    guests = {name: asked(weft, session, model, name) for name in names}
    # Until they are accepted: their prompts stand in the log.
    while queued(weft, session) < len(names):
        assert all(each.poll() is None for each in guests.values())
    owner.kill()
    for name, running in guests.items():
        assert ended(running) == (0, f"to {name}", "")
    before = said(weft, session)[: -2 * len(names)]
    assert before[:3] == ["first", "to first", "slow"]
    # What had arrived of the answer is kept, and the answer goes on.
    assert "to slow".startswith(before[3])
    assert before[4:] == ["goes on"]
    found = said(weft, session)[-2 * len(names) :]
    assert sorted(found) == sorted(each for name in names for each in (name, f"to {name}"))


def suspend(weft: WeftProgram, running: subprocess.Popen[bytes]) -> None:
    """Stop a process while it holds no lock of the store."""
    db = apsw.Connection(str(weft.data / "weft.db"))
    db.set_busy_timeout(10_000)
    db.execute("begin immediate")
    try:
        os.kill(running.pid, signal.SIGSTOP)
        os.waitpid(running.pid, os.WUNTRACED)
    finally:
        db.execute("rollback")
        db.close()


def test_a_suspended_command_line_is_named(weft: WeftProgram) -> None:
    model = echo(weft, "first", "slow", "other", pace_seconds=0.5)
    session = begun(weft, model)
    flags = ("--output-format", "stream-json", "--include-partial-messages")
    owner = asked(weft, session, model, "slow", *flags)
    assert owner.stdout is not None
    while b"content_block_delta" not in owner.stdout.readline():
        pass
    suspend(weft, owner)
    try:
        code, out, err = ended(asked(weft, session, model, "other", "--output-format", "json"))
    finally:
        os.kill(owner.pid, signal.SIGCONT)
    assert code == 1
    assert f"open in process {owner.pid}" in err
    assert "suspended" in err
    [line] = lines(out)
    assert line["terminal_reason"] == "not_started"
    assert ended(owner)[0] == 0


STOPS_IN_A_COMMIT = """
import os, signal, sys
import importlib.abc

class AfterImport(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != "weft.store.sqlite.store":
            return None
        sys.meta_path.remove(self)
        import weft.store.sqlite.writer
        from weft import faults
        stop = lambda _: os.kill(os.getpid(), signal.SIGSTOP)
        faults.arm("store.sqlite.before_commit", at=3, action=stop)
        return None

sys.meta_path.insert(0, AfterImport())
"""
"""Suspends the process in its third commit, while it holds the store's write lock."""


def stopped_in_a_commit(weft: WeftProgram, session: str, model: str) -> subprocess.Popen[bytes]:
    """A command line that was suspended while it wrote, as Ctrl-Z does it once in a long while."""
    env = weft.plant(STOPS_IN_A_COMMIT)
    owner = weft.start("-p", "--resume", session, "-m", model, "slow", env=env)
    _, status = os.waitpid(owner.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    return owner


def test_a_command_line_that_is_suspended_while_it_writes_is_named(weft: WeftProgram) -> None:
    model = echo(weft, "first", "slow", "other")
    session = begun(weft, model)
    owner = stopped_in_a_commit(weft, session, model)
    try:
        guest = asked(weft, session, model, "other", "--output-format", "json")
        code, out, err = ended(guest)
    finally:
        os.kill(owner.pid, signal.SIGCONT)
    assert code == 1
    assert f"process {owner.pid}" in err
    assert "suspended" in err
    [line] = lines(out)
    assert line["terminal_reason"] == "not_started"
    assert ended(owner) == (0, "to slow", "")
    assert said(weft, session) == ["first", "to first", "slow", "to slow"]


def has_open(pid: int, path: str) -> bool:
    try:
        return any(
            os.readlink(f"/proc/{pid}/fd/{fd}") == path for fd in os.listdir(f"/proc/{pid}/fd")
        )
    except OSError:
        return False


def test_a_command_line_goes_on_when_the_one_that_holds_the_lock_wakes_up(
    weft: WeftProgram,
) -> None:
    model = echo(weft, "first", "slow", "other")
    session = begun(weft, model)
    owner = stopped_in_a_commit(weft, session, model)
    guest = asked(weft, session, model, "other")
    while not has_open(guest.pid, str(weft.data / "weft.db-shm")):
        assert guest.poll() is None
    os.kill(owner.pid, signal.SIGCONT)
    assert ended(owner) == (0, "to slow", "")
    assert ended(guest) == (0, "to other", "")


def test_a_turn_that_a_guest_waits_for_goes_on_though_another_prompt_comes_first(
    weft: WeftProgram,
) -> None:
    """The owner of a guest's turn is killed, and a third command line is quicker than the guest."""
    model = echo(weft, "first", "slow", "third", pace_seconds=0.5)
    session = begun(weft, model)
    streams = ("--input-format", "stream-json", "--output-format", "stream-json")
    # It has the session for as long as its input is open.
    owner = weft.start("-p", "-r", session, "-m", model, *streams, stdin=subprocess.PIPE)
    assert owner.stdout is not None
    assert b'"init"' in owner.stdout.readline()
    flags = ("--output-format", "stream-json", "--include-partial-messages")
    guest = asked(weft, session, model, "slow", *flags)
    assert guest.stdout is not None
    while b"content_block_delta" not in guest.stdout.readline():
        pass
    suspend(weft, guest)
    owner.kill()
    third = asked(weft, session, model, "third")
    assert ended(third) == (0, "to third", "")
    os.kill(guest.pid, signal.SIGCONT)
    code, out, _ = ended(guest)
    assert code == 0
    assert '"terminal_reason":"stop"' in out
    assert said(weft, session)[-2:] == ["third", "to third"]
