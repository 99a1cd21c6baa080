"""The log names the request of every model call by its digest, which can be computed again."""

from __future__ import annotations

import pytest

from tests.support.compaction import SummarizingModel, send_prompts, start
from tests.support.image_samples import PIXEL_DATA
from tests.support.world import World, crash, facts, request_lines, until_idle
from weft.api.session import Session
from weft.context import MessageDigests, PrefixTool, PromptPrefix, render_prefix, request_digest
from weft.events import ModelCallStarted
from weft.ids import BlobId
from weft.messages import Image, Text
from weft.providers import ModelRequest
from weft.providers.script import CallTogether, CallTool, Fail, SayText, Stall
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

PICTURE = Image(media_type="image/png", data=PIXEL_DATA, name="a.png")


def digest(request: ModelRequest, prefix: BlobId, model: str) -> str:
    """What the log should say of a request, from the request alone."""
    return request_digest(
        model=model,
        prefix=prefix,
        thinking=request.thinking,
        messages=MessageDigests().joined(request.messages),
    )


def prefix_of(request: ModelRequest) -> BlobId:
    """The prefix of a request that is not kept as a blob."""
    tools = tuple(
        PrefixTool(name=tool.name, description=tool.description, schema=tool.schema)
        for tool in request.tools
    )
    return render_prefix(PromptPrefix(system=request.system, tools=tools)).id


async def agrees(session: Session, sent: list[ModelRequest]) -> None:
    """Each request that was sent has one call on record, which names it."""
    started = await facts(session, ModelCallStarted)
    expected = [
        digest(request, each.prefix or prefix_of(request), each.model)
        for each, request in zip(started, sent, strict=True)
    ]
    assert [each.digest for each in started] == expected


async def last_agrees(session: Session, sent: list[ModelRequest]) -> None:
    """The last call on record names the last request."""
    last = (await facts(session, ModelCallStarted))[-1]
    assert last.digest == digest(sent[-1], last.prefix or prefix_of(sent[-1]), last.model)


async def test_every_call_of_a_turn_names_the_request_that_was_sent(world: World) -> None:
    world.write("a.txt", "what the file says")
    read = CallTool(name="read", args={"path": "a.txt"})
    model = ScriptedModel([read, CallTogether(calls=(read, read)), "ok", "again", read, "done"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("go")
        await session.send_message([Text(text="look at this"), PICTURE])
        await session.set_thinking_level("high")
        await session.send_message("and think")
        await agrees(session, model.requests)


@pytest.mark.parametrize("length", [10, 40_000])
async def test_a_message_that_steers_is_part_of_the_digest(world: World, length: int) -> None:
    model = ScriptedModel([[Stall(gate="go"), CallTool(name="list", args={})], "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await model.gate("go").reached.wait()
        await session.queue_steering("x" * length)
        model.gate("go").opened.set()
        await until_idle(session)
        assert "x" * length in request_lines(model.requests[-1])[-1]
        await last_agrees(session, model.requests)
        # The queue holds only the beginning of a long message, so that its call is named twice.
        assert len(await facts(session, ModelCallStarted)) == (2 if length < 1000 else 3)


async def test_a_turn_that_comes_back_names_what_it_sends_again(world: World) -> None:
    lost = ScriptedModel([[SayText(text="half an answer"), Stall(gate="dies")]])
    app = world.open(lost)
    await app.__aenter__()
    session = await app.sessions.start_session()
    await session.send_prompt("go")
    await lost.gate("dies").reached.wait()
    await crash(app)
    model = ScriptedModel(["whole"])
    async with world.open(model) as app:
        again = await app.sessions.start_session(session_id=session.id)
        await again.continue_turn()
        await until_idle(again)
        await last_agrees(again, model.requests)
        assert len(await facts(again, ModelCallStarted)) == 2


async def test_summaries_and_what_follows_them_are_named_too(world: World) -> None:
    teller = SummarizingModel(window=6_000)
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "two")
        await session.compact()
        await send_prompts(session, "three")
        await session.summarize()
        purposes = [each.purpose for each in await facts(session, ModelCallStarted)]
        assert purposes == ["turn", "turn", "compaction", "turn", "summary"]
        await agrees(session, teller.model.requests)


async def test_a_call_that_is_tried_again_has_one_digest(world: World) -> None:
    model = ScriptedModel([Fail(times=1), "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("go")
        assert len(model.requests) == 2
        [started] = await facts(session, ModelCallStarted)
        assert started.prefix is not None
        assert {digest(each, started.prefix, started.model) for each in model.requests} == {
            started.digest
        }
