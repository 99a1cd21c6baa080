"""Snapshots with pages: what is read page by page is what was put away, whatever comes after it."""

from __future__ import annotations

import copy

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.history_generator import B, History, write_history
from tests.support.strategies import forks, histories, numbers
from weft.events import Fact, NewMessage, NodeSplit, SubtreeDeleted, SubtreeRestored
from weft.ids import NodeId, SessionId
from weft.messages import Node
from weft.state import SessionState, fold, pack, snapshot, snapshot_pages, unpack
from weft.state.snapshot_codec import MAGIC
from weft.state.snapshot_pages import StoredPages, parted
from weft.tree import NodeSkeleton
from weft.tree.paged_map import PagedMap

any_history = histories() | forks()
page_sizes = st.sampled_from((1, 2, 3, 7, 128))


def in_pages(state: SessionState, page_size: int = 2) -> SessionState:
    """The state as it comes back from a snapshot with pages."""
    again = unpack(pack(state, paged_from=0, page_size=page_size))
    assert isinstance(again.tree.nodes, PagedMap)
    return again


def counted(state: SessionState) -> dict[NodeId, int]:
    """The visible nodes below each, counted by hand."""
    below = dict.fromkeys(state.tree.nodes, 0)
    for node, held in state.tree.nodes.items():
        if not held.hidden:
            for above in list(state.tree.ancestors(node))[1:]:
                below[above] += 1
    return {node: 0 if state.tree.nodes[node].hidden else number for node, number in below.items()}


def asked(state: SessionState) -> dict[NodeId, int]:
    """The same as the tree counts them."""
    return {node: state.tree.descendant_count(node) for node in state.tree.nodes}


@given(history=any_history, page_size=page_sizes)
def test_a_state_in_pages_is_the_state_that_was_put_away(history: History, page_size: int) -> None:
    state = fold(history.facts, history.empty())
    again = in_pages(state, page_size)
    assert asked(again) == counted(state)
    assert len(again.tree.nodes) == len(state.tree.nodes)
    assert list(again.tree.nodes) == list(state.tree.nodes)
    nodes = again.tree.nodes
    assert isinstance(nodes, PagedMap)
    assert list(reversed(nodes)) == list(reversed(list(state.tree.nodes)))
    for node in reversed(list(state.tree.nodes)):
        assert again.tree.nodes[node] == state.tree.nodes[node]
        assert again.ledger.on_line(node, again.tree) == state.ledger.on_line(node, state.tree)
    assert snapshot(again) == snapshot(state)


@given(history=any_history, page_size=page_sizes, data=st.data())
def test_a_state_in_pages_goes_on_the_same_and_is_put_away_again(
    history: History, page_size: int, data: st.DataObject
) -> None:
    cut, second = sorted(data.draw(st.integers(0, len(history.facts))) for _ in range(2))
    whole = fold(history.facts, history.empty())
    again = in_pages(fold(history.facts[:cut], history.empty()), page_size)
    fold(history.facts[cut:second], again)
    # Part of it was read by now, and part is on the pages still.
    again = in_pages(again, page_size)
    if data.draw(st.booleans()):
        asked(again)
    fold(history.facts[second:], again)
    assert asked(again) == counted(whole)
    assert snapshot(in_pages(again)) == snapshot(whole)
    assert snapshot(again) == snapshot(whole)


def test_messages_that_came_after_a_snapshot_are_counted_once_when_one_is_split() -> None:
    history = write_history(numbers(84, 24))
    again = in_pages(fold(history.facts[:4], history.empty()))
    assert isinstance(history.facts[-1], NodeSplit)
    fold(history.facts[4:], again)
    assert asked(again) == counted(again)


@given(history=histories(), page_size=page_sizes)
def test_a_fork_of_a_state_in_pages_goes_its_own_way(history: History, page_size: int) -> None:
    state = fold(history.facts, history.empty())
    again = in_pages(state, page_size)
    fork, plain = again.fork(B), state.fork(B)
    for each in (fork, plain):
        for node in list(state.tree.nodes)[:2]:
            each.apply(SubtreeDeleted(node=node, session_id=B, seq=each.seq + 1))
    assert snapshot(fork) == snapshot(plain)
    assert snapshot(in_pages(fork)) == snapshot(plain)
    assert snapshot(again) == snapshot(state)


