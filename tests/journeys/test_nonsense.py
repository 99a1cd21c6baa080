"""Models that answer nonsense: each kind has a defined outcome, the model is told, and the session
goes on.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.world import World, facts, message_lines, request_lines
from weft.errors import UsageError
from weft.events import SystemNote, ToolComplete, ToolExecuting, TurnFinished
from weft.messages import Usage
from weft.providers import ModelInfo
from weft.providers.script import (
    CallRaw,
    CallTogether,
    CallTool,
    Finish,
    Garbage,
    SayText,
    Script,
    ScriptedAnswer,
    Spend,
    Step,
    Think,
)
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


async def told_after(world: World, *steps: Step, ran: list[str] | None = None) -> list[str]:
    """What the model hears after answering with these steps.

    The turn must then end as it should.
    """

    async def act(what: str = "") -> str:
        if ran is not None:
            ran.append(what)
        return f"did {what}"

    model = ScriptedModel([ScriptedAnswer(steps=steps), "Sorry."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(tools=[act, "read"], permission_mode="bypass")
        reply = await session.send_message("go")
        assert (reply.finish_reason, reply.text) == ("stop", "Sorry.")
        assert (await session.send_message("still there?", model=None)).finish_reason in (
            "provider_error",
            "stop",
        )
    return request_lines(model.requests[1])


@pytest.mark.requirement("fault:nonsense")
@pytest.mark.parametrize("args", ['{"what": "x"', '{"what": "x"}{"what": "x"}', "[1, 2]", "null"])
async def test_arguments_that_are_no_object_are_told_back_and_nothing_runs(
    plain_world: World, args: str
) -> None:
    ran: list[str] = []
    heard = await told_after(plain_world, CallRaw(name="act", args_text=args), ran=ran)
    assert "not a JSON object, so nothing was run" in heard[-1]
    assert args in heard[-1]
    assert ran == []


async def test_huge_malformed_arguments_are_shown_back_only_in_part(plain_world: World) -> None:
    heard = await told_after(plain_world, CallRaw(name="act", args_text="x" * 10_000_000))
    assert "not a JSON object" in heard[-1]
    assert len(heard[-1]) < 1_000


async def test_no_arguments_at_all_are_an_empty_object(plain_world: World) -> None:
    heard = await told_after(plain_world, CallRaw(name="act", args_text=""))
    assert heard[-1] == "result: did "


async def test_arguments_that_do_not_fit_are_told_back_with_what_would(plain_world: World) -> None:
    ran: list[str] = []
    heard = await told_after(
        plain_world, CallTool(name="act", args={"what": 7, "whom": "me"}), ran=ran
    )
    assert "what" in heard[-1]
    assert ran == []


@pytest.mark.requirement("fault:nonsense")
async def test_an_unknown_tool_is_answered_with_the_nearest_name(plain_world: World) -> None:
    heard = await told_after(plain_world, CallTool(name="reed", args={"path": "a"}))
    assert "There is no tool 'reed'; did you mean 'read'?" in heard[-1]
    assert "act, read" in heard[-1]


async def test_calls_with_one_provider_id_are_two_calls_with_two_results(
    plain_world: World,
) -> None:
    calls = CallTogether(
        calls=(
            CallTool(name="act", args={"what": "a"}, id="same"),
            CallTool(name="act", args={"what": "b"}, id="same"),
        )
    )
    heard = await told_after(plain_world, calls)
    assert heard[-2:] == ["result: did a", "result: did b"]


@pytest.mark.parametrize("kind", ["control_text", "orphan_args", "deep_args", "not_an_object"])
async def test_garbage_in_the_stream_does_no_harm(plain_world: World, kind: str) -> None:
    garbage = Garbage(kind=kind)  # type: ignore[arg-type]
    model = ScriptedModel([(garbage, SayText(text="…")), "Fine.", "Fine again."])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        assert (await session.send_message("go")).finish_reason == "stop"
        assert (await session.send_message("go")).finish_reason == "stop"


async def test_numbers_beyond_all_bounds_are_kept_or_refused_but_never_crash(
    plain_world: World,
) -> None:
    for args in ('{"what": 1e999}', '{"what": NaN}', f'{{"what": {"9" * 5_000}}}'):
        heard = await told_after(plain_world, CallRaw(name="act", args_text=args))
        assert heard[-1].startswith("result: ")


@pytest.mark.requirement("fault:nonsense")
async def test_five_hundred_calls_in_one_answer_are_bounded_and_all_answered(
    world: World,
) -> None:
    ran: list[str] = []
    calls = tuple(CallTool(name="act", args={"what": str(i)}) for i in range(500))
    heard = await told_after(world, CallTogether(calls=calls), ran=ran)
    results = [line for line in heard if line.startswith("result:")]
    assert len(results) == 500
    assert len(ran) == 128
    assert "more than 128 calls" in results[-1]


@pytest.mark.parametrize(
    "empty",
    [
        ScriptedAnswer(steps=()),
        ScriptedAnswer(steps=(SayText(text="  \n"),)),
        ScriptedAnswer(steps=(Think(text="hm", signature="s"),)),
        ScriptedAnswer(steps=(Garbage(kind="empty"),)),
    ],
)
async def test_an_empty_answer_is_asked_again(plain_world: World, empty: ScriptedAnswer) -> None:
    model = ScriptedModel([empty, "Here."])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        assert (await session.send_message("go")).text == "Here."
        [note] = await facts(session, SystemNote)
        assert note.to_model
    assert "your last answer was empty" in request_lines(model.last_request)[-1].lower()


async def test_three_empty_answers_in_a_row_end_the_turn_and_it_is_no_success(
    world: World,
) -> None:
    model = ScriptedModel(Script(answers=(ScriptedAnswer(steps=()),), loop=True))
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        reply = await session.send_message("go")
        assert reply.finish_reason == "mistakes"
        assert "3 answers in a row" in reply.detail
    assert model.request_count == 3


@pytest.mark.requirement("reason:mistakes")
async def test_three_answers_that_cannot_be_acted_on_end_the_turn(world: World) -> None:
    answers = tuple(ScriptedAnswer(steps=(CallTool(name=f"nope{i}"),)) for i in range(5))
    model = ScriptedModel(Script(answers=answers))
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        assert (await session.send_message("go")).finish_reason == "mistakes"
        completes = await facts(session, ToolComplete)
        assert [each.result.status for each in completes] == ["invalid"] * 3
        assert await facts(session, ToolExecuting) == []


async def test_a_good_answer_forgives_the_mistakes_before_it(world: World) -> None:
    bad: Step = CallTool(name="nope")
    good: Step = CallTool(name="list")
    model = ScriptedModel([bad, bad, good, bad, bad, "Done."])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        assert (await session.send_message("go")).finish_reason == "stop"


@pytest.mark.requirement("reason:no_progress")
async def test_the_same_call_with_the_same_result_is_nudged_once_and_then_stopped(
    world: World,
) -> None:
    model = ScriptedModel(
        Script(answers=(ScriptedAnswer(steps=(CallTool(name="list"),)),), loop=True)
    )
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        reply = await session.send_message("go")
        assert reply.finish_reason == "no_progress"
        notes = [each for each in await facts(session, SystemNote) if each.to_model]
        assert len(notes) == 1
    assert model.request_count == 6
    assert "same calls with the same results" in request_lines(model.requests[3])[-1]


async def test_the_same_call_with_another_result_is_progress(world: World) -> None:
    count = 0

    async def poll() -> int:
        nonlocal count
        count += 1
        return count

    model = ScriptedModel([*[CallTool(name="poll")] * 10, "Ready."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(tools=[poll], permission_mode="bypass")
        assert (await session.send_message("go")).finish_reason == "stop"


async def test_a_refusal_ends_the_turn_without_nagging(world: World) -> None:
    model = ScriptedModel([(Finish(reason="refusal", detail="I may not."),), "never"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        reply = await session.send_message("go")
        assert (reply.finish_reason, reply.detail) == ("refusal", "I may not.")
    assert model.request_count == 1


# --- limits --------------------------------------------------------------------------------


@pytest.mark.requirement("reason:max_turns")
async def test_a_turn_ends_at_its_limit_of_answers_with_every_call_settled(world: World) -> None:
    model = ScriptedModel(
        Script(answers=(ScriptedAnswer(steps=(CallTool(name="list"),)),), loop=True)
    )
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        reply = await session.send_message("go", max_turns=2)
        assert (reply.finish_reason, reply.iterations) == ("max_turns", 2)
        assert "limit of 2" in reply.detail
        assert len(await facts(session, ToolComplete)) == 2


async def test_the_configured_limit_holds_where_no_other_is_given(world: World) -> None:
    model = ScriptedModel(
        Script(answers=(ScriptedAnswer(steps=(CallTool(name="list"),)),), loop=True)
    )
    async with world.open(model, config={"session.max_turns": 1}) as app:
        session = await app.sessions.start_session()
        assert (await session.send_message("go")).iterations == 1
        longer = await app.sessions.start_session(max_turns=2)
        assert (await longer.send_message("go")).iterations == 2


@pytest.mark.requirement("session:set_budget")
async def test_a_token_budget_stops_the_session_and_can_be_raised(world: World) -> None:
    spend = Spend(usage=Usage(input_tokens=600, output_tokens=0))
    model = ScriptedModel([(spend, CallTool(name="list")), (spend, SayText(text="Done.")), "more"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.set_budget(tokens=500)
        reply = await session.send_message("go")
        assert (reply.finish_reason, reply.usage.input_tokens) == ("max_budget", 600)
        assert (await session.send_message("again")).finish_reason == "max_budget"
        assert model.request_count == 1
        await session.set_budget(tokens=10_000)
        assert (await session.send_message("again")).text == "Done."


@pytest.mark.requirement("reason:max_budget")
async def test_a_money_budget_stops_the_session(world: World) -> None:
    spend = Spend(usage=Usage(input_tokens=1_000_000))
    model = ScriptedModel([(spend, CallTool(name="list")), "never"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        reply = await session.send_message("go", max_budget_usd=1.0)
        assert (reply.finish_reason, reply.cost_usd) == ("max_budget", 3.0)
        assert "$1" in reply.detail


@pytest.mark.requirement("reason:max_budget")
async def test_a_model_of_unknown_price_shows_unknown_and_a_money_budget_refuses_it(
    world: World,
) -> None:
    model = ScriptedModel(["Hello.", "never"], info=ModelInfo(provider="scripted", name="script"))
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        assert (await session.send_message("hi")).cost_usd is None
        assert (await session.metadata()).cost_usd is None
        await session.set_budget(usd=100.0)
        reply = await session.send_message("again")
        assert reply.finish_reason == "max_budget"
        assert "the price of scripted:script is unknown" in reply.detail
    assert model.request_count == 1


@pytest.mark.parametrize("budget", [{"usd": 0}, {"tokens": -1}])
async def test_a_budget_of_nothing_is_refused(world: World, budget: dict[str, Any]) -> None:
    async with world.open() as app:
        session = await app.sessions.start_session()
        with pytest.raises(UsageError, match="more than 0"):
            await session.set_budget(**budget)


@pytest.mark.requirement("fault:budget-trap")
async def test_a_limit_that_is_reached_leaves_a_session_that_works(world: World) -> None:
    model = ScriptedModel([CallTool(name="list"), "Fine."])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("go", max_turns=1)
        assert await session.get_status() == "idle"
        assert (await session.send_message("next")).text == "Fine."
        reasons = [each.reason for each in await facts(session, TurnFinished)]
        assert reasons == ["max_turns", "stop"]
        assert (await message_lines(session))[0] == "user: go"
