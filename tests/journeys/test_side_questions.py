"""A side question is answered from its place in the tree, and never enters the line."""

from __future__ import annotations

import contextlib

import anyio
import pytest

from tests.support.compaction import SummarizingModel, send_prompts, start
from tests.support.world import World, crash, facts, until, until_idle, until_status
from weft.api.session import Session
from weft.cli.chat.told_asides import with_asides
from weft.errors import SessionError, UsageError, ViewerRefused
from weft.events import AsideAnswered, ModelCallStarted, NewMessage, TurnFinished, UsageRecorded
from weft.messages import CallResults, ChatMessage, Text
from weft.providers.base import ModelRequest
from weft.providers.script import CallTool, SayText, ScriptedAnswer, Stall, When
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

ASIDE = ScriptedAnswer(steps=(SayText(text="It is 42."),), when=When(user_says="what is it?"))


def said(request: ModelRequest) -> list[str]:
    return [
        "\n".join(part.text for part in each.parts if isinstance(part, Text))
        for each in request.messages
        if isinstance(each, ChatMessage)
    ]


@pytest.mark.requirement("session:ask_aside", "event:AsideAnswered")
async def test_an_answer_beside_the_line_is_in_no_later_request_and_its_cost_counts(
    world: World,
) -> None:
    plain = ScriptedModel(["One.", "Two."])
    async with world.open(plain) as app:
        session = await app.sessions.start_session()
        await session.send_message("first")
        await session.send_message("second")
    model = ScriptedModel(["One.", ASIDE, "Two."])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("first")
        before = await session.messages()
        spent = (await session.usage()).total.total_tokens
        answer = await session.ask_aside("what is it?")
        assert answer.text == "It is 42."
        assert await session.messages() == before
        assert (await session.usage()).total.total_tokens > spent
        await session.send_message("second")
        # Byte for byte what it would have been.
        assert said(model.requests[-1]) == said(plain.requests[-1])
        assert model.requests[-1].system == model.requests[0].system
        [aside] = await facts(session, AsideAnswered)
        assert (aside.answer, aside.question) == ("It is 42.", (Text(text="what is it?"),))
        answered = [each.node.id for each in await facts(session, NewMessage)][1]
        assert aside.node == answered
        used = [each for each in await facts(session, UsageRecorded) if each.exact == "aside"]
        started = [each for each in await facts(session, ModelCallStarted) if each.exact]
        assert [each.node for each in used] == [each.node for each in started] == [aside.call]


async def test_a_side_question_has_the_prefix_and_the_line_of_the_session(world: World) -> None:
    model = ScriptedModel(["One.", ASIDE])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("first")
        await session.ask_aside("what is it?")
    turn, aside = model.requests
    assert (aside.system, aside.tools) == (turn.system, turn.tools)
    assert aside.messages[: len(turn.messages)] == turn.messages
    assert said(aside)[-2] == "One."
    assert said(aside)[-1].startswith("what is it?")


async def test_in_the_middle_of_a_turn_tree_queue_and_next_request_stay_as_they_are(
    world: World,
) -> None:
    call = CallTool(name="list", args={})
    model = ScriptedModel([call, (SayText(text="Half "), Stall(gate="g")), ASIDE, "After."])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await model.gate("g").reached.wait()
        await session.send_prompt("later")
        before = (await session.messages(), await session.get_queued_messages())
        answer = await session.ask_aside("what is it?")
        assert answer.text == "It is 42."
        assert (await session.messages(), await session.get_queued_messages()) == before
        assert not await facts(session, TurnFinished)
        model.gate("g").opened.set()
        await until(session, TurnFinished)
        await until_idle(session)
        assert all("what is it?" not in text for text in said(model.requests[-1]))
        assert all("42" not in each.node.text for each in await facts(session, NewMessage))


async def test_a_side_question_whose_calls_are_open_ends_before_them(world: World) -> None:
    ask = CallTool(name="shell", args={"command": "true"})
    model = ScriptedModel(["One.", ask, ASIDE, "End."])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("first")
        await session.send_prompt("second")
        await until_status(session, "awaiting_permission")
        assert (await session.ask_aside("what is it?")).text == "It is 42."
        texts = said(model.requests[-1])
        assert [each for each in texts if each in ("first", "One.")] == ["first", "One."]
        assert texts[-2] == "second" or texts[-2].startswith("<environment>")
        assert not any(isinstance(each, CallResults) for each in model.requests[-1].messages)
        await session.abort()


async def test_an_answer_that_only_calls_tools_is_no_answer(world: World) -> None:
    call = ScriptedAnswer(
        steps=(CallTool(name="list", args={}),), when=When(user_says="what is it?")
    )
    async with world.open(ScriptedModel(["One.", call])) as app:
        session = await app.sessions.start_session()
        await session.send_message("first")
        with pytest.raises(SessionError, match="called a tool"):
            await session.ask_aside("what is it?")
        assert not await facts(session, AsideAnswered)
        assert len(await facts(session, UsageRecorded)) == 2


