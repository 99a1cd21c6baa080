"""Programs: their end, their output, and that nothing of them stays."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from weft.errors import FinalToolError
from weft.workspace import LocalRunner, ProcessCommand, RunResult, kill_orphans
from weft.workspace.process.capture import HEAD_BYTES, LIVE_CHARACTERS, TAIL_BYTES, WHOLE_BYTES
from weft.workspace.process.command_keeper import COMMAND_KEEPER

pytestmark = [pytest.mark.anyio, pytest.mark.process]

RUNS = 200
EXECS = 200


@pytest.fixture(params=["keeper", "marks"])
def runner(request: pytest.FixtureRequest) -> LocalRunner:
    """With the environment of the tests."""
    return LocalRunner(os.environ, keeper=COMMAND_KEEPER if request.param == "keeper" else None)


@pytest.fixture
def unkept() -> LocalRunner:
    """Its commands are children of ours."""
    return LocalRunner(os.environ)


def bash(script: str, cwd: Path, timeout_seconds: float = 30.0) -> ProcessCommand:
    return ProcessCommand(
        argv=("bash", "-c", script), cwd=str(cwd), timeout_seconds=timeout_seconds
    )


def is_alive(pid: int) -> bool:
    """True unless it is gone or only waits to be reaped by someone else."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def children() -> set[int]:
    """Our processes that run, or wait to be reaped."""
    mine = str(os.getpid())
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if parent == mine:
            found.add(int(folder.name))
    return found


def pids(text: str) -> list[int]:
    return [int(word) for word in text.split() if word.isdigit()]


# --- the end
# ---------------------------------------------------------------------------------------


async def test_output_and_exit_code_come_back_in_order(runner: LocalRunner, tmp_path: Path) -> None:
    result = await runner.run(bash("echo one; echo two >&2; echo three; exit 3", tmp_path))
    assert (result.output, result.exit_code) == ("one\ntwo\nthree\n", 3)
    assert (result.truncated, result.timed_out, result.full_output) == (False, False, None)
    assert result.total_bytes == 14


async def test_it_runs_where_it_was_told_with_what_it_was_given(
    runner: LocalRunner, tmp_path: Path
) -> None:
    command = ProcessCommand(
        argv=("sh", "-c", 'pwd; echo "$ONE"; cat'),
        cwd=str(tmp_path),
        env={"ONE": "two"},
        stdin=b"x" * 300_000,
    )
    result = await runner.run(command)
    assert result.full_output == f"{tmp_path}\ntwo\n".encode() + b"x" * 300_000


async def test_there_is_no_input_and_no_terminal(runner: LocalRunner, tmp_path: Path) -> None:
    result = await runner.run(bash("cat; tty; (: </dev/tty) 2>/dev/null || echo none", tmp_path))
    assert result.output == "not a tty\nnone\n"


async def test_a_signal_shows_as_a_negative_code(runner: LocalRunner, tmp_path: Path) -> None:
    assert (await runner.run(bash("kill -SEGV $$", tmp_path))).exit_code == -signal.SIGSEGV


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (ProcessCommand(argv=("no-such-program",), cwd="/"), "no program 'no-such-program'"),
        (ProcessCommand(argv=("true",), cwd="/no/such/folder"), "no folder '/no/such/folder'"),
        (ProcessCommand(argv=("true", "a\0b"), cwd="/"), "NUL"),
        (ProcessCommand(argv=("true", "x" * 3_000_000), cwd="/"), "too long"),
        (ProcessCommand(argv=("/etc/hostname",), cwd="/"), "does not run"),
    ],
)
async def test_what_cannot_be_started_is_reported_in_words(
    runner: LocalRunner, command: ProcessCommand, words: str
) -> None:
    # The first command of all starts the keeper, whose descriptors stay.
    await runner.run(ProcessCommand(argv=("true",), cwd="/"))
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FinalToolError, match=words):
        await runner.run(command)
    assert len(os.listdir("/proc/self/fd")) == before


async def test_the_end_is_the_exit_and_not_the_end_of_the_pipe(
    runner: LocalRunner, tmp_path: Path
) -> None:
    with anyio.fail_after(20):
        result = await runner.run(bash("sleep 600 & echo $!", tmp_path))
    assert result.exit_code == 0
    assert not is_alive(*pids(result.output))


async def test_what_a_background_child_prints_right_after_the_exit_is_still_heard(
    runner: LocalRunner, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "gate")
    # The child's input ends when the command exits.
    script = "(cat gate; for i in 1 2 3; do echo late $i; done) & exec 3>gate"
    with anyio.fail_after(20):
        result = await runner.run(bash(script, tmp_path))
    assert result.output == "late 1\nlate 2\nlate 3\n"


# --- nothing stays
# -----------------------------------------------------------------------------------

ESCAPES = {
    "a session of its own": "setsid sleep 600 & echo $!",
    "a daemon": "(setsid sh -c 'sleep 600 & echo $!; sleep 600 & echo $!' &)",
    "another group": "set -m; sleep 600 & echo $!",
    "without its environment": "setsid bash -c 'env -i sleep 600 & echo $!; wait' & read -t 0.2 < "
    "<(:); sleep 0.2",
    "deaf to signals": "setsid bash -c 'trap \"\" TERM HUP INT; echo $$; sleep 600' & sleep 0.2",
    "no output": "setsid sleep 600 >/dev/null 2>&1 & echo $!",
    "another folder": "cd / && setsid nohup sleep 600 & echo $!",
}


