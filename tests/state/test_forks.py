"""A fork shares its source's state: equal to replaying the log, and each goes its own way."""

from __future__ import annotations

import msgspec
from bench.logs import answered_turn, facts
from hypothesis import given
from hypothesis import strategies as st

from tests.support.call_count import calls_made
from tests.support.history_generator import A, B, History
from tests.support.strategies import forks, histories
from weft.events import NewMessage, ToolComplete
from weft.ids import NodeId, SessionId
from weft.messages import Node
from weft.state import SessionState, fold, restore, snapshot
from weft.tree import LayeredMap


@given(history=forks())
def test_a_fork_of_a_living_state_is_what_replaying_both_logs_gives(history: History) -> None:
    inherited = [fact for fact in history.facts if fact.session_id == A]
    own = history.facts[len(inherited) :]
    source = fold(inherited, SessionState(session_id=A))
    before = snapshot(source)
    replayed = snapshot(fold(history.facts, SessionState(session_id=B)))
    assert snapshot(fold(own, source.fork(B))) == replayed
    assert snapshot(source) == before, "what the fork did reaches its source"
    # From a snapshot too, and beside another fork of the same state.
    assert snapshot(fold(own, restore(before).fork(B))) == replayed
    assert snapshot(fold(own, source.fork(B))) == replayed


@given(history=histories(), data=st.data())
def test_what_the_source_does_after_a_fork_never_reaches_the_fork(
    history: History, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(history.facts)), max_size=4)))
    living = history.empty()
    forked: list[tuple[SessionState, bytes]] = []
    for number, fact in enumerate(history.facts):
        for _ in range(cuts.count(number)):
            fork = living.fork(B)
            forked.append((fork, snapshot(fork)))
        living.apply(fact)
    assert snapshot(living) == snapshot(fold(history.facts, history.empty()))
    for fork, before in forked:
        assert snapshot(fork) == before


@given(history=forks(), data=st.data())
def test_a_fork_of_a_fork_is_what_replaying_gives(history: History, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(history.facts)))
    third = SessionId("ses_c")
    state = fold(history.facts[:cut], SessionState(session_id=B)).fork(third)
    assert snapshot(state) == snapshot(fold(history.facts[:cut], SessionState(session_id=third)))


def long_state(turns: int) -> SessionState:
    state = SessionState(session_id=A)
    seq = 0
    for turn in range(turns):
        parent = NodeId(f"nod_{turn - 1:020}_a") if turn else None
        for fact in answered_turn(turn, parent):
            seq += 1
            state.apply(msgspec.structs.replace(fact, session_id=A, seq=seq))
    return state


def test_a_fork_copies_no_node_and_a_turn_in_it_only_the_one_it_hangs_on() -> None:
    source = long_state(200)
    forked = source.fork(B)
    assert all(forked.tree.nodes[node] is source.tree.nodes[node] for node in source.tree.nodes)
    said = Node(id=NodeId("nod_new"), role="user", parts=(), parent=source.tree.head)
    forked.apply(NewMessage(node=said, session_id=B, seq=1))
    changed = [
        node
        for node, skeleton in source.tree.nodes.items()
        if forked.tree.nodes[node] is not skeleton
    ]
    assert changed == [source.tree.head]


def test_a_fork_of_a_long_session_makes_as_many_calls_as_one_of_a_short() -> None:
    short, long = long_state(10), long_state(1_000)
    for state in (short, long):
        state.fork(B)
    assert calls_made(lambda: long.fork(B)) == calls_made(lambda: short.fork(B))


def test_a_result_that_comes_after_a_fork_is_the_sources_alone() -> None:
    source = SessionState(session_id=A)
    written = list(facts(A, 60))
    result = next(n for n, fact in enumerate(written) if isinstance(fact, ToolComplete))
    source.apply_all(written[:result])
    forked = source.fork(B)
    late = written[result]
    assert isinstance(late, ToolComplete)
    source.apply(late)
    assert late.call_uid in source.tree.nodes[late.node].results
    assert not forked.tree.nodes[late.node].results
    assert isinstance(forked.tree.nodes, LayeredMap)
