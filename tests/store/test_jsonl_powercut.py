"""What the jsonl store keeps when the power fails, on a disk that loses whatever was not synced."""

from __future__ import annotations

import hashlib
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from tests.support.example_count import examples
from tests.support.file_power_cut import DiskRecorder, Step, after_cut
from weft.ids import BlobId
from weft.store import Append, Blob, Lease, Record, SessionRow
from weft.store.jsonl import JsonlStore, open_jsonl
from weft.testing.store_contract import A, B, chunk

pytestmark = pytest.mark.anyio

PROJECT = "project:p"
CUTS = examples(60)


class Life(NamedTuple):
    """What was done to a folder, and what had been confirmed after how many steps."""

    steps: list[Step]
    confirmed: list[tuple[int, dict[str, int]]]
    bodies: dict[str, list[bytes]]
    blobs: dict[int, tuple[BlobId, bytes]]
    """By the record of A that names it."""


def _append(stream: str, bodies: list[bytes], body: bytes, lease: Lease | None) -> Append:
    bodies.append(body)
    seq = len(bodies)
    return Append(
        stream=stream,
        expected_seq=seq - 1,
        records=(Record(seq, float(seq), "said", body),),
        fence=None if lease is None else lease.fence,
        # Its stream is a session's.
        row=None if lease is None else SessionRow(id=lease.stream, title=f"row {seq}"),  # type: ignore[arg-type]
    )


def _fact(random: Random) -> bytes:
    return b'{"text":"%s"}' % (b"x" * random.choice([3, 600, 5000]))


async def _live(root: Path, random: Random) -> Life:
    """Appends of every kind, drafts between them."""
    recorder = DiskRecorder(root)
    life = Life(recorder.steps, [], {A: [], B: [], PROJECT: []}, {})
    a, b, project = life.bodies[A], life.bodies[B], life.bodies[PROJECT]
    with recorder.recording():
        async with await open_jsonl(root / "home" / "store") as store:
            first, second = await store.take_lease(A), await store.take_lease(B)

            async def add(*appends: Append) -> None:
                await store.append(*appends)
                ends = {stream: len(bodies) for stream, bodies in life.bodies.items()}
                life.confirmed.append((len(recorder.steps), ends))

            for _ in range(4):
                await add(_append(A, a, _fact(random), first))
                store.save_draft(chunk(first, "half an answer"))
                await add(
                    _append(A, a, _fact(random), first),
                    _append(PROJECT, project, _fact(random), None),
                )
                await add(
                    _append(B, b, _fact(random), second), _append(B, b, _fact(random), second)
                )
                data = random.randbytes(3000)
                blob = Blob(BlobId(hashlib.sha256(data).hexdigest()), data)
                named = _append(A, a, _fact(random), first)
                life.blobs[len(a)] = (blob.id, data)
                await add(
                    Append(
                        stream=A,
                        expected_seq=named.expected_seq,
                        records=named.records,
                        fence=named.fence,
                        blobs=(blob,),
                    )
                )
    return life


async def _check(store: JsonlStore, life: Life, steps: int) -> None:
    """Nothing confirmed is lost, nothing half, and it goes on."""
    confirmed = dict.fromkeys(life.bodies, 0)
    for after, ends in life.confirmed:
        if after <= steps:
            confirmed = ends
    kept = {}
    for stream, bodies in life.bodies.items():
        found = [record.body for record in await store.read(stream)]
        assert found == bodies[: len(found)]
        assert len(found) >= confirmed[stream], f"{stream}: lost what was confirmed"
        kept[stream] = len(found)
    assert kept[A] in {3 * kept[PROJECT] - 1, 3 * kept[PROJECT], 3 * kept[PROJECT] + 1}
    assert kept[B] % 2 == 0, "half of a batch"
    for seq, (blob_id, data) in life.blobs.items():
        if seq <= kept[A]:
            assert await store.blob(blob_id) == data
    await store.load_drafts(A)
    assert all(not row.damaged for row in await store.rows())
    lease = await store.take_lease(A)
    await store.append(_append(A, life.bodies[A][: kept[A]], b'{"after":"it"}', lease))


async def test_what_was_confirmed_outlives_a_power_cut_whole(tmp_path: Path) -> None:
    random = Random(7)
    root = tmp_path / "disk"
    root.mkdir()
    life = await _live(root, random)
    assert len(life.steps) > 100
    # Mostly where something hangs in the air.
    in_the_air = [number for number, step in enumerate(life.steps, 1) if step.do == "write"]
    for number in range(CUTS):
        steps = random.choice([*in_the_air, random.randrange(len(life.steps) + 1)])
        left = tmp_path / f"left{number}"
        after_cut(life.steps[:steps], root, random, left)
        async with await open_jsonl(left / "home" / "store") as store:
            await _check(store, life, steps)


async def test_without_syncing_the_same_disk_loses(tmp_path: Path) -> None:
    """The disk has teeth: the same life with the syncs taken out does not survive."""
    random = Random(7)
    root = tmp_path / "disk"
    root.mkdir()
    life = await _live(root, random)
    left = tmp_path / "left"
    after_cut([step for step in life.steps if step.do != "sync"], root, random, left)
    with pytest.raises(Exception, match=r".*"):  # whatever it meets, it is not well
        async with await open_jsonl(left / "home" / "store") as store:
            await _check(store, life, len(life.steps))