async def test_nothing_is_asked_where_there_is_nothing_to_ask(world: World) -> None:
    async with world.open(ScriptedModel(["One."])) as app:
        session = await app.sessions.start_session()
        with pytest.raises(UsageError, match="the session is empty"):
            await session.ask_aside("what is it?")
        await session.send_message("first")
        with pytest.raises(UsageError, match="the question is empty"):
            await session.ask_aside("  ")


async def test_a_side_question_that_a_crash_cut_off_is_counted(world: World) -> None:
    stalled = ScriptedAnswer(steps=(Stall(gate="g"),), when=When(user_says="what is it?"))
    model = ScriptedModel(["One.", stalled])
    app = world.open(model)
    await app.__aenter__()
    session = await app.sessions.start_session(session_id="s")
    await session.send_message("first")
    async with anyio.create_task_group() as group:
        group.start_soon(_asked, session)
        await model.gate("g").reached.wait()
        await crash(app)
        group.cancel_scope.cancel()
    async with world.open(ScriptedModel(["Two."])) as app:
        session = await app.sessions.get("s")
        await session.send_message("second")
        used = [each for each in await facts(session, UsageRecorded) if each.purpose == "summary"]
        assert [each.estimated for each in used] == [True]


async def _asked(session: Session) -> None:
    with contextlib.suppress(Exception):
        await session.ask_aside("what is it?")


async def test_a_repeated_side_question_is_not_paid_for_again(world: World) -> None:
    async with world.open(ScriptedModel(["One.", ASIDE])) as app:
        session = await app.sessions.start_session()
        await session.send_message("first")
        first = await session.ask_aside("what is it?", input_id="inp_1")
        spent = (await session.usage()).total.total_tokens
        assert (await session.ask_aside("what is it?", input_id="inp_1")).text == first.text
        assert (await session.usage()).total.total_tokens == spent


@pytest.mark.requirement("session:asides")
async def test_side_questions_of_before_are_told_again_at_their_place(world: World) -> None:
    model = ScriptedModel(["One.", ASIDE, "Two."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("first")
        await session.ask_aside("what is it?")
        await session.send_message("second")
        answered = [each.node.id for each in await facts(session, NewMessage)][1]
    async with world.open(ScriptedModel([])) as app:
        session = await app.sessions.get("s")
        [told] = await session.asides()
        assert (told.node, told.question) == (answered, "what is it?")
        assert told.answer == "It is 42."
        page = await session.line()
        said_again = [each.content for each in with_asides(page.items, [told])]
        assert said_again[-3] == "Side question: what is it?\nIt is 42."
        # At its place in a fork too, and nowhere on a line that does not have it.
        fork = await app.sessions.fork_session("s")
        assert [each.answer for each in await fork.asides()] == ["It is 42."]
        exported = await app.sessions.export_session("s", format="json")
        assert '"side_questions":1' in str(exported).replace(" ", "")


async def test_a_message_that_was_taken_out_is_in_no_side_question(world: World) -> None:
    model = ScriptedModel(["One.", "Two.", ASIDE])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("my secret is plum")
        await session.send_message("second")
        first = next(each.node.id for each in await facts(session, NewMessage))
        await session.exclude(first)
        await session.ask_aside("what is it?")
        assert "plum" not in "".join(said(model.requests[-1]))
        assert "Two." in said(model.requests[-1])


async def test_what_a_summary_carries_of_a_message_that_was_taken_out_is_not_sent(
    world: World,
) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "always say secret words", "two", "three")
        first = next(each.node.id for each in await facts(session, NewMessage))
        await session.compact()
        await session.ask_aside("what is it?")
        assert "secret" in str(teller.asked[-1].messages)
        await session.exclude(first)
        await session.ask_aside("what was it?")
        assert "secret" not in str(teller.asked[-1].messages)


async def test_the_budget_of_the_turn_at_work_holds_for_side_questions(world: World) -> None:
    model = ScriptedModel(["One.", Stall(gate="g")])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("first")
        await session.send_prompt("second", max_tokens=100_000)
        await model.gate("g").reached.wait()
        spent = (await session.usage()).total.total_tokens
        await session.abort()
        await session.send_prompt("third", max_tokens=spent + 1)
        with pytest.raises(SessionError, match="the limit of"):
            await session.ask_aside("what is it?")


async def test_a_client_that_only_watches_asks_no_model(world: World) -> None:
    model = ScriptedModel(["One.", ASIDE])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("first")
        await session.attach("viewer")
        with pytest.raises(ViewerRefused):
            await session.ask_aside("what is it?")
        assert len(model.requests) == 1
        assert not [each for each in await facts(session, ModelCallStarted) if each.exact]
