"""Every model call is counted once, however it is summed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from bench.logs import answered_turn
from hypothesis import assume, given

from tests.support.call_count import calls_made
from tests.support.history_generator import A, History
from tests.support.strategies import forks, histories
from weft.events import ChildFinished, ChildStarted, NodesJoined, NodeSplit, UsageRecorded
from weft.ids import NodeId, SessionId
from weft.messages import NOTHING_USED, Usage
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
    """Over trees with deletions, aborts and compactions, costs that come late or before their node,
    and the costs of what a fork shares, which are not its own.
    """
    # Where nodes are joined, the lines below keep what the lost node cost: its text is in them.
    facts = [each for each in history.facts if not isinstance(each, NodeSplit | NodesJoined)]
    assume(len(facts) == len(history.facts))
    state = fold(history.facts, history.empty())
    for tip in (None, *state.tree.nodes):
        line = state.tree.line(tip)
        paid = [each.usage for each in history.plain.usages if each.usage and each.node in line]
        assert state.ledger.on_line(tip, state.tree) == added(paid)


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
