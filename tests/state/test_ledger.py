"""Every model call is counted once, however it is summed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from bench.logs import answered_turn
from hypothesis import given
from hypothesis import strategies as st

from tests.support.call_count import calls_made
from tests.support.history_generator import A, History
from tests.support.strategies import forks, histories
from weft.events import (
    ChildFinished,
    ChildStarted,
    Fact,
    MovedNode,
    NewMessage,
    NodesJoined,
    NodeSplit,
    UsageRecorded,
)
from weft.ids import NodeId, SessionId
from weft.messages import NOTHING_USED, Node, Usage
from weft.state import SessionState, UsageLedger, fold


def added(usages: list[Usage]) -> Usage:
    total = NOTHING_USED
    for usage in usages:
        total = total + usage
    return total


def ledger_of(*facts: UsageRecorded | ChildFinished) -> UsageLedger:
    ledger = UsageLedger()
    for fact in facts:
        ledger.apply(fact)
    return ledger


@given(history=histories() | forks())
def test_all_sums_agree_with_what_was_recorded(history: History) -> None:
    ledger = fold(history.facts, history.empty()).ledger
    recorded = [fact.usage for fact in history.plain.usages if fact.usage is not None]
    assert ledger.calls == len(recorded)
    assert ledger.total == added(recorded)
    for sums in (ledger.models, ledger.turns, ledger.purposes):
        assert added(list(sums.values())) == ledger.total


@given(history=histories() | forks())
def test_every_line_costs_what_made_its_nodes_whenever_that_was_recorded(history: History) -> None:
    """Over trees with deletions, aborts and compactions, nodes that were split or joined, costs
    that come late or before their node, and the costs of what a fork shares, which are not its own.
    """
    state = fold(history.facts, history.empty())
    assert_lines_add_up(state, history)


@given(history=histories() | forks(), data=st.data())
def test_a_line_costs_the_same_whenever_it_is_asked_for(
    history: History, data: st.DataObject
) -> None:
    every = data.draw(st.integers(1, 5), label="asked after so many facts")
    state = history.empty()
    for number, fact in enumerate(history.facts):
        state.apply(fact)
        if not number % every:
            for tip in state.tree.nodes:
                state.ledger.on_line(tip, state.tree)
    assert_lines_add_up(state, history)


def assert_lines_add_up(state: SessionState, history: History) -> None:
    joined: dict[NodeId, NodeId] = {}
    for fact in history.facts:
        # What a fork shares was paid for by its source.
        if fact.session_id == state.session_id:
            match fact:
                case NodesJoined(node=node, child=child):
                    joined[child] = node
                case NodeSplit(tail=tail):
                    joined.pop(tail.id, None)
                case _:
                    pass
    for tip in (None, *state.tree.nodes):
        line = set(state.tree.line(tip))
        # The text of a node that was joined is in the other, whichever line that is on.
        while more := {gone for gone, into in joined.items() if into in line} - line:
            line |= more
        paid = [each.usage for each in history.plain.usages if each.usage and each.node in line]
        assert state.ledger.on_line(tip, state.tree) == added(paid)


def test_what_a_joined_node_cost_goes_with_its_text_and_comes_back_when_they_are_parted() -> None:
    facts: list[Fact] = [
        said("a"),
        paid("a", 1.0),
        said("b", "a"),
        paid("b", None),
        said("c", "b"),
        paid("c", 4.0),
        said("d", "a"),
        paid("d", 8.0),
    ]
    join = NodesJoined(
        node=NodeId("a"), revision=1, child=NodeId("b"), moves=(MovedNode(node=NodeId("c")),)
    )
    part = NodeSplit(
        node=NodeId("a"),
        revision=2,
        tail=said("b", "a").node,
        moves=(MovedNode(node=NodeId("c")),),
    )
    state = SessionState(session_id=A)
    apply_all(state, facts)
    before = costs(state)
    assert before == {"a": 1.0, "b": None, "c": None, "d": 9.0}
    apply_all(state, [join])
    assert costs(state) == {"a": None, "b": None, "c": None, "d": None}
    assert state.ledger.on_line(NodeId("c"), state.tree).input_tokens == 3
    assert state.ledger.on_line(NodeId("d"), state.tree).input_tokens == 3
    apply_all(state, [part])
    assert costs(state) == before


def said(node: str, parent: str | None = None) -> NewMessage:
    above = None if parent is None else NodeId(parent)
    return NewMessage(node=Node(id=NodeId(node), role="assistant", parent=above))


def paid(node: str, cost: float | None) -> UsageRecorded:
    usage = Usage(input_tokens=1, cost_usd=cost)
    return UsageRecorded(usage=usage, model="a:m", node=NodeId(node))


def apply_all(state: SessionState, facts: Sequence[Fact]) -> None:
    for fact in facts:
        state.apply(msgspec.structs.replace(fact, session_id=A, seq=state.seq + 1))


def costs(state: SessionState) -> dict[str, float | None]:
    return {
        node: state.ledger.on_line(node, state.tree).cost_usd for node in sorted(state.tree.nodes)
    }


@given(history=histories())
def test_each_model_and_each_turn_gets_what_is_its_own(history: History) -> None:
    ledger = fold(history.facts, history.empty()).ledger
    usages = [fact for fact in history.plain.usages if isinstance(fact, UsageRecorded)]
    for model in {fact.model for fact in usages}:
        assert ledger.models[model] == added([f.usage for f in usages if f.model == model])
    for turn in {fact.turn_id for fact in usages} - {None}:
        assert ledger.turns[turn or ""] == added([f.usage for f in usages if f.turn_id == turn])
    for purpose in {fact.purpose for fact in usages}:
        paid = [f.usage for f in usages if f.purpose == purpose]
        assert ledger.purposes[purpose] == added(paid)


def test_one_unknown_price_makes_the_total_unknown_and_not_less() -> None:
    known = UsageRecorded(usage=Usage(input_tokens=5, cost_usd=0.5), model="a:m")
    unknown = UsageRecorded(usage=Usage(input_tokens=7), model="b:m")
    ledger = ledger_of(known, unknown, known)
    assert ledger.total.cost_usd is None
    assert ledger.total.input_tokens == 17
    assert ledger.models["a:m"].cost_usd == 1.0
    assert ledger.models["b:m"].cost_usd is None


def test_nothing_used_costs_nothing() -> None:
    assert UsageLedger().total == NOTHING_USED
    assert UsageLedger().total.cost_usd == 0.0


def test_what_the_lines_cost_takes_no_longer_the_longer_they_are() -> None:
    """Every branch was summed over all calls of the session."""

    def asked(turns: int) -> int:
        state = SessionState(session_id=A)
        seq = 0
        for turn in range(turns):
            parent = NodeId(f"nod_{turn - 1:020}_a") if turn else None
            for fact in answered_turn(turn, parent):
                seq += 1
                state.apply(msgspec.structs.replace(fact, session_id=A, seq=seq))
        return calls_made(lambda: state.ledger.on_line(state.tree.head, state.tree))

    assert asked(1_000) == asked(10)


def test_a_childs_cost_counts_and_its_start_does_not() -> None:
    child = SessionId("ses_c")
    ledger = ledger_of(ChildFinished(child=child, reason="stop", usage=Usage(cost_usd=2.0)))
    ledger.apply(ChildStarted(child=child))
    ledger.apply(ChildFinished(child=child, reason="aborted"))
    assert ledger.total.cost_usd == 2.0
    assert ledger.calls == 1


def test_an_estimate_is_no_measure_of_the_next_one() -> None:
    measured = UsageRecorded(usage=Usage(input_tokens=3), model="a:m")
    guessed = UsageRecorded(usage=Usage(input_tokens=50), model="a:m", estimated=True)
    titled = UsageRecorded(usage=Usage(input_tokens=700), model="a:m", purpose="title")
    ledger = ledger_of(measured, guessed, titled)
    assert ledger.measured_tokens == 3
    assert ledger.last_call == guessed.usage


def counted(tokens: int, estimate: int, model: str = "a:m", **more: Any) -> UsageRecorded:
    usage = Usage(input_tokens=tokens - tokens // 2, cache_read_tokens=tokens // 2)
    return UsageRecorded(usage=usage, model=model, request_estimate=estimate, **more)


def test_a_vendors_count_calibrates_estimates_up_at_once_and_down_by_halves() -> None:
    ledger = UsageLedger()
    assert ledger.ratio("a:m") == 1.0
    ledger.apply(counted(1_500, 1_000))
    assert ledger.ratio("a:m") == 1.5
    ledger.apply(counted(2_000, 1_000))
    assert ledger.ratio("a:m") == 2.0
    ledger.apply(counted(1_000, 1_000))
    assert ledger.ratio("a:m") == 1.5
    assert ledger.ratio("b:m") == 1.0


def test_a_fork_knows_how_the_vendor_counted_before_it_and_nothing_of_what_was_used() -> None:
    fact = msgspec.structs.replace(counted(1_500, 1_000), session_id=SessionId("ses_a"), seq=1)
    source = fold([fact], SessionState(session_id=SessionId("ses_a")))
    folded = fold([fact], SessionState(session_id=SessionId("ses_b")))
    for fork in (folded, source.fork(SessionId("ses_b"))):
        assert fork.ledger == UsageLedger(ratios={"a:m": 1.5})
    folded.ledger.apply(counted(2_000, 1_000))
    assert source.ledger.ratio("a:m") == 1.5


@pytest.mark.parametrize(
    "fact",
    [
        counted(10, 1_000),  # a server that does not count what it had in its cache
        counted(90_000, 1_000),
        counted(800, 400),  # mostly the vendor's own frame
        counted(2_000, 0),  # of an older program
        counted(2_000, 1_000, estimated=True),
        counted(2_000, 1_000, purpose="title"),
    ],
)
def test_what_is_no_count_of_a_request_calibrates_nothing(fact: UsageRecorded) -> None:
    ledger = UsageLedger()
    ledger.apply(fact)
    assert ledger.ratio("a:m") == 1.0
