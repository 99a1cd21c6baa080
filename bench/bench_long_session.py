"""A session of 10 to 5,000 turns, compacted every ten: what its next turn costs in processor time,
and opening it after its process was killed.

Each length is measured in a new process, on a session as it was written.  The lengths take turns
and the least of several counts: what is above it is the machine's other work.  The cost of the
shortest is the floor of the others.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import weft
from bench.bench_reopen import memory_megabytes
from bench.logs import answered_turn, stamped, write_facts
from bench.scenes import run as run_async
from bench.table import Row
from weft.events import Compacted, Fact, SessionCreated, TurnFinished, decode, encode
from weft.ids import NodeId, SessionId
from weft.providers import ScriptedModel
from weft.providers.base import ModelInfo
from weft.providers.script import SayText
from weft.store.sqlite import open_sqlite

LENGTHS = (10, 100, 1_000, 5_000)
KEPT = 5
"""Turns after the last compaction, the same at every length."""
MESSAGES = 20
REPEATS = 7
OPEN_CPU_MS = 300.0
SESSION = SessionId("ses_long")


class Costs(NamedTuple):
    """What one process measured: milliseconds of processor time, and megabytes."""

    opening_cpu: float
    first_turn: float
    prompt: float
    message: float
    memory: float


def facts(turns: int) -> Iterator[Fact]:
    """A session of so many answered turns."""
    yield SessionCreated(project_path="/", model="scripted:m", title="Long work")
    parent: NodeId | None = None
    for turn in range(1, turns + 1):
        made = list(answered_turn(turn, parent))
        yield from made
        parent = NodeId(f"nod_{turn:020}_a")
        if turn % 10 == 10 - KEPT:
            yield Compacted(upto=parent, summary="What was done so far. " * 20)


async def prepare(home: Path, turns: int) -> None:
    """Write the session into a new store."""
    async with await open_sqlite(home / "weft.db") as store:
        await write_facts(store, SESSION, stamped(SESSION, facts(turns)))


async def measure(home: Path) -> Costs:
    """Open the session and talk to it, through the public API."""
    info = ModelInfo(provider="scripted", name="m", price_input=0.0, price_output=0.0)
    model = ScriptedModel((), choose=lambda _: [SayText(text="done")], info=info, keep_requests=0)
    environ = {"HOME": str(home), "WEFT_HOME": str(home), "PATH": "/usr/bin:/bin"}
    (home / "project").mkdir(exist_ok=True)
    async with weft.open(home / "project", environ=environ) as app:
        # The decoder is made once in a process, by the first that needs it.
        decode(encode(SessionCreated()))
        cpu = time.process_time()
        session = await app.sessions.start_session(session_id=SESSION, model=model)
        # Opening makes many objects, which the collector looks at once, sooner or later.
        gc.collect()
        opening_cpu = (time.process_time() - cpu) * 1000
        first = await _timed_message(session)
        if os.environ.get("BENCH_KILL"):
            os.kill(os.getpid(), signal.SIGKILL)
        messages = [await _timed_message(session) for _ in range(MESSAGES)]
        prompts = [await _timed_prompt(session) for _ in range(MESSAGES)]
    return Costs(
        opening_cpu,
        first,
        # The least: what is above it is the machine's other work.
        min(prompts),
        min(messages),
        memory_megabytes(),
    )


async def _timed_message(session: weft.Session) -> float:
    started = time.process_time()
    reply = await session.send_message("go")
    assert reply.finish_reason == "stop", reply
    return (time.process_time() - started) * 1000


async def _timed_prompt(session: weft.Session) -> float:
    """Until it is accepted; its turn is waited for outside."""
    async with await session.subscribe(live=False) as events:
        started = time.process_time()
        await session.send_prompt("go")
        taken = (time.process_time() - started) * 1000
        async for event in events:
            if isinstance(event, TurnFinished):
                break
    return taken


def after_a_kill(written: Path) -> Costs:
    """The costs of a new process on the session that another one was killed with.

    On a copy: each measurement adds turns, which are not compacted.
    """
    with tempfile.TemporaryDirectory() as name:
        return _measured(shutil.copytree(written, Path(name, "home")))


def _measured(home: Path) -> Costs:
    command = [sys.executable, "-m", "bench.bench_long_session", str(home)]
    killed = subprocess.run(command, env={**os.environ, "BENCH_KILL": "1"}, check=False)
    assert killed.returncode == -signal.SIGKILL
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return Costs(*json.loads(done.stdout))


def least(runs: Sequence[Costs]) -> Costs:
    """The least of each."""
    return Costs(*map(min, zip(*runs, strict=True)))


def run() -> list[Row]:
    """All rows of this benchmark."""
    runs: dict[int, list[Costs]] = {turns: [] for turns in LENGTHS}
    with tempfile.TemporaryDirectory() as name:
        homes = {turns: Path(name, str(turns)) for turns in LENGTHS}
        for turns, home in homes.items():
            home.mkdir()
            run_async(lambda: prepare(home, turns))  # noqa: B023  # run at once
        # In turn, and not one length after the other: a minute in which the machine was busy would
        # look like the growth of a session.
        for _ in range(REPEATS):
            for turns, home in homes.items():
                runs[turns].append(after_a_kill(home))
    costs = {turns: least(measured) for turns, measured in runs.items()}
    floor = costs[LENGTHS[0]]
    return [row for turns in LENGTHS for row in _rows(turns, costs[turns], floor)]


def _rows(turns: int, costs: Costs, floor: Costs) -> Iterator[Row]:
    yield Row(
        f"open {turns:,} turns after kill -9, CPU", costs.opening_cpu, "ms", limit=OPEN_CPU_MS
    )
    for what, unit, value, bare in (
        ("first turn", "ms", costs.first_turn, floor.first_turn),
        ("prompt", "ms", costs.prompt, floor.prompt),
        ("send_message", "ms", costs.message, floor.message),
        ("memory", "MB", costs.memory, floor.memory),
    ):
        yield Row(f"{what} after {turns:,} turns", value, unit, floor=bare, limit=1.2, of="ratio")


if __name__ == "__main__":
    home = Path(sys.argv[1])
    print(json.dumps(run_async(lambda: measure(home))))
