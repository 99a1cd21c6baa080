"""A Runner that tells what its commands changed, when they end and when they are cut short."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from weft.workspace import (
    ChangedFile,
    LocalRunner,
    LocalWorkspace,
    ProcessCommand,
    Runner,
    RunResult,
)
from weft.workspace.history.history import HistoryLimits
from weft.workspace.history.runner import WatchedRunner
from weft.workspace.history.shared_histories import histories_of

pytestmark = [pytest.mark.anyio, pytest.mark.process]


def watched(root: Path, *added: Path, folder: Path | None = None) -> WatchedRunner:
    histories = histories_of(
        str(root),
        [str(each) for each in added],
        folder=None if folder is None else str(folder),
        limits=HistoryLimits(),
    )
    return WatchedRunner(LocalRunner(os.environ), histories)


def bash(script: str, cwd: Path, *, only_reads: bool = False) -> ProcessCommand:
    return ProcessCommand(argv=("bash", "-c", script), cwd=str(cwd), only_reads=only_reads)


def told(result: RunResult) -> dict[str, str]:
    assert result.changes is not None
    return {change.path: change.action for change in result.changes}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "a.txt").write_text("one\n")
    return root


async def test_a_result_says_what_the_command_changed(root: Path) -> None:
    runner = watched(root)
    result = await runner.run(bash("echo 2 > a.txt; echo done", root))
    assert (result.output, told(result)) == ("done\n", {"a.txt": "modified"})
    assert told(await runner.run(bash("true", root))) == {}
    assert told(await runner.run(bash("cd src && touch x && exit 3", root))) == {"src/x": "created"}


async def test_a_command_of_ours_that_only_reads_is_not_looked_after(root: Path) -> None:
    runner = watched(root)
    assert (await runner.run(bash("cat a.txt", root, only_reads=True))).changes is None


async def test_a_runner_that_knows_better_is_believed(root: Path) -> None:
    exact = (ChangedFile(path="b", action="created"),)

    class Knowing(Runner):
        def knows_changes(self, command: ProcessCommand) -> bool:
            return True

        async def run(
            self, command: ProcessCommand, on_output: Callable[[str], None] | None = None
        ) -> RunResult:
            (root / "a.txt").write_text("by hand")
            return RunResult(exit_code=0, output="", changes=exact)

        def which(self, program: str, *, not_below: str = "") -> str | None:
            return None

    runner = WatchedRunner(Knowing(), histories_of(str(root), folder=None, limits=HistoryLimits()))
    assert (await runner.run(bash("true", root))).changes == exact


async def test_what_a_cancelled_command_had_changed_is_not_forgotten(root: Path) -> None:
    runner = watched(root)
    ready = anyio.Event()

    async def run() -> None:
        script = "echo half > a.txt; echo ready; sleep 60"
        await runner.run(bash(script, root), lambda chunk: ready.set())

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await ready.wait()
            group.cancel_scope.cancel()
    (change,) = runner.unreported_changes().changes
    assert (change.path, change.data_before, change.is_certain) == ("a.txt", b"one\n", True)
    assert runner.unreported_changes().changes == ()
    assert told(await runner.run(bash("echo 3 > a.txt", root))) == {"a.txt": "modified"}


async def test_a_flood_of_events_while_a_command_runs_loses_nothing(root: Path) -> None:
    runner = watched(root)
    script = "for i in {1..9000}; do : >> a.txt; : >> b.txt; done; echo x >> a.txt"
    result = await runner.run(bash(script, root))
    assert told(result) == {"a.txt": "modified", "b.txt": "created"}


async def test_folders_that_were_added_are_looked_after_under_their_whole_names(
    root: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    runner = watched(root, other, tmp_path)
    result = await runner.run(
        bash(f"echo 1 > a.txt; echo 2 > {other}/b; echo 3 > {tmp_path}/c", root)
    )
    assert told(result) == {
        "a.txt": "modified",
        f"{other}/b": "created",
        f"{tmp_path}/c": "created",
    }


async def test_sessions_of_one_process_share_what_is_known(root: Path) -> None:
    one, other = watched(root), watched(root)
    await one.run(bash("true", root))
    workspace = LocalWorkspace(str(root))
    started, go_on = anyio.Event(), root / "go-on"

    async def run() -> None:
        script = "echo started; while [ ! -e go-on ]; do sleep 0.01; done; echo x > mine"
        result = await one.run(bash(script, root), lambda chunk: started.set())
        assert told(result) == {"mine": "created", "go-on": "created"}

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await started.wait()
            state = await workspace.read("a.txt")
            await workspace.write("a.txt", b"through the door\n", expected=state.hash)
            go_on.touch()
    result = await other.run(bash("echo 3 > a.txt", root))
    assert result.changes is not None
    assert [change.data_before for change in result.changes] == [b"through the door\n"]


async def test_what_files_held_is_for_their_owner_alone(root: Path, tmp_path: Path) -> None:
    runner = watched(root, folder=tmp_path / "home" / "history")
    await runner.run(bash("true", root))
    folder = tmp_path / "home" / "history"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [file.stat().st_mode & 0o777 for file in folder.iterdir()] == [0o600]


async def test_what_no_one_holds_any_more_gives_the_kernels_queue_back(root: Path) -> None:
    def queues() -> int:
        found = 0
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):  # the one that lists them
                found += "inotify" in os.readlink(f"/proc/self/fd/{name}")
        return found

    gc.collect()
    before = queues()
    runner = watched(root)
    await runner.run(bash("true", root))
    if queues() == before:
        pytest.skip("the kernel has no queue left for this user")
    del runner
    gc.collect()
    assert queues() == before
