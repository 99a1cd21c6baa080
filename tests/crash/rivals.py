"""Rivals on one project stream: every batch lands once, and no session restarts.

`python -m tests.crash.rivals` prints one JSON line; `--batches 10 --seed 7` tries fewer, others.
Twenty sessions in four processes append to one project's stream as fast as they can, each batch
together with a fact of its own session; on SQLite, and on JSONL.

What is judged: the stream has no gap; each batch is on it once, whole and in one piece; the session
that wrote it has its own fact of it, in the order in which it wrote; and none was restarted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import anyio

from tests.support.source_code import ROOT
from weft.app import App, open_app
from weft.errors import WeftError
from weft.events import AnyFact, SessionRestarted, SystemNote, decode
from weft.ids import SessionId
from weft.loop import Commit, ProjectFacts
from weft.state import SessionState
from weft.store import project_stream

Kind: TypeAlias = Literal["sqlite", "jsonl"]

PROJECT = "rivals"
PROCESSES, SESSIONS = 4, 5
ROUND_SECONDS = 300.0


def opened(root: Path, kind: Kind) -> App:
    """The application, on a store that all processes share."""
    environ = {"HOME": str(root), "WEFT_HOME": str(root), "PATH": os.environ["PATH"]}
    store = f"{kind}:{root / 'store'}" if kind == "jsonl" else f"{kind}:{root / 'weft.db'}"
    settings = {"model.default": "scripted:none"}
    return open_app(root / "project", store, settings, environ=environ)


def name_of(process: int, number: int) -> SessionId:
    """The id of a session."""
    return SessionId(f"ses_rival_{process}_{number}")


async def _rival(app: App, session_id: SessionId, batches: int, dice: random.Random) -> None:
    await app.sessions.start_session(session_id=session_id)
    port = await app.host.local_port(session_id)
    for number in range(batches):
        size = dice.randint(1, 3)
        facts = tuple(
            SystemNote(text=f"{session_id} {number} {place}/{size}") for place in range(size)
        )
        own = SystemNote(text=f"{session_id} {number}")
        await port.actor.append(partial(_batch, own, facts))


def _batch(own: SystemNote, facts: tuple[SystemNote, ...], state: SessionState) -> Commit:
    return Commit(facts=(own,), projects=(ProjectFacts(project_id=PROJECT, facts=facts),))


async def _life(root: Path, kind: Kind, process: int, batches: int, seed: int) -> None:
    async with opened(root, kind) as app, anyio.create_task_group() as group:
        for number in range(SESSIONS):
            dice = random.Random(f"{seed}:{process}:{number}")
            group.start_soon(_rival, app, name_of(process, number), batches, dice)


def run(root: Path, kind: Kind, batches: int, seed: int) -> list[str]:
    """Let them write; what is wrong already."""
    (root / "project").mkdir()
    environ = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    words = ["--life", str(root), "--store", kind, "--batches", str(batches), "--seed", str(seed)]
    lives = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.crash.rivals", *words, "--process", str(process)],
            cwd=ROOT,
            env=environ,
        )
        for process in range(PROCESSES)
    ]
    codes = [life.wait(ROUND_SECONDS) for life in lives]
    return [f"a process ended with {code}" for code in codes if code]


async def read(root: Path, kind: Kind) -> tuple[list[AnyFact], dict[str, list[AnyFact]]]:
    """The project's stream, and the log of each session."""
    async with opened(root, kind) as app:
        found = await app.store.read(project_stream(PROJECT), limit=1_000_000)
        names = [name_of(process, n) for process in range(PROCESSES) for n in range(SESSIONS)]
        logs = {name: await app.store.read(name, limit=1_000_000) for name in names}
        facts = {str(name): [decode(each.body) for each in log] for name, log in logs.items()}
        return [decode(each.body) for each in found], facts


def judge(stream: Sequence[AnyFact], logs: dict[str, list[AnyFact]], batches: int) -> list[str]:
    """What is wrong about what was stored."""
    wrong = []
    if [fact.seq for fact in stream] != list(range(1, len(stream) + 1)):
        wrong.append("the project's stream has gaps")
    whole = _batches(stream)
    if whole is None:
        wrong.append("a batch is not in one piece")
    landed = Counter(whole or [])
    for name, log in logs.items():
        own = [fact.text for fact in log if isinstance(fact, SystemNote) and name in fact.text]
        wanted = [f"{name} {number}" for number in range(batches)]
        if own != wanted:
            wrong.append(f"{name} has {len(own)} of {batches} facts, or in another order")
        wrong += [f"{each} landed {landed[each]} times" for each in wanted if landed[each] != 1]
        if any(isinstance(fact, SessionRestarted) for fact in log):
            wrong.append(f"{name} was restarted")
    return wrong


def _batches(stream: Sequence[AnyFact]) -> list[str] | None:
    """The batches in their order; None where one is torn or mixed with another."""
    found: list[str] = []
    texts = [fact.text for fact in stream if isinstance(fact, SystemNote)]
    while texts:
        name, _, place = texts[0].rpartition(" ")
        size = int(place.partition("/")[2])
        if texts[:size] != [f"{name} {each}/{size}" for each in range(size)]:
            return None
        found.append(name)
        del texts[:size]
    return found


def attempt(kind: Kind, batches: int, seed: int) -> list[str]:
    """One round on one kind of store; what is wrong."""
    with tempfile.TemporaryDirectory(prefix="weft-rivals-") as name:
        wrong = run(Path(name), kind, batches, seed)
        try:
            stream, logs = anyio.run(read, Path(name), kind)
        except WeftError as error:
            return [*wrong, f"it cannot be read: {error}"]
    return wrong or judge(stream, logs, batches)


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--store", choices=("sqlite", "jsonl"), default=None)
    parser.add_argument("--life", type=Path, default=None)
    parser.add_argument("--process", type=int, default=0)
    chosen = parser.parse_args(argv)
    if chosen.life is not None:
        life = (chosen.life, chosen.store, chosen.process, chosen.batches, chosen.seed)
        anyio.run(_life, *life)
        return 0
    start = time.monotonic()
    kinds: Sequence[Kind] = ("sqlite", "jsonl") if chosen.store is None else (chosen.store,)
    wrong = [
        f"{kind}: {said}" for kind in kinds for said in attempt(kind, chosen.batches, chosen.seed)
    ]
    for said in wrong:
        print(said, file=sys.stderr, flush=True)
    line = {
        "claim": "rivals",
        "n": len(kinds) * PROCESSES * SESSIONS * chosen.batches,
        "violations": len(wrong),
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - start, 1),
    }
    print(json.dumps(line))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