@pytest.mark.parametrize("way", ESCAPES)
async def test_what_a_command_leaves_behind_is_gone_when_it_returns(
    runner: LocalRunner, tmp_path: Path, way: str
) -> None:
    with anyio.fail_after(20):
        result = await runner.run(bash(ESCAPES[way], tmp_path))
    started = pids(result.output)
    assert started
    assert not [pid for pid in started if is_alive(pid)]


async def test_the_processes_of_the_machine_are_listed_beside_the_loop(
    unkept: LocalRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[int] = []
    real = os.listdir

    def listdir(path: str) -> list[str]:
        if path == "/proc":
            listed.append(threading.get_ident())
        return real(path)

    monkeypatch.setattr(os, "listdir", listdir)
    await unkept.run(bash("setsid sleep 60 & echo $!", tmp_path))
    assert listed
    assert threading.get_ident() not in listed


async def test_a_process_that_does_nothing_but_exec_itself_is_killed(
    runner: LocalRunner, tmp_path: Path
) -> None:
    """In the middle of an exec a process has no environment, and so no mark, for an instant."""
    script = tmp_path / "again"
    script.write_text('#!/bin/sh\nexec "$0"\n')
    script.chmod(0o755)
    # One process per run: if a second one were found, the search would be repeated because of it.
    command = bash("setsid ./again >/dev/null 2>&1 & echo $!", tmp_path)
    for number in range(EXECS):
        [pid] = pids((await runner.run(command)).output)
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)
            pytest.fail(f"run {number + 1} left its process alive")


async def test_a_program_of_another_user_is_left_alone(runner: LocalRunner, tmp_path: Path) -> None:
    """Started after the command, so that it is among the suspects."""
    async with await anyio.open_process(["sleep", "600"]) as other:
        await runner.run(bash("setsid sleep 600 & sleep 0.01", tmp_path))
        assert is_alive(other.pid)
        other.kill()


async def test_two_commands_at_once_do_not_kill_each_other(
    runner: LocalRunner, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "gate")
    results: list[RunResult] = []

    async def first() -> None:
        results.append(
            await runner.run(bash("setsid sh -c 'read x < gate; echo alive' & wait", tmp_path))
        )

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(first)
            await runner.run(bash("setsid sleep 600 & true", tmp_path))
            await runner.run(bash("echo go > gate", tmp_path))
    assert results[0].output == "alive\n"


@pytest.mark.timeout(60)
async def test_nothing_adds_up_over_many_runs(runner: LocalRunner, tmp_path: Path) -> None:
    await runner.run(bash("setsid sleep 600 & true", tmp_path))
    before, others = len(os.listdir("/proc/self/fd")), children()
    for number in range(RUNS):
        await runner.run(bash(f"echo {number} | cat", tmp_path))
    assert len(os.listdir("/proc/self/fd")) == before
    assert children() == others


# --- time and cancelling
# -------------------------------------------------------------------------------


async def test_a_command_that_takes_too_long_may_clean_up_and_is_told_apart(
    runner: LocalRunner, tmp_path: Path
) -> None:
    script = "trap 'echo cleaned; exit 7' TERM; echo started; sleep 600 & wait"
    result = await runner.run(bash(script, tmp_path, timeout_seconds=0.5))
    assert (result.timed_out, result.exit_code, result.output) == (True, 7, "started\ncleaned\n")


async def test_a_command_that_will_not_end_is_killed(runner: LocalRunner, tmp_path: Path) -> None:
    script = "trap '' TERM; echo $$; while :; do sleep 600; done"
    with anyio.fail_after(20):
        result = await runner.run(bash(script, tmp_path, timeout_seconds=0.5))
    assert (result.timed_out, result.exit_code) == (True, -signal.SIGKILL)
    assert not is_alive(pids(result.output)[0])


async def cancelled_when_ready(
    run: Callable[[Callable[[str], None]], object], enough: str = "\n"
) -> list[int]:
    """Cancel a run as soon as it has printed something; returns the process numbers it printed."""
    ready = anyio.Event()
    printed: list[str] = []

    def on_output(text: str) -> None:
        printed.append(text)
        if enough in "".join(printed):
            ready.set()

    async def running() -> None:
        await run(on_output)  # type: ignore[misc]  # a coroutine function

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(running)
            await ready.wait()
            group.cancel_scope.cancel()
    return pids("".join(printed))


async def test_a_cancel_kills_everything_before_it_goes_on(
    runner: LocalRunner, tmp_path: Path
) -> None:
    others = children()
    script = "trap '' TERM; setsid sleep 600 & echo $$ $!; sleep 600; sleep 600"
    started = await cancelled_when_ready(lambda out: runner.run(bash(script, tmp_path), out))
    assert len(started) == 2
    assert not [pid for pid in started if is_alive(pid)]
    assert children() == others


