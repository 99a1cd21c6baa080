"""Background process groups that stand still while commands run."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from weft.workspace.process import background_groups
from weft.workspace.process.background_groups import BackgroundGroups

pytestmark = [pytest.mark.anyio, pytest.mark.process]
SPIN = "while True: pass"


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is busy, in a group of its own."""
    process = subprocess.Popen([sys.executable, "-c", SPIN], process_group=0)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "T"


async def stops(pid: int) -> None:
    await anyio.to_thread.run_sync(os.waitid, os.P_PID, pid, os.WSTOPPED)


async def goes_on(pid: int) -> None:
    await anyio.to_thread.run_sync(os.waitid, os.P_PID, pid, os.WCONTINUED)


async def test_a_group_stands_still_for_a_command_and_goes_on_after_it(
    worker: subprocess.Popen[bytes],
) -> None:
    groups = BackgroundGroups()
    groups.add(worker.pid)
    with groups.standing_still():
        await stops(worker.pid)
        with groups.standing_still():
            pass
        assert is_stopped(worker.pid)  # the outer one still runs
    await goes_on(worker.pid)


async def test_the_gap_between_two_commands_is_not_worked_in(
    worker: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_groups, "PAUSE_SECONDS", 60.0)
    groups = BackgroundGroups()
    groups.add(worker.pid)
    with groups.standing_still():
        await stops(worker.pid)
    await anyio.lowlevel.checkpoint()
    assert is_stopped(worker.pid)
    with groups.standing_still():
        assert is_stopped(worker.pid)
    groups.remove(worker.pid)
    await goes_on(worker.pid)


async def test_a_long_command_shares_the_machine(
    worker: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_groups, "LONGEST_SECONDS", 0.01)
    monkeypatch.setattr(background_groups, "REST_SECONDS", 60.0)
    groups = BackgroundGroups()
    groups.add(worker.pid)
    with groups.standing_still():
        await goes_on(worker.pid)
        # It has a while to go on, whatever runs beside it.
        with groups.standing_still():
            assert not is_stopped(worker.pid)


async def test_one_that_is_let_go_is_stopped_no_more(worker: subprocess.Popen[bytes]) -> None:
    groups = BackgroundGroups()
    groups.add(worker.pid)
    with groups.standing_still():
        await stops(worker.pid)
        groups.remove(worker.pid)
        await goes_on(worker.pid)
    with groups.standing_still():
        assert not is_stopped(worker.pid)


PARENT = """
import asyncio, os, subprocess, sys
from weft.workspace.process.background_groups import BackgroundGroups

async def main():
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, process_group=0)
    groups = BackgroundGroups()
    groups.add(worker.pid)
    with groups.standing_still():
        print(worker.pid, flush=True)
        await asyncio.sleep(3600)

asyncio.run(main())
"""


@pytest.mark.parametrize("on_hangup", [signal.SIG_DFL, signal.SIG_IGN])
def test_a_stopped_group_does_not_outlive_its_parent(on_hangup: signal.Handlers) -> None:
    """The kernel ends it by a hang-up; under `nohup` it goes on, and sees that its input ended."""
    # In a session of its own, as a terminal's: only there can a group be left without a parent.
    command = [sys.executable, "-c", PARENT]
    before = signal.signal(signal.SIGHUP, on_hangup)
    try:
        parent = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    finally:
        signal.signal(signal.SIGHUP, before)
    with parent:
        assert parent.stdout is not None
        ended = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
    readable, _, _ = select.select([ended], [], [], 10)
    os.close(ended)
    assert readable
