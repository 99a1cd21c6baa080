"""Commands that fill the disk are stopped while there is room."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import pytest

from tests.support.sandboxed_project import sandboxed_project
from weft.errors import RetryableToolError
from weft.workspace import ProcessCommand
from weft.workspace.process.disk_guard import FLOOR_BYTES, TAKEN_BYTES, DiskGuard, free_bytes
from weft.workspace.process.runner import LocalRunner

pytestmark = pytest.mark.anyio


class ShrinkingDisk:
    """A disk with so much less room at each look; the last number stays."""

    def __init__(self, *free: int) -> None:
        self._free = list(free)

    def free(self, folder: str) -> int:
        return self._free.pop(0) if len(self._free) > 1 else self._free[0]

    def guard(self, folders: Sequence[str], on_full: Callable[[], None]) -> DiskGuard:
        return DiskGuard(folders, on_full, free=self.free, every_seconds=0.01)


FILLING = (10 * FLOOR_BYTES, 2 * FLOOR_BYTES, FLOOR_BYTES // 2)
FULL_BEFORE = (FLOOR_BYTES // 2, FLOOR_BYTES // 2 - TAKEN_BYTES // 2)


async def looks(disk: ShrinkingDisk) -> bool:
    """Whether the guard has called before the disk stays as it is for a while."""
    full = anyio.Event()
    with disk.guard(["/"], full.set) as guard:
        with anyio.move_on_after(0.2):
            await full.wait()
    return guard.is_full


async def test_a_disk_that_fills_up_is_noticed_and_one_that_was_full_before_is_not() -> None:
    assert await looks(ShrinkingDisk(*FILLING))
    assert not await looks(ShrinkingDisk(*FULL_BEFORE))
    assert not await looks(ShrinkingDisk(10 * FLOOR_BYTES, FLOOR_BYTES + 1))


async def test_the_room_of_a_real_folder_is_known_and_an_unknown_one_stops_nothing(
    tmp_path: Path,
) -> None:
    assert 0 < free_bytes(str(tmp_path)) < 1 << 60
    assert free_bytes(str(tmp_path / "none")) > 1 << 60


@pytest.mark.process
async def test_a_command_that_fills_the_disk_is_stopped_and_told(tmp_path: Path) -> None:
    runner = LocalRunner(os.environ, disk_guard=ShrinkingDisk(*FILLING).guard)
    command = ProcessCommand(argv=("sleep", "600"), cwd=str(tmp_path), timeout_seconds=30)
    result = await runner.run(command)
    assert (result.exit_code, result.timed_out) == (-9, False)
    assert "the disk has less than 256 MiB left" in result.remarks[0]


@pytest.mark.process
async def test_what_a_sandboxed_command_filled_the_disk_with_is_thrown_away(tmp_path: Path) -> None:
    guard = ShrinkingDisk(*FILLING).guard
    async with sandboxed_project(tmp_path, disk_guard=guard) as there:
        with pytest.raises(RetryableToolError, match=r"less than 256 MiB left.*Nothing that it"):
            await there.shell("echo flood > flood; sleep 600")
        assert not (there.project / "flood").exists()
