"""The words of a line: read where they are kept, held while they are needed, and never a mixture of
two moments.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Sequence

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.history_generator import A, History
from tests.support.strategies import forks, histories
from weft.events import AnyFact, NewMessage, ToolComplete, encode, kind_of
from weft.ids import BlobId, CallUid, NodeId
from weft.loop import LineEntry
from weft.messages import File, Image, Node, Part, Text, Thinking, ToolCall, ToolResult
from weft.session.log.line import ENTRY_BYTES, LineCache, LineCacheBudget
from weft.session.log.long_parts import BLOB_OVER, spill
from weft.session.log.stored_line import load_line, unspill
from weft.state import SessionState
from weft.store import Append, MemoryStore, Record

pytestmark = pytest.mark.anyio


class Library(MemoryStore):
    """A store that facts can be put into, and in which something may happen while it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        self.reads = 0

    async def put(self, *facts: AnyFact) -> None:
        for fact in facts:
            lease = await self.take_lease(fact.session_id)
            record = Record(fact.seq, fact.at, kind_of(fact), encode(fact))
            await self.append(
                Append(
                    stream=fact.session_id,
                    expected_seq=fact.seq - 1,
                    records=(record,),
                    fence=lease.fence,
                )
            )

    async def read_at(self, stream: str, seqs: Sequence[int]) -> list[Record]:
        found = await super().read_at(stream, seqs)
        self.reads += 1
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return found


@given(history=st.one_of(histories(40), forks(20)), cuts=st.sets(st.integers(0, 80)))
def test_a_line_that_grows_is_the_line_that_is_loaded(history: History, cuts: set[int]) -> None:
    """Wherever somebody looks, the cache says what the log says."""

    async def check() -> None:
        store = Library()
        state, cache = history.empty(), LineCache(store)
        cache.start_empty()
        for number, fact in enumerate(history.facts):
            await store.put(fact)
            state.apply(fact)
            cache.apply(fact)
            if number in cuts:
                assert await cache.line(state.tree, state.tree.head) == await load_line(
                    state.tree, state.tree.head, store
                )

    anyio.run(check)


# --- while it is read, the session goes on -----------------------------------------------------


CALL = CallUid("cal_1")


async def answered() -> tuple[Library, SessionState]:
    """A session whose last answer made a call that has no result yet."""
    store, state = Library(), SessionState(session_id=A)
    user = Node(id=NodeId("u"), role="user", parts=(Text(text="go"),))
    parts: tuple[Part, ...] = (ToolCall(call_uid=CALL, name="act"),)
    answer = Node(id=NodeId("a"), role="assistant", parts=parts, parent=NodeId("u"))
    for seq, node in enumerate((user, answer), start=1):
        await happen(store, state, NewMessage(session_id=A, seq=seq, node=node))
    return store, state


async def happen(store: Library, state: SessionState, *facts: AnyFact) -> None:
    await store.put(*facts)
    for fact in facts:
        state.apply(fact)


def done() -> ToolComplete:
    result = ToolResult(call_uid=CALL, text="done")
    return ToolComplete(session_id=A, seq=3, call_uid=CALL, node=NodeId("a"), result=result)


async def test_a_line_is_of_one_moment_though_a_result_comes_while_it_is_read() -> None:
    store, state = await answered()
    store.meanwhile = lambda: happen(store, state, done())
    line = await load_line(state.tree, state.tree.head, store)
    assert [len(entry.results) for entry in line] == [0, 0]
    line = await load_line(state.tree, state.tree.head, store)
    assert [len(entry.results) for entry in line] == [0, 1]


async def test_what_came_while_a_line_was_read_is_in_the_next_one() -> None:
    """The line that was read is a moment old; it must not be held as if it were the present one."""
    store, state = await answered()
    cache = LineCache(store)

    async def finish() -> None:
        await happen(store, state, done())
        cache.apply(done())

    store.meanwhile = finish
    await cache.line(state.tree, state.tree.head)
    line: list[LineEntry] = await cache.line(state.tree, state.tree.head)
    assert [len(entry.results) for entry in line] == [0, 1]


