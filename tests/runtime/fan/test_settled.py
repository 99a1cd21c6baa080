"""What the next start finds of fan-outs whose process died: all of it settled, by any start."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.fan_stage import (
    CONFIG,
    RIGHT,
    WRONG,
    make_stage,
    open_stage,
    right,
)
from tests.support.world import PATIENCE, World
from weft.errors import UsageError
from weft.runtime.fan.fan_marks import FanMark, marked
from weft.runtime.fan.fan_places import FanPlaces
from weft.runtime.fan.kept_candidate import CandidateKeeper

pytestmark = [pytest.mark.anyio, pytest.mark.process, pytest.mark.timeout(90)]


@pytest.fixture
def stage(tmp_path: Path) -> World:
    made = World("sqlite", tmp_path)
    make_stage(made)
    return made


@asynccontextmanager
async def cut_off_keep(stage: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """A fan-out whose process died while a candidate was put into the project; gives its id."""
    async with open_stage(stage, right("script")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 1)
        with anyio.fail_after(PATIENCE):
            await fan.wait()

        async def lost(*args: Any, **named: Any) -> Any:
            raise UsageError("the process died before it was on record")

        monkeypatch.setattr(CandidateKeeper, "record", lost)
        with pytest.raises(UsageError, match="died"):
            await fan.keep(1)
        monkeypatch.undo()
        (folder,) = (stage.base / "sandbox").glob("[0-9]*-*")
        kept = folder.with_name(f"1-{folder.name.partition('-')[2]}")
        shutil.copytree(folder, kept, symlinks=True, ignore=lambda *_: {"tmp", "var-tmp"})
        checks = stage.base / "sandbox" / "fans" / fan.id / "verify-1-candidate-1"
        checks.mkdir()
    yield fan.id
    assert not checks.exists()
    assert not any((stage.base / "fans" / "unsettled").iterdir())


@pytest.mark.parametrize("store", ["weft.db", "other.db"])
@pytest.mark.parametrize("sandbox", ["on", "off"])
async def test_a_keep_that_was_cut_off_is_on_record_after_any_start_on_the_project(
    stage: World, monkeypatch: pytest.MonkeyPatch, store: str, sandbox: str
) -> None:
    async with cut_off_keep(stage, monkeypatch) as fan_id:
        config = {**CONFIG, "sandbox.mode": sandbox}
        async with stage.open(right("script"), store=stage.base / store, config=config) as app:
            assert not app.host.registry.ports
    async with open_stage(stage, right("script")) as app:
        fan = await app.fan(fan_id)
        assert fan.candidates()[0].state == "kept"
        session = await app.sessions.get(fan.session_id)
        assert len(await session.messages()) == 2
        assert stage.read("src/add.py") == RIGHT
        await session.rewind(None)
        assert stage.read("src/add.py") == WRONG


def test_a_start_without_marks_loads_nothing_of_fan_outs(stage: World) -> None:
    line = (
        "import anyio, sys, weft\n"
        "async def main():\n"
        f"    async with weft.open({str(stage.project)!r}, 'memory'): pass\n"
        "anyio.run(main)\n"
        "print([name for name in sys.modules if 'fan' in name.rpartition('weft.')[2]])\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", line],
        env={**os.environ, **stage.environ},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == "[]\n"


async def test_what_was_never_put_on_record_is_removed(stage: World) -> None:
    folder = stage.base / "sandbox" / "fans" / "fan_x"
    (folder / "pin").mkdir(parents=True)
    mark = FanMark(str(stage.base / "fans" / "unsettled"), "fan_x")
    mark.set()
    async with open_stage(stage, right("script")):
        assert folder.exists()  # its process lives
    mark.leave()
    async with open_stage(stage, right("script")):
        assert not folder.exists()
    assert not marked(str(stage.base / "fans" / "unsettled"))


def test_what_a_program_still_writes_is_removed_when_it_is_done(tmp_path: Path) -> None:
    places = FanPlaces(lambda: None, str(tmp_path))
    place = tmp_path / "fans" / "fan_1" / ".git-x"
    place.mkdir(parents=True)
    line = f"cd {place.parent}; for i in $(seq 300); do mkdir -p .git-x; echo > .git-x/$i; done"
    writer = subprocess.Popen(["/bin/sh", "-c", f"{line} 2> /dev/null"])
    try:
        assert places.clear_checks("fan_1") or writer.poll() is None
        writer.wait()
        assert places.clear_checks("fan_1")
        assert not place.exists()
    finally:
        writer.kill()


def test_a_mark_whose_process_is_gone_is_waited_for_and_that_of_a_living_one_is_not(
    tmp_path: Path,
) -> None:
    mark = FanMark(str(tmp_path), "fan_1")
    mark.set()
    assert not FanMark(str(tmp_path), "fan_1").take_from_dead()
    gone = subprocess.Popen(["true"])
    gone.wait()
    (tmp_path / "fan_1").write_text(str(gone.pid))
    with ThreadPoolExecutor(1) as pool:
        # The lock is held by something else for now, as by a child that is being started.
        taken = pool.submit(FanMark(str(tmp_path), "fan_1").take_from_dead)
        mark.leave()
        assert taken.result()


async def test_who_goes_on_with_a_fan_out_waits_until_a_start_has_settled_it(
    tmp_path: Path,
) -> None:
    old = FanMark(str(tmp_path), "fan_1")
    old.set()
    old.leave()
    start, mine = FanMark(str(tmp_path), "fan_1"), FanMark(str(tmp_path), "fan_1")
    assert start.take()
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(mine.set)
        with pytest.raises(TimeoutError):
            held.result(0.2)
        start.clear()
        held.result(PATIENCE)
    assert not FanMark(str(tmp_path), "fan_1").take()
    mine.leave()
    assert start.take()


def test_a_mark_that_a_start_takes_before_it_is_held_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fcntl.flock
    starts = [FanMark(str(tmp_path), "fan_1")]

    def flock(fd: int, how: int) -> None:
        if starts:
            # Another process starts between the making of the mark and its lock.
            start = starts.pop()
            assert start.take()
            start.clear()
        whole(fd, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    mark = FanMark(str(tmp_path), "fan_1")
    mark.set()
    assert [path.name for path in tmp_path.iterdir()] == ["fan_1"]
    assert not FanMark(str(tmp_path), "fan_1").take()
    mark.clear()
    assert not any(tmp_path.iterdir())


async def test_a_mark_stays_for_the_next_start_where_the_work_fails(tmp_path: Path) -> None:
    mark = FanMark(str(tmp_path), "fan_1")
    async with mark.held(), mark.held():
        assert not FanMark(str(tmp_path), "fan_1").take()
    assert not any(tmp_path.iterdir())
    with pytest.raises(ValueError, match="broken"):
        async with mark.held():
            raise ValueError("broken")
    assert not any(tmp_path.iterdir())
    with pytest.raises(ValueError, match="broken"):
        async with mark.held(stays=True):
            raise ValueError("broken")
    (again,) = marked(str(tmp_path))
    assert again.take()
    again.clear()
    assert not again.take()
