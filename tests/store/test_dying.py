"""A store whose process dies at a commit boundary: what was told is there, and every batch is there
whole or not at all.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from tests.support.crashing_store import STEPS, STREAMS, open_store
from weft import faults
from weft.testing.store_contract import facts

pytestmark = [pytest.mark.anyio, pytest.mark.process]

POINTS = [
    (kind, f"store.{kind}.{name}", at)
    for kind, names, passes in (
        ("sqlite", ("before_begin", "before_commit", "after_commit"), (1, 3)),
        ("jsonl", ("before_write", "after_write", "after_sync"), (1, 2, 3, 4, 6)),
    )
    for name in names
    for at in passes
]


@pytest.mark.parametrize(("kind", "point", "at"), POINTS)
async def test_a_death_at_a_boundary_leaves_whole_batches(
    kind: str, point: str, at: int, tmp_path: Path
) -> None:
    died = await anyio.run_process(
        [sys.executable, "-m", "tests.support.crashing_store", kind, str(tmp_path), point, str(at)],
        check=False,
        stderr=subprocess.PIPE,
    )
    assert died.returncode == faults.EXIT_CODE, died.stderr.decode()
    told = len(died.stdout.split())
    store = await open_store(kind, tmp_path)
    ends = [await store.last_seq(name) for name in STREAMS]
    there = ends[0]
    assert told <= there <= told + 1, (
        "what was told is there, and at most the step in hand beside it"
    )
    assert ends[1:] == [(there + 1) // 2] * 2, "a batch is there whole or not at all"
    if point.endswith("after_commit"):
        assert there == told + 1
    if point.endswith(("before_begin", "before_commit")):
        assert there == told
    lease = await store.take_lease(STREAMS[0])
    assert lease.fence == 2, "the dead one is replaced at once"
    await store.append(facts(lease, there, "and on it goes"))
    await store.aclose()
    assert told < STEPS
