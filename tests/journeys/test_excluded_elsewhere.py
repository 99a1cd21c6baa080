"""What is excluded reaches no model by another way: side questions, summaries, retries, agents."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.compaction import SummarizingModel, gate_reached, send_prompts, start
from tests.support.loom_views import events_of, scripted
from tests.support.world import World, facts, until_idle
from weft.api.session import Session
from weft.events import Compacted, ModelCallStarted
from weft.loom import GenerationComplete
from weft.providers import ModelRequest
from weft.providers.script import CallTool, Fail, SayText, Stall, Step
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


async def ids(session: Session) -> list[str]:
    """The ids of the present line, oldest first."""
    return [each for each, _ in await session.messages_with_ids()]


def words(request: ModelRequest) -> str:
    return str((request.system, request.messages, request.prompt))


async def test_a_side_question_is_asked_without_it(world: World) -> None:
    model = ScriptedModel(["one", "two", "beside", "three", "beside again"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("a secret")
        await session.send_message("and on")
        [first, *_] = await ids(session)
        await session.exclude(first)
        await session.ask_aside("what is it?")
        assert "secret" not in words(model.requests[-1])
        await session.send_message("go on")
        # It reads what the next call reads: so it is served by the vendor's cache.
        asked, turn = model.requests[-2:]
        assert asked.messages[:-1] == turn.messages[: len(asked.messages) - 1]


async def test_a_side_question_after_a_compaction_is_asked_without_it(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "always say the secret", "two")
        [first, *_] = await ids(session)
        await session.compact()
        await send_prompts(session, "three")
        assert "secret" in words(teller.asked[-1])
        await session.exclude(first)
        await session.ask_aside("what is it?")
        assert "secret" not in words(teller.asked[-1])


async def test_a_rule_that_is_carried_with_the_sentence_before_it_goes_too(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "The word is secret plum. Never say that.", "x" * 30_000, "two")
        [first, *_] = await ids(session)
        await session.compact()
        await send_prompts(session, "three")
        assert "secret plum. Never" in words(teller.asked[-1])
        await session.exclude(first)
        await send_prompts(session, "four")
        assert "secret" not in words(teller.asked[-1])


@pytest.mark.process
async def test_a_command_that_failed_goes_with_its_message(plain_world: World) -> None:
    def say(request: ModelRequest) -> Any:
        if "run it" in words(request) and "secret" not in words(request):
            return CallTool(name="shell", args={"command": "echo the secret; exit 3"})
        return SayText(text="so be it")

    teller = SummarizingModel(say=say)
    async with plain_world.open(teller.model) as app:
        session = await start(app, tools=["shell"], auto_approve=True)
        await send_prompts(session, "run it", "two")
        caller = (await ids(session))[1]
        await session.compact()
        [compacted] = await facts(session, Compacted)
        assert compacted.kept is not None
        assert [each.exit_code for each in compacted.kept.failures] == [3]
        await session.exclude(caller)
        teller.say = None
        await send_prompts(session, "three")
        assert "secret" not in words(teller.asked[-1])
        await session.include(caller)
        await send_prompts(session, "four")
        assert "exit 3" in words(teller.asked[-1])


async def test_what_a_summary_carries_goes_in_the_middle_of_a_turn(world: World) -> None:
    world.write("a.txt", "text")

    def say(request: ModelRequest) -> Any:
        if "look" in words(request) and "a.txt" not in words(request):
            return (Stall(gate="go"), CallTool(name="read", args={"path": "a.txt"}))
        return SayText(text="so be it")

    teller = SummarizingModel(say=say)
    async with world.open(teller.model) as app:
        session = await start(app, tools=["read"])
        await send_prompts(session, "always say the secret", "two")
        [first, *_] = await ids(session)
        await session.compact()
        await session.send_prompt("look")
        await gate_reached(teller, "go")
        assert "secret" in words(teller.asked[-1])
        await session.exclude(first)
        teller.model.gate("go").opened.set()
        await until_idle(session)
        assert "a.txt" in words(teller.asked[-1])
        assert "secret" not in words(teller.asked[-1])


async def test_a_call_that_is_made_again_is_made_without_it(world: World) -> None:
    broken: list[Step] = [
        SayText(text="half"),
        Stall(gate="go"),
        Fail(error="ProviderUnavailable", times=1),
    ]
    model = ScriptedModel(["one", broken, "done"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("a secret")
        [first, *_] = await ids(session)
        await session.send_prompt("go on")
        await model.gate("go").reached.wait()
        await session.exclude(first)
        model.gate("go").opened.set()
        await until_idle(session)
        assert "secret" in words(model.requests[1])
        assert "secret" not in words(model.requests[2])
        # Each request is on record as it was sent.
        digests = [each.digest for each in await facts(session, ModelCallStarted)]
        assert len(digests) == len(set(digests)) == 3
        assert (await session.request()).match == "same_words"
        assert (await session.messages())[-1].content == "done"


async def test_a_pinned_message_that_is_excluded_leaves_no_empty_block(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "a secret", "two")
        [first, *_] = await ids(session)
        await session.pin(first)
        await session.exclude(first)
        await session.compact()
        await send_prompts(session, "three")
        assert "Pinned" not in words(teller.asked[-1])
        await session.include(first)
        await send_prompts(session, "four")
        assert "[Pinned, said by the user:]\na secret" in "\n\n".join(teller.carried)


async def left_out(session: Session, *numbers: int) -> None:
    line = await ids(session)
    for number in numbers:
        await session.exclude(line[number])


async def test_an_undone_compaction_and_branches_send_none_of_it(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "a secret", "three")
        await left_out(session, 2)
        line = await ids(session)
        await session.compact()
        await session.undo_compaction()
        await send_prompts(session, "four")
        await session.branch_at(line[-1])
        await send_prompts(session, "five")
        await session.branch_at(line[1])
        await send_prompts(session, "six")
        await session.rewind(line[-1])
        await send_prompts(session, "seven")
        assert not any("secret" in words(each) for each in teller.asked[3:] + teller.summaries)


async def test_text_that_is_continued_is_sent_without_it(plain_world: World) -> None:
    coder, writer = ScriptedModel(["One."]), scripted("w", " a branch")
    async with plain_world.open(coder, writer) as app:
        session = await app.sessions.start_session()
        await session.send_message("a secret")
        first, last = await ids(session)
        await session.exclude(first)
        view = await app.loom.open(last)
        view.set_model_plan([{"model": "scripted:w"}])
        assert "secret" not in str(view.prompt_entries())
        done = (await events_of(view.generate()))[-1]
        assert isinstance(done, GenerationComplete)
        assert "One." in words(writer.requests[-1])
        assert "secret" not in words(writer.requests[-1])
        # It stays in what is shown.
        assert view.get_state().full_text.startswith("a secret")
        await view.aclose()
