"""Power cuts: what was acknowledged is there afterwards, and the file is whole.

`python -m tests.crash.powercut --n 500 --seed 1` prints one JSON line.  Each life of a database
goes through several cuts: three sessions and a project append at once, the power goes at a random
operation, the verdict is spoken over a directory that the machine might find then, and the next
life starts from it.  The same with `synchronous=NORMAL` must lose: that shows that the harness
would see a loss (`teeth` in the line; `--show-teeth` tells them one by one).
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import apsw

from tests.support.power_cut_disk import PowerCutDisk, PowerCutVFS
from weft.errors import StoreError
from weft.ids import BlobId, NodeId, SessionId
from weft.store import Append, Blob, Record, SearchText, SessionRow
from weft.store.sqlite import SqliteStore, open_sqlite

SESSIONS = tuple(SessionId(f"ses_{letter}") for letter in "abc")
PROJECT = "project:p"
CUTS_A_LIFE = 5
LONGEST = 6000
"""A cut comes at latest after so many operations; a checkpoint comes after about 2,000 of them."""

Synchronous = Literal["FULL", "NORMAL"]
Acknowledged = dict[str, list[bytes]]


async def life(
    folder: Path, seed: int, *, cuts: int = CUTS_A_LIFE, synchronous: Synchronous = "FULL"
) -> list[str]:
    """One database through several power cuts.

    Returns what was wrong after each (empty when nothing was).
    """
    dice = random.Random(seed)
    acknowledged: Acknowledged = {name: [] for name in (*SESSIONS, PROJECT)}
    verdicts = []
    place = folder / "life-0"
    for number in range(1, cuts + 1):
        # Now and then the cut comes while the file and its log are being made.
        disk = PowerCutDisk(cut_at=dice.randint(1, dice.choice((40, LONGEST, LONGEST, LONGEST))))
        await _work_until_the_cut(place, disk, dice, acknowledged, synchronous)
        place = folder / f"life-{number}"
        disk.survivor(place, dice)
        verdicts.append(await _verdict(place, acknowledged))
    return verdicts


async def _work_until_the_cut(
    place: Path,
    disk: PowerCutDisk,
    dice: random.Random,
    acknowledged: Acknowledged,
    synchronous: Synchronous,
) -> None:
    name = f"powercut-{dice.getrandbits(64)}"
    vfs = PowerCutVFS(name, disk)
    try:
        store = await open_sqlite(place / "weft.db", vfs=name, synchronous=synchronous)
        try:
            async with asyncio.TaskGroup() as tasks:
                for session in SESSIONS:
                    tasks.create_task(_work(store, session, disk, dice, acknowledged))
        finally:
            await store.aclose()
    finally:
        vfs.unregister()


async def _work(
    store: SqliteStore,
    session: SessionId,
    disk: PowerCutDisk,
    dice: random.Random,
    acknowledged: Acknowledged,
) -> None:
    """Append until the power goes.

    Counts what was acknowledged before; what came later, nobody was told.
    """
    lease = await store.take_lease(session)
    end = await store.last_seq(session)
    while not disk.is_cut:
        bodies = [dice.randbytes(dice.choice((10, 300, 3000))) for _ in range(dice.randint(1, 4))]
        blob = dice.randbytes(dice.choice((0, 40_000)))
        append = Append(
            stream=session,
            expected_seq=end,
            records=tuple(Record(end + n, 1.0, "k", body) for n, body in enumerate(bodies, 1)),
            fence=lease.fence,
            row=SessionRow(id=session, last_seq=end + len(bodies), last_active=float(end)),
            said=(SearchText(NodeId(f"n{end}"), f"word{end} of {session}"),),
            blobs=(Blob(BlobId(hashlib.sha256(blob).hexdigest()), blob),),
        )
        beside = await _project(store, dice)
        try:
            await store.append(append, *beside)
        except StoreError:
            continue  # two sessions met at the project's end
        end += len(bodies)
        if not disk.is_cut:
            acknowledged[session] += bodies
            acknowledged[PROJECT] += [record.body for one in beside for record in one.records]


async def _project(store: SqliteStore, dice: random.Random) -> list[Append]:
    """Now and then the batch is over two streams."""
    if dice.random() < 0.7:
        return []
    end = await store.last_seq(PROJECT)
    record = Record(end + 1, 1.0, "k", dice.randbytes(50))
    return [Append(stream=PROJECT, expected_seq=end, records=(record,))]


async def _verdict(place: Path, acknowledged: Acknowledged) -> str:
    """What is wrong with the survivor; also makes what it holds the truth for the next life."""
    wrong = []
    # What a damaged page breaks is unknown, so every error is a finding here.
    try:
        async with await open_sqlite(place / "weft.db") as store:
            for stream, told in acknowledged.items():
                kept = [record.body for record in await store.read(stream, limit=1 << 30)]
                if not _is_subsequence(told, kept):
                    wrong.append(f"{stream}: {len(told)} were acknowledged, {len(kept)} are there")
                acknowledged[stream] = kept
            wrong += [fault for session in SESSIONS for fault in await _beside(store, session)]
        wrong += _integrity(place / "weft.db")
    except (StoreError, apsw.Error) as error:
        wrong.append(f"{type(error).__name__}: {error}")
    return "; ".join(wrong)


def _is_subsequence(told: Sequence[bytes], kept: Sequence[bytes]) -> bool:
    """Acknowledged bodies are there in order; between them may be what was kept and never told."""
    rest = iter(kept)
    return all(body in rest for body in told)


async def _beside(store: SqliteStore, session: SessionId) -> list[str]:
    """What became durable with the facts is there with them."""
    end = await store.last_seq(session)
    row = await store.row(session)
    if (row.last_seq if row else 0) != end:
        return [f"{session}: its row is not the row of its last append"]
    if end and not await store.search(f"of {session}", limit=1):
        return [f"{session}: its words are not found"]
    return []


def _integrity(path: Path) -> list[str]:
    db = apsw.Connection(str(path))
    try:
        said = [str(row[0]) for row in db.execute("pragma integrity_check").fetchall()]
        db.execute("insert into said_words (said_words) values ('integrity-check')")
        missing = db.execute(
            "select count(*) from blob_refs where blob_no not in (select blob_no from blobs)"
        ).fetchall()
    finally:
        db.close()
    return [text for text in said if text != "ok"] + (
        ["a named blob is missing"] if missing[0][0] else []
    )


def run(
    n: int, seed: int, *, synchronous: Synchronous = "FULL", is_quiet: bool = False
) -> list[str]:
    """Go through at least `n` cuts.

    Returns one verdict a cut.  What is lost is told on stderr, unless it is quiet.
    """
    dice = random.Random(f"{seed}-{synchronous}")
    verdicts: list[str] = []
    while len(verdicts) < n:
        with tempfile.TemporaryDirectory(prefix="powercut-") as folder:
            one = dice.getrandbits(32)
            cuts = min(CUTS_A_LIFE, n - len(verdicts))
            found = asyncio.run(life(Path(folder), one, cuts=cuts, synchronous=synchronous))
        verdicts += found
        label = f"seed {one}"
        if synchronous != "FULL":
            label = f"as it must be with synchronous={synchronous}, {label}"
        for wrong in filter(None, () if is_quiet else found):
            print(f"{label}: {wrong}", file=sys.stderr)
    return verdicts


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line.

    The run with NORMAL must find losses, or the harness proves nothing.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show-teeth", action="store_true", help="tell what the teeth found, too")
    chosen = parser.parse_args(argv)
    start = time.monotonic()
    wrong = [verdict for verdict in run(chosen.n, chosen.seed) if verdict]
    teeth_n = max(10, chosen.n // 10)
    bites = run(teeth_n, chosen.seed, synchronous="NORMAL", is_quiet=not chosen.show_teeth)
    teeth = [verdict for verdict in bites if verdict]
    line = {
        "claim": "powercut",
        "n": chosen.n,
        "violations": len(wrong),
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - start, 1),
        "teeth": {"synchronous": "NORMAL", "n": teeth_n, "violations": len(teeth)},
    }
    print(json.dumps(line))
    return int(bool(wrong) or not teeth)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
