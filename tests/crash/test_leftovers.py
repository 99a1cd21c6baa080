"""Commands that leave processes behind, in every run of the suite; and that the proof can fail."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from tests.crash import floods, leftovers
from weft.workspace import ProcessCommand, Runner, RunResult

pytestmark = [pytest.mark.anyio, pytest.mark.process, pytest.mark.timeout(90)]


async def test_nothing_is_left_of_commands_half_of_them_aborted(tmp_path: Path) -> None:
    found = await leftovers.prove(16, 3, tmp_path)
    assert found.wrong == []
    assert 0 < found.aborted < 16


class CarelessRunner(Runner):
    """Starts a command, and forgets what it has started."""

    def __init__(self) -> None:
        self.groups: list[int] = []

    def which(self, program: str, *, not_below: str = "") -> str | None:
        return program

    async def run(
        self, command: ProcessCommand, on_output: Callable[[str], None] | None = None
    ) -> RunResult:
        quiet = subprocess.DEVNULL
        made = await anyio.open_process(
            command.argv, cwd=command.cwd, stdin=quiet, stdout=quiet, stderr=quiet
        )
        with anyio.move_on_after(1):
            await made.wait()
        return RunResult(exit_code=0, output="")


async def test_the_proof_sees_what_a_careless_runner_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "GRACE_SECONDS", 0.1)
    monkeypatch.setattr(leftovers, "KINDS", ("setsid sleep {n} & exit 0",))
    work = leftovers.Leftovers(2)
    with anyio.move_on_after(20):
        while not work.wrong:
            await work.run(CarelessRunner(), tmp_path)
    assert "processes of" in work.wrong[0]
    number = work.wrong[0].partition("sleep ")[2].split()[0].encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if number in Path("/proc", name, "cmdline").read_bytes():
                os.kill(int(name), signal.SIGKILL)


async def test_a_flood_is_bounded_and_ends_at_once(tmp_path: Path) -> None:
    found = await floods.prove(2, 0.5, tmp_path)
    assert found.survivors == 0
    assert found.growth < floods.MOST_GROWTH


def test_a_flood_that_is_kept_or_goes_on_is_wrong() -> None:
    found = floods.FloodReport(growth=1 << 30, abort_seconds=2.0, survivors=3)
    assert found.wrong == ["1024 MiB more", "an abort took 2.00 s", "3 processes live"]
