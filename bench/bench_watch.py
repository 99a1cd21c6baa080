"""A project that is watched while floods of changes come and a session talks: how soon the index is
current again, and how long the event loop is held up.

The lag of a loop is mostly the machine's: a busy one wakes every process late.  So a loop of
another process, which does nothing, is measured beside ours, and what our own loop works between
two looks at what has arrived is measured in CPU time.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

import weft
from bench.bench_index import REQUEST, SOURCES, write_sources
from bench.table import Row
from weft.app import App
from weft.providers.scripted import ScriptedModel, ScriptedProvider
from weft.repo.project_index import ProjectIndex
from weft.runtime.repo_topic import RepoEvents

FLOOD = 200
PROBE_SECONDS = 0.002
IDLE_SECONDS = 3.0


def run() -> list[Row]:
    """All rows."""
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        return anyio.run(_WatchedProject(_two_branches(base), base / "home").rows)


def _two_branches(base: Path) -> Path:
    """A repository with a small branch, which is checked out, and a large one."""
    project = base / "watched"
    (project / "start").mkdir(parents=True)
    (project / "start" / "first.py").write_text("def first(): ...\n")
    git = partial(subprocess.run, cwd=project, check=True, capture_output=True)
    user = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    git(["git", "init", "-q", "-b", "small"])
    git(["git", "add", "-A"])
    git(["git", *user, "commit", "-qm", "x"])
    git(["git", "checkout", "-qb", "large"])
    write_sources(project)
    git(["git", "add", "-A"])
    git(["git", *user, "commit", "-qm", "y"])
    git(["git", "checkout", "-q", "small"])
    return project


class _LoopWatch:
    """How late the running loop wakes, and how long it works between two looks at what arrived."""

    def __init__(self) -> None:
        self.worst_lag = 0.0
        self.longest_work = 0.0
        self._began = 0.0
        selector: Any = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
        self._select = selector.select
        selector.select = self._looked

    def reset(self) -> None:
        """Begin anew."""
        self.worst_lag = self.longest_work = 0.0

    def _looked(self, timeout: float | None = None) -> Any:
        if self._began:
            self.longest_work = max(self.longest_work, time.thread_time() - self._began)
        try:
            return self._select(timeout)
        finally:
            self._began = time.thread_time()

    async def probe(self) -> None:
        """Wake again and again."""
        while True:
            before = time.perf_counter()
            await anyio.sleep(PROBE_SECONDS)
            late = time.perf_counter() - before - PROBE_SECONDS
            self.worst_lag = max(self.worst_lag, late)


class _OtherProcess:
    """A program that does what a line says, and answers with a line."""

    def __init__(self, program: str, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, *words: str) -> str:
        """Have it do something, and wait for it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def close(self) -> None:
        """End it."""
        self._process.communicate()


