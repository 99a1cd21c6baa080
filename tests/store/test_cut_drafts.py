"""Drafts that were cut short because the disk was slow: the cut lasts as long as the draft."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from weft.errors import Conflict
from weft.ids import NodeId
from weft.store import Lease, Store
from weft.store.jsonl import open_jsonl
from weft.store.queued_store import MOST_DRAFT_BYTES
from weft.store.sqlite import open_sqlite
from weft.testing.store_contract import A, chunk, facts

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("kind", ["sqlite", "jsonl"])]


async def opened(kind: str, place: Path) -> Store:
    return await (open_sqlite(place / "weft.db") if kind == "sqlite" else open_jsonl(place))


async def cut_short(store: Store, lease: Lease) -> None:
    """More than may wait for the disk, at once."""
    store.save_draft(chunk(lease, "x" * MOST_DRAFT_BYTES))
    drafts = await store.load_drafts(A)
    assert "n1" not in {draft.node for draft in drafts}


@pytest.mark.parametrize("how", ["ends_drafts", "drop_draft"])
async def test_the_end_of_a_draft_ends_its_cut(kind: str, how: str, tmp_path: Path) -> None:
    async with await opened(kind, tmp_path) as store:
        lease = await store.take_lease(A)
        await cut_short(store, lease)
        ends = {"ends_drafts": (NodeId("n1"),)} if how == "ends_drafts" else {"drop_draft": True}
        await store.append(msgspec.structs.replace(facts(lease, 0, "n"), **ends))
        store.save_draft(chunk(lease, "anew"))
        texts = {draft.node: draft.text for draft in await store.load_drafts(A)}
        assert texts[NodeId("n1")] == "anew"


async def test_a_refused_append_leaves_a_draft_cut(kind: str, tmp_path: Path) -> None:
    async with await opened(kind, tmp_path) as store:
        lease = await store.take_lease(A)
        await cut_short(store, lease)
        ends = msgspec.structs.replace(facts(lease, 5, "n"), ends_drafts=(NodeId("n1"),))
        with pytest.raises(Conflict):
            await store.append(ends)
        store.save_draft(chunk(lease, "after a hole"))
        assert "n1" not in {draft.node for draft in await store.load_drafts(A)}
