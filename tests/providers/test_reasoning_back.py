"""Reasoning goes back to the model that made it, unchanged and in its order, over real sockets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.support.loopback_server import LoopbackConnection, serving
from tests.support.vendor_ends import GOOD_ENDS
from tests.support.vendor_replies import VendorReply, environment, refused, stream, vendor_app
from weft.errors import ProviderUnavailable
from weft.ids import CallUid
from weft.messages import CallResult, CallResults, ChatMessage, Text, Thinking, ToolCall
from weft.providers import ModelRequest, StreamEvent, TextDone, TextPiece
from weft.providers.catalogue import shipped
from weft.providers.credentials import ProviderAccess
from weft.providers.google.decode import GeminiDecoder
from weft.providers.google.encode import encode as encode_gemini
from weft.providers.openai_chat.encode import GEMINI, OPENROUTER
from weft.providers.openai_chat.encode import encode as encode_chat
from weft.providers.vendors import access_from, make_provider
from weft.transport import HttpClient

pytestmark = pytest.mark.anyio
Json = dict[str, Any]


@weft.tool(effect="pure")
async def look(where: str = "here") -> str:
    """Look somewhere."""
    return f"nothing {where}"


def block(index: int, content: Json, *deltas: Json) -> list[Json]:
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def thought(index: int, text: str, proof: str) -> list[Json]:
    return block(
        index,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": text},
        {"type": "signature_delta", "signature": proof},
    )


def call(index: int, where: str) -> list[Json]:
    begun = {"type": "tool_use", "id": f"toolu_{index}", "name": "look", "input": {}}
    args = {"type": "input_json_delta", "partial_json": json.dumps({"where": where})}
    return block(index, begun, args)


INTERLEAVED = stream(
    *thought(0, "first", "sig-0"),
    *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "I look at both."}),
    *call(2, "left"),
    *thought(3, "then", "sig-3"),
    *call(4, "right"),
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    {"type": "message_stop"},
)


async def second_request(
    provider: str, first: VendorReply, folder: Path, model: str = "", **settings: Any
) -> Json:
    """What a vendor is sent after its first answer called a tool."""
    replies = [first, GOOD_ENDS[provider]]
    async with vendor_app(provider, replies, folder, model) as (app, server):
        session = await app.sessions.start_session(tools=[look], **settings)
        result = await session.send_message("hi")
    assert result.finish_reason == "stop"
    body: Json = json.loads(server.asked[1].body)
    return body


@pytest.mark.parametrize("level", ["default", "off"])
async def test_interleaved_thinking_and_notes_between_tools_keep_their_order(
    level: str, tmp_path: Path
) -> None:
    body = await second_request("anthropic", INTERLEAVED, tmp_path, thinking=level)
    assert body["thinking"]["type"] == ("between_tools" if level == "off" else "adaptive")
    said = next(message for message in body["messages"] if message["role"] == "assistant")
    assert said["content"] == [
        {"type": "thinking", "thinking": "first", "signature": "sig-0"},
        {"type": "text", "text": "I look at both."},
        {"type": "tool_use", "id": "toolu_2", "name": "look", "input": {"where": "left"}},
        {"type": "thinking", "thinking": "then", "signature": "sig-3"},
        {"type": "tool_use", "id": "toolu_4", "name": "look", "input": {"where": "right"}},
    ]


async def test_a_signed_text_of_gemini_keeps_its_signature_and_its_bounds(tmp_path: Path) -> None:
    def chunk(*parts: Json) -> Json:
        return {"candidates": [{"content": {"role": "model", "parts": list(parts)}}]}

    first = stream(
        chunk({"text": "I lo"}),
        chunk({"text": "ok.", "thoughtSignature": "sig-text"}),
        chunk({"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "sig-call"}),
        {"candidates": [{"finishReason": "STOP"}]},
    )
    body = await second_request("google", first, tmp_path)
    said = next(content for content in body["contents"] if content["role"] == "model")
    assert said["parts"] == [
        {"text": "I lo"},
        {"text": "ok.", "thoughtSignature": "sig-text"},
        {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "sig-call"},
    ]


def test_a_signature_without_text_belongs_to_the_text_before_it() -> None:
    decoder = GeminiDecoder("google")
    events: list[StreamEvent] = []
    for part in ({"text": "Hi."}, {"text": "", "thoughtSignature": "s"}):
        chunk = {"candidates": [{"content": {"parts": [part]}}]}
        events += decoder.feed(b"", json.dumps(chunk).encode())
    assert events == [TextPiece("Hi."), TextDone(signature="s")]


def test_a_signed_text_goes_only_to_the_model_that_signed_it() -> None:
    said = ChatMessage(
        role="assistant",
        parts=(Text(text="x", signature="s"),),
        model="google:gemini-3.7-flash",
    )
    for name, expected in (("gemini-3.7-flash", "s"), ("gemini-3.8-flash", None)):
        request = ModelRequest(model=name, messages=(user("hi"), said, user("go on")))
        body = encode_gemini(request, shipped().info("google", name))
        assert body["contents"][1]["parts"][0].get("thoughtSignature") == expected


async def test_reasoning_details_of_a_gateway_go_back_as_they_came(tmp_path: Path) -> None:
    def chunk(delta: Json, reason: str | None = None) -> Json:
        return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    def detail(**fields: Any) -> Json:
        return {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1", **fields}

    called = {"index": 0, "id": "call_1", "function": {"name": "look", "arguments": "{}"}}
    sealed = {"type": "reasoning.encrypted", "index": 1, "data": "c2VhbGVk", "id": "call_1"}
    first = stream(
        chunk({"reasoning": "Let me ", "reasoning_details": [detail(text="Let me ")]}),
        chunk({"reasoning": "look.", "reasoning_details": [detail(text="look.")]}),
        chunk({"reasoning_details": [detail(text=None, signature="sig-1")]}),
        chunk({"tool_calls": [called]}),
        chunk({"reasoning_details": [sealed]}, "tool_calls"),
    )
    body = await second_request("openai-chat", first, tmp_path)
    said = next(message for message in body["messages"] if message["role"] == "assistant")
    assert said["reasoning_details"] == [detail(text="Let me look.", signature="sig-1"), sealed]
    # The words are in the details; sent twice, they would be paid for twice.
    assert "reasoning_content" not in said


async def test_a_thought_signature_goes_back_through_chat_completions(tmp_path: Path) -> None:
    extra = {"google": {"thought_signature": "sig-1"}}
    function = {"name": "look", "arguments": "{}"}
    called = {"index": 0, "id": "call_1", "function": function, "extra_content": extra}
    first = stream(
        {"choices": [{"index": 0, "delta": {"tool_calls": [called]}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    )
    body = await second_request("openai-chat", first, tmp_path)
    said = next(message for message in body["messages"] if message["role"] == "assistant")
    assert said["tool_calls"][0]["extra_content"] == extra


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", parts=(Text(text=text),))


def round_of(*texts: str) -> tuple[Any, ...]:
    """A question, a call with its result, and what the user says then."""
    uid = CallUid("cal_1")
    asked = ChatMessage(
        role="assistant",
        parts=(
            Thinking(text="hm", signature="elsewhere", provider="acme", model="m"),
            ToolCall(call_uid=uid, name="look", args={}),
        ),
        model="acme:m",
    )
    given = CallResults(
        results=(CallResult(call_uid=uid, provider_id="", tool_name="look", text="nothing"),)
    )
    return (user("hi"), asked, given, *map(user, texts))


def test_neighbours_of_one_role_are_one_content_for_gemini() -> None:
    request = ModelRequest(model="gemini-3.8-flash", messages=round_of("and?", "well?"))
    contents = encode_gemini(request, shipped().info("google", request.model))["contents"]
    assert [content["role"] for content in contents] == ["user", "model", "user"]
    assert [next(iter(part)) for part in contents[2]["parts"]] == [
        "functionResponse",
        "text",
        "text",
    ]


def test_a_call_of_another_model_is_marked_for_gemini_behind_chat_completions() -> None:
    request = ModelRequest(model="gemini-3-pro", messages=round_of())
    said = encode_chat(request, shipped().info("elsewhere", request.model), GEMINI)["messages"][1]
    signature = said["tool_calls"][0]["extra_content"]["google"]["thought_signature"]
    assert signature == "skip_thought_signature_validator"


def test_claude_behind_openrouter_is_told_what_to_cache() -> None:
    mark = {"type": "ephemeral"}
    request = ModelRequest(
        model="anthropic/claude-sonnet-5.5", messages=round_of("and?"), system="Work."
    )
    info = shipped().info("openrouter", request.model)
    messages = encode_chat(request, info, OPENROUTER)["messages"]
    marked = [m["role"] for m in messages if isinstance(m["content"], list)]
    assert marked == ["system", "user", "user"]
    assert messages[0]["content"] == [{"type": "text", "text": "Work.", "cache_control": mark}]
    other = ModelRequest(model="openai/gpt-5", messages=round_of("and?"), system="Work.")
    plain = encode_chat(other, shipped().info("openrouter", other.model), OPENROUTER)
    assert "cache_control" not in json.dumps(plain)


BOUND = (
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a "
    "different conversation. Remove the block, or set "
    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)


def claude_says(text: str, proof: str) -> VendorReply:
    return stream(
        *thought(0, f"about {text}", proof),
        *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": text}),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )


async def test_a_turn_goes_on_once_without_thinking_that_is_bound_to_something_else(
    tmp_path: Path,
) -> None:
    answers = [claude_says("one", "sig-1"), claude_says("two", "sig-2"), claude_says("3", "sig-3")]
    refusal = refused(400, {"error": {"type": "invalid_request_error", "message": BOUND}})

    async def handler(line: LoopbackConnection) -> None:
        while asked := await line.request():
            reply = refusal if b"sig-1" in asked.body else answers.pop(0)
            await line.reply(reply.body, status=reply.status, headers=reply.headers)

    async with serving(handler) as server:
        environ = environment("anthropic", server.url, tmp_path)
        chosen = {"model.default": "anthropic:claude-sonnet-5-5"}
        async with weft.open(tmp_path, "memory", chosen, environ=environ) as app:
            session = await app.sessions.start_session(tools=[])
            said = [(await session.send_message(text)).text for text in ("a", "b", "c")]
    assert said == ["one", "two", "3"]
    bodies = [request.body for request in server.asked]
    # Refused once and sent without; from then on it is left out from the start, and only it.
    assert [b"sig-1" in body for body in bodies] == [False, True, False, False]
    assert b"sig-2" in bodies[-1]


@pytest.mark.parametrize(
    ("cloud", "model"),
    [("bedrock", "global.anthropic.claude-sonnet-5-5"), ("vertex", "claude-sonnet-5-5")],
)
async def test_other_clouds_are_asked_once_more_without_bound_thinking(
    cloud: str, model: str
) -> None:
    answered = VendorReply(b"", 503)
    refusal = refused(400, {"message": BOUND})

    async def handler(line: LoopbackConnection) -> None:
        while asked := await line.request():
            reply = refusal if b"sig-1" in asked.body else answered
            await line.reply(reply.body, status=reply.status, headers=reply.headers)

    own = Thinking(text="hm", signature="sig-1", provider=cloud, model=model)
    said = ChatMessage(role="assistant", parts=(own, Text(text="one")), model=f"{cloud}:{model}")
    request = ModelRequest(model=model, messages=(user("a"), said, user("b")))
    async with serving(handler) as server:
        client = HttpClient()
        environ = {
            "AWS_REGION": "eu-west-1",
            "GOOGLE_CLOUD_PROJECT": "p",
        }
        given = ProviderAccess(base_url=server.url, key="t-1")
        access = access_from(cloud, environ, shipped(), given)
        asked = make_provider(cloud, access, client, shipped()).model(model)
        with pytest.raises(ProviderUnavailable):
            async with asked.stream(request) as events:
                [event async for event in events]
        await client.aclose()
    assert [b"sig-1" in each.body for each in server.asked] == [True, False]


async def test_a_refusal_of_another_kind_is_not_sent_again(tmp_path: Path) -> None:
    wrong = {"error": {"type": "invalid_request_error", "message": "max_tokens: too large"}}
    replies = [claude_says("one", "sig-1"), refused(400, wrong)]
    async with vendor_app("anthropic", replies, tmp_path) as (app, server):
        session = await app.sessions.start_session(tools=[])
        await session.send_message("a")
        result = await session.send_message("b")
    assert result.finish_reason == "provider_error"
    assert len(server.asked) == 2
