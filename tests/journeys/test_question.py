"""The model asks the person something."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

import weft
from tests.support.world import crash
from weft.errors import NoPendingRequest
from weft.events import QuestionAsked
from weft.providers import ScriptedModel
from weft.providers.script import CallTool, SayText

pytestmark = pytest.mark.anyio

ASK = CallTool(name="ask", args={"question": "Tabs or spaces?", "options": ["tabs", "spaces"]})


async def asked(session: weft.Session) -> QuestionAsked:
    with anyio.fail_after(5):
        async for event in await session.subscribe(after=0):
            if isinstance(event, QuestionAsked):
                return event
    raise AssertionError


@pytest.mark.requirement("session:answer_question")
async def test_the_answer_reaches_the_model_and_only_the_first_counts(tmp_path: Path) -> None:
    model = ScriptedModel([[ASK], [SayText(text="spaces it is")]])
    async with weft.open(tmp_path, store="memory") as app:
        session = await app.sessions.start_session(model=model)
        await session.send_prompt("format it")
        question = await asked(session)
        assert (question.question, question.options) == ("Tabs or spaces?", ("tabs", "spaces"))
        await session.answer_question(question.request_id, "spaces")
        with pytest.raises(NoPendingRequest):
            await session.answer_question(question.request_id, "tabs")
        reply = await session.send_message("thanks", queue=True)
        assert reply.finish_reason in ("stop", "provider_error")
        told = [message.content for message in await session.messages() if message.role == "tool"]
        assert told == ["spaces"]


async def test_a_run_without_a_user_is_told_to_decide_for_itself(tmp_path: Path) -> None:
    model = ScriptedModel([[ASK], [SayText(text="I took spaces")]])
    result = await weft.run("format it", model=model, cwd=tmp_path)
    assert result.finish_reason == "stop"
    told = next(message for message in result.messages if message.role == "tool")
    assert "decide for yourself" in told.content


async def test_a_question_that_was_open_in_a_crash_is_offered_again_under_its_id(
    tmp_path: Path,
) -> None:
    model = ScriptedModel([[ASK], [SayText(text="done")]])
    store = tmp_path / "weft.db"
    first = weft.open(tmp_path, store=store)
    await first.__aenter__()
    session = await first.sessions.start_session(model=model)
    await session.send_prompt("format it")
    question = await asked(session)
    await crash(first)
    async with weft.open(tmp_path, store=store) as app:
        app.host.normal_model(model)
        again = await app.sessions.get(session.id)
        assert await again.get_status() == "interrupted"
        await again.answer_question(question.request_id, "tabs")
        reply = await again.continue_and_wait()
        assert reply.text == "done"
        told = [message.content for message in await again.messages() if message.role == "tool"]
        assert told == ["tabs"]
