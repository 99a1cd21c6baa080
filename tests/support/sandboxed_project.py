"""A project with a sandbox around it, for tests of what commands do there."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from weft.ids import BlobId
from weft.workspace import BoundaryRange, LocalRunner, ProcessCommand, RunResult, SessionBoundaries
from weft.workspace.sandbox.machine import ProcessSandbox, SandboxOptions
from weft.workspace.sandbox.runner import SandboxRunner


class SandboxedProject:
    """A project, its sandbox and its runner."""

    def __init__(self, base: Path, sandbox: ProcessSandbox, **options: Any) -> None:
        self.project = base / "project"
        self.project.mkdir(exist_ok=True)
        self.sandbox = sandbox
        self.forbidden: dict[str, str] = {}
        self.seen: dict[str, bytes] = {}
        self.bounds: dict[str, BoundaryRange] = {}
        self.versions: dict[BlobId, bytes] = {}
        self.boundaries = SessionBoundaries(lambda: self.bounds, self._load)
        self.local = LocalRunner({"PATH": os.environ["PATH"]})
        self.runner = SandboxRunner(
            sandbox,
            self.local,
            root=str(self.project),
            judge=self,
            boundaries=self.boundaries,
            base_of=self.seen.get,
            **options,
        )

    async def _load(self, base: BlobId) -> bytes | None:
        return self.versions.get(base)

    def forbids(self, path: str) -> str:
        """What the judge says."""
        return self.forbidden.get(path, "")

    def forbids_link(self, path: str) -> str:
        """The same for a link."""
        return self.forbids(path)

    def forbids_record(self, path: str) -> str:
        """The same where nothing changes that programs obey."""
        return self.forbidden.get(path, "")

    async def shell(
        self, script: str, on_output: Callable[[str], None] | None = None, **options: Any
    ) -> RunResult:
        """Run a line of shell in the project."""
        command = ProcessCommand(argv=("/bin/bash", "-c", script), cwd=str(self.project), **options)
        return await self.runner.run(command, on_output)

    def write(self, name: str, text: str | bytes, mode: int = 0o644) -> Path:
        """Put a file into the project."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return path

    def read(self, name: str) -> str:
        """The text of a file of the project."""
        return (self.project / name).read_text()


@asynccontextmanager
async def sandboxed_project(
    base: Path, *, settled: SandboxOptions | None = None, **options: Any
) -> AsyncGenerator[SandboxedProject]:
    """A project in a sandbox; skips the test where the machine has none."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(base / "home")}
    (base / "home" / ".cache").mkdir(parents=True, exist_ok=True)
    sandbox = ProcessSandbox(environ=environ, folder=str(base / "sandbox"), options=settled)
    there = SandboxedProject(base, sandbox, **options)
    try:
        report = await sandbox.probe((str(there.project),))
        if not report.is_available:
            pytest.skip(f"this machine has no sandbox: {report.reason}")
        yield there
    finally:
        await sandbox.aclose()


async def run_and_meanwhile(
    there: SandboxedProject, script: str, act: Callable[[], object]
) -> RunResult:
    """Run a command that waits in its middle; call `act` then, and let the command go on."""
    reached = anyio.Event()
    found: list[RunResult] = []
    gate = Path(there.sandbox.scratch.folder) / "tmp" / "go"

    async def run() -> None:
        waiting = "echo reached; until [ -e /tmp/go ]; do sleep 0.01; done"
        found.append(await there.shell(f"{script}; {waiting}", lambda text: reached.set()))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await reached.wait()
            act()
            gate.touch()
    return found[0]
