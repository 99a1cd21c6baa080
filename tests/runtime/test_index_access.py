"""Access to indexes: one indexer at a time, which is waited for, and replaced when it ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import anyio
import anyio.lowlevel
import pytest

from weft.config.paths import WeftPaths, places
from weft.errors import RetryableToolError
from weft.repo.indexer_order import FileChanges
from weft.repo.indexer_process import take_lock
from weft.runtime.index_access import IndexAccess

pytestmark = [pytest.mark.anyio, pytest.mark.process]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "cart.py").write_text("def total(): ...\n")
    return tmp_path / "p"


@pytest.fixture
def paths(tmp_path: Path) -> WeftPaths:
    return places({"HOME": str(tmp_path), "WEFT_HOME": str(tmp_path / "home")})


@pytest.fixture
def access(paths: WeftPaths) -> Iterator[IndexAccess]:
    access = IndexAccess(paths, os.environ)
    yield access
    access.close()


def children() -> set[int]:
    """Processes that were started here and not waited for."""
    tasks = Path("/proc/self/task").iterdir()
    return {int(pid) for task in tasks for pid in (task / "children").read_text().split()}


@pytest.fixture
def earlier() -> set[int]:
    """Those of tests before this one: the keeper of commands stays as long as the process."""
    return children()


async def test_an_update_that_runs_is_waited_for_and_nothing_is_left_of_it(
    access: IndexAccess, project: Path, earlier: set[int]
) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for number in range(3):
        (project / f"m{number}.py").write_text(f"def name_{number}(): ...\n")
        access.start_update(str(project))
        reader = await access.ready(str(project))
        assert reader.outline(f"m{number}.py")
        reader.close()
    assert children() <= earlier
    assert len(os.listdir("/proc/self/fd")) == before


async def test_threads_that_start_updates_at_once_leave_nothing_behind(
    access: IndexAccess, project: Path, earlier: set[int]
) -> None:
    threads = [Thread(target=access.start_update, args=(str(project),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (await access.ready(str(project))).outline("cart.py")
    assert children() <= earlier


async def test_an_indexer_that_another_part_has_waited_for_has_ended(
    access: IndexAccess, project: Path
) -> None:
    access.start_update(str(project))
    (indexer,) = access._indexers.values()
    os.waitpid(indexer.pid, 0)  # noqa: ASYNC222  # nothing else runs here
    assert not indexer.is_running()
    assert (await access.ready(str(project))).outline("cart.py")


async def test_a_wait_for_an_index_can_be_cancelled(
    access: IndexAccess, project: Path, paths: WeftPaths
) -> None:
    lock = take_lock(paths.index_of(str(project)))
    assert lock is not None
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(access.ready, str(project))
            while not access._indexers:
                await anyio.lowlevel.checkpoint()
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
    os.close(lock)
    with anyio.fail_after(30):
        assert (await access.ready(str(project))).outline("cart.py")


async def test_an_index_that_takes_too_long_is_not_waited_for_and_is_made_all_the_same(
    access: IndexAccess, project: Path, paths: WeftPaths
) -> None:
    lock = take_lock(paths.index_of(str(project)))
    assert lock is not None
    with pytest.raises(RetryableToolError, match=r"still being made.*use grep"):
        await access.ready(str(project), seconds=0.01)
    os.close(lock)
    with anyio.fail_after(30):
        assert (await access.ready(str(project))).outline("cart.py")


async def test_a_watcher_that_is_killed_is_replaced_and_anything_may_have_changed(
    access: IndexAccess, project: Path, earlier: set[int]
) -> None:
    send, told = anyio.create_memory_object_stream[FileChanges](100)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group, send, told:
            group.start_soon(access.watch, str(project), send.send_nowait)
            assert await told.receive() == FileChanges()
            first = access._watcher
            assert first is not None
            os.kill(first.pid, signal.SIGKILL)
            assert await told.receive() == FileChanges(is_partial=True)
            (project / "cart.py").write_text("def basket(): ...\n")
            assert (await told.receive()).modified == ("cart.py",)
            group.cancel_scope.cancel()
    for pid in children() - earlier:  # it was told to finish
        os.waitpid(pid, 0)  # noqa: ASYNC222


def test_an_indexer_that_cannot_be_started_leaves_nothing_open(
    access: IndexAccess, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr("sys.executable", "/nonexistent/python")
    with pytest.raises(FileNotFoundError):
        access.start_update(str(project))
    assert len(os.listdir("/proc/self/fd")) == before
