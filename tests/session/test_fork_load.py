"""A stored fork opens from its ancestors' snapshots, where they were kept before it was made."""

from __future__ import annotations

import pytest
from bench.logs import facts, stamped, write_facts

from weft.events import ForkPoint, SessionCreated
from weft.ids import SessionId
from weft.session import load_state
from weft.session.log.load import keep_snapshot
from weft.state import SessionState, fold, snapshot
from weft.store import Record
from weft.store.memory import MemoryStore

pytestmark = pytest.mark.anyio

PARENT, CHILD, GRANDCHILD = (SessionId(f"ses_{name}") for name in ("p", "c", "g"))
FORKED_AT = 700


class CountingStore(MemoryStore):
    """A store in memory that counts what is read of each log."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, int] = {}

    async def read(self, stream: str, *, after: int = 0, limit: int = 1_000) -> list[Record]:
        records = await super().read(stream, after=after, limit=limit)
        self.seen[stream] = self.seen.get(stream, 0) + len(records)
        return records


async def family(store: CountingStore) -> SessionState:
    """A session, a fork of it and a fork of that; returns what the last one's logs come to."""
    parent = list(facts(PARENT, 1_000))
    fork = ForkPoint(session_id=PARENT, seq=FORKED_AT, node=None)
    child = list(stamped(CHILD, [SessionCreated(fork=fork)]))
    fork = ForkPoint(session_id=CHILD, seq=1, node=None)
    grandchild = list(stamped(GRANDCHILD, [SessionCreated(fork=fork)]))
    for stream, log in ((PARENT, parent), (CHILD, child), (GRANDCHILD, grandchild)):
        await write_facts(store, stream, log)
    return fold([*parent[:FORKED_AT], *child, *grandchild], SessionState(session_id=GRANDCHILD))


@pytest.mark.parametrize("kept", [None, 600, FORKED_AT, 701, 1_000])
async def test_a_fork_is_what_its_logs_come_to_whatever_snapshot_its_parent_has(
    kept: int | None,
) -> None:
    store = CountingStore()
    expected = await family(store)
    if kept is not None:
        await keep_snapshot(fold(facts(PARENT, kept), SessionState(session_id=PARENT)), store)
    store.seen.clear()
    assert snapshot(await load_state(GRANDCHILD, store)) == snapshot(expected)
    usable = kept is not None and kept <= FORKED_AT
    if usable:
        assert store.seen.get(PARENT, 0) <= 1_000 - (kept or 0), "read from the snapshot on"
    else:
        assert store.seen[PARENT] >= FORKED_AT, "a snapshot of later is of no use"


async def test_a_fork_that_was_made_where_a_snapshot_ends_reads_none_of_its_parents_facts() -> None:
    store = CountingStore()
    await family(store)
    at_the_fork = fold(facts(PARENT, FORKED_AT), SessionState(session_id=PARENT))
    await keep_snapshot(at_the_fork, store)
    store.seen.clear()
    await load_state(CHILD, store)
    assert store.seen.get(PARENT, 0) == 0
