"""Vendors that fail: what is tried again, what is not, and what is kept."""

from __future__ import annotations

import anyio
import pytest

from tests.support.world import PATIENCE, World, facts, message_lines, request_lines, running
from weft.events import AnswerRestarted, LlmRetry, TextDelta, TurnFinished, UsageRecorded
from weft.loop.answer import KEPT_OF_ENDLESS, LONGEST_ANSWER
from weft.messages import Usage
from weft.providers.script import Break, CallTool, EndEarly, Fail, SayText, Spend, Stall, Step
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_a_rate_limit_is_waited_out_as_long_as_the_vendor_asks(world: World) -> None:
    slow = Fail(error="RateLimited", status=429, retry_after_seconds=17.0)
    async with world.open(ScriptedModel([slow, "Here."])) as app:
        session = await app.sessions.start_session()
        with_signals: list[LlmRetry] = []
        async with await session.subscribe() as events, running():
            reply = await session.send_message("go")
            while not isinstance(event := await anext(events), TurnFinished):
                if isinstance(event, LlmRetry):
                    with_signals.append(event)
        assert (reply.finish_reason, reply.text) == ("stop", "Here.")
    assert world.waits == [17.0]
    [retry] = with_signals
    assert (retry.attempt, retry.wait_ms) == (1, 17_000)
    assert event.retries == 1


async def test_who_asks_for_the_status_alone_hears_of_retries_and_of_no_text(world: World) -> None:
    fail = Fail(error="ProviderUnavailable", status=503)
    async with world.open(ScriptedModel([fail, "Here."])) as app:
        session = await app.sessions.start_session()
        async with await session.subscribe(live="status") as events, running():
            await session.send_message("go")
            heard = []
            while not isinstance(event := await anext(events), TurnFinished):
                heard.append(type(event))
    assert LlmRetry in heard
    assert TextDelta not in heard


@pytest.mark.parametrize("status", [500, 502, 503, 529, 408])
async def test_a_server_that_fails_is_asked_again_after_a_growing_wait(
    plain_world: World, status: int
) -> None:
    world = plain_world
    fail = Fail(error="ProviderUnavailable", status=status)
    async with world.open(ScriptedModel([fail, fail, fail, "Here."])) as app:
        session = await app.sessions.start_session()
        reply = await session.send_message("go")
        assert (reply.finish_reason, reply.text) == ("stop", "Here.")
    assert len(world.waits) == 3
    assert 0 < world.waits[0] < world.waits[1] * 2
    assert all(wait <= 30 for wait in world.waits)


@pytest.mark.requirement("fault:retry-doubles")
async def test_text_of_a_broken_stream_never_appears_twice(world: World) -> None:
    model = ScriptedModel([(SayText(text="One two "), Break()), "One two three."])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        drawn = ""
        restarts = 0
        async with await session.subscribe() as events, running():
            reply = await session.send_message("count")
            while not isinstance(event := await anext(events), TurnFinished):
                match event:
                    case TextDelta(offset=offset, text=text):
                        drawn = drawn[:offset] + text
                    case AnswerRestarted():
                        restarts += 1
                        drawn = ""
                    case _:
                        pass
        assert (drawn, restarts) == ("One two three.", 1)
        assert reply.text == "One two three."
        assert await message_lines(session) == ["user: count", "assistant: One two three."]


async def test_a_stream_that_just_ends_has_broken(world: World) -> None:
    model = ScriptedModel([(SayText(text="One "), EndEarly()), "One two."])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        assert (await session.send_message("count")).text == "One two."
    assert len(world.waits) == 1


@pytest.mark.requirement("reason:context_overflow", "reason:auth_error")
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("RequestRefused", "provider_error"),
        ("AuthFailed", "auth_error"),
        ("ContextTooLong", "context_overflow"),
        ("ProviderError", "provider_error"),
    ],
)
async def test_what_will_not_change_is_not_tried_again(
    plain_world: World, error: str, reason: str
) -> None:
    world = plain_world
    fail = Fail(error=error, status=400, message="the vendor's own words")  # type: ignore[arg-type]
    model = ScriptedModel([fail, "never"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        reply = await session.send_message("go")
        assert reply.finish_reason == reason
        assert reply.detail == "the vendor's own words"
        assert await session.get_status() == "idle"
    assert (model.request_count, world.waits) == (1, [])


@pytest.mark.requirement("reason:provider_error")
async def test_when_no_retry_helps_the_text_so_far_is_kept(world: World) -> None:
    model = ScriptedModel([*[(SayText(text="So far"), Break())] * 7, "Fine now."])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        reply = await session.send_message("go")
        assert (reply.finish_reason, reply.text) == ("provider_error", "So far")
        [finished] = await facts(session, TurnFinished)
        assert finished.retries == 6
        history = await session.messages()
        assert [message.content for message in history] == ["go", "So far"]
        assert history[-1].is_partial
        assert (await session.send_message("go on")).text == "Fine now."
    assert request_lines(model.last_request)[1] == "assistant: So far"


async def test_a_vendor_that_wants_to_wait_too_long_is_not_waited_for(world: World) -> None:
    slow = Fail(error="RateLimited", status=429, retry_after_seconds=100_000.0)
    async with world.open(ScriptedModel([slow])) as app:
        session = await app.sessions.start_session()
        reply = await session.send_message("go")
        assert reply.finish_reason == "provider_error"
    assert world.waits == []
    assert "it asks to wait 27 h 47 min, until " in reply.detail
    assert reply.detail.endswith(" UTC")


async def test_a_call_of_a_broken_answer_is_never_run(world: World) -> None:
    model = ScriptedModel(
        [
            (CallTool(name="write", args={"path": "a", "content": "half"}), Break()),
            "Without writing.",
        ]
    )
    async with world.open(model) as app:
        session = await app.sessions.start_session(permission_mode="bypass")
        assert (await session.send_message("go")).text == "Without writing."
    assert not (world.project / "a").exists()


@pytest.mark.requirement("session:usage")
async def test_what_broken_attempts_used_is_counted(world: World) -> None:
    """The vendor bills them, so the ledger shows them."""
    spent = Spend(usage=Usage(input_tokens=1000, output_tokens=10))
    steps: tuple[Step, ...] = (spent, SayText(text="So "), Break())
    model = ScriptedModel([steps, (spent, SayText(text="Done."))])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        reply = await session.send_message("go")
        assert reply.usage.input_tokens == 2000
        assert (await session.usage()).total.input_tokens == 2000
        assert len(await facts(session, UsageRecorded)) == 2


async def test_an_answer_without_end_is_cut_off_and_its_beginning_is_kept(
    plain_world: World,
) -> None:
    flood = SayText(text="x" * (LONGEST_ANSWER + 200_000), chunk=100_000)
    model = ScriptedModel([(flood, SayText(text="never heard")), "ok"])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        reply = await session.send_message("go")
        assert reply.finish_reason == "provider_error"
        assert "does not end" in reply.detail
        [kept] = [each for each in await session.messages() if each.role == "assistant"]
        assert len(kept.content) == KEPT_OF_ENDLESS, (
            "all of it would be in the way of every later request"
        )
        assert kept.is_partial


async def test_a_screen_that_comes_after_a_retry_is_not_shown_the_text_that_was_given_up(
    plain_world: World,
) -> None:
    model = ScriptedModel(
        [(SayText(text="One two "), Break()), (Stall(gate="g"), SayText(text="3"))]
    )
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("count")
        with anyio.fail_after(PATIENCE):
            await model.gate("g").reached.wait()
        shown = await session.editor_snapshot()
        assert (shown.draft_node, shown.draft) == (None, "")
