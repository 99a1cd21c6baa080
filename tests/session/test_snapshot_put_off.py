"""Snapshots of very long sessions give way to messages."""

from __future__ import annotations

import pytest

from weft.events import NewMessage, SessionCreated
from weft.ids import NodeId, SessionId
from weft.messages import Node, Text
from weft.session.log.load import SnapshotPutOff, keep_snapshot
from weft.state import SessionState, pack
from weft.store import MemoryStore, Snapshot

pytestmark = pytest.mark.anyio

ID = SessionId("ses_1")
NODES = 20_000


class KeptSnapshots(MemoryStore):
    """A store of a session that it has no log of."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Snapshot] = []

    async def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        self.kept.append(snapshot)


@pytest.fixture(scope="module")
def state() -> SessionState:
    made = SessionState(session_id=ID)
    made.apply(SessionCreated(project_path="/p", title="t", model="m", session_id=ID, seq=1, at=1))
    for number in range(NODES):
        parent = NodeId(f"n{(number - 1) // 3}") if number else None
        node = Node(id=NodeId(f"n{number}"), role="user", parts=(Text(text="x"),), parent=parent)
        made.apply(NewMessage(node=node, advance=False, session_id=ID, seq=number + 2, at=1))
    return made


async def test_a_snapshot_that_gives_way_is_not_kept_and_a_later_one_is_whole(
    state: SessionState,
) -> None:
    store = KeptSnapshots()
    before, asked = pack(state), 0

    def soon() -> bool:
        nonlocal asked
        asked += 1
        return asked > 40

    with pytest.raises(SnapshotPutOff):
        await keep_snapshot(state, store, gives_way=soon)
    assert asked == 41, "nothing is done after it"
    assert store.kept == []
    await keep_snapshot(state, store)
    assert [each.data for each in store.kept] == [before]


def test_a_long_snapshot_asks_all_along_whether_it_is_to_go_on(state: SessionState) -> None:
    asked = 0

    def pause() -> None:
        nonlocal asked
        asked += 1

    pack(state, pause=pause)
    # Once a page, of 128 nodes, and between the steps before that.
    assert asked > NODES / 128 + 10
