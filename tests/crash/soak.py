"""A soak: twenty sessions in one application, for an hour; nothing grows, nothing slows down.

`python -m tests.crash.soak` (`make soak`) prints one JSON line, and the table on standard error;
`--minutes 5` takes less time, `--samples FILE` writes every sample.  Sessions take turns, use
tools, branch, rewind, compact, are read, unloaded, opened again and deleted after at most sixty
turns, so that the load is the same all the time.  Every now and then all of them pause, and the
process is looked at: memory, descriptors, threads, tasks beside those of open sessions, of which
there are never more than seats, and how long a turn takes beside a bare commit and a bare sum that
are measured in the same moment.

Flat means: after the warm-up, in which each seat ends five sessions, the line through the samples
(`soak_series`) grows by no more than is allowed between the first and the last quarter.  Each
session's log is replayed before it is deleted, and at the end.  `--plant memory` (descriptors,
tasks, latency, replay) plants a leak that must be found.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import anyio
import apsw
import msgspec

import weft
from tests.support.crash.soak_seat import SoakSeat, soak_model
from tests.support.crash.soak_series import SoakSample, SoakTrend, table, trends
from weft.api.session import Session
from weft.app import App
from weft.providers.scripted import ScriptedProvider

MOST_SAMPLES, FEWEST_SAMPLES = 120, 16
"""Looks at the process, over the whole time: one in `SAMPLE_SECONDS`, within these."""
SAMPLE_SECONDS = 5.0
PROBES = 9
"""Turns and floors that are measured at each look, one beside the other."""
PROBE = json.dumps([["read", {"path": "probe.txt"}]])
PROBE_LIFE = 50
"""Turns of the session that is measured, before the next one takes its place."""
FLOOR_COMMITS = 3
"""Commits that a turn with one tool call makes."""
PLANTS = ("memory", "descriptors", "tasks", "latency", "replay")


class PlantedLeak:
    """A fault that the soak must find."""

    def __init__(self, kind: str, app: App) -> None:
        self._kind = kind
        self._app = app
        self._kept: list[object] = []

    async def grow(self, seats: Sequence[SoakSeat]) -> None:
        """Leak a little, once for each look."""
        match self._kind:
            case "memory":
                self._kept.append(bytearray(os.urandom(1 << 20)))
            case "descriptors":
                self._kept.append(os.dup(2))
            case "tasks":
                self._app._supervisor.start(anyio.sleep_forever, "a leak")
            case "latency":
                self._kept.append(None)
            case "replay":
                for session in (seat.session for seat in seats if seat.session is not None):
                    (await session._port()).state.about.first_prompt = "never said"
            case _:
                pass

    def delay(self) -> None:
        """Make a turn dearer with every look."""
        if self._kind == "latency":
            sum(range(20_000 * len(self._kept)))

    def close(self) -> None:
        """Give back what was taken."""
        for each in self._kept:
            if isinstance(each, int):
                os.close(each)


class LatencyProbe:
    """A turn with one tool call, and its floor: as many bare commits, and a sum that takes as long
    as Python takes for things.
    """

    def __init__(self, app: App, folder: Path, leak: PlantedLeak) -> None:
        self._app = app
        self._leak = leak
        self._session: Session | None = None
        self._turns = 0
        self._db = apsw.Connection(str(folder / "floor.db"))
        self._db.execute("pragma journal_mode = wal")
        self._db.execute("pragma synchronous = full")
        self._db.execute("create table rows (body blob)")

    async def measure(self) -> float:
        """How many floors a turn takes: the fastest of some turns and of as many floors.

        What else the machine does only adds to either.
        """
        turns, floors = [], []
        for _ in range(PROBES):
            session = await self._fresh()
            began = time.perf_counter()
            self._leak.delay()
            await session.send_message(PROBE)
            turns.append(time.perf_counter() - began)
            began = time.perf_counter()
            await anyio.to_thread.run_sync(self._floor)
            floors.append(time.perf_counter() - began)
        return min(turns) / min(floors)

    def _floor(self) -> None:
        for _ in range(FLOOR_COMMITS):
            self._db.execute("insert into rows values (zeroblob(2000))")
        sum(range(200_000))
        self._db.execute("delete from rows")

    async def _fresh(self) -> Session:
        if self._session is None or self._turns >= PROBE_LIFE:
            await self.end()
            self._session, self._turns = await self._begin(), 0
        self._turns += 1
        return self._session

    async def _begin(self) -> Session:
        return await self._app.sessions.start_session(tools=["read"], auto_approve=True)

    async def end(self) -> None:
        """Delete the session that was measured."""
        if self._session is not None:
            await self._app.sessions.delete_session(self._session.id)
            self._session = None


class SoakResult(msgspec.Struct):
    """What came of a soak."""

    trends: list[SoakTrend]
    samples: list[SoakSample]
    counts: Counter[str]
    wrong: list[str]


class Soak:
    """Twenty seats, a pause every now and then, and a look."""

    def __init__(self, app: App, folder: Path, chosen: argparse.Namespace) -> None:
        self._app = app
        self._seconds = chosen.minutes * 60
        self._leak = PlantedLeak(chosen.plant, app)
        self._probe = LatencyProbe(app, folder, self._leak)
        self._seats = [
            SoakSeat(app, number, random.Random(f"{chosen.seed}:{number}"), chosen.pace)
            for number in range(chosen.sessions)
        ]
        self._samples: list[SoakSample] = []
        self._too_many: list[str] = []
        self._quiet = anyio.Event()
        self._may_work = anyio.Event()
        self._working = 0
        self._is_over = False

    async def run(self) -> SoakResult:
        """Soak."""
        self._may_work.set()
        async with anyio.create_task_group() as group:
            for seat in self._seats:
                group.start_soon(self._sit, seat)
            await self._look_often()
            self._is_over = True
            self._may_work.set()
        for seat in self._seats:
            await seat.check()
        await self._probe.end()
        self._leak.close()
        counts = sum((seat.counts for seat in self._seats), Counter[str]())
        wrong = [*self._too_many, *(each for seat in self._seats for each in seat.wrong)]
        found = trends(self._samples, len(self._seats))
        wrong += [f"{each.name} grew by {each.grew:.2f}" for each in found if not each.is_flat]
        return SoakResult(found, self._samples, counts, wrong)

    async def _sit(self, seat: SoakSeat) -> None:
        while True:
            await self._may_work.wait()
            if self._is_over:
                return
            self._working += 1
            try:
                await seat.step()
            finally:
                self._working -= 1
                if not self._working:
                    self._quiet.set()
            await seat.think()

    async def _look_often(self) -> None:
        began = time.monotonic()
        wanted = int(self._seconds / SAMPLE_SECONDS)
        samples = max(FEWEST_SAMPLES, min(wanted, MOST_SAMPLES))
        for number in range(samples):
            due = began + self._seconds * (number + 1) / samples
            await anyio.sleep(max(0.0, due - time.monotonic()))
            await self._pause()
            self._samples.append(await self._look((time.monotonic() - began) / 60))
            await self._leak.grow(self._seats)
            self._may_work.set()

    async def _pause(self) -> None:
        """Let every seat end its step; what a sample counts must not depend on where they are."""
        self._may_work = anyio.Event()
        while self._working:
            self._quiet = anyio.Event()
            await self._quiet.wait()

    async def _look(self, minute: float) -> SoakSample:
        latency = await self._probe.measure()
        gc.collect()
        # Each has a task.  How many are open at a look is chance: seats unload each other's.
        is_open = len(self._app.host.registry.ports)
        if is_open > len(self._seats) + 1:
            self._too_many.append(f"{is_open} sessions were open at minute {minute:.1f}")
        return SoakSample(
            minute=minute,
            ended=sum(seat.counts["deleted"] for seat in self._seats),
            memory_mb=_own_megabytes(),
            descriptors=len(os.listdir("/proc/self/fd")),
            threads=len(os.listdir("/proc/self/task")),
            tasks=len(asyncio.all_tasks()) - is_open,
            latency=latency,
        )


def _own_megabytes() -> float:
    """Memory of our own: without the pages of files, which the kernel takes back."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


