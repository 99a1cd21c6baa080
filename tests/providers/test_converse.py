"""Bedrock's Converse over real sockets: requests, streams, errors and finish reasons."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from hypothesis import given, settings

from tests.support.cloud_servers import (
    converse_answer,
    converse_frame,
    exception_frame,
    send_frames,
)
from tests.support.example_count import examples
from tests.support.legality.conversations import requests
from tests.support.legality.vendor_requests import info
from tests.support.loopback_server import LoopbackConnection, LoopbackServer, serving
from tests.support.pdf_samples import pdf
from weft.errors import ProviderError, ProviderUnavailable, RateLimited, RequestRefused
from weft.messages import PDF_TYPE, CallResult, CallResults, Image, Text, ToolCall, Usage
from weft.providers import ChatMessage, Model, ModelRequest
from weft.providers.base import (
    CallArgs,
    CallStarted,
    StreamEvent,
    StreamFinished,
    TextPiece,
    ThinkingDone,
    ThinkingPiece,
    ToolSpec,
    UsageSeen,
)
from weft.providers.bedrock.converse_encode import encode
from weft.providers.catalogue import shipped
from weft.providers.credentials import ProviderAccess
from weft.providers.vendors import access_from, make_provider
from weft.transport import HttpClient

NOVA = "amazon.nova-pro-v1:0"
AWS = {"AWS_ACCESS_KEY_ID": "AKIA1", "AWS_SECRET_ACCESS_KEY": "s/e+c", "AWS_REGION": "eu-west-1"}
TOOL = ToolSpec(name="read", description="Reads.", schema={"type": "object", "properties": {}})
USER = ChatMessage(role="user", parts=(Text(text="hi"),))
some = settings(max_examples=examples(50), deadline=None)


@asynccontextmanager
async def nova(*frames: bytes, name: str = NOVA) -> AsyncGenerator[tuple[Model, LoopbackServer]]:
    async def handler(line: LoopbackConnection) -> None:
        while await line.request():
            await send_frames(line, list(frames))

    async with serving(handler) as server:
        client = HttpClient()
        access = access_from("bedrock", AWS, shipped(), ProviderAccess(base_url=server.url))
        yield make_provider("bedrock", access, client, shipped()).model(name), server
        await client.aclose()


async def heard(model: Model, request: ModelRequest | None = None) -> list[StreamEvent]:
    request = request or ModelRequest(model=model.info.name, messages=(USER,), tools=(TOOL,))
    with anyio.fail_after(10):
        async with model.stream(request) as events:
            return [event async for event in events]


@pytest.mark.anyio
async def test_another_vendors_model_is_asked_by_converse_and_signed() -> None:
    async with nova(*converse_answer({"text": "hello"})) as (model, server):
        found = await heard(model)
    (asked,) = server.asked
    assert asked.path == "/model/amazon.nova-pro-v1%3A0/converse-stream"
    assert "/eu-west-1/bedrock/aws4_request" in asked.headers["authorization"]
    body = json.loads(asked.body)
    assert body["messages"] == [{"role": "user", "content": [{"text": "hi"}]}]
    assert body["toolConfig"]["tools"][0]["toolSpec"]["name"] == "read"
    assert found == [
        TextPiece("hello"),
        UsageSeen(Usage(input_tokens=11, output_tokens=7, cache_read_tokens=5)),
        StreamFinished(reason="stop"),
    ]


@pytest.mark.anyio
async def test_reasoning_text_and_calls_come_in_their_order() -> None:
    answer = converse_answer(
        {"reasoningContent": {"text": "hm", "signature": "sig"}},
        {"text": "I look."},
        {"call": ("t-1", "read"), "toolUse": {"input": '{"path": "a"}'}},
        {"call": ("t-2", "read")},
        reason="tool_use",
    )
    async with nova(*answer) as (model, _):
        *found, _, last = await heard(model)
    assert found == [
        ThinkingPiece("hm"),
        ThinkingDone(signature="sig"),
        TextPiece("I look."),
        CallStarted(index=0, name="read", provider_id="t-1"),
        CallArgs(0, '{"path": "a"}'),
        CallStarted(index=1, name="read", provider_id="t-2"),
        CallArgs(1, "{}"),
    ]
    assert last == StreamFinished(reason="tool_calls")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("guardrail_intervened", "content_filter"),
        ("content_filtered", "content_filter"),
        ("malformed_tool_use", "malformed_call"),
        ("something_new", "other"),
    ],
)
async def test_every_reason_to_stop_has_its_name(said: str, reason: str) -> None:
    async with nova(*converse_answer({"text": "x"}, reason=said)) as (model, _):
        last = (await heard(model))[-1]
    assert isinstance(last, StreamFinished)
    assert last.reason == reason
    assert last.detail == ("" if reason == "stop" else said)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("kind", "error", "is_retried"),
    [
        ("throttlingException", RateLimited, True),
        ("serviceUnavailableException", ProviderUnavailable, True),
        ("validationException", RequestRefused, False),
    ],
)
async def test_an_exception_in_the_stream_is_an_error(
    kind: str, error: type[ProviderError], is_retried: bool
) -> None:
    frames = [*converse_answer({"text": "x"})[:2], exception_frame(kind, "too bad")]
    async with nova(*frames) as (model, _):
        with pytest.raises(error, match="too bad") as caught:
            await heard(model)
    assert caught.value.retryable is is_retried


@pytest.mark.anyio
async def test_a_stream_that_ends_too_early_is_no_answer() -> None:
    async with nova(*converse_answer({"text": "x"})[:3]) as (model, _):
        with pytest.raises(ProviderUnavailable, match="before the answer was complete"):
            await heard(model)
    # The counts may be missing; why it stopped may not.
    async with nova(*converse_answer({"text": "x"})[:-1]) as (model, _):
        assert (await heard(model))[-1] == StreamFinished(reason="stop")


@pytest.mark.anyio
async def test_events_that_are_not_known_are_passed_over() -> None:
    frames = converse_answer({"text": "x"})
    frames.insert(1, converse_frame("somethingNew", {"a": 1}))
    async with nova(*frames) as (model, _):
        assert (await heard(model))[0] == TextPiece("x")


def document(name: str) -> Image:
    data = base64.b64encode(pdf("x")).decode()
    return Image(media_type=PDF_TYPE, data=data, name=name, pages=1)


def test_documents_have_legal_names_of_their_own_and_a_text_beside_them() -> None:
    said = ChatMessage(role="user", parts=(document("a/b_c.pdf"), document("d/b_c.pdf")))
    request = ModelRequest(model=NOVA, messages=(said,))
    (message,) = encode(request, shipped().info("bedrock", NOVA))["messages"]
    names = [block["document"]["name"] for block in message["content"] if "document" in block]
    assert names == ["b c pdf", "b c pdf (2)"]
    assert message["content"][-1] == {"text": "(documents)"}


def test_a_conversation_with_calls_declares_tools_even_where_there_are_none_left() -> None:
    call = ToolCall(call_uid="c1", name="gone", args={})  # type: ignore[arg-type]
    result = CallResult(call_uid="c1", provider_id="", tool_name="gone", text="x", is_error=True)
    messages = (
        USER,
        ChatMessage(role="assistant", parts=(call,)),
        CallResults(results=(result,)),
    )
    body = encode(ModelRequest(model=NOVA, messages=messages), shipped().info("bedrock", NOVA))
    assert [each["toolSpec"]["name"] for each in body["toolConfig"]["tools"]] == ["gone"]
    (block,) = body["messages"][-1]["content"]
    assert block["toolResult"]["status"] == "error"


@some
@given(request=requests("bedrock", [NOVA]))
def test_every_conversation_keeps_the_rules_of_converse(request: ModelRequest) -> None:
    body = encode(request, info("bedrock", request))
    roles = [message["role"] for message in body["messages"]]
    assert roles[0] == roles[-1] == "user"
    assert all(one != other for one, other in itertools.pairwise(roles))
    waiting: list[str] = []
    for message in body["messages"]:
        blocks: list[dict[str, Any]] = message["content"]
        assert blocks
        assert all(block["text"].strip() for block in blocks if "text" in block)
        given = [block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block]
        assert given == waiting
        waiting = [block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block]
        has_documents = any("document" in block for block in blocks)
        assert not has_documents or any("text" in block for block in blocks)
