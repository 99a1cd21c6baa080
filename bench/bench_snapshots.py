"""What the snapshot of the files adds to a turn on 20,000 files: where a tool ran and nothing
changed, where one file changed, and where nothing ran at all.

The floor is the same turn on the same project with the file history off, in the same run, taken in
turn.  The first snapshot, with a look at every file and its contents, has a row of its own.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import weft
from bench.bench_history import make, opened
from bench.scenes import run as run_async
from bench.table import Row
from weft.api.session import Session
from weft.config.setting_keys import KEYS
from weft.providers import ScriptedModel
from weft.providers.base import ModelInfo, ModelRequest
from weft.providers.script import CallTool, SayText, Step
from weft.store import MemoryStore

TURNS = 400
CHANGED = "package0/module0/f0.py"
UNCHANGED_MS = 0.3
"""What a turn in which nothing changed may cost more."""
TALK_MS = 0.05
"""The same for one that had no effect; what is left is the noise of the machine."""


class Turns:
    """A model with one call a turn, of the tool that is asked for; without a name it only talks."""

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._is_called = False
        info = ModelInfo(provider="scripted", name=tool, price_input=0.0, price_output=0.0)
        self.model = ScriptedModel((), choose=self._choose, info=info, keep_requests=0)

    def _choose(self, request: ModelRequest) -> Sequence[Step]:
        self._is_called = bool(self._tool) and not self._is_called
        if self._is_called:
            return [CallTool(name=self._tool, args={})]
        return [SayText(text="done")]


async def started(app: weft.App, folder: Path, tool: str) -> Session:
    async def nothing() -> str:
        """Change nothing."""
        return "done"

    async def something() -> str:
        """Change a file."""
        (folder / CHANGED).write_text(f"{time.perf_counter_ns()}\n")
        return "done"

    # Tools of a program have an effect as long as it is not said that they have none.
    return await app.sessions.start_session(
        model=Turns(tool).model,
        auto_approve=True,
        tools=[nothing, something],
        # In memory, so that the disk's own time is in neither number.
        store=MemoryStore(),
    )


async def turn_ms(session: Session) -> float:
    start = time.perf_counter()
    await session.send_message("go")
    return (time.perf_counter() - start) * 1000


async def compared(plain: weft.App, kept: weft.App, folder: Path, tool: str) -> tuple[float, float]:
    """Milliseconds of a turn without and with snapshots; each pair sees the same machine."""
    sessions = [await started(app, folder, tool) for app in (plain, kept)]
    for session in sessions:
        await turn_ms(session)
    times = [[await turn_ms(session) for session in sessions] for _ in range(TURNS)]
    floor, cost = (statistics.median(each) for each in zip(*times, strict=True))
    return floor, cost


async def measure(base: Path) -> list[Row]:
    folder = base / "project"
    folder.mkdir()
    make(folder)
    quota = int(KEYS["history.quota"].default)
    rows: list[Row] = []
    async with (
        opened(base, quota=0, folder=folder) as plain,
        opened(base, quota=quota, folder=folder) as kept,
    ):
        first = await turn_ms(await started(kept, folder, "nothing"))
        rows.append(Row("end of the first turn with an effect, 20,000 files", first, "ms"))
        for tool, what, limit in (
            ("", "a turn that only talks", TALK_MS),
            ("nothing", "a turn that changed nothing", UNCHANGED_MS),
            ("something", "a turn that changed one file", None),
        ):
            floor, cost = await compared(plain, kept, folder, tool)
            rows.append(Row(what, cost, "ms", floor=floor))
            rows.append(Row(f"what the snapshot adds to {what}", cost - floor, "ms", limit=limit))
    return rows


def run() -> list[Row]:
    """All rows of this benchmark."""
    base = Path(tempfile.mkdtemp(prefix="bench-snapshots-"))
    try:
        return run_async(lambda: measure(base))
    finally:
        shutil.rmtree(base)
