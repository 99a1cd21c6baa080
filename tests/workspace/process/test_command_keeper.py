"""The keeper: nothing that a command started outlives it or us, whatever it does."""

from __future__ import annotations

import asyncio
import errno
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from weft.errors import RetryableToolError
from weft.workspace import LocalRunner, ProcessCommand, RunResult, kill_orphans
from weft.workspace.process import command_keeper, orphans
from weft.workspace.process.command_keeper import CommandKeeper
from weft.workspace.process.command_process import LOST
from weft.workspace.process.runner import NO_KEEPER

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PATIENCE_MS = 20_000
ESCAPE = (
    "import os, sys\n"
    "if os.fork(): os._exit(0)\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    "os.execve('/bin/sh', ['sh', '-c', 'echo $$; exec sleep 600'], {})\n"
)
"""A double fork, a session of its own, and no environment: no group and no mark leads to it."""


@pytest.fixture
def keeper() -> Iterator[CommandKeeper]:
    """One of its own for each test."""
    made = CommandKeeper()
    yield made
    pid = made.pid
    made.end()
    if pid:
        with suppress(ChildProcessError):  # reaped already
            os.waitpid(pid, 0)


@pytest.fixture
def runner(keeper: CommandKeeper) -> LocalRunner:
    return LocalRunner(os.environ, keeper=keeper)


def python(script: str, cwd: Path) -> ProcessCommand:
    return ProcessCommand(argv=(sys.executable, "-c", script), cwd=str(cwd), timeout_seconds=60)


def bash(script: str, cwd: Path) -> ProcessCommand:
    return ProcessCommand(argv=("bash", "-c", script), cwd=str(cwd), timeout_seconds=60)


