"""Budgets: hard ones that stop, soft ones that are told once, and everything that counts towards
them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.hook_project import HookProject, facts, shell
from weft.api.session import Session
from weft.errors import SessionError, UsageError
from weft.events import SystemNote, TurnFinished
from weft.messages import Usage
from weft.providers import ModelInfo, ScriptedModel
from weft.providers.script import SayText, Spend, Step

pytestmark = pytest.mark.anyio

PRICED = ModelInfo(provider="scripted", name="priced", price_input=1.0, price_output=1.0)
UNPRICED = ModelInfo(provider="scripted", name="unpriced")
MILLION = 1_000_000
"""Tokens that cost one dollar here."""


def spender(*dollars: float, info: ModelInfo = PRICED) -> ScriptedModel:
    """A model whose answers cost this much."""
    answers: list[list[Step]] = [
        [SayText(text=f"answer {number}"), Spend(usage=Usage(input_tokens=int(price * MILLION)))]
        for number, price in enumerate(dollars)
    ]
    return ScriptedModel(answers, info=info)


@pytest.fixture
def place(tmp_path: Path) -> HookProject:
    return HookProject(tmp_path)


async def warnings(session: Session) -> list[str]:
    return [note.text for note in await facts(session, SystemNote) if note.level == "warning"]


async def test_most_of_a_budget_is_reported_once_and_outlives_the_process(
    place: HookProject,
) -> None:
    model = spender(0.5, 0.31, 0.05, 0.05)
    store = place.project.parent / "weft.db"
    async with place.open(store=store) as app:
        session = await app.sessions.start_session(model=model)
        await session.set_budget(usd=1.0)
        await session.send_message("one")
        assert await warnings(session) == []
        await session.send_message("two")
        assert await warnings(session) == ["81% of the budget is used: $0.81 of $1."]
        await session.send_message("three")
    async with place.open(store=store) as app:
        again = await app.sessions.start_session(session_id=session.id, model=model)
        reply = await again.send_message("four")
        assert reply.finish_reason == "stop"
        assert len(await warnings(again)) == 1


async def test_another_budget_is_reported_again(place: HookProject) -> None:
    async with place.open() as app:
        session = await app.sessions.start_session(model=spender(0.9, 0.75, 0.1))
        await session.set_budget(usd=1.0)
        await session.send_message("one")
        await session.set_budget(usd=2.0)
        await session.send_message("two")
        await session.send_message("three")
        assert await warnings(session) == [
            "90% of the budget is used: $0.9 of $1.",
            "82% of the budget is used: $1.65 of $2.",
        ]


async def test_a_budget_of_tokens_is_reported_too(place: HookProject) -> None:
    async with place.open() as app:
        session = await app.sessions.start_session(model=spender(0.0009, info=UNPRICED))
        await session.set_budget(tokens=1_000)
        await session.send_message("one")
        [told] = await warnings(session)
    assert told.endswith("of 1,000 tokens.")


async def test_without_a_budget_nothing_is_reported(place: HookProject) -> None:
    async with place.open() as app:
        session = await app.sessions.start_session(model=spender(100.0))
        await session.send_message("one")
        assert await warnings(session) == []


async def test_a_budget_that_is_used_up_stops_before_the_next_call(place: HookProject) -> None:
    model = spender(0.6, 0.6, 0.6)
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.set_budget(usd=1.0)
        await session.send_message("one")
        await session.send_message("two")
        reply = await session.send_message("three")
        assert reply.finish_reason == "max_budget"
        assert len(model.requests) == 2
        await session.set_budget(usd=5.0)
        assert (await session.send_message("four")).finish_reason == "stop"


@pytest.mark.process
async def test_a_turn_stops_between_two_calls_when_the_money_is_gone(place: HookProject) -> None:
    answers: list[list[Step]] = [
        [*shell("true"), Spend(usage=Usage(input_tokens=2 * MILLION))],
        [SayText(text="x")],
    ]
    model = ScriptedModel(answers, info=PRICED)
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        reply = await session.send_message("go", max_budget_usd=1.0)
        [finished] = await facts(session, TurnFinished)
    assert (reply.finish_reason, len(model.requests)) == ("max_budget", 1)
    assert "$1 is used up" in finished.detail


async def test_a_money_budget_refuses_a_model_whose_price_is_not_known(place: HookProject) -> None:
    model = spender(0.1, info=UNPRICED)
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.set_budget(usd=1.0)
        reply = await session.send_message("go")
        [finished] = await facts(session, TurnFinished)
        assert reply.finish_reason == "max_budget"
        assert "the price of scripted:unpriced is unknown" in finished.detail
        assert model.requests == []
        await session.set_budget()
        reply = await session.send_message("go")
        assert (reply.finish_reason, reply.cost_usd) == ("stop", None)
        # What was used meanwhile has no price either, so no other model makes the sum known.
        await session.set_budget(usd=1.0)
        await session.update_model(spender(0.1))
        assert (await session.send_message("go")).finish_reason == "max_budget"


async def test_a_summary_keeps_to_the_budget_too(place: HookProject) -> None:
    model = spender(2.0, 0.1, 0.1)
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_message("one")
        await session.set_budget(usd=1.0)
        with pytest.raises(SessionError, match="used up"):
            await session.summarize()
        with pytest.raises(SessionError, match="used up"):
            await session.compact()
        left = (await session.messages_with_ids())[-1][0]
        await session.branch_at(0)
        with pytest.raises(SessionError, match="used up"):
            await session.summarize_branch(left)
    assert len(model.requests) == 1


async def test_every_call_is_counted_and_cut_by_turn_branch_model_and_purpose(
    place: HookProject,
) -> None:
    model = spender(1.0, 2.0, 4.0, 8.0, 16.0)
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_message("one")
        await session.send_message("two")
        left = (await session.messages_with_ids())[-1][0]
        await session.branch_at(1, name="other")
        await session.summarize_branch(left)
        await session.summarize()
        await session.compact()
        used = await session.usage()
    assert used.total.cost_usd == pytest.approx(31.0, abs=0.01)
    purposes = {name: round(usage.cost_usd or 0) for name, usage in used.by_purpose.items()}
    assert purposes == {"turn": 3, "branch": 4, "summary": 8, "compaction": 16}
    assert sorted(round(usage.cost_usd or 0) for usage in used.by_turn.values()) == [1, 2, 28]
    by_branch = {name: round(usage.cost_usd or 0) for name, usage in used.by_branch.items()}
    assert by_branch["other"] == 1
    assert 3 in by_branch.values()
    assert round(used.branch.cost_usd or 0) == 1
    assert list(used.by_model) == ["scripted:priced"]


async def test_a_budget_of_nothing_is_refused(place: HookProject) -> None:
    async with place.open() as app:
        session = await app.sessions.start_session(model=spender(1.0))
        with pytest.raises(UsageError, match="more than 0"):
            await session.set_budget(usd=0)
