"""Raw text, begun answers and probabilities: what each vendor is sent for them, over real sockets,
and what is made of its stream.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

from tests.support.loopback_server import Handler, LoopbackConnection, LoopbackServer, serving
from tests.support.vendor_servers import KEY, sse
from weft.errors import ProviderError, RequestRefused
from weft.messages import ChatMessage, Text, Usage
from weft.providers import (
    Model,
    ModelInfo,
    ModelRequest,
    ScoredPiece,
    StreamEvent,
    StreamFinished,
    TextPiece,
    ThinkingPiece,
    TokenLogprob,
    UsageSeen,
)
from weft.providers.anthropic.encode import encode as encode_anthropic
from weft.providers.catalogue import shipped
from weft.providers.credentials import ProviderAccess
from weft.providers.http_model import HttpModel
from weft.providers.local.server import RunningServer
from weft.providers.local.stream import LocalWire
from weft.providers.logprobs import read_tokens
from weft.providers.openai_chat.encode import COMPATIBLE, MISTRAL
from weft.providers.openai_chat.encode import encode as encode_chat
from weft.providers.openai_chat.stream import ChatWire
from weft.providers.replay import RecordingModel, read_recordings
from weft.providers.vendors import make_provider
from weft.transport import HttpClient, HttpTimeouts

pytestmark = pytest.mark.anyio

RAW = ModelRequest(
    model="m",
    messages=(),
    prompt="Once upon a time",
    max_output_tokens=40,
    temperature=0.9,
    seed=7,
    stop=("\n\n",),
)
SAID = (
    ChatMessage(role="user", parts=(Text(text="[continue]"),)),
    ChatMessage(role="assistant", parts=(Text(text="a dark and stormy"),)),
)


def streams(*bodies: bytes) -> Handler:
    """A handler that answers each request with these bytes."""

    async def handler(line: LoopbackConnection) -> None:
        while await line.request():
            await line.start_events()
            for body in bodies:
                await line.chunk(body)
            await line.end_chunks()

    return handler


@asynccontextmanager
async def talking(
    provider: str, handler: Handler, model: str = "m"
) -> AsyncGenerator[tuple[Model, LoopbackServer]]:
    async with serving(handler) as server:
        client = HttpClient()
        limits = HttpTimeouts(first_byte=10, idle=10)
        access = ProviderAccess(key=KEY, base_url=server.url, timeouts=limits)
        yield make_provider(provider, access, client, shipped()).model(model), server
        await client.aclose()


async def play(model: Model, request: ModelRequest) -> list[StreamEvent]:
    with anyio.fail_after(10):
        async with model.stream(request) as events:
            return [event async for event in events]


def chunk(text: str, **more: object) -> bytes:
    return sse({"choices": [{"text": text, "index": 0, "finish_reason": None, **more}]})


DONE = (
    sse({"choices": [{"text": "", "finish_reason": "length"}]}),
    sse({"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 2}}),
    b"data: [DONE]\n\n",
)


# --- raw text ----------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["openai", "openai-chat", "acme", "lmstudio", "together"])
async def test_raw_text_goes_to_the_address_for_it(provider: str) -> None:
    answer = streams(chunk(" there"), chunk(" was"), *DONE)
    async with talking(provider, answer) as (model, server):
        events = await play(model, RAW)
    assert server.asked[0].path == "/completions"
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert json.loads(server.asked[0].body) == {
        "model": "m",
        "prompt": "Once upon a time",
        "max_tokens": 40,
        "temperature": 0.9,
        "seed": 7,
        "stop": ["\n\n"],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert events == [
        TextPiece(" there"),
        TextPiece(" was"),
        UsageSeen(Usage(input_tokens=4, output_tokens=2)),
        StreamFinished(reason="length", detail="length"),
    ]


async def test_ollama_continues_raw_text_without_its_template() -> None:
    lines = [{"response": " there"}, {"response": " <think>"}]
    last = {"done": True, "done_reason": "stop", "prompt_eval_count": 4, "eval_count": 2}
    answer = [json.dumps(each).encode() + b"\n" for each in [*lines, {"response": "", **last}]]
    async with talking("ollama", streams(*answer), "llama3.2") as (model, server):
        events = await play(model, msgspec.structs.replace(RAW, model="llama3.2", logprobs=3))
    assert server.asked[0].path == "/api/generate"
    body = json.loads(server.asked[0].body)
    assert body["raw"] is True
    assert body["prompt"] == "Once upon a time"
    assert (body["logprobs"], body["top_logprobs"]) == (True, 3)
    assert body["options"]["seed"] == 7
    assert "messages" not in body
    assert events == [
        TextPiece(" there"),
        TextPiece(" <think>"),
        UsageSeen(Usage(input_tokens=4, output_tokens=2)),
        StreamFinished(reason="stop"),
    ]


async def test_mistral_fills_gaps_at_an_address_of_its_own() -> None:
    said = {"delta": {"content": "b"}, "finish_reason": "stop"}
    request = msgspec.structs.replace(RAW, prompt="a(", suffix=")")
    answer = streams(sse({"choices": [said]}), b"data: [DONE]\n\n")
    async with serving(answer) as server, connected() as client:
        wire = _mistral(server.url)
        model = HttpModel(ModelInfo(provider="mistral", name="codestral"), wire, client)
        events = await play(model, request)
    asked = server.asked[0]
    body = json.loads(asked.body)
    assert asked.path == "/fim/completions"
    assert (body["prompt"], body["suffix"], body["random_seed"]) == ("a(", ")", 7)
    assert "stream_options" not in body
    assert events[0] == TextPiece("b")


@asynccontextmanager
async def connected() -> AsyncGenerator[HttpClient]:
    client = HttpClient()
    yield client
    await client.aclose()


def _mistral(url: str) -> ChatWire:
    wire = ChatWire(ProviderAccess(key=KEY, base_url=url), "mistral", shipped().vendor("mistral"))
    wire._dialect = MISTRAL  # by its host, which is another one here
    return wire


async def test_the_embedded_model_continues_raw_text(tmp_path: Path) -> None:
    socket = str(tmp_path / "s")
    tokens = {"content": [{"token": " there", "logprob": -0.5, "top_logprobs": []}]}
    answer = streams(chunk(" there", logprobs=tokens), *DONE)
    async with serving(answer, unix=socket) as server, connected() as client:
        wire = LocalWire(RunningServer(socket=socket, key="k"))
        model = HttpModel(ModelInfo(provider="local", name="smollm2"), wire, client)
        events = await play(model, msgspec.structs.replace(RAW, logprobs=2))
    body = json.loads(server.asked[0].body)
    assert server.asked[0].path == "/v1/completions"
    assert (body["prompt"], body["seed"], body["logprobs"]) == ("Once upon a time", 7, 2)
    assert events[0] == ScoredPiece(" there", (TokenLogprob(" there", -0.5),))


@pytest.mark.parametrize("provider", ["anthropic", "google"])
async def test_a_vendor_without_text_completion_says_so(provider: str) -> None:
    async with talking(provider, streams()) as (model, server):
        with pytest.raises(RequestRefused, match="has no text completion"):
            await play(model, RAW)
    assert server.asked == []


async def test_an_error_in_the_stream_of_raw_text_is_the_vendors() -> None:
    answer = streams(chunk(" a"), sse({"error": {"message": "out of memory", "code": 500}}))
    async with talking("acme", answer) as (model, _):
        with pytest.raises(ProviderError, match="out of memory"):
            await play(model, RAW)


async def test_raw_text_that_breaks_off_is_not_whole() -> None:
    async with talking("acme", streams(chunk(" a"))) as (model, _):
        with pytest.raises(ProviderError, match="ended before the answer was complete"):
            await play(model, RAW)


# --- begun answers -----------------------------------------------------------------------


def test_an_answer_that_was_begun_ends_the_conversation() -> None:
    request = ModelRequest(model="m", messages=SAID, prefill=True)
    info = ModelInfo(provider="acme", name="m")
    begun = {"role": "assistant", "content": "a dark and stormy"}
    assert encode_chat(request, info, COMPATIBLE)["messages"][-1] == begun
    assert encode_chat(request, info, MISTRAL)["messages"][-1] == {**begun, "prefix": True}
    usual = msgspec.structs.replace(request, prefill=False)
    assert encode_chat(usual, info, COMPATIBLE)["messages"][-1]["role"] == "user"
    older = msgspec.structs.replace(request, model="claude-sonnet-4-5")
    claude = ModelInfo(provider="anthropic", name="claude-sonnet-4-5")
    last = encode_anthropic(older, claude)["messages"][-1]
    assert last == {"role": "assistant", "content": [{"type": "text", "text": "a dark and stormy"}]}


async def test_ollama_goes_on_with_an_answer_that_was_begun() -> None:
    last = {"message": {"content": " night"}, "done": True, "done_reason": "stop"}
    answer = streams(json.dumps(last).encode() + b"\n")
    async with talking("ollama", answer) as (model, server):
        await play(model, ModelRequest(model="m", messages=SAID, prefill=True))
    sent = json.loads(server.asked[0].body)["messages"]
    assert sent[-1] == {"role": "assistant", "content": "a dark and stormy"}


# --- probabilities -----------------------------------------------------------------------

TOKEN = {
    "token": " Paris",
    "logprob": -0.1,
    "bytes": list(b" Paris"),
    "top_logprobs": [
        {"token": " Lyon", "logprob": -3.0, "bytes": None},
        {"token": " Paris", "logprob": -0.1, "bytes": list(b" Paris")},
    ],
}
READ = TokenLogprob(" Paris", -0.1, ((" Paris", -0.1), (" Lyon", -3.0)))


@pytest.mark.parametrize(
    "event",
    [
        {"choices": [{"delta": {}, "logprobs": {"content": [TOKEN], "refusal": None}}]},
        {
            "choices": [
                {
                    "text": " Paris",
                    "logprobs": {
                        "tokens": [" Paris"],
                        "token_logprobs": [-0.1],
                        "top_logprobs": [{" Lyon": -3.0, " Paris": -0.1}],
                        "text_offset": [0],
                    },
                }
            ]
        },
        {"message": {"content": " Paris"}, "logprobs": [TOKEN]},
        {"type": "response.output_text.delta", "delta": " Paris", "logprobs": [TOKEN]},
    ],
)
def test_probabilities_are_read_in_every_shape(event: object) -> None:
    assert read_tokens(json.dumps(event).encode()) == [READ]


@pytest.mark.parametrize(
    "data",
    [
        b"[DONE]",
        b'{"choices":[]}',
        b'{"logprobs":null}',
        b'{"choices":[{"logprobs":null}]}',
        b'{"choices":[{"logprobs":{"content":null}}]}',
        b'{"logprobs":[{"token":"a"}]}',
        b'{"logprobs":[{"token":"a","logprob":"NaN"}]}',
        b'{"logprobs":"yes"}',
        b'{"choices":[{"logprobs":{"tokens":["a","b"],"token_logprobs":[-1]}}]}',
        b'{"logprobs":[{"token":"a","logprob":-1,"bytes":[999]}]}',
        b'[{"logprobs":1}]',
        b'{"logprobs":' + b"[" * 5_000,
    ],
)
def test_a_report_that_cannot_be_read_is_none(data: bytes) -> None:
    assert read_tokens(data) == []


def test_a_token_that_is_impossible_has_a_finite_number() -> None:
    found = read_tokens(b'{"logprobs":[{"token":"a","logprob":"-inf"}]}')
    assert found == [TokenLogprob("a", -9999.0)]


def spoken(text: str, *tokens: object) -> bytes:
    choice = {"delta": {"content": text}, "logprobs": {"content": list(tokens)}}
    return sse({"choices": [choice]})


@pytest.mark.parametrize("provider", ["openai-chat", "acme"])
async def test_chat_gives_the_tokens_beside_the_text(provider: str) -> None:
    # The beginning of a tag is held back, and its tokens with it.
    angle = {"token": "<", "logprob": -2.0, "top_logprobs": []}
    end = sse({"choices": [{"delta": {}, "finish_reason": "stop"}]}) + b"data: [DONE]\n\n"
    answer = streams(spoken("<", angle), spoken(" Paris", TOKEN), end)
    request = ModelRequest(model="m", messages=SAID[:1], logprobs=2)
    async with talking(provider, answer, "gpt-4o") as (model, server):
        events = await play(model, request)
    body = json.loads(server.asked[0].body)
    assert (body["logprobs"], body["top_logprobs"]) == (True, 2)
    assert events[:-1] == [ScoredPiece("< Paris", (TokenLogprob("<", -2.0), READ))]


async def test_tokens_of_reasoning_are_none_of_the_answer() -> None:
    thought = {"delta": {"reasoning_content": "hm"}, "logprobs": {"content": [TOKEN]}}
    end = sse({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    answer = streams(sse({"choices": [thought]}), spoken(" Paris", TOKEN), end)
    async with talking("acme", answer) as (model, _):
        events = await play(model, ModelRequest(model="m", messages=SAID[:1], logprobs=0))
    assert events[0] == ThinkingPiece("hm")
    assert [each for each in events if isinstance(each, ScoredPiece)] == [
        ScoredPiece(" Paris", (READ,))
    ]


async def test_responses_gives_the_tokens_beside_the_text() -> None:
    delta = {
        "type": "response.output_text.delta",
        "output_index": 0,
        "delta": " Paris",
        "logprobs": [TOKEN],
    }
    end = {"type": "response.completed", "response": {"status": "completed", "output": []}}
    async with talking("openai", streams(sse(delta), sse(end)), "gpt-4o") as (model, server):
        request = ModelRequest(model="gpt-4o", messages=SAID[:1], logprobs=2)
        events = await play(model, request)
    body = json.loads(server.asked[0].body)
    assert body["include"] == ["message.output_text.logprobs"]
    assert body["top_logprobs"] == 2
    assert ScoredPiece(" Paris", (READ,)) in events


async def test_nothing_is_asked_for_and_nothing_read_by_default() -> None:
    answer = streams(spoken(" Paris", TOKEN), sse({"choices": [{"finish_reason": "stop"}]}))
    async with talking("acme", answer) as (model, server):
        events = await play(model, ModelRequest(model="m", messages=SAID[:1]))
    assert b"logprobs" not in server.asked[0].body
    assert type(events[0]) is TextPiece


async def test_probabilities_can_be_recorded_and_played_again(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    end = sse({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    request = ModelRequest(model="m", messages=SAID[:1], logprobs=2)
    async with talking("acme", streams(spoken(" Paris", TOKEN), end)) as (model, _):
        events = await play(RecordingModel(model, file), request)
    assert [event for _, event in read_recordings(file)[0].events] == events
