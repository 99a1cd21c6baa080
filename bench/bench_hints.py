"""The wait of a first message for the index: how many runs on an indexed project have their hint,
how long a message waits for an index that does not answer, and what memory such a run takes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import anyio

import weft
from bench.bench_index import REQUEST, write_sources
from bench.table import Row
from weft.providers.base import ModelRequest
from weft.providers.scripted import ScriptedModel, ScriptedProvider

RUNS = 9


def run() -> list[Row]:
    """All rows."""
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        project = base / "project"
        project.mkdir()
        write_sources(project)
        environ = {"HOME": name, "WEFT_HOME": f"{name}/home", "PATH": os.environ["PATH"]}
        _run_weft(project, environ, "map")
        runs = [_hinted_run(base, project, environ) for _ in range(RUNS)]
        hinted = sum(run.has_hint for run in runs) / RUNS
        peak = max(run.peak for run in runs)
        waited = anyio.run(_waits, project, environ)
        return [
            Row("hint: runs on 5,000 files that have theirs", 100 * hinted, "%"),
            Row("hint: wait for an index that says nothing", waited, "ms", None, 50),
            Row("hint: peak memory of a run with its hint", peak / 1024, "MB", None, 50),
        ]


def _run_weft(project: Path, environ: Mapping[str, str], *words: str) -> None:
    argv = [sys.executable, "-m", "weft", *words]
    subprocess.run(argv, cwd=project, env=dict(environ), check=True, capture_output=True)


class _HintedRun(NamedTuple):
    has_hint: bool
    peak: int
    """Most memory at a time, in kilobytes: of the run, or of a program that it waited for."""


def _hinted_run(base: Path, project: Path, environ: Mapping[str, str]) -> _HintedRun:
    """One run, whether its message is stored with a hint, and what memory it took."""
    script = base / "script.json"
    script.write_text(json.dumps({"by": "content", "answers": ["Hello."]}))
    words = [sys.executable, "-m", "weft", "-p", "-m", f"scripted:{script}", REQUEST]
    argv = [sys.executable, "-c", _MEASURE, *words]
    done = subprocess.run(argv, cwd=project, env=dict(environ), check=True, capture_output=True)
    files = [*(base / "home").glob("weft.db*")]
    stored = b"".join(file.read_bytes() for file in files)
    for file in files:
        file.unlink()
    return _HintedRun(b"may be about" in stored, int(done.stdout.split()[-1]))


_MEASURE = """
import os, sys
child = os.posix_spawn(sys.executable, sys.argv[1:], os.environ)
_, status, usage = os.wait4(child, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""In a small process of its own: a program begins with the memory of the one that starts it."""


class _TimedModel(ScriptedModel):
    """Knows when it was asked."""

    asked_at = 0.0

    def _remember(self, request: ModelRequest) -> None:
        self.asked_at = time.perf_counter()
        super()._remember(request)


async def _waits(project: Path, environ: Mapping[str, str]) -> float:
    """How many milliseconds later a first request is made when the index does not answer; the
    least of each, in turns.
    """
    held, free = [], []
    for _ in range(RUNS):
        held.append(await _first_request(project, environ, has_index=True))
        free.append(await _first_request(project, environ, has_index=False))
    return (min(held) - min(free)) * 1e3


async def _first_request(project: Path, environ: Mapping[str, str], *, has_index: bool) -> float:
    model = _TimedModel(["Hello."], keep_requests=0)
    settings: dict[str, Any] = {
        "model.default": "scripted:script",
        "sandbox.mode": "off",
        "lsp.enabled": False,
        "repo.index": has_index,
    }
    providers = {"scripted": ScriptedProvider({model.info.name: model})}
    async with weft.open(
        project, "memory", settings, environ=dict(environ), providers=providers
    ) as app:
        session = await app.sessions.start_session()
        lock: AbstractContextManager[object] = nullcontext()
        if has_index:
            lock = app._indexes().reader(app.project_path)._lock
        before = time.perf_counter()
        with lock:
            await session.send_message(REQUEST)
        return model.asked_at - before