class _WatchedProject:
    def __init__(self, project: Path, home: Path) -> None:
        self._project = project
        self._home = home
        self._model = ScriptedModel([REQUEST] * 100_000, keep_requests=0)
        self._news = anyio.Event()
        self._longest_turn = 0.0
        self._changer = _OtherProcess(_CHANGES, project)
        self._idle_loop = _OtherProcess(_IDLE_LOOP, project)

    async def rows(self) -> list[Row]:
        loop = _LoopWatch()
        async with self._opened() as app, anyio.create_task_group() as group:
            group.start_soon(loop.probe)
            group.start_soon(self._follow, await app.subscribe("repo:updates"))
            group.start_soon(self._talk, app)
            index = app._indexes().reader(app.project_path)
            # What is loaded with the first turns is no part of what is measured.
            await anyio.sleep(IDLE_SECONDS)
            quiet, self._longest_turn = self._longest_turn, 0.0
            await anyio.to_thread.run_sync(self._idle_loop.ask, "reset")
            loop.reset()
            before = self._indexer_seconds(app)
            there = await self._timed(partial(self._change, "checkout large"), index, SOURCES + 1)
            work = self._indexer_seconds(app) - before
            back = await self._timed(partial(self._change, "checkout small"), index, 1)
            flooded = await self._timed(partial(self._overflow, app), index, 1 + FLOOD)
            idle = float(await anyio.to_thread.run_sync(self._idle_loop.ask, "tell"))
            group.cancel_scope.cancel()
        self._changer.close()
        self._idle_loop.close()
        turns = "watch: longest turn meanwhile, beside one with no changes"
        return [
            Row("watch: after a checkout of 5,000 new files", there, "s", None, 5.0),
            Row("watch: what the indexer works for them, CPU", work, "s", None, 5.0),
            Row("watch: after a checkout that removes them", back, "s", None, 5.0),
            Row("watch: after more changes than the queue holds", flooded, "s", None, 10.0),
            Row("watch: longest work of the loop, CPU", loop.longest_work * 1e3, "ms", None, 20.0),
            Row("watch: lag of the loop, beside an idle one", loop.worst_lag * 1e3, "ms", idle),
            Row(turns, self._longest_turn * 1e3, "ms", quiet * 1e3),
        ]

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[App]:
        home = str(self._home)
        environ = {"HOME": home, "WEFT_HOME": home, "PATH": os.environ["PATH"]}
        settings = {"model.default": "scripted:script", "sandbox.mode": "off", "lsp.enabled": False}
        providers = {"scripted": ScriptedProvider({self._model.info.name: self._model})}
        async with weft.open(
            self._project, self._home / "weft.db", settings, environ=environ, providers=providers
        ) as app:
            yield app

    async def _follow(self, events: RepoEvents) -> None:
        async for _ in events:
            self._news.set()

    async def _talk(self, app: App) -> None:
        """A session at work: each of its messages asks the index."""
        session = await app.sessions.start_session()
        while True:
            before = time.perf_counter()
            await session.send_message(REQUEST)
            self._longest_turn = max(self._longest_turn, time.perf_counter() - before)
            await anyio.sleep(0.1)

    async def _timed(self, change: Callable[[], None], index: ProjectIndex, sources: int) -> float:
        """How long after a change it takes until an index of so many files is current again."""

        def is_current() -> bool:
            return index.status().sources == sources and not index.is_stale()

        await anyio.to_thread.run_sync(change)
        before = time.perf_counter()
        while not await anyio.to_thread.run_sync(is_current):
            self._news = anyio.Event()
            with anyio.move_on_after(0.1):  # what was told while the index was asked
                await self._news.wait()
        return time.perf_counter() - before

    def _indexer_seconds(self, app: App) -> float:
        """CPU time of the indexer and its workers so far: on a busy machine it waits for most of
        the time.
        """
        watcher = app._indexes()._watcher
        assert watcher is not None
        fields = Path(f"/proc/{watcher.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def _change(self, words: str) -> None:
        self._changer.ask(words)

    def _overflow(self, app: App) -> None:
        """Twice as many events as are kept, while no one takes them."""
        watcher = app._indexes()._watcher
        assert watcher is not None
        os.kill(watcher.pid, signal.SIGSTOP)
        try:
            self._change(f"flood {FLOOD}")
        finally:
            os.kill(watcher.pid, signal.SIGCONT)


_CHANGES = """
import os, subprocess, sys
limit = int(open("/proc/sys/fs/inotify/max_queued_events").read())
for line in sys.stdin:
    what, word = line.split()
    if what == "checkout":
        subprocess.run(["git", "checkout", "-q", word], check=True)
    else:
        open("start/a.py", "w").close()
        # Two names in turn: the kernel joins events that are the same.
        for _ in range(limit // 2):
            os.rename("start/a.py", "start/b.py")
            os.rename("start/b.py", "start/a.py")
        os.unlink("start/a.py")
        for number in range(int(word)):
            with open(f"start/flood_{number}.py", "w") as file:
                file.write(f"def flood_{number}(): ...\\n")
    print(flush=True)
"""
"""Changes files, in a process of its own: starting one would hold up the loop that is measured."""

_IDLE_LOOP = """
import asyncio, sys, time

worst = 0.0

async def probe():
    global worst
    while True:
        before = time.perf_counter()
        await asyncio.sleep(0.002)
        worst = max(worst, time.perf_counter() - before - 0.002)

async def main():
    global worst
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    task = asyncio.create_task(probe())
    while await lines.readline():
        print(worst * 1e3, flush=True)
        worst = 0.0

asyncio.run(main())
"""
"""Says how late its loop woke at worst since it was asked last, in milliseconds."""
