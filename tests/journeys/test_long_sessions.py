"""What a turn, a page and an opening read of a session, however long it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import anyio
import pytest
from bench.logs import answered_turn, facts, stamped, write_facts

from tests.support.world import World
from weft.errors import UsageError
from weft.events import Compacted, Fact, NewMessage, SessionCreated
from weft.ids import BlobId, NodeId, SessionId
from weft.messages import Node, Text
from weft.providers.scripted import ScriptedModel
from weft.session.log.load import load_with_snapshot
from weft.session.log.long_parts import BLOB_OVER
from weft.session.log.snapshot_schedule import FACTS_BETWEEN, LOG_SHARE, is_snapshot_due
from weft.state import FOLD_VERSION
from weft.state.snapshot_codec import PAGED_FROM
from weft.store import MemoryStore, Record, Snapshot

pytestmark = pytest.mark.anyio

LONG = SessionId("ses_long")
KEPT = 5
"""Turns after the last compaction."""


class CountingStore(MemoryStore):
    """A memory store that counts what is read from it."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self.facts_read = 0
        self.blobs_read = 0

    async def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[Record]:
        found = await super().read(stream, after=after, limit=limit)
        self.facts_read += len(found)
        return found

    async def read_at(self, stream: str, seqs: Sequence[int]) -> list[Record]:
        found = await super().read_at(stream, seqs)
        self.facts_read += len(found)
        return found

    async def blob(self, blob_id: BlobId) -> bytes | None:
        self.blobs_read += 1
        return await super().blob(blob_id)

    async def kept(self) -> Snapshot | None:
        return await self.load_snapshot(LONG, FOLD_VERSION)


def long_session(turns: int) -> Iterator[Fact]:
    """So many turns, compacted up to the last few."""
    yield SessionCreated(project_path="/", model="scripted:script", title="Long work")
    parent: NodeId | None = None
    for turn in range(1, turns + 1):
        yield from answered_turn(turn, parent)
        parent = NodeId(f"nod_{turn:020}_a")
        if turn % 10 == 10 - KEPT:
            yield Compacted(upto=parent, summary="What was done so far.")


async def prepared(turns: int) -> CountingStore:
    store = CountingStore()
    await write_facts(store, LONG, stamped(LONG, long_session(turns)))
    store.clear()
    return store


async def read_by_a_turn(world: World, turns: int) -> tuple[int, int]:
    """The facts that the first and the second turn of a reopened session read."""
    store = await prepared(turns)
    async with world.open(ScriptedModel(["one", "two"]), store=store) as app:
        session = await app.sessions.start_session(session_id=LONG)
        store.clear()
        reply = await session.send_message("go")
        assert [message.content for message in reply.messages] == ["go", "one"]
        first, store.facts_read = store.facts_read, 0
        reply = await session.send_message("on")
        assert [message.content for message in reply.messages] == ["on", "two"]
        return first, store.facts_read


@pytest.mark.requirement("session:turn-cost")
async def test_a_turn_reads_only_what_came_after_the_last_compaction(plain_world: World) -> None:
    short = await read_by_a_turn(plain_world, 20)
    long = await read_by_a_turn(plain_world, 400)
    assert short == long
    # The prompt and the answers of the turns that were kept, the summary, and the turn's own
    # facts, which its caller reads from the log.
    assert long[0] <= 2 * KEPT + 1 + 12
    assert long[1] <= 12


async def test_the_model_is_given_the_same_as_ever(plain_world: World) -> None:
    store = await prepared(20)
    model = ScriptedModel(["one"])
    async with plain_world.open(model, store=store) as app:
        session = await app.sessions.start_session(session_id=LONG)
        await session.send_message("go")
        assert len(await session.messages()) == 42
    assert "What was done so far." in str(model.last_request.messages[0])
    # The summary, what was kept, the message, and the note on the environment behind it.
    assert len(model.last_request.messages) == 1 + 2 * KEPT + 1 + 1


@pytest.mark.requirement("session:line")
async def test_pages_are_the_line_in_pieces_and_read_only_what_is_on_them(
    plain_world: World,
) -> None:
    store = await prepared(40)
    async with plain_world.open(ScriptedModel([]), store=store) as app:
        session = await app.sessions.start_session(session_id=LONG)
        await session.add_system_message("a note")
        whole = await session.messages_with_ids()
        pages = [await session.line(limit=15)]
        while pages[0].before is not None:
            store.clear()
            pages.insert(0, await session.line(before=pages[0].before, limit=15))
            assert store.facts_read <= 15
        assert [item for page in pages for item in page.items] == whole
        assert pages[-1].after is None
        for page, following in pairwise(pages):
            assert page.after == page.items[-1][0]
            assert await session.line(after=page.after, limit=15) == following
        assert await session.messages(limit=3) == [message for _, message in whole[-3:]]