async def soak(chosen: argparse.Namespace, folder: Path) -> SoakResult:
    """Open the application and soak it."""
    project = folder / "project"
    project.mkdir()
    (project / "probe.txt").write_text("a line\n" * 40)
    environ = {"HOME": str(folder), "WEFT_HOME": str(folder / "home"), "PATH": os.environ["PATH"]}
    app = weft.open(
        project,
        folder / "weft.db",
        {"model.default": "scripted:script", "sandbox.mode": "off"},
        environ=environ,
        providers={"scripted": ScriptedProvider({"script": soak_model()})},
    )
    async with app:
        return await Soak(app, folder, chosen).run()


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--pace", type=float, default=1.0, help="seconds between two steps")
    parser.add_argument("--plant", choices=("", *PLANTS), default="")
    parser.add_argument("--samples", type=Path, default=None, help="where to write every sample")
    chosen = parser.parse_args(argv)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="weft-soak-") as folder:
        result = asyncio.run(soak(chosen, Path(folder)))
    for each in result.wrong:
        print(each, file=sys.stderr)
    print(table(result.trends), file=sys.stderr)
    if chosen.samples is not None:
        chosen.samples.write_bytes(msgspec.json.encode(result.samples))
    line = {
        "claim": "soak",
        "n": sum(result.counts.values()),
        "violations": len(result.wrong),
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - start, 1),
        "sessions": chosen.sessions,
        "steps": dict(sorted(result.counts.items())),
        "trends": {each.name: [each.first, each.last, each.grew] for each in result.trends},
    }
    print(json.dumps(line))
    return int(bool(result.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
