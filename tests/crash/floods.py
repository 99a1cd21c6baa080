"""Output without an end in twenty sessions at once: memory stays bounded, an abort takes no second.

`python -m tests.crash.floods` prints one JSON line; `--sessions 4 --flood 2` tries less.  Each
session's model calls `yes`; after the flood all are aborted at the same time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec

from tests.support.fan_stage import candidate_model, shell_call
from tests.support.world import World, until
from weft.app import App
from weft.events import ToolOutput

MOST_GROWTH: Final = 100 * 1024 * 1024
"""Bytes of resident memory, over all sessions."""
MOST_SECONDS: Final = 1.0
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class FloodReport(msgspec.Struct, kw_only=True):
    """What was measured."""

    growth: int = 0
    abort_seconds: float = 0.0
    lag_seconds: float = 0.0
    """The longest time for which the event loop did not come round."""
    survivors: int = 0

    @property
    def wrong(self) -> list[str]:
        """What is not as it has to be."""
        found = []
        if self.growth > MOST_GROWTH:
            found.append(f"{self.growth >> 20} MiB more")
        if self.abort_seconds > MOST_SECONDS:
            found.append(f"an abort took {self.abort_seconds:.2f} s")
        if self.survivors:
            found.append(f"{self.survivors} processes live")
        return found


def resident() -> int:
    """Our own memory, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


async def prove(sessions: int, seconds: float, folder: Path) -> FloodReport:
    """Flood and abort."""
    world, report = World("sqlite", folder), FloodReport()
    model = candidate_model("flood", shell_call("yes $PWD"), "done")
    async with world.open(model, config={"sandbox.mode": "auto"}) as app:
        await _flood(app, sessions, seconds, report)
    report.survivors = _running(str(world.project).encode())
    return report


async def _flood(app: App, sessions: int, seconds: float, report: FloodReport) -> None:
    started = [
        await app.sessions.start_session(auto_approve=True, model="scripted:flood")
        for _ in range(sessions)
    ]
    for session in started:
        await session.send_prompt("go")
        await until(session, ToolOutput)
    before, end = resident(), time.monotonic() + seconds
    while (now := time.monotonic()) < end:
        await anyio.sleep(0.02)
        report.lag_seconds = max(report.lag_seconds, time.monotonic() - now - 0.02)
        report.growth = max(report.growth, resident() - before)
    aborted: list[float] = []

    async def abort(number: int) -> None:
        begun = time.monotonic()
        await started[number].abort()
        aborted.append(time.monotonic() - begun)

    async with anyio.create_task_group() as group:
        for number in range(sessions):
            group.start_soon(abort, number)
    report.abort_seconds = max(aborted)


def _running(word: bytes) -> int:
    count = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", name, "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        count += words[0].endswith(b"yes") and word in words
    return count


def main(argv: Sequence[str]) -> int:
    """Prove it, and print one line."""
    parser = argparse.ArgumentParser(prog="tests.crash.floods")
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--flood", type=float, default=10.0)
    given = parser.parse_args(argv)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = anyio.run(prove, given.sessions, given.flood, Path(folder))
    for each in found.wrong:
        print(each, file=sys.stderr)
    told: dict[str, Any] = {"claim": "floods", "n": given.sessions, "violations": len(found.wrong)}
    figures = {
        "growth_mib": found.growth >> 20,
        "abort_seconds": round(found.abort_seconds, 3),
        "lag_seconds": round(found.lag_seconds, 3),
    }
    seconds = round(time.monotonic() - begun, 1)
    print(json.dumps({**told, "seed": 0, "seconds": seconds, **figures}))
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
