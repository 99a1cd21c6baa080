"""A git project with dependencies, and candidates' views over it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from weft.runtime.fan.base_files import BaseFiles, BaseKind, make_base
from weft.workspace import LocalRunner, ProcessCommand
from weft.workspace.sandbox.machine import ProcessSandbox, SandboxOptions
from weft.workspace.views.held_view import HeldView, ViewPlace

IDENTITY = ("-c", "user.name=A", "-c", "user.email=a@example.org")


def git(project: Path, *args: str) -> str:
    """Call git as the user would."""
    done = subprocess.run(
        ["git", *IDENTITY, *args], cwd=project, check=True, capture_output=True, text=True
    )
    return done.stdout


def make_fan_project(folder: Path) -> Path:
    """Tracked, changed, new, removed, ignored and secret files; and a branch to switch to."""
    project = folder / "project"
    (project / "src").mkdir(parents=True)
    (project / "node_modules").mkdir()
    for name in ("one", "two", "three", "four"):
        (project / "src" / f"{name}.txt").write_text(f"{name}\n")
    (project / ".gitignore").write_text("node_modules\n.env\n")
    (project / "node_modules" / "dependency.js").write_text("dependency\n")
    (project / ".env").write_text("KEY=secret\n")
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    git(project, "checkout", "-qb", "other")
    (project / "src" / "three.txt").write_text("of the other branch\n")
    (project / "other.txt").write_text("only there\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "second")
    git(project, "checkout", "-q", "main")
    (project / "src" / "one.txt").write_text("one\nchanged\n")
    (project / "new.txt").write_text("new\n")
    (project / "src" / "four.txt").unlink()
    return project


class ViewedProject(msgspec.Struct, frozen=True, kw_only=True):
    """A project, its base, and as many views as were asked for."""

    project: Path
    base: BaseFiles
    views: list[HeldView]
    runner: LocalRunner

    async def shell(self, number: int, line: str, *, seconds: float = 20.0) -> tuple[int, str]:
        """Run a command line in a view."""
        command = ProcessCommand(
            argv=("/bin/sh", "-c", line), cwd=str(self.project), timeout_seconds=seconds
        )
        result = await self.views[number].runner(self.runner).run(command)
        return result.exit_code, result.output


@asynccontextmanager
async def viewed_project(
    folder: Path, *, views: int = 1, kind: BaseKind = "now", network: bool = False
) -> AsyncIterator[ViewedProject]:
    """The project with its base pinned, and views over it."""
    project = make_fan_project(folder)
    runner = LocalRunner(dict(os.environ))
    sandbox = ProcessSandbox(
        environ=dict(os.environ),
        folder=str(folder / "sandbox"),
        options=SandboxOptions(network=network),
    )
    place = f"{sandbox.scratch.base}/fans/fan_1"
    base = await make_base(runner, str(project), place, kind)
    made = [
        HeldView(
            sandbox,
            root=str(project),
            place=ViewPlace(folder=f"{place}/{number}"),
            pins=base.layers,
            objects=base.record.objects,
        )
        for number in range(views)
    ]
    try:
        for view in made:
            await view.open()
        yield ViewedProject(project=project, base=base, views=made, runner=runner)
    finally:
        for view in made:
            await view.close()
        await sandbox.aclose()
