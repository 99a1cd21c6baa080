"""One question to a model: `weft.query` and `weft.stream`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

import weft
from weft.errors import AuthFailed, ProviderUnavailable, SchemaFailed, UsageError
from weft.messages import ChatMessage, Text, Usage
from weft.providers import ModelInfo
from weft.providers.script import Break, Fail, SayText, Spend, Stall, Think
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

PRICED = ModelInfo(provider="scripted", name="priced", price_input=1.0, price_output=2.0)

UNPRICED = ModelInfo(provider="scripted", name="unpriced")


class Point(msgspec.Struct):
    x: int
    y: int


def said(model: ScriptedModel) -> list[tuple[str, str]]:
    """Role and text of each message of the newest request."""
    return [
        (message.role, "".join(part.text for part in message.parts if isinstance(part, Text)))
        for message in model.last_request.messages
        if isinstance(message, ChatMessage)
    ]


@pytest.mark.requirement("entry:query")
async def test_a_query_is_one_call_without_tools_or_history() -> None:
    model = ScriptedModel([[Think(text="hm"), SayText(text="Four.")]], info=PRICED)
    answer = await weft.query("2 + 2?", model=model, system="Be brief.")
    assert (answer.text, answer.thinking, answer.finish_reason) == ("Four.", "hm", "stop")
    assert answer.model == "scripted:priced"
    assert said(model) == [("user", "2 + 2?")]
    assert (model.last_request.system, model.last_request.tools) == ("Be brief.", ())


async def test_usage_and_cost_are_reported_and_an_unknown_price_is_none() -> None:
    used = Spend(usage=Usage(input_tokens=1_000_000, output_tokens=500_000))
    priced = await weft.query("?", model=ScriptedModel([[SayText(text="a"), used]], info=PRICED))
    unpriced = await weft.query(
        "?", model=ScriptedModel([[SayText(text="a"), used]], info=UNPRICED)
    )
    assert (priced.usage.input_tokens, priced.cost_usd) == (1_000_000, 2.0)
    assert unpriced.cost_usd is None


async def test_options_reach_the_model() -> None:
    model = ScriptedModel(["a"])
    await weft.query("?", model=model, max_output_tokens=7, temperature=0.5, thinking="low")
    request = model.last_request
    assert (request.max_output_tokens, request.temperature) == (7, 0.5)
    assert request.thinking == "low"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"prompt": ""}, "nothing to ask"),
        ({"prompt": "a", "colour": "red"}, "colour"),
        ({"prompt": "a", "thinking": "hard"}, "thinking"),
        ({"prompt": "a", "schema": 5}, "not a schema"),
    ],
)
async def test_a_wrong_call_is_refused_before_the_model_is_asked(
    arguments: dict[str, Any], says: str
) -> None:
    model = ScriptedModel(["never"])
    with pytest.raises(UsageError, match=says):
        await weft.query(**arguments, model=model)
    assert model.request_count == 0


async def test_a_model_that_does_not_exist_is_named() -> None:
    with pytest.raises(UsageError, match="nobody"):
        await weft.query("?", model="nobody:none")


async def test_a_broken_call_is_made_again_and_a_refused_one_is_not() -> None:
    model = ScriptedModel([[SayText(text="ha"), Break()], SayText(text="hallo", chunk=2)])
    assert (await weft.query("?", model=model)).text == "hallo"
    assert model.request_count == 2
    refused = ScriptedModel([Fail(error="AuthFailed")])
    with pytest.raises(AuthFailed):
        await weft.query("?", model=refused)
    assert refused.request_count == 1


# --- schemas -----------------------------------------------------------------------------


async def test_a_schema_gives_a_checked_value_of_the_type() -> None:
    model = ScriptedModel(['{"x": 1, "y": 2}'])
    answer = await weft.query("where?", model=model, schema=Point)
    assert answer.value == Point(1, 2)
    assert model.last_request.schema is not None
    assert '"x"' in model.last_request.system


async def test_a_value_that_is_no_object_may_come_wrapped_or_bare() -> None:
    for text in ("[1, 2]", '{"value": [1, 2]}'):
        answer = await weft.query("?", model=ScriptedModel([text]), schema=list[int])
        assert answer.value == [1, 2]


async def test_a_schema_with_free_keys_is_told_in_words_alone() -> None:
    model = ScriptedModel(['{"a": 1}'])
    answer = await weft.query("?", model=model, schema=dict[str, int])
    assert answer.value == {"a": 1}
    assert model.last_request.schema is None


@pytest.mark.requirement("entry:query")
async def test_a_misfit_is_repaired_with_what_was_wrong() -> None:
    model = ScriptedModel(["Sure!", '{"x": 1}', '{"x": 1, "y": 2}'], info=PRICED)
    answer = await weft.query("where?", model=model, schema=Point)
    assert (answer.value, answer.repairs) == (Point(1, 2), 2)
    roles = [role for role, _ in said(model)]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    assert "not JSON" in said(model)[2][1]
    assert "`y`" in said(model)[4][1]
    assert answer.usage.input_tokens == 300


async def test_a_third_misfit_fails_with_the_answer_at_hand() -> None:
    model = ScriptedModel(["no", "no", "never", "not asked for"])
    with pytest.raises(SchemaFailed, match="not JSON") as caught:
        await weft.query("where?", model=model, schema=Point)
    assert caught.value.text == "never"
    assert model.request_count == 3


# --- streams -----------------------------------------------------------------------------


@pytest.mark.requirement("entry:stream")
async def test_a_stream_hands_out_pieces_and_then_holds_the_answer() -> None:
    model = ScriptedModel([[Think(text="hm"), SayText(text="hello", chunk=2)]])
    stream = weft.stream("?", model=model)
    deltas = [(delta.kind, delta.text) async for delta in stream]
    assert deltas == [("thinking", "hm"), ("text", "he"), ("text", "ll"), ("text", "o")]
    assert stream.answer.text == "hello"


async def test_the_answer_of_an_unfinished_stream_is_refused() -> None:
    stream = weft.stream("?", model=ScriptedModel(["a"]))
    with pytest.raises(UsageError, match="not complete"):
        _ = stream.answer


async def test_leaving_the_loop_ends_the_call_and_does_no_harm() -> None:
    closed = anyio.Event()
    model = Watched([[SayText(text="abc", chunk=1), Stall(), SayText(text="never")]], closed)
    with anyio.fail_after(5):
        async for delta in weft.stream("?", model=model):
            assert delta.text == "a"
            await model.gate().reached.wait()
            break
        await closed.wait()
        await anyio.lowlevel.checkpoint()


async def test_a_stream_that_is_collected_in_another_thread_ends_the_call() -> None:
    """The debug mode of the loop refuses what another thread does to it.

    The collector runs in any thread.
    """
    asyncio.get_running_loop().set_debug(True)
    closed = anyio.Event()
    model = Watched([[SayText(text="abc", chunk=1), Stall()]], closed)
    with anyio.fail_after(5):
        held = [weft.stream("?", model=model)]
        assert (await anext(held[0])).text == "a"
        await anyio.to_thread.run_sync(held.clear)
        await closed.wait()


async def test_a_stream_may_be_closed_from_a_context() -> None:
    closed = anyio.Event()
    model = Watched([[SayText(text="abc", chunk=1), Stall()]], closed)
    with anyio.fail_after(5):
        async with weft.stream("?", model=model) as stream:
            assert (await anext(stream)).text == "a"
        assert closed.is_set()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_a_cancelled_reader_may_read_on() -> None:
    model = ScriptedModel([[SayText(text="a"), Stall(), SayText(text="b")]])
    stream = weft.stream("?", model=model)
    assert (await anext(stream)).text == "a"
    with anyio.move_on_after(0) as scope:
        await anext(stream)
    assert scope.cancelled_caught
    model.gate().opened.set()
    with anyio.fail_after(5):
        assert (await anext(stream)).text == "b"
    await stream.aclose()


async def test_a_retry_voids_what_was_handed_out() -> None:
    model = ScriptedModel([[SayText(text="ha"), Break()], SayText(text="hallo", chunk=2)])
    kinds = [(delta.kind, delta.text) async for delta in weft.stream("?", model=model)]
    assert kinds[:2] == [("text", "ha"), ("restart", "the scripted stream broke off")]
    assert kinds[2:] == [("text", "ha"), ("text", "ll"), ("text", "o")]


async def test_a_stream_with_a_schema_is_repaired_too() -> None:
    stream = weft.stream("?", model=ScriptedModel(["no", '{"x": 1, "y": 2}']), schema=Point)
    kinds = [delta.kind async for delta in stream]
    assert kinds == ["text", "restart", "text"]
    assert stream.answer.value == Point(1, 2)


async def test_a_stream_that_fails_says_so_behind_what_came() -> None:
    model = ScriptedModel([[SayText(text="a"), Break()]] * 2)
    stream = weft.stream("?", model=model, retries=0)
    assert (await anext(stream)).text == "a"
    with pytest.raises(ProviderUnavailable):
        await anext(stream)


class Watched(ScriptedModel):
    """A scripted model that says when its stream was closed."""

    def __init__(self, script: Any, closed: anyio.Event) -> None:
        super().__init__(script)
        self._closed = closed

    @asynccontextmanager
    async def stream(self, request: Any) -> AsyncIterator[Any]:
        try:
            async with super().stream(request) as events:
                yield events
        finally:
            self._closed.set()
