"""Reopening a session of a hundred thousand facts, each time in a new process: how long, and how
much memory.
"""

from __future__ import annotations

import contextlib
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import apsw

import weft
from bench.logs import write_log
from bench.scenes import run as run_async
from bench.table import Row
from weft.events import decode
from weft.ids import SessionId
from weft.session.log.load import keep_snapshot, load_state
from weft.store.sqlite import open_sqlite

LONG = 100_000
REPEATS = 3
SESSION = SessionId("ses_long")


def read_and_decode(home: Path) -> float:
    """The floor: every fact of the log becomes a value, and nothing is made of it."""
    started = time.perf_counter()
    db = apsw.Connection(str(home / "weft.db"))
    values = [decode(body).seq for (body,) in db.execute("select body from facts order by seq")]
    seconds = time.perf_counter() - started
    assert len(values) == LONG
    return seconds


def load(home: Path) -> float:
    """The state alone."""

    async def work() -> float:
        async with await open_sqlite(home / "weft.db") as store:
            started = time.perf_counter()
            state = await load_state(SESSION, store)
            seconds = time.perf_counter() - started
            assert state.seq == LONG
            return seconds

    return run_async(work)


def open_session(home: Path) -> float:
    """Through the public API: an app is opened, and the session answers."""

    async def work() -> float:
        (home / "project").mkdir(exist_ok=True)
        environ = {"HOME": str(home), "WEFT_HOME": str(home), "PATH": "/usr/bin:/bin"}
        started = time.perf_counter()
        async with weft.open(home / "project", environ=environ) as app:
            session = await app.sessions.get(SESSION)
            assert await session.get_status()
            return time.perf_counter() - started

    return run_async(work)


def peak_megabytes() -> float:
    """The most memory this process ever held.

    `getrusage` would count the parent's share from before the exec.
    """
    return memory_megabytes("VmHWM")


def memory_megabytes(which: str = "VmRSS") -> float:
    """The memory that this process holds now, or another figure of the kernel's status."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(rf"{which}:\s+(\d+) kB", status)
    assert found
    return int(found[1]) / 1024


WAYS: dict[str, Callable[[Path], float]] = {
    "decode": read_and_decode,
    "load": load,
    "open": open_session,
}


def in_a_new_process(way: str, home: Path, *, with_snapshot: bool = False) -> tuple[float, float]:
    """Seconds and megabytes at the peak, the median of a few."""
    runs = []
    for _ in range(REPEATS):
        if not with_snapshot:
            forget_snapshots(home)
        command = [sys.executable, "-m", "bench.bench_reopen", way, str(home)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        runs.append(json.loads(done.stdout))
    seconds, peak = zip(*runs, strict=True)
    return statistics.median(seconds), statistics.median(peak)


async def prepare(home: Path) -> None:
    """Write the long session."""
    async with await open_sqlite(home / "weft.db") as store:
        await write_log(store, SESSION, LONG)


def forget_snapshots(home: Path) -> None:
    """Drop the snapshots that an earlier run may have kept."""
    with contextlib.closing(apsw.Connection(str(home / "weft.db"))) as db:
        db.execute("delete from snapshots")


async def store_snapshot(home: Path) -> None:
    """Store a snapshot of the session."""
    async with await open_sqlite(home / "weft.db") as store:
        await keep_snapshot(await load_state(SESSION, store), store)


def run() -> list[Row]:
    """All rows of this benchmark."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        run_async(lambda: prepare(home))
        floor, bare = in_a_new_process("decode", home)
        loaded, _ = in_a_new_process("load", home)
        opened, peak = in_a_new_process("open", home)
        run_async(lambda: store_snapshot(home))
        again, _ = in_a_new_process("open", home, with_snapshot=True)
    return [
        Row("fold 100,000 facts (floor: decode them)", loaded, "s", floor=floor),
        Row("open 100,000 facts, no snapshot", opened, "s", floor=floor, limit=1.5),
        Row("open 100,000 facts, snapshot", again, "s", floor=floor, limit=1.5),
        Row("peak memory of opening them", peak, "MB", floor=bare, limit=200),
    ]


if __name__ == "__main__":
    took = WAYS[sys.argv[1]](Path(sys.argv[2]))
    print(json.dumps([took, peak_megabytes()]))
