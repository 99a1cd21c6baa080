"""Law 3: where a log is cut changes nothing.

What a snapshot brings back goes on as if it had never been put away.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from bench.logs import answered_turn
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.call_count import calls_made
from tests.support.history_generator import A, B, History, write_fork, write_history
from tests.support.strategies import forks, histories, numbers
from weft.events import UnknownFact, decode, encode
from weft.ids import NodeId
from weft.state import SessionState, fold, pack, restore, snapshot, unpack
from weft.state.snapshot_codec import SLICE

any_history = histories() | forks()


def seen(history: History, first: int = 0, last: int | None = None) -> SessionState:
    """The state after a part of a history."""
    return fold(history.facts[first:last], history.empty())


@given(history=any_history, data=st.data())
def test_folding_in_two_parts_gives_the_same_state(history: History, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(history.facts)))
    in_parts = fold(history.facts[cut:], start=fold(history.facts[:cut], history.empty()))
    assert snapshot(in_parts) == snapshot(seen(history))


@given(history=any_history)
def test_a_state_that_was_put_away_at_any_moment_goes_on_the_same(history: History) -> None:
    whole = snapshot(seen(history))
    living = history.empty()
    for cut, fact in enumerate(history.facts):
        stored = snapshot(living)
        assert snapshot(restore(stored)) == stored
        assert snapshot(fold(history.facts[cut:], restore(stored))) == whole
        living.apply(fact)
    assert snapshot(living) == whole


@given(history=any_history)
def test_replaying_the_stored_bytes_agrees_with_living_through_it(history: History) -> None:
    replayed = fold((decode(encode(fact)) for fact in history.facts), history.empty())
    assert snapshot(replayed) == snapshot(seen(history))


@given(history=any_history)
def test_folding_changes_no_fact(history: History) -> None:
    before = [encode(fact) for fact in history.facts]
    seen(history)
    assert [encode(fact) for fact in history.facts] == before


@given(history=histories())
def test_the_state_stands_at_the_last_fact_and_the_log_has_no_gap(history: History) -> None:
    state = history.empty()
    for count, fact in enumerate(history.facts, start=1):
        state.apply(fact)
        assert state.seq == fact.seq == count


@given(history=any_history)
def test_facts_of_a_newer_program_change_nothing_but_the_place(history: History) -> None:
    known = [fact for fact in history.facts if not isinstance(fact, UnknownFact)]
    state, without = seen(history), fold(known, history.empty())
    without.seq = state.seq
    assert snapshot(state) == snapshot(without)


@given(history=any_history)
def test_a_state_comes_to_what_was_written(history: History) -> None:
    """The folds beside a plain model that the writer kept."""
    state, plain = seen(history), history.plain
    assert list(state.queue.entries) == plain.queue
    assert state.settings.values == plain.settings
    assert state.todos.items == plain.todos
    assert list(state.files.touched) == plain.files
    assert (state.turn.open.turn_id if state.turn.open else None) == plain.turn
    assert list(state.turn.intents) == plain.intents
    assert {k: v.call_uid for k, v in state.turn.requests.items()} == plain.requests
    assert list(state.inputs.causes) == plain.inputs
    assert state.about.message_count == plain.messages
    assert state.about.turn_count == plain.turns


@given(history=histories(), data=st.data())
def test_a_damaged_snapshot_is_read_or_refused_and_never_anything_else(
    history: History, data: st.DataObject
) -> None:
    stored = bytearray(snapshot(seen(history)))
    stored[data.draw(st.integers(0, len(stored) - 1))] = data.draw(st.integers(0, 255))
    with suppress(msgspec.MsgspecError):
        restore(bytes(stored))


@given(history=histories(), data=st.data())
def test_a_stored_snapshot_that_is_damaged_or_cut_off_is_refused(
    history: History, data: st.DataObject
) -> None:
    stored = pack(seen(history))
    place = data.draw(st.integers(2, len(stored) - 1))
    with pytest.raises(msgspec.MsgspecError):
        unpack(stored[:place])
    turned = bytes([*stored[:place], stored[place] ^ 0xFF, *stored[place + 1 :]])
    with pytest.raises(msgspec.MsgspecError):
        unpack(turned)


@pytest.mark.parametrize("stored", [b"", b"\xff", b'{"session_id":"\xff"}', b"[" * 100_000])
def test_what_is_no_snapshot_is_refused(stored: bytes) -> None:
    for read in (restore, unpack):
        with pytest.raises(msgspec.MsgspecError):
            read(stored)


def test_a_long_state_comes_back_from_its_slices_as_it_was() -> None:
    state = SessionState(session_id=A)
    seq = 0
    for turn in range(2 * SLICE):
        parent = NodeId(f"nod_{turn - 1:020}_a") if turn else None
        for fact in answered_turn(turn, parent):
            seq += 1
            state.apply(msgspec.structs.replace(fact, session_id=A, seq=seq))
    assert snapshot(state).count(b"\n") == 4 + 2 + 2, "nodes and sums are on lines of their own"
    assert restore(snapshot(state)) == state
    assert unpack(pack(state)) == state
    assert list(unpack(pack(state)).tree.nodes) == list(state.tree.nodes)


# --- forks


@given(history=forks())
def test_a_fork_inherits_the_conversation_and_nothing_that_is_owed(history: History) -> None:
    inherited = [fact for fact in history.facts if fact.session_id == A]
    source = fold(inherited, SessionState(session_id=A))
    child = fold(inherited, SessionState(session_id=B))
    for name in ("tree", "settings", "files", "todos"):
        assert getattr(child, name) == getattr(source, name)
    fresh = SessionState(session_id=B)
    for name in ("seq", "queue", "ledger", "turn", "inputs", "about", "prefix"):
        assert getattr(child, name) == getattr(fresh, name)


@given(history=forks())
def test_a_fork_numbers_its_own_facts_from_one(history: History) -> None:
    state = history.empty()
    own = 0
    for fact in history.facts:
        state.apply(fact)
        own += fact.session_id == B
        assert state.seq == own


def test_what_a_fork_does_never_reaches_the_session_it_came_from() -> None:
    forked = write_fork(numbers(1, 100), numbers(2, 100))
    source = [fact for fact in forked.facts if fact.session_id == A]
    before = snapshot(fold(source, SessionState(session_id=A)))
    fold(forked.facts, forked.empty())
    assert snapshot(fold(source, SessionState(session_id=A))) == before


# --- cost


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32))
def test_the_last_fact_of_a_long_log_costs_as_much_as_the_first(seed: int) -> None:
    """A fold that copied its state would make ten times the steps cost a hundred times the
    calls.
    """
    per_fact = []
    for steps in (100, 1000):
        facts = write_history(numbers(seed, steps)).facts
        per_fact.append(
            calls_made(lambda facts=facts: fold(facts, SessionState(session_id=A))) / len(facts)
        )
    assert per_fact[1] < 2 * per_fact[0]
