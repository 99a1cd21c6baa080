"""Every model call is counted once, however it is summed."""

from __future__ import annotations

from hypothesis import given

from tests.support.history_generator import History
from tests.support.strategies import forks, histories
from weft.events import ChildFinished, ChildStarted, UsageRecorded
from weft.ids import NodeId, SessionId, TurnId
from weft.messages import NOTHING_USED, Usage
from weft.state import UsageLedger, fold


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
    assert [row.usage for row in ledger.rows] == recorded
    assert ledger.total == added(recorded)
    assert added(list(ledger.by_model().values())) == ledger.total
    assert added(list(ledger.by_turn().values())) == ledger.total


@given(history=histories())
def test_each_model_and_each_turn_gets_what_is_its_own(history: History) -> None:
    ledger = fold(history.facts, history.empty()).ledger
    usages = [fact for fact in history.plain.usages if isinstance(fact, UsageRecorded)]
    for model in {fact.model for fact in usages}:
        assert ledger.by_model()[model] == added([f.usage for f in usages if f.model == model])
    for turn in {fact.turn_id for fact in usages} - {None}:
        assert ledger.by_turn()[turn] == added([f.usage for f in usages if f.turn_id == turn])


def test_one_unknown_price_makes_the_total_unknown_and_not_less() -> None:
    known = UsageRecorded(usage=Usage(input_tokens=5, cost_usd=0.5), model="a:m")
    unknown = UsageRecorded(usage=Usage(input_tokens=7), model="b:m")
    ledger = ledger_of(known, unknown, known)
    assert ledger.total.cost_usd is None
    assert ledger.total.input_tokens == 17
    assert ledger.by_model()["a:m"].cost_usd == 1.0
    assert ledger.by_model()["b:m"].cost_usd is None


def test_nothing_used_costs_nothing() -> None:
    assert UsageLedger().total == NOTHING_USED
    assert UsageLedger().total.cost_usd == 0.0


def test_a_line_costs_what_made_its_nodes() -> None:
    facts = [
        UsageRecorded(usage=Usage(output_tokens=n, cost_usd=1.0), model="a:m", node=NodeId(f"n{n}"))
        for n in range(4)
    ]
    assert ledger_of(*facts).on_line([NodeId("n1"), NodeId("n3")]).output_tokens == 4
    assert ledger_of(*facts).on_line([]) == NOTHING_USED


def test_a_childs_cost_counts_and_its_start_does_not() -> None:
    child = SessionId("ses_c")
    ledger = ledger_of(ChildFinished(child=child, reason="stop", usage=Usage(cost_usd=2.0)))
    ledger.apply(ChildStarted(child=child))
    ledger.apply(ChildFinished(child=child, reason="aborted"))
    assert ledger.total.cost_usd == 2.0
    assert len(ledger.rows) == 1


def test_an_estimate_says_that_it_is_one() -> None:
    fact = UsageRecorded(
        usage=Usage(output_tokens=3),
        model="a:m",
        purpose="title",
        estimated=True,
        turn_id=TurnId("t"),
        node=NodeId("n"),
    )
    [row] = ledger_of(fact).rows
    assert (row.estimated, row.purpose, row.turn_id, row.node) == (True, "title", "t", "n")