@pytest.mark.parametrize("length", [100, 2_000])
async def test_a_page_with_calls_reads_no_more_of_a_longer_session(
    plain_world: World, length: int
) -> None:
    store = CountingStore()
    await write_facts(store, LONG, facts(LONG, length))
    async with plain_world.open(ScriptedModel([]), store=store) as app:
        session = await app.sessions.start_session(session_id=LONG)
        await session.line(limit=12)
        store.clear()
        page = await session.line(limit=12)
        assert [message for _, message in page.items if message.duration_ms]
        # Each message, and for each answer what stands between it and its results.
        assert store.facts_read <= 12 + 6 * 4


async def test_a_page_at_a_place_that_is_not_there_is_refused(plain_world: World) -> None:
    async with plain_world.open(ScriptedModel(["one"])) as app:
        session = await app.sessions.start_session()
        assert (await session.line()).items == ()
        reply = await session.send_message("go")
        assert reply.text == "one"
        with pytest.raises(UsageError, match="no message 'nod_x'"):
            await session.line(before="nod_x")
        with pytest.raises(UsageError, match="not both"):
            await session.line(before="a", after="b")
        with pytest.raises(UsageError, match="a number from 1 on"):
            await session.line(limit=0)


@pytest.mark.requirement("session:nodes")
async def test_the_tree_of_a_long_session_reads_a_bounded_number_of_messages(
    plain_world: World,
) -> None:
    store = await prepared(700)
    async with plain_world.open(ScriptedModel(["one"]), store=store) as app:
        session = await app.sessions.start_session(session_id=LONG)
        await session.send_message("x" * (BLOB_OVER + 1))
        store.clear()
        tree = await session.tree()
        assert store.facts_read == 1_000
        assert store.blobs_read == 0
        assert len(tree.messages) == 1_402
        assert tree.messages[-2].text.startswith("xxx")
        assert tree.messages[0].text == ""
        (first,) = await session.nodes([tree.messages[0].id])
        assert first.text.startswith("the cart holds")


# --- snapshots -------------------------------------------------------------------------------


async def test_a_running_session_keeps_snapshots_so_that_a_crash_costs_little(
    plain_world: World,
) -> None:
    store = await prepared(400)
    async with plain_world.open(ScriptedModel(["one"]), store=store) as app:
        session = await app.sessions.start_session(session_id=LONG)
        await session.send_message("go")
        # Asked after the turn: its answer comes from the mailbox behind the snapshot.
        await session.set_budget(usd=1.0)
        kept = await store.kept()
        assert kept is not None
        # As a process that starts after a kill would find it.
        state, snapshot_seq = await load_with_snapshot(LONG, store)
        assert state.seq - snapshot_seq < state.seq // LOG_SHARE


async def test_what_an_opening_had_to_fold_is_kept_before_the_session_is_used(
    plain_world: World,
) -> None:
    store = await prepared(400)
    async with plain_world.open(ScriptedModel([]), store=store) as app:
        await app.sessions.start_session(session_id=LONG)
        # As a process that starts after a kill at this instant would find it.
        last = await store.last_seq(LONG)
        state, snapshot_seq = await load_with_snapshot(LONG, store)
        assert state.seq == last
        assert last - snapshot_seq < 10


async def test_a_short_tail_is_folded_again_and_no_snapshot_is_written(
    plain_world: World,
) -> None:
    store = await prepared(100)
    async with plain_world.open(ScriptedModel([]), store=store) as app:
        await app.sessions.start_session(session_id=LONG)
        assert await store.kept() is None


def notes(count: int) -> Iterator[Fact]:
    """A line of so many messages, and nothing else."""
    yield SessionCreated(project_path="/", model="scripted:script", title="Long text")
    parent: NodeId | None = None
    for number in range(count):
        node = NodeId(f"nod_{number:026}")
        yield NewMessage(node=Node(id=node, role="user", parts=(Text(text="x"),), parent=parent))
        parent = node


async def test_messages_that_never_cease_put_a_snapshot_off_only_so_far(
    plain_world: World,
) -> None:
    store = CountingStore()
    await write_facts(store, LONG, stamped(LONG, notes(PAGED_FROM)))
    reached: list[int] = []
    async with plain_world.open(ScriptedModel([]), store=store) as app:
        session = await app.sessions.start_session(session_id=LONG)

        async def add_note() -> None:
            await session.add_system_message("a note")
            kept = await store.kept()
            assert kept is not None
            reached.append(kept.seq)

        async with anyio.create_task_group() as group:
            for _ in range(3 * FACTS_BETWEEN):
                group.start_soon(add_note)
    first = reached[0]
    # They all wait at once: there is no moment in which the session has nothing to do.
    assert set(reached[: 2 * FACTS_BETWEEN - 10]) == {first}
    assert reached[2 * FACTS_BETWEEN + 10] >= first + 2 * FACTS_BETWEEN


@pytest.mark.parametrize(("length", "after"), [(100, 10), (10_000, 10), (10_000, 2_000)])
async def test_all_snapshots_of_a_session_together_are_not_much_longer_than_its_log(
    length: int, after: int
) -> None:
    kept, written = 0, 0
    for seq in range(1, length + 1):
        if is_snapshot_due(seq, kept, after):
            kept, written = seq, written + seq
    assert length - kept <= max(after, length // LOG_SHARE)
    assert written <= (LOG_SHARE + 1) * length
