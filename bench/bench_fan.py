"""What a candidate of a fan-out costs: eight overlays over a repository of 20,000 files with 300 MB
of ignored dependencies, from the pinned base to a view in which commands run.

The floor is `git worktree add` of the same repository, without its dependencies, once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from bench.bench_history import make
from bench.scenes import run as run_async
from bench.table import Row
from weft.runtime.fan.base_files import make_base
from weft.runtime.fan.base_watch import BaseWatch
from weft.workspace import LocalRunner, ProcessCommand
from weft.workspace.sandbox.machine import ProcessSandbox
from weft.workspace.views.held_view import HeldView, ViewPlace

CANDIDATES = 8
LIMIT_MS, LIMIT_KB = 30.0, 1000.0
DEPENDENCIES = 300
"""Megabytes."""


def prepare(folder: Path) -> None:
    """The repository: committed, with one changed file and one new one."""
    make(folder)
    dependencies = folder / "node_modules"
    dependencies.mkdir()
    block = os.urandom(1024 * 1024)
    for number in range(DEPENDENCIES):
        (dependencies / f"{number}.bin").write_bytes(block)
    (folder / ".gitignore").write_text("node_modules\n")
    for args in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *who, *args], cwd=folder, check=True)
    (folder / "new.txt").write_text("new\n")


def kilobytes(folder: Path) -> float:
    """What lies on disk."""
    blocks = sum(path.lstat().st_blocks for path in folder.rglob("*"))
    return blocks * 512 / 1000


def worktree_ms(folder: Path, tree: Path) -> float:
    """How long git takes for a copy of what is committed."""
    begun = time.perf_counter()
    subprocess.run(["git", "worktree", "add", "-q", str(tree)], cwd=folder, check=True)
    return (time.perf_counter() - begun) * 1000


async def measure(base: Path) -> list[Row]:
    folder = base / "project"
    folder.mkdir()
    prepare(folder)
    os.sync()  # else the disk is still writing it when the measurement begins
    floor = worktree_ms(folder, base / "tree")
    runner = LocalRunner(dict(os.environ))
    sandbox = ProcessSandbox(environ=dict(os.environ), folder=str(base / "sandbox"))
    await sandbox.why_not((str(folder),))  # the keeper is started once a process
    place = f"{sandbox.scratch.base}/fans/fan_1"
    begun = time.perf_counter()
    pinned = await make_base(runner, str(folder), place, "now")
    watch = BaseWatch(pinned)
    await watch.start()
    pin_ms = (time.perf_counter() - begun) * 1000
    views = [
        HeldView(
            sandbox,
            root=str(folder),
            place=ViewPlace(folder=f"{place}/{number}"),
            pins=pinned.layers,
            objects=pinned.record.objects,
        )
        for number in range(CANDIDATES)
    ]
    try:
        begun = time.perf_counter()
        for view in views:
            await view.open()
            await watch.add(view)
        each_ms = (time.perf_counter() - begun) * 1000 / CANDIDATES
        command = ProcessCommand(argv=("/bin/sh", "-c", "cat new.txt"), cwd=str(folder))
        for view in views:
            result = await view.runner(runner).run(command)
            assert result.output == "new\n", result.output
        size = max(kilobytes(Path(view.place.folder)) for view in views)
    finally:
        watch.close()
        for view in views:
            await view.close()
        await sandbox.aclose()
    return [
        Row("base of a fan-out, pinned once", pin_ms, "ms"),
        Row("candidate of a fan-out", each_ms, "ms", floor=floor, limit=LIMIT_MS),
        Row("candidate of a fan-out, on disk", size, "kB", limit=LIMIT_KB),
    ]


def run() -> list[Row]:
    """All rows of this benchmark; none where this machine has no bubblewrap."""
    if shutil.which("bwrap") is None:
        return []
    base = Path(tempfile.mkdtemp(prefix="bench-fan-", dir="/var/tmp"))
    try:
        return run_async(lambda: measure(base))
    finally:
        shutil.rmtree(base, ignore_errors=True)