# --- long parts ----------------------------------------------------------------------------


long_texts = st.sampled_from(["", "short", "x" * BLOB_OVER, "ü" * (BLOB_OVER + 1)])
parts = st.lists(
    st.one_of(
        st.builds(Text, text=long_texts),
        st.builds(File, name=st.just("a.txt"), text=long_texts),
        st.builds(
            Image,
            media_type=st.just("image/png"),
            data=st.integers(0, BLOB_OVER).map(lambda n: base64.b64encode(bytes(n)).decode()),
        ),
    ),
    max_size=4,
).map(tuple)


@given(given_parts=parts)
def test_what_is_moved_out_comes_back_as_it_was(given_parts: tuple[Part, ...]) -> None:
    node = Node(id=NodeId("n"), role="user", parts=given_parts)
    stored, blobs = spill(NewMessage(node=node))
    assert isinstance(stored, NewMessage)
    assert len(encode(stored)) < BLOB_OVER * 6

    class Blobs(MemoryStore):
        async def blob(self, blob_id: BlobId) -> bytes | None:
            return blobs.get(blob_id)

    assert anyio.run(unspill, stored.node.parts, Blobs()) == given_parts


# --- what the caches of all sessions hold ------------------------------------------------------


async def one_message(text: str) -> tuple[Library, SessionState]:
    store, state = Library(), SessionState(session_id=A)
    node = Node(id=NodeId("u"), role="user", parts=(Text(text=text),))
    await happen(store, state, NewMessage(session_id=A, seq=1, node=node))
    return store, state


async def test_the_lines_of_all_sessions_share_one_budget_and_the_oldest_gives_way() -> None:
    budget = LineCacheBudget(3 * (ENTRY_BYTES + 1_000))
    caches = []
    for number in range(5):
        store, state = await one_message(f"{number}" * 900)
        cache = LineCache(store, budget)
        await cache.line(state.tree, state.tree.head)
        caches.append((cache, store, state))
    assert 0 < budget.held_bytes <= 3 * (ENTRY_BYTES + 1_000)
    reads = []
    for cache, store, state in reversed(caches):
        store.reads = 0
        await cache.nodes(state.tree, [NodeId("u")])
        reads.append(store.reads)
    assert reads == [0, 0, 0, 1, 1]
    for cache, _, _ in caches:
        cache.drop()
    assert budget.held_bytes == 0


@pytest.mark.parametrize(
    "part",
    [
        Text(text="x" * 5_000),
        File(name="a", text="x" * 5_000),
        Thinking(text="x" * 2_000, signature="y" * 3_000),
        ToolCall(call_uid=CALL, name="write", args={"content": "x" * 5_000}),
    ],
)
async def test_whatever_a_message_holds_counts(part: Part) -> None:
    store, state = Library(), SessionState(session_id=A)
    node = Node(id=NodeId("a"), role="assistant", parts=(part,))
    await happen(store, state, NewMessage(session_id=A, seq=1, node=node))
    budget = LineCacheBudget()
    cache = LineCache(store, budget)
    await cache.line(state.tree, state.tree.head)
    assert budget.held_bytes >= 5_000


async def test_a_result_that_was_loaded_counts_like_one_that_came() -> None:
    store, state = await answered()
    living, loaded = LineCacheBudget(), LineCacheBudget()
    cache = LineCache(store, living)
    await cache.line(state.tree, state.tree.head)
    await happen(store, state, done())
    cache.apply(done())
    await LineCache(store, loaded).line(state.tree, state.tree.head)
    assert living.held_bytes == loaded.held_bytes


async def test_a_line_that_is_read_after_the_session_has_closed_is_not_held() -> None:
    store, state = await one_message("late")
    budget = LineCacheBudget()
    cache = LineCache(store, budget)
    cache.close()
    (entry,) = await cache.line(state.tree, state.tree.head)
    assert entry.node.text == "late"
    assert budget.held_bytes == 0
