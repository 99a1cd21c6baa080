"""Turns that begin together read the files of their prompt together, and each finds them as they
are when it begins.
"""

from __future__ import annotations

import threading
from pathlib import Path

import anyio
import pytest

from weft.project.system_prompt import ProjectTexts, SystemPromptWriter
from weft.runtime.turns.prompt_files import PromptReader

pytestmark = pytest.mark.anyio


class HeldWriter(SystemPromptWriter):
    """Reads the files at once, and ends each read only when it may."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "config", folder)
        self.begun = self.fails_at = 0
        self.may_end = threading.Semaphore(0)

    def texts(self, project: str) -> ProjectTexts:
        texts = super().texts(project)
        self.begun += 1
        if self.begun == self.fails_at:
            raise OSError("the disk is gone")
        assert self.may_end.acquire(timeout=30)
        return texts


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / "AGENTS.md").write_text("old")
    return tmp_path / "project"


async def begun(writer: HeldWriter, reads: int) -> None:
    with anyio.fail_after(30):
        while writer.begun < reads:
            await anyio.lowlevel.checkpoint()


async def test_all_that_wait_share_the_read_that_begins_after_they_asked(project: Path) -> None:
    writer = HeldWriter(project.parent)
    reader, found = PromptReader(writer), []

    async def read(name: str) -> None:
        found.append((name, (await reader.read(str(project), ())).instructions[-3:]))

    async with anyio.create_task_group() as group:
        group.start_soon(read, "first")
        await begun(writer, 1)
        # The first read has passed the file: those that ask from now on must see what it says now.
        (project / "AGENTS.md").write_text("new")
        for number in range(20):
            group.start_soon(read, f"{number}")
        await anyio.wait_all_tasks_blocked()
        writer.may_end.release(2)
    assert found[0] == ("first", "old")
    assert {text for _, text in found[1:]} == {"new"}
    assert len(found) == 21
    assert writer.begun == 2


async def test_all_that_shared_a_read_go_on_in_the_same_pass_of_the_loop(project: Path) -> None:
    writer = HeldWriter(project.parent)
    reader, passes, went_on = PromptReader(writer), 0, []

    async def read() -> None:
        await reader.read(str(project), ())
        went_on.append(passes)

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(read)
        await begun(writer, 1)
        writer.may_end.release(2)
        while len(went_on) < 20:
            await anyio.lowlevel.checkpoint()
            passes += 1
    # The first made a read alone; the pass of the loop is counted before or behind each of them.
    assert max(went_on[1:]) - min(went_on[1:]) <= 1


async def test_a_read_that_fails_is_made_again_by_the_next_in_line(project: Path) -> None:
    writer = HeldWriter(project.parent)
    reader, found, failed = PromptReader(writer), [], []

    async def read() -> None:
        try:
            found.append((await reader.read(str(project), ())).instructions[-3:])
        except OSError:
            failed.append(1)

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await begun(writer, 1)
        writer.fails_at = 2
        for _ in range(3):
            group.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        writer.may_end.release(3)
    assert (found, failed) == (["old"] * 3, [1])
    assert writer.begun == 3


async def test_one_that_is_cancelled_while_it_waits_holds_up_no_other(project: Path) -> None:
    writer = HeldWriter(project.parent)
    reader, found, scope = PromptReader(writer), [], anyio.CancelScope()

    async def read(name: str) -> None:
        await reader.read(str(project), ())
        found.append(name)

    async def cancelled() -> None:
        with scope:
            await read("cancelled")

    async with anyio.create_task_group() as group:
        group.start_soon(read, "first")
        await begun(writer, 1)
        group.start_soon(cancelled)
        group.start_soon(read, "last")
        await anyio.wait_all_tasks_blocked()
        scope.cancel()
        writer.may_end.release(2)
    assert found == ["first", "last"]


async def test_other_skills_and_other_projects_are_read_apart(project: Path) -> None:
    writer = HeldWriter(project.parent)
    reader = PromptReader(writer)
    writer.may_end.release(3)
    async with anyio.create_task_group() as group:
        group.start_soon(reader.read, str(project), ())
        group.start_soon(reader.read, str(project), ("bake",))
        group.start_soon(reader.read, str(project.parent), ())
    assert writer.begun == 3


async def test_nothing_is_kept_of_projects_that_no_turn_waits_for(project: Path) -> None:
    writer = HeldWriter(project.parent)
    reader = PromptReader(writer)
    writer.may_end.release()
    await reader.read(str(project), ())
    assert not reader._reads
