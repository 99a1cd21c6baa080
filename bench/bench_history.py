"""What the file history adds to a round that runs a command: on 20,000 files, with nothing, one or
three of them changed.

The floor is the same round on the same project with the history off, in the same run, taken in
turn.  The first command of a process, which copies every file, and the first of the next process,
which only looks, have rows of their own.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import weft
from bench.scenes import run as run_async
from bench.table import Row
from weft.config.setting_keys import KEYS
from weft.providers import ScriptedModel
from weft.providers.base import ModelInfo, ModelRequest
from weft.providers.script import CallTool, SayText, Step
from weft.workspace.history.history import FileHistory
from weft.workspace.history.watchers import WATCHED

FILES = 20_000
FOLDERS = 420
ROUNDS = 8
REPEATS = 20
LIMIT_MS = 5.0
WORDS = ("def", "class", "return", "import", "self", "value", "0", "for", "in", "=", "(", ")", "\n")


def make(folder: Path) -> None:
    """A project of 20,000 small files in 420 folders, as large as a big repository."""
    dice = random.Random(1)
    for number in range(FOLDERS):
        (folder / f"package{number % 20}" / f"module{number}").mkdir(parents=True)
    homes = sorted(each for each in folder.glob("*/*") if each.is_dir())
    for number in range(FILES):
        text = " ".join(dice.choices(WORDS, k=int(dice.lognormvariate(6.6, 0.8))))
        (homes[number % FOLDERS] / f"f{number}.py").write_text(text)


@asynccontextmanager
async def opened(
    base: Path, *, quota: int, folder: Path, sandbox: str = "off", name: str = ""
) -> AsyncIterator[weft.App]:
    config: dict[str, object] = {"history.quota": quota, "sandbox.mode": sandbox}
    environ = {"HOME": str(base), "WEFT_HOME": str(base / "home"), "PATH": os.environ["PATH"]}
    store = base / f"{name or quota}.db"
    async with weft.open(folder, store, config, environ=environ) as app:
        yield app


class Commands:
    """A model that runs one command a round, each changing so many files.

    It takes the time of every request.
    """

    def __init__(self, rounds: int, changed: int) -> None:
        self._rounds = rounds
        self._files = [f"package{n}/module{n}/f{n}.py" for n in range(changed)]
        self._asked: list[float] = []
        name = f"m{time.perf_counter_ns()}"
        info = ModelInfo(provider="scripted", name=name, price_input=0.0, price_output=0.0)
        self.model = ScriptedModel((), choose=self._choose, info=info, keep_requests=0)

    def _choose(self, request: ModelRequest) -> Sequence[Step]:
        self._asked.append(time.perf_counter())
        number = len(self._asked)
        if number > self._rounds:
            return [SayText(text="done")]
        line = "; ".join([f": {number}", *(f"echo {number} >> {file}" for file in self._files)])
        return [CallTool(name="shell", args={"command": line})]

    @property
    def times_ms(self) -> list[float]:
        """How long each round took: from one request to the next."""
        return [(after - before) * 1000 for before, after in pairwise(self._asked)]


async def rounds_ms(app: weft.App, changed: int, rounds: int = ROUNDS) -> list[float]:
    """Milliseconds of each round.

    The first one of a session settles what happened before it, and is left out if there are others.
    """
    commands = Commands(rounds, changed)
    session = await app.sessions.start_session(
        model=commands.model, auto_approve=True, max_turns=rounds + 9
    )
    reply = await session.send_message("go")
    assert reply.tool_calls_made == rounds, reply
    return commands.times_ms[1:] or commands.times_ms


class Words(NamedTuple):
    """What is compared, for the table."""

    command: str
    part: str
    limit_ms: float


HISTORY = Words("command", "history", LIMIT_MS)


async def compared(plain: weft.App, other: weft.App, changed: int, words: Words) -> list[Row]:
    """With and without, a few rounds of each in turn, so that both see the same machine."""
    floors: list[float] = []
    costs: list[float] = []
    work = [0.0, 0.0]
    for _ in range(REPEATS):
        for number, (app, times) in enumerate(((plain, floors), (other, costs))):
            before = time.process_time()
            times += await rounds_ms(app, changed)
            work[number] += (time.process_time() - before) * 1000 / REPEATS / ROUNDS
    floor, cost = statistics.median(floors), statistics.median(costs)
    what = f"{changed} files changed"
    return [
        Row(f"round with a {words.command}, {what}", cost, "ms", floor=floor),
        Row(f"what the {words.part} adds to it, {what}", cost - floor, "ms", limit=words.limit_ms),
        Row(f"of our own processor time, {what}", work[1], "ms", floor=work[0]),
    ]


async def measure(base: Path) -> list[Row]:
    folder = base / "project"
    folder.mkdir()
    make(folder)
    quota = int(KEYS["history.quota"].default)
    rows: list[Row] = []
    async with opened(base, quota=0, folder=folder) as plain:
        bare = statistics.median(await rounds_ms(plain, 0))
        async with opened(base, quota=quota, folder=folder) as kept:
            (first,) = await rounds_ms(kept, 0, 1)
            rows.append(Row("first command, 20,000 files copied", first, "ms", floor=bare))
            for changed in (0, 1, 3):
                rows += await compared(plain, kept, changed, HISTORY)
        for known in list(WATCHED.values()):
            if isinstance(known, FileHistory):
                known.close()  # as when the process ends
        async with opened(base, quota=quota, folder=folder) as again:
            (first,) = await rounds_ms(again, 0, 1)
            rows.append(Row("first command of the next process", first, "ms", floor=bare))
    size = sum(file.stat().st_size for file in (base / "home" / "files").iterdir())
    rows.append(Row("disk space of the file history", size / 2**20, "MiB", limit=quota / 2 / 2**20))
    return rows


def run() -> list[Row]:
    """All rows of this benchmark."""
    base = Path(tempfile.mkdtemp(prefix="bench-history-"))
    try:
        return run_async(lambda: measure(base))
    finally:
        shutil.rmtree(base)
