"""Answers in flight survive `kill -9`, each as a draft of its own."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import anyio
import pytest

from weft.store import DraftCall, Store
from weft.store.jsonl import open_jsonl
from weft.store.sqlite import open_sqlite

pytestmark = [pytest.mark.anyio, pytest.mark.process]

BRANCHES = 64

WRITER = """
import os, signal, sys
from pathlib import Path
import anyio
from weft.ids import NodeId
from weft.store import DraftChunk
from weft.store.jsonl import open_jsonl
from weft.store.sqlite import open_sqlite

async def main():
    place, branches = Path(sys.argv[2]), int(sys.argv[3])
    sqlite = sys.argv[1] == "sqlite"
    store = await (open_sqlite(place / "weft.db") if sqlite else open_jsonl(place))
    lease = await store.take_lease("ses_a")
    def save(branch, part, chunk, **call):
        node = NodeId(f"n{branch}")
        store.save_draft(DraftChunk(
            stream="ses_a", fence=lease.fence, node=node, part=part, chunk=chunk, **call
        ))
    for step in range(3):
        for branch in range(branches):
            save(branch, "thinking", f"hmm{step} ")
            save(branch, "text", f"{branch}.{step} ")
            save(branch, "arguments", str(step), index=branch % 2, tool="edit")
    await store.load_drafts("ses_a")
    os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main)
"""


async def opened(kind: str, place: Path) -> Store:
    return await (open_sqlite(place / "weft.db") if kind == "sqlite" else open_jsonl(place))


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
async def test_64_drafts_of_one_session_survive_a_kill_as_64_drafts(
    kind: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", WRITER, kind, str(tmp_path), str(BRANCHES)]
    killed = await anyio.run_process(command, check=False)
    assert killed.returncode == -signal.SIGKILL
    async with await opened(kind, tmp_path) as store:
        await store.take_lease("ses_a")
        drafts = await store.load_drafts("ses_a")
    assert [draft.node for draft in drafts] == [f"n{branch}" for branch in range(BRANCHES)]
    for branch, draft in enumerate(drafts):
        assert draft.text == "".join(f"{branch}.{step} " for step in range(3))
        assert draft.thinking == "hmm0 hmm1 hmm2 "
        assert draft.calls == (DraftCall(index=branch % 2, tool="edit", arguments="012"),)
