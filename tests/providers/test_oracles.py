"""The vendors' own SDKs as judges; these run where the SDKs are installed (`pip install anthropic
openai google-genai`).

Two questions: do the vendors' types accept what our encoders make, and do the vendors' parsers hear
from our loopback servers what our decoders hear?
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings

from tests.support.example_count import examples
from tests.support.legality.conversations import requests
from tests.support.legality.vendor_requests import CLAUDES, GEMINIS, GPTS, info
from tests.support.loopback_server import LoopbackConnection, serving
from tests.support.vendor_servers import KEY, VENDOR_WIRES, send_plan
from weft.providers.anthropic.encode import encode as encode_anthropic
from weft.providers.base import ModelRequest
from weft.providers.google.encode import encode as encode_gemini
from weft.providers.openai.encode import encode as encode_responses
from weft.providers.openai_chat.encode import OPENAI
from weft.providers.openai_chat.encode import encode as encode_chat
from weft.providers.script import CallTool, SayText, ScriptedAnswer

pytestmark = pytest.mark.anyio
some = settings(max_examples=examples(60), deadline=None)
PLAN = ScriptedAnswer(
    steps=(
        SayText(text="héllo wörld 🎈", chunk=3),
        CallTool(name="read", args={"path": "a"}, chunk=4),
        CallTool(name="shell", args={"command": "true"}),
    )
)
CALLS = [("read", {"path": "a"}), ("shell", {"command": "true"})]


def accepts(module: str, name: str) -> Callable[[dict[str, Any]], object]:
    """A check by the SDK's own type; unknown fields are refused."""
    types = pytest.importorskip(module)
    pydantic = pytest.importorskip("pydantic")
    # Foreign.
    return pydantic.TypeAdapter(getattr(types, name)).validate_python  # type: ignore[no-any-return]


@some
@given(request=requests("anthropic", CLAUDES))
def test_anthropics_types_accept_our_requests(request: ModelRequest) -> None:
    check = accepts("anthropic.types.message_create_params", "MessageCreateParamsStreaming")
    check(encode_anthropic(request, info("anthropic", request)))


@some
@given(request=requests("openai", GPTS))
def test_openais_types_accept_our_responses_requests(request: ModelRequest) -> None:
    check = accepts(
        "openai.types.responses.response_create_params", "ResponseCreateParamsStreaming"
    )
    check(encode_responses(request, info("openai", request)))


@some
@given(request=requests("openai-chat", GPTS))
def test_openais_types_accept_our_chat_requests(request: ModelRequest) -> None:
    check = accepts("openai.types.chat.completion_create_params", "CompletionCreateParamsStreaming")
    check(encode_chat(request, info("openai-chat", request), OPENAI))


@some
@given(request=requests("google", GEMINIS))
def test_googles_types_accept_our_requests(request: ModelRequest) -> None:
    types = pytest.importorskip("google.genai.types")
    body = encode_gemini(request, info("google", request))
    for content in body["contents"]:
        types.Content.model_validate(content)
    for tool in body.get("tools", []):
        types.Tool.model_validate(tool)
    config = dict(body.get("generationConfig", {}))
    if level := config.get("thinkingConfig", {}).get("thinkingLevel"):
        config["thinkingConfig"] = {**config["thinkingConfig"], "thinkingLevel": level.upper()}
    types.GenerateContentConfig.model_validate(config)


async def answered(name: str, ask: Callable[[str], Any]) -> Any:
    async def handler(line: LoopbackConnection) -> None:
        while await line.request():
            await send_plan(line, VENDOR_WIRES[name](), PLAN)

    async with serving(handler) as server:
        return await ask(server.url)


async def test_anthropics_parser_hears_what_our_server_says() -> None:
    anthropic = pytest.importorskip("anthropic")

    async def ask(url: str) -> Any:
        said = [{"role": "user", "content": "hi"}]
        async with (
            anthropic.AsyncAnthropic(base_url=url, api_key=KEY) as client,
            client.messages.stream(model="claude-x", max_tokens=9, messages=said) as stream,
        ):
            return await stream.get_final_message()

    message = await answered("anthropic", ask)
    assert message.content[0].text == "héllo wörld 🎈"
    assert [(block.name, block.input) for block in message.content[1:]] == CALLS
    assert message.stop_reason == "tool_use"


async def test_openais_parser_hears_what_our_chat_server_says() -> None:
    openai = pytest.importorskip("openai")

    async def ask(url: str) -> Any:
        said = [{"role": "user", "content": "hi"}]
        async with (
            openai.AsyncOpenAI(base_url=url, api_key=KEY) as client,
            client.chat.completions.stream(model="gpt-4.1", messages=said) as stream,
        ):
            return await stream.get_final_completion()

    message = (await answered("openai-chat", ask)).choices[0].message
    assert message.content == "héllo wörld 🎈"
    heard = [(c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls]
    assert heard == CALLS


async def test_openais_parser_hears_what_our_responses_server_says() -> None:
    openai = pytest.importorskip("openai")

    async def ask(url: str) -> Any:
        kinds: dict[str, list[Any]] = {}
        async with openai.AsyncOpenAI(base_url=url, api_key=KEY) as client:
            stream = await client.responses.create(model="gpt-5", input="hi", stream=True)
            async for event in stream:
                kinds.setdefault(event.type, []).append(event)
        return kinds

    kinds = await answered("openai", ask)
    text = "".join(event.delta for event in kinds["response.output_text.delta"])
    assert text == "héllo wörld 🎈"
    items = [event.item for event in kinds["response.output_item.done"]]
    calls = [item for item in items if item.type == "function_call"]
    assert [(call.name, json.loads(call.arguments)) for call in calls] == CALLS
    assert "response.completed" in kinds


async def test_googles_parser_hears_what_our_server_says() -> None:
    genai = pytest.importorskip("google.genai")

    async def ask(url: str) -> Any:
        options = genai.types.HttpOptions(base_url=url)
        client = genai.Client(api_key=KEY, http_options=options)
        parts: list[Any] = []
        async for chunk in await client.aio.models.generate_content_stream(
            model="gemini-2.5-flash", contents="hi"
        ):
            parts += chunk.candidates[0].content.parts or []
        await client.aio.aclose()
        return parts

    parts = await answered("google", ask)
    assert "".join(part.text or "" for part in parts) == "héllo wörld 🎈"
    calls = [part.function_call for part in parts if part.function_call]
    assert [(call.name, call.args) for call in calls] == CALLS
