"""What the sandbox adds to a round that runs a command: on 20,000 files, with nothing, one or three
of them changed.

The floor is the same round with commands that run as they are and are watched, in the same run,
taken in turn.  The first command of a process, which starts the keeper, has a row of its own.  For
comparison: one bubblewrap with an overlay for each command takes 20–23 ms.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from bench.bench_history import Words, compared, make, opened, rounds_ms
from bench.scenes import run as run_async
from bench.table import Row
from weft.config.setting_keys import KEYS

LIMIT_MS = 20.0
"""What a bubblewrap and an overlay for each command cost, without looking at what was changed."""
SANDBOX = Words("sandboxed command", "sandbox", LIMIT_MS)


async def measure(base: Path) -> list[Row]:
    folder = base / "project"
    folder.mkdir()
    make(folder)
    os.sync()  # else the disk is still writing it when the measurement begins
    quota = int(KEYS["history.quota"].default)
    rows: list[Row] = []
    async with (
        opened(base, quota=quota, folder=folder) as plain,
        opened(base, quota=quota, folder=folder, sandbox="on", name="confined") as confined,
    ):
        await rounds_ms(plain, 0, 1)  # copies the project
        (bare,) = await rounds_ms(plain, 0, 1)
        (first,) = await rounds_ms(confined, 0, 1)
        rows.append(Row("first sandboxed command of a process", first, "ms", floor=bare))
        for changed in (0, 1, 3):
            rows += await compared(plain, confined, changed, SANDBOX)
    return rows


def run() -> list[Row]:
    """All rows of this benchmark; none where this machine has no bubblewrap."""
    if shutil.which("bwrap") is None:
        return []
    base = Path(tempfile.mkdtemp(prefix="bench-sandbox-", dir=_place()))
    try:
        return run_async(lambda: measure(base))
    finally:
        shutil.rmtree(base, ignore_errors=True)  # an indexer may still be about to end


def _place() -> str | None:
    """Where projects lie.

    Commands in the sandbox see another `/tmp`, and a project in it takes a detour.
    """
    return str(Path.home())