@given(history=histories(), data=st.data())
def test_damaged_pages_are_refused(history: History, data: st.DataObject) -> None:
    stored = bytearray(pack(fold(history.facts, history.empty()), paged_from=0))
    at = data.draw(st.integers(0, len(stored) - 1))
    stored[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(msgspec.MsgspecError):
        unpack(bytes(stored))
    with pytest.raises(msgspec.MsgspecError):
        unpack(bytes(stored[:at]))


def grown(count: int) -> SessionState:
    """A tree with one deep line and branches everywhere."""
    session = SessionId("ses_grown")
    state = SessionState(session_id=session)
    for number in range(count):
        above = number - 1 if number < count // 4 else (number * 7919) % number
        node = Node(
            id=NodeId(f"nod_{number}"),
            role="user",
            parent=NodeId(f"nod_{above}") if number else None,
        )
        state.apply(NewMessage(node=node, session_id=session, seq=number + 1, at=1.0))
    return state


def pages_read(state: SessionState) -> int:
    nodes = state.tree.nodes
    assert isinstance(nodes, PagedMap)
    return sum(keys is not None for keys in nodes.book.read_pages)


def test_a_long_session_is_read_page_by_page_and_a_line_lies_on_few() -> None:
    state = grown(8_000)
    again = unpack(pack(state, paged_from=0))
    nodes = again.tree.nodes
    assert isinstance(nodes, PagedMap)
    assert pages_read(again) == 0
    assert again.tree.descendant_count(NodeId("nod_0")) == 7_999
    assert pages_read(again) == 1
    tip = max(state.tree.nodes, key=lambda node: state.tree.nodes[node].depth)
    line = again.tree.line(tip)
    assert line == state.tree.line(tip)
    # Heavy paths: a page for each 128 of the line, and few more however the tree has grown.
    assert pages_read(again) <= 1 + len(line) // 128 + 13
    assert NodeId("nod_none") not in nodes
    assert nodes.get(NodeId("nod_none")) is None


def test_deleting_and_restoring_read_and_count_no_more_than_what_they_hide() -> None:
    state = grown(8_000)
    again = unpack(pack(state, paged_from=0))
    leaf = NodeId("nod_7999")
    seq = 8_001
    steps: list[Fact] = [SubtreeDeleted(node=leaf), SubtreeRestored(node=leaf)]
    for number, fact in enumerate((*steps, steps[0])):
        placed = msgspec.structs.replace(fact, session_id=state.session_id, seq=seq + number)
        for each in (state, again):
            each.apply(placed)
        root = NodeId("nod_0")
        assert again.tree.descendant_count(root) == state.tree.descendant_count(root)
    assert pages_read(again) <= 40
    assert asked(again) == counted(state)


def test_a_short_session_is_a_plain_dict() -> None:
    nodes = unpack(pack(grown(100))).tree.nodes
    assert type(nodes) is dict
    assert isinstance(nodes[NodeId("nod_1")], NodeSkeleton)


def test_whatever_walks_through_pages_as_a_dict_finds_all_of_it_or_fails() -> None:
    state = grown(8)
    whole = dict(state.tree.nodes)

    def fresh() -> dict[NodeId, NodeSkeleton]:
        return in_pages(state).tree.nodes  # type: ignore[return-value]

    assert fresh() | {} == {} | fresh() == {**fresh()} == dict(fresh()) == whole
    assert list(fresh() | {}) == list(whole)
    for copied in (fresh().copy(), copy.copy(fresh()), copy.deepcopy(fresh())):
        assert type(copied) is dict
        assert copied == whole
    for encode in (msgspec.json.encode, msgspec.msgpack.encode, msgspec.to_builtins):
        with pytest.raises(TypeError, match="PagedMap"):
            encode(fresh())
    for name, keys in (
        ("pop", ("nod_1",)),
        ("popitem", ()),
        ("clear", ()),
        ("__delitem__", ("nod_1",)),
    ):
        nodes = fresh()
        with pytest.raises(TypeError, match="nothing is removed"):
            getattr(nodes, name)(*keys)
        assert nodes == whole
    assert repr(fresh()) == "<PagedMap of 8 entries>"


def test_what_is_added_to_pages_in_any_way_is_behind_what_is_on_them() -> None:
    state = grown(8)
    new, old = NodeId("nod_new"), NodeId("nod_3")
    held = state.tree.nodes[NodeId("nod_0")]
    nodes = in_pages(state).tree.nodes
    assert isinstance(nodes, PagedMap)
    assert nodes.setdefault(old, held) == state.tree.nodes[old]
    assert nodes.setdefault(new, held) is held
    assert list(nodes) == [*state.tree.nodes, new]
    for added in ({old: held, new: held}, [(old, held), (new, held)]):
        first, second = in_pages(state).tree.nodes, in_pages(state).tree.nodes
        assert isinstance(first, PagedMap)
        assert isinstance(second, PagedMap)
        first.update(added)
        same = second
        same |= added
        assert same is second
        for nodes in (first, second):
            assert list(nodes) == [*state.tree.nodes, new]
            assert nodes[old] is nodes[new] is held
            assert len(nodes.unread()) == 9


def added(state: SessionState, count: int, *, under: NodeId) -> None:
    """So many new nodes, one below the other."""
    for number in range(count):
        node = Node(id=NodeId(f"{under}_{number}"), role="user", parent=under)
        under = node.id
        state.apply(NewMessage(node=node, session_id=state.session_id, seq=state.seq + 1, at=1.0))


def stored_pages(data: bytes) -> list[bytes]:
    return [bytes(page) for page in parted(data, MAGIC)[1].pages]


def test_pages_that_were_not_read_are_copied() -> None:
    data = pack(grown(8_000), paged_from=0)
    again = unpack(data)
    added(again, 300, under=NodeId("nod_7999"))
    read = pages_read(again)
    assert read < 10
    written = pack(again, paged_from=0)
    assert pages_read(again) == read
    before, after = stored_pages(data), stored_pages(written)
    assert len(after) == -(-8_300 // 128)
    # The last one was not full.
    assert sum(old != new for old, new in zip(before, after, strict=False)) <= read + 1
    assert snapshot(unpack(written)) == snapshot(again)


def test_all_nodes_are_numbered_anew_when_many_came_since() -> None:
    state = unpack(pack(grown(8_000), paged_from=0))
    numbered = []
    for turn in range(6):
        added(state, 500, under=NodeId(f"nod_{turn}"))
        data = pack(state, paged_from=0)
        numbered.append(parted(data, MAGIC)[1].numbered)
        state = unpack(data)
    assert numbered == [8_000, 8_000, 8_000, 8_000, 10_500, 10_500]


def test_a_page_is_not_decoded_to_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    again = unpack(pack(grown(8_000), paged_from=0))
    looked: list[int] = []
    read = StoredPages.read

    def seen(self: StoredPages, page: int) -> object:
        looked.append(page)
        return read(self, page)

    monkeypatch.setattr(StoredPages, "read", seen)
    pack(again, paged_from=0)
    pack(again.fork(B), paged_from=0)
    assert looked == []


def test_pages_of_another_form_are_refused_when_they_are_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(snapshot_pages, "page_schema", lambda: "of another day")
        data = pack(grown(100), paged_from=0)
    with pytest.raises(msgspec.DecodeError, match="another form"):
        unpack(data)
    assert len(unpack(pack(grown(100), paged_from=0)).tree.nodes) == 100


def test_a_session_of_some_length_is_written_without_pages() -> None:
    assert not pack(grown(8_000)).startswith(MAGIC)


def test_a_session_of_a_hundred_thousand_facts_is_written_in_pages() -> None:
    # Its log has a node for every six facts: read whole, its tree takes longer than all the rest
    # of opening it.
    assert pack(grown(16_000)).startswith(MAGIC)


def test_what_was_deleted_on_a_page_that_was_not_read_is_not_counted() -> None:
    state = grown(1_000)
    deleted = SubtreeDeleted(node=NodeId("nod_200"))
    state.apply(msgspec.structs.replace(deleted, session_id=state.session_id, seq=1_001))
    again = in_pages(in_pages(in_pages(state, 16), 16), 16)
    root = NodeId("nod_0")
    assert again.tree.descendant_count(root) == state.tree.descendant_count(root) < 999
    assert pages_read(again) == 1