async def test_a_cancel_leaves_no_descriptor_open(runner: LocalRunner, tmp_path: Path) -> None:
    # Enough output for a file beside the memory, which must be given back too.
    command = bash("seq 1 100000; sleep 600", tmp_path)
    await cancelled_when_ready(lambda out: runner.run(command, out), "\n40000\n")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await cancelled_when_ready(lambda out: runner.run(command, out), "\n40000\n")
    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_system_without_process_handles_works_too(
    unkept: LocalRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    result = await unkept.run(bash("echo hello; setsid sleep 600 & echo $!; exit 2", tmp_path))
    assert (result.output.split()[0], result.exit_code) == ("hello", 2)
    late = await unkept.run(bash("sleep 600", tmp_path, timeout_seconds=0.2))
    assert (late.timed_out, late.exit_code) == (True, -signal.SIGTERM)
    started = await cancelled_when_ready(
        lambda out: unkept.run(bash("echo $$; sleep 600", tmp_path), out)
    )
    assert not is_alive(started[0])


# --- output
# ----------------------------------------------------------------------------------------------


async def test_a_flood_is_kept_by_head_and_tail_and_up_to_the_cap(
    runner: LocalRunner, tmp_path: Path
) -> None:
    live: list[str] = []
    script = "echo first; yes | head -c 50000000; echo last"
    result = await runner.run(bash(script, tmp_path), live.append)
    assert result.truncated
    assert result.total_bytes == 50_000_011
    assert result.output.startswith("first\ny\n")
    assert result.output.endswith("y\nlast\n")
    assert f"{50_000_011 - HEAD_BYTES - TAIL_BYTES:,} bytes are not shown" in result.output
    assert len(result.output) < HEAD_BYTES + TAIL_BYTES + 100
    assert result.full_output is not None
    assert len(result.full_output) == WHOLE_BYTES
    assert sum(map(len, live)) < LIVE_CHARACTERS + 100
    assert "not shown while it runs" in live[-1]


async def test_output_that_is_no_text_is_made_text(runner: LocalRunner, tmp_path: Path) -> None:
    result = await runner.run(bash(r"printf 'a\xff\xc3\xa9\x00b'", tmp_path))
    assert result.output == "a\ufffdé\0b"


async def test_a_watcher_that_fails_does_no_harm(runner: LocalRunner, tmp_path: Path) -> None:
    def broken(text: str) -> None:
        raise RuntimeError("watcher")

    assert (await runner.run(bash("echo a; echo b", tmp_path), broken)).output == "a\nb\n"


async def test_the_loop_goes_on_while_a_program_floods(runner: LocalRunner, tmp_path: Path) -> None:
    turns = 0
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:

            async def flood() -> None:
                await runner.run(bash("yes | head -c 20000000", tmp_path))
                group.cancel_scope.cancel()

            group.start_soon(flood)
            while True:
                await anyio.lowlevel.checkpoint()
                turns += 1
                if turns > 1_000_000:
                    break
    assert turns > 100


# --- programs
# ----------------------------------------------------------------------------------------------


def test_a_program_of_the_project_is_not_taken_for_one_of_the_system(tmp_path: Path) -> None:
    own = tmp_path / "bin"
    own.mkdir()
    (own / "git").write_text("#!/bin/sh\n")
    (own / "git").chmod(0o755)
    runner = LocalRunner({"PATH": f"{own}:.:{os.environ['PATH']}"})
    assert runner.which("git") == str(own / "git")
    trusted = runner.which("git", not_below=str(tmp_path))
    assert trusted is not None
    assert not trusted.startswith(str(tmp_path))
    assert runner.which("no-such-program") is None


ORPHANING = """
import asyncio, os, sys
from weft.workspace import ProcessCommand, LocalRunner
def ready(text):
    print(text, end="", flush=True)
    os._exit(9)
command = ProcessCommand(argv=("bash", "-c", "setsid sleep 600 & sleep 600 & echo $$ $! $(jobs \
-p)"), cwd="/")
asyncio.run(LocalRunner(dict(os.environ)).run(command, ready))
"""


async def test_after_a_crash_the_orphans_are_found_and_those_of_the_living_are_not(
    runner: LocalRunner, tmp_path: Path
) -> None:
    died = await anyio.run_process(
        [sys.executable, "-c", ORPHANING + "\n"],
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert died.returncode == 9
    orphans = {pid for pid in pids(died.stdout.decode()) if is_alive(pid)}
    assert orphans

    async def sweep(on_output: Callable[[str], None]) -> None:
        await runner.run(bash("echo $$; sleep 600", tmp_path), on_output)

    swept = anyio.Event()
    mine: list[int] = []

    def on_output(text: str) -> None:
        mine.extend(pids(text))
        swept.set()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(sweep, on_output)
            await swept.wait()
            # How many it killed is not asked: tests beside this one sweep the same machine, and one
            # of them may have been first.
            await anyio.to_thread.run_sync(kill_orphans)
            assert not [pid for pid in orphans if is_alive(pid)]
            assert is_alive(mine[0])
            group.cancel_scope.cancel()
