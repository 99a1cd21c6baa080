"""The plan as a value: what is one, what comes next in it, and what is said of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.agents.plan import NextAction, as_plan, failure_report, next_of, plain, report, shown
from weft.errors import UsageError
from weft.events import (
    ArchitectPlan,
    ArchitectStep,
    Fact,
    PlanDecided,
    PlanEdited,
    TurnStarted,
)
from weft.ids import TurnId
from weft.state import PlanState

STEP = {"action": "edit", "file": "a.py", "description": "do it", "details": "so"}
PLAN: dict[str, Any] = {"summary": "All of it.", "steps": [STEP, STEP, STEP]}
MADE = ArchitectPlan(plan_id="p", plan=PLAN)
YES, NO = (PlanDecided(plan_id="p", approved=word, reason="r") for word in (True, False))


def after(*facts: Fact) -> PlanState:
    state = PlanState()
    for fact in facts:
        state.apply(fact)
    return state


def step(index: int, status: Any, plan_id: str = "p") -> ArchitectStep:
    return ArchitectStep(plan_id=plan_id, index=index, status=status, detail=status)


@pytest.mark.parametrize(
    ("facts", "coming"),
    [
        ((), NextAction("plan")),
        ((MADE,), NextAction("wait")),
        ((MADE, NO), NextAction("end")),
        ((MADE, YES), NextAction("step", 0)),
        ((MADE, YES, step(0, "started")), NextAction("step", 0)),
        ((MADE, YES, step(0, "passed")), NextAction("step", 1)),
        ((MADE, YES, step(0, "passed"), step(1, "started")), NextAction("step", 1)),
        ((MADE, YES, step(0, "passed"), step(1, "replanned")), NextAction("plan")),
        ((MADE, YES, step(0, "failed")), NextAction("end")),
        ((MADE, YES, *(step(i, "passed") for i in range(3))), NextAction("end")),
        ((MADE, YES, *(step(i, "skipped") for i in range(3))), NextAction("end")),
        ((ArchitectPlan(plan_id="p", plan={"summary": "x"}), YES), NextAction("end")),
        (
            (MADE, YES, step(0, "replanned"), ArchitectPlan(plan_id="q", plan=PLAN)),
            NextAction("wait"),
        ),
        ((MADE, PlanDecided(plan_id="other", approved=True)), NextAction("wait")),
        ((MADE, YES, step(0, "passed", plan_id="other")), NextAction("step", 0)),
    ],
)
def test_what_comes_next_is_read_from_the_facts(
    facts: tuple[Fact, ...], coming: NextAction
) -> None:
    assert next_of(after(*facts)) == coming


def test_an_edit_takes_the_plans_place_and_still_waits() -> None:
    state = after(MADE, PlanEdited(plan_id="p", plan={"summary": "less"}))
    assert state.is_waiting
    assert state.plan == {"summary": "less"}


def test_what_passed_is_kept_when_the_rest_is_planned_anew() -> None:
    state = after(
        MADE,
        YES,
        step(0, "passed"),
        step(1, "replanned"),
        ArchitectPlan(plan_id="q", plan={"summary": "x", "steps": [STEP]}),
    )
    assert [done.detail for done in state.done] == ["passed"]
    assert state.replans == 1
    state.apply(PlanDecided(plan_id="q", approved=True))
    state.apply(step(0, "passed", plan_id="q"))
    assert state.replans == 0
    assert "2 of 2 steps done." in report(state, as_plan(state.plan))


def test_another_task_begins_without_a_plan_and_a_continued_one_goes_on() -> None:
    running = (MADE, YES, step(0, "passed"), step(1, "failed"))
    fresh = after(*running, TurnStarted(turn_id=TurnId("t")))
    assert fresh == PlanState()
    on = after(*running, TurnStarted(turn_id=TurnId("t"), continued=True))
    assert next_of(on) == NextAction("step", 1)
    turned_down = after(MADE, NO, TurnStarted(turn_id=TurnId("t"), continued=True))
    assert next_of(turned_down) == NextAction("plan")


@given(
    facts=st.lists(
        st.one_of(
            st.just(MADE),
            st.just(YES),
            st.just(NO),
            st.builds(
                step,
                st.integers(0, 3),
                st.sampled_from(["started", "passed", "failed", "skipped", "replanned"]),
            ),
            st.builds(TurnStarted, turn_id=st.just(TurnId("t")), continued=st.booleans()),
        ),
        max_size=20,
    ),
    data=st.data(),
)
def test_a_plan_that_was_put_away_goes_on_the_same(facts: list[Fact], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(facts)))
    state = after(*facts[:cut])
    back = msgspec.json.decode(msgspec.json.encode(state), type=PlanState)
    for fact in facts[cut:]:
        back.apply(fact)
    assert back == after(*facts)
    assert next_of(back) == next_of(after(*facts))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"file": ""}, "step 1 names no file"),
        ({"action": "explode"}, "Invalid enum value 'explode'"),
        ({"description": ""}, "length >= 1"),
        ({"boundary": {"first": 5, "last": 2}}, "ends before it begins"),
        ({"boundary": {"first": -1, "last": 2}}, ">= 0"),
    ],
)
def test_what_is_no_plan_is_refused_with_the_place(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match="invalid plan") as raised:
        as_plan({"summary": "x", "steps": [{**STEP, **change}]})
    assert problem in str(raised.value)


def test_a_plan_survives_the_way_to_the_log_and_back() -> None:
    full = {**STEP, "boundary": {"first": 0, "last": 3}, "check": "make"}
    plan = as_plan({"summary": "x", "steps": [full, {**STEP, "action": "run", "file": ""}]})
    assert as_plan(plain(plan)) == plan


def test_a_plan_is_shown_with_its_checks() -> None:
    text = shown(as_plan({"summary": "x", "steps": [{**STEP, "check": "make"}]}))
    assert "1. **edit** `a.py` do it" in text
    assert "check: `make`" in text


def test_a_failure_is_reported_with_what_is_done_and_never_without_bound() -> None:
    text = failure_report(as_plan(PLAN), 1, "x" * 100_000)
    assert "Step 2 of the plan failed" in text
    assert "1. edit a.py: do it" in text
    assert len(text) < 10_000