def has_ended(handle: int) -> bool:
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    return bool(waiting.poll(PATIENCE_MS))


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def below(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def test_what_has_no_mark_and_no_parent_is_gone_when_a_command_returns(
    runner: LocalRunner, tmp_path: Path
) -> None:
    script = f'{sys.executable} -c "{ESCAPE}" | head -1; true'
    with anyio.fail_after(30):
        result = await runner.run(bash(script, tmp_path))
    assert result.exit_code == 0
    assert not is_alive(int(result.output))


async def test_commands_side_by_side_end_each_for_itself(
    runner: LocalRunner, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "gate")
    results: list[RunResult] = []

    async def first() -> None:
        results.append(
            await runner.run(
                bash("(env -i setsid sh -c 'read x < gate; echo on') & wait", tmp_path)
            )
        )

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(first)
            await runner.run(bash("env -i setsid sleep 600 & true", tmp_path))
            await runner.run(bash("echo go > gate", tmp_path))
    assert results[0].output == "on\n"


async def while_it_runs(
    runner: LocalRunner, command: ProcessCommand, act: Callable[[int], None]
) -> RunResult:
    """The result of a command that prints a number, and then is acted upon."""
    results: list[RunResult] = []
    ready = anyio.Event()
    printed: list[str] = []

    def on_output(text: str) -> None:
        printed.append(text)
        ready.set()

    async def run() -> None:
        results.append(await runner.run(command, on_output))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await ready.wait()
            act(int(printed[0].split()[0]))
    return results[0]


async def test_a_killed_keeper_ends_no_command_and_another_takes_its_place(
    runner: LocalRunner, keeper: CommandKeeper, tmp_path: Path
) -> None:
    killed: list[int] = []
    os.mkfifo(tmp_path / "gate")

    def kill(_: int) -> None:
        killed.append(keeper.pid)
        handle = os.pidfd_open(keeper.pid)
        os.kill(keeper.pid, signal.SIGKILL)
        assert has_ended(handle)
        os.close(handle)
        (tmp_path / "gate").write_text("go\n")

    result = await while_it_runs(runner, bash("echo $$; read x < gate; echo on", tmp_path), kill)
    assert result.output.endswith("on\n")
    # One after the other and two at once: the second needs a new reaper.
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(runner.run, bash("true", tmp_path))
    assert keeper.pid not in (0, *killed)


async def test_a_killed_reaper_ends_its_command_which_is_reported_as_interrupted(
    runner: LocalRunner, keeper: CommandKeeper, tmp_path: Path
) -> None:
    handles: list[int] = []

    def kill(stray: int) -> None:
        handles.append(os.pidfd_open(stray))
        [reaper] = below(keeper.pid)
        os.kill(reaper, signal.SIGKILL)

    script = f'{sys.executable} -c "{ESCAPE}"; sleep 600'
    result = await while_it_runs(runner, bash(script, tmp_path), kill)
    assert (result.exit_code, result.remarks) == (-signal.SIGKILL, (LOST,))
    assert has_ended(handles[0])
    os.close(handles[0])
    assert (await runner.run(bash("echo again", tmp_path))).output == "again\n"


async def test_a_command_whose_keeper_and_reaper_are_killed_is_found_by_its_mark(
    runner: LocalRunner, keeper: CommandKeeper, tmp_path: Path
) -> None:
    handles: list[int] = []

    def kill(marked: int) -> None:
        handles.append(os.pidfd_open(marked))
        reapers = below(keeper.pid)
        for pid in (keeper.pid, *reapers):
            os.kill(pid, signal.SIGKILL)

    result = await while_it_runs(runner, bash("echo $$; sleep 600", tmp_path), kill)
    assert result.remarks == (LOST,)
    assert has_ended(handles[0])
    os.close(handles[0])
    assert (await runner.run(bash("echo again", tmp_path))).output == "again\n"


async def test_a_keeper_that_does_not_start_leaves_the_marks_and_is_said_once(
    runner: LocalRunner, keeper: CommandKeeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_keeper, "PROGRAM", str(tmp_path / "none.py"))
    first = await runner.run(bash("setsid sleep 600 & echo $!", tmp_path))
    assert not is_alive(int(first.output))
    assert first.notes == (NO_KEEPER.format(keeper.why_not),)
    second = await runner.run(bash("true", tmp_path))
    assert second.notes == ()


async def test_a_command_that_only_reads_needs_no_keeper(
    runner: LocalRunner, keeper: CommandKeeper, tmp_path: Path
) -> None:
    command = ProcessCommand(argv=("true",), cwd=str(tmp_path), only_reads=True)
    assert (await runner.run(command)).notes == ()
    assert not keeper.pid


async def test_a_command_has_no_descriptor_but_its_three_and_no_signal_ignored(
    runner: LocalRunner, tmp_path: Path
) -> None:
    # No pipe: bash would have an end of it open while it lists.
    shown = await runner.run(bash("ls /proc/$$/fd; grep SigIgn /proc/$$/status", tmp_path))
    *fds, ignored = shown.output.splitlines()
    assert set(fds) <= {"0", "1", "2", "255"}
    # What we were started without, under `nohup` say, is for the command as well. Above 31 are
    # those that the C library keeps to itself.
    ours = Path("/proc/self/status").read_text().partition("SigIgn:")[2].split()[0]
    of_python = {signal.SIGPIPE, signal.SIGXFSZ}
    allowed = int(ours, 16) & ~sum(1 << (each - 1) for each in of_python)
    assert int(ignored.split()[1], 16) & 0x7FFFFFFF & ~allowed == 0


async def test_a_command_that_stops_its_reaper_ends_with_its_time(
    runner: LocalRunner, keeper: CommandKeeper, tmp_path: Path
) -> None:
    script = "kill -STOP $PPID; echo $$; sleep 600"
    printed: list[str] = []
    command = msgspec.structs.replace(bash(script, tmp_path), timeout_seconds=0.2)
    with anyio.fail_after(30):
        result = await runner.run(command, printed.append)
    assert result.timed_out
    assert not is_alive(int(printed[0]))
    assert (await runner.run(bash("echo again", tmp_path))).output == "again\n"


async def test_a_command_whose_reaper_is_killed_after_its_end_is_not_called_interrupted(
    runner: LocalRunner, keeper: CommandKeeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill = command_keeper.KeptProcess.kill

    def kill_its_reaper(kept: command_keeper.KeptProcess) -> None:
        [reaper] = below(keeper.pid)
        handle = os.pidfd_open(reaper)
        os.kill(reaper, signal.SIGKILL)
        assert has_ended(handle)
        os.close(handle)
        kill(kept)

    monkeypatch.setattr(command_keeper.KeptProcess, "kill", kill_its_reaper)
    with anyio.fail_after(30):
        result = await runner.run(bash("sleep 600 >/dev/null 2>&1 & exit 3", tmp_path))
    assert (result.exit_code, result.remarks) == (3, ())


async def test_a_command_of_a_program_that_blocks_the_signal_of_children_ends(
    runner: LocalRunner, tmp_path: Path
) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    try:
        with anyio.fail_after(20):
            assert (await runner.run(bash("echo on", tmp_path))).output == "on\n"
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


async def test_a_variable_without_a_name_keeps_no_command_from_running(
    keeper: CommandKeeper, tmp_path: Path
) -> None:
    runner = LocalRunner({**os.environ, "": "nameless"}, keeper=keeper)
    result = await runner.run(bash("echo on", tmp_path))
    assert (result.output, result.remarks) == ("on\n", ())


async def test_a_keeper_that_stands_still_costs_no_command_and_is_replaced_once(
    runner: LocalRunner, keeper: CommandKeeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "gate")
    results: list[RunResult] = []
    runs = anyio.Event()

    async def first() -> None:
        command = bash("echo $$; read x < gate; echo on", tmp_path)
        results.append(await runner.run(command, lambda text: runs.set()))

    async with anyio.create_task_group() as group:
        group.start_soon(first)
        with anyio.fail_after(30):
            await runs.wait()
        still = keeper.pid
        os.kill(still, signal.SIGSTOP)
        monkeypatch.setattr(command_keeper, "START_SECONDS", 0.5)
        async with anyio.create_task_group() as waiting:
            for _ in range(4):
                waiting.start_soon(runner.run, bash("true", tmp_path))
            await anyio.wait_all_tasks_blocked()
            monkeypatch.setattr(command_keeper, "START_SECONDS", 20.0)
        assert (keeper.pid not in (0, still), keeper.why_not) == (True, "")
        # It goes on, and finds what it was asked for meanwhile; what runs below it runs on.
        handle = os.pidfd_open(still)
        os.kill(still, signal.SIGCONT)
        (tmp_path / "gate").write_text("go\n")
    assert (results[0].output.splitlines()[1:], results[0].remarks) == (["on"], ())
    assert has_ended(handle)
    os.close(handle)


async def test_a_command_that_cannot_be_asked_for_leaves_nothing_at_its_reaper(
    runner: LocalRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await runner.run(bash("true", tmp_path))

    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    loop = asyncio.get_running_loop()
    listening: list[int] = []
    add = loop.add_reader

    def note(fd: int, *rest: Any) -> None:
        listening.append(fd)
        add(fd, *rest)

    monkeypatch.setattr(loop, "add_reader", note)
    with monkeypatch.context() as few:
        few.setattr(os, "memfd_create", refuse)
        with pytest.raises(RetryableToolError, match="open files"):
            await runner.run(bash("true", tmp_path))
    assert listening == []
    assert (await runner.run(bash("echo again", tmp_path))).output == "again\n"


OWNER = """
import asyncio, os, sys
from weft.workspace import ProcessCommand, LocalRunner
from weft.workspace.process.command_keeper import COMMAND_KEEPER
def ready(text):
    print(text, end="", flush=True)
async def main(script, cwd):
    runner = LocalRunner(dict(os.environ), keeper=COMMAND_KEEPER)
    command = ProcessCommand(argv=("bash", "-c", script), cwd=cwd)
    await runner.run(ProcessCommand(argv=("true",), cwd=cwd))
    if os.environ.get("FORKED"):
        # As `subprocess` or a program's own C code may: no hook of Python's runs in the copy.
        import ctypes, time
        child = ctypes.CDLL(None).fork()
        if not child:
            time.sleep(600)
        print(child, flush=True)
    await runner.run(command, ready)
asyncio.run(main(*sys.argv[1:]))
"""


@contextmanager
def owner(script: str, cwd: Path, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of ours that runs a command."""
    started = subprocess.Popen(
        [sys.executable, "-c", OWNER, script, str(cwd)],
        stdout=subprocess.PIPE,
        env={**os.environ, **environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert started.stdout is not None
    try:
        yield started
    finally:
        started.kill()
        started.wait()
        started.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_nothing_of_a_command_outlives_us(tmp_path: Path, number: signal.Signals) -> None:
    script = f'echo $$; {sys.executable} -c "{ESCAPE}"; setsid sleep 600 & sleep 600'
    with owner(script, tmp_path) as process:
        assert process.stdout is not None
        pids = [int(process.stdout.readline()) for _ in range(2)]
        handles = [os.pidfd_open(pid) for pid in pids]
        process.send_signal(number)
        assert all(map(has_ended, handles))
    for handle in handles:
        os.close(handle)


def test_a_copy_of_our_process_does_not_keep_our_commands_alive(tmp_path: Path) -> None:
    with owner("echo $$; sleep 600", tmp_path, FORKED="1") as process:
        assert process.stdout is not None
        copy, command = (int(process.stdout.readline()) for _ in range(2))
        handle = os.pidfd_open(command)
        process.kill()
        assert has_ended(handle)
        os.close(handle)
        assert is_alive(copy)
        os.kill(copy, signal.SIGKILL)


def test_orphans_are_looked_for_when_the_keeper_of_the_dead_has_done_its_work(
    tmp_path: Path,
) -> None:
    script = f'{sys.executable} -c "{ESCAPE}"; sleep 600'
    with owner(script, tmp_path) as process:
        assert process.stdout is not None
        stray = int(process.stdout.readline())
        process.kill()
        process.wait()
        kill_orphans()
        assert not is_alive(stray)


@pytest.mark.parametrize(
    "value", [b"\xff", "{}.².1".encode(), b"{}.%s.1" % (b"1" * 5000)], ids=["byte", "power", "long"]
)
def test_a_process_that_only_claims_to_be_a_keeper_costs_no_start(value: bytes) -> None:
    space = orphans.owner().partition(".")[0].encode()
    claimed = {orphans.KEEPER.encode(): value.replace(b"{}", space)}
    with subprocess.Popen(["sleep", "600"], env=claimed) as stranger:
        try:
            kill_orphans()
        finally:
            stranger.kill()
