"""What servers send that is not quite as documented, and no reason to fail."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.vendor_ends import GOOD_ENDS
from tests.support.vendor_replies import VendorReply, refused, stream, vendor_app
from weft.loop.answer import AnswerBuilder
from weft.messages import ChatMessage, Text, Thinking, Usage
from weft.providers import ModelRequest, StreamEvent
from weft.providers.anthropic.decode import AnthropicDecoder
from weft.providers.anthropic.encode import encode as encode_anthropic
from weft.providers.anthropic.stream import SessionPace
from weft.providers.base import StreamDecoder
from weft.providers.catalogue import shipped
from weft.providers.google.decode import GeminiDecoder
from weft.providers.ollama.decode import OllamaDecoder
from weft.providers.openai.decode import ResponsesDecoder
from weft.providers.openai.encode import encode as encode_responses
from weft.providers.openai_chat.decode import ChatDecoder
from weft.providers.think_tags import ThinkTags
from weft.providers.usage import ANTHROPIC_USAGE, read_usage

Json = dict[str, Any]
DECODERS: dict[str, type] = {
    "anthropic": AnthropicDecoder,
    "openai": ResponsesDecoder,
    "openai-chat": ChatDecoder,
    "google": GeminiDecoder,
    "ollama": OllamaDecoder,
}


def answer(provider: str, *events: Json) -> AnswerBuilder:
    """What comes of a stream that ends after these events."""
    decoder: StreamDecoder = DECODERS[provider](provider)
    builder = AnswerBuilder(provider, "m")
    heard: list[StreamEvent] = []
    for event in events:
        heard += decoder.feed(b"", json.dumps(event).encode())
    if not decoder.is_finished:
        heard += decoder.end()
    for piece in heard:
        builder.add(piece)
    return builder


ODD: dict[str, tuple[Json, ...]] = {
    "anthropic": (
        {
            "type": "content_block_start",
            "index": 0.0,
            "content_block": {"type": "text", "text": None, "citations": None, "id": None},
        },
        {
            "type": "content_block_delta",
            "index": "0",
            "delta": {"type": "text_delta", "text": "Hi.", "partial_json": None},
        },
        {"type": "content_block_stop", "index": None},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "text": None}},
        {"type": "message_stop", "index": None},
    ),
    "openai": (
        {"type": "response.output_text.delta", "output_index": 0.0, "delta": "Hi."},
        {"type": "response.output_text.delta", "output_index": None, "delta": None},
        {"type": "response.output_item.done", "output_index": 0, "item": {"type": None}},
        {"type": "response.completed", "response": {"usage": {"input_tokens": 3.0}}},
    ),
    "openai-chat": (
        {"choices": [{"index": 0.0, "delta": {"content": "Hi.", "tool_calls": [None]}}]},
        {"choices": [None]},
        {"choices": [{"delta": {"tool_calls": None}, "finish_reason": "stop"}], "usage": None},
    ),
    "google": (
        {
            "candidates": [
                {
                    "content": {
                        "parts": [{"text": "Hi.", "thought": None, "thoughtSignature": None}]
                    },
                    "finishReason": None,
                    "finishMessage": None,
                }
            ],
            "promptFeedback": {"blockReason": None},
        },
        {"candidates": [{"finishReason": "STOP", "content": {"parts": [None]}}]},
    ),
    "ollama": (
        {"message": {"role": "assistant", "content": "Hi."}, "done": None, "done_reason": None},
        {"message": {"content": None}, "done": True, "done_reason": None, "eval_count": 2.0},
    ),
}


@pytest.mark.parametrize("provider", ODD)
def test_nulls_and_floats_in_harmless_places_are_no_outage(provider: str) -> None:
    found = answer(provider, *ODD[provider]).answer(0.0)
    assert (found.parts, found.stop) == ((Text(text="Hi."),), "stop")


def test_a_null_in_the_models_arguments_is_kept() -> None:
    call = {"functionCall": {"name": "look", "args": {"where": None}, "id": None}}
    found = answer(
        "google", {"candidates": [{"content": {"parts": [call]}, "finishReason": "STOP"}]}
    ).answer(0.0)
    assert [part.args for part in found.calls] == [{"where": None}]


# --- <think> -----------------------------------------------------------------------------------

TAGGED = "\n<think>\nFirst, a look.\n</think>\n\nThe answer is <think>4</think>."


def said(tags: ThinkTags, pieces: list[str]) -> tuple[str, str]:
    found = [each for piece in pieces for each in tags.feed(piece)] + tags.end()
    return "".join(thought for thought, _ in found), "".join(text for _, text in found)


@given(cuts=st.lists(st.integers(0, len(TAGGED)), max_size=8).map(sorted))
def test_think_tags_are_found_wherever_the_stream_is_cut(cuts: list[int]) -> None:
    bounds = [0, *cuts, len(TAGGED)]
    pieces = [TAGGED[a:b] for a, b in itertools.pairwise(bounds)]
    thought, text = said(ThinkTags(), pieces)
    # Line ends around the thought may stay where a piece ended with them.
    assert thought.strip("\n") == "First, a look."
    assert text == "The answer is <think>4</think>."


@pytest.mark.parametrize("plain", ["<thin", " <b>hi</b>", "", "no tags", "a <think>b</think>"])
def test_a_text_without_the_tag_at_its_beginning_stays_as_it_is(plain: str) -> None:
    assert said(ThinkTags(), list(plain)) == ("", plain)


@pytest.mark.parametrize("provider", ["openai-chat", "ollama"])
def test_text_in_think_tags_becomes_thinking(provider: str) -> None:
    if provider == "ollama":
        events: list[Json] = [
            {"message": {"content": "<think>hm"}, "done": False},
            {"message": {"content": "</think>Hi."}, "done": False},
            {"message": {"content": ""}, "done": True},
        ]
    else:
        events = [
            {"choices": [{"delta": {"content": "<think>hm"}}]},
            {"choices": [{"delta": {"content": "</think>Hi."}, "finish_reason": "stop"}]},
        ]
    found = answer(provider, *events).answer(0.0)
    assert found.parts == (
        Thinking(text="hm", provider=provider, model="m"),
        Text(text="Hi."),
    )


# --- Responses ---------------------------------------------------------------------------------


def message(place: int, *texts: str) -> Json:
    content = [{"type": "output_text", "text": text} for text in texts]
    item = {"type": "message", "role": "assistant", "content": content}
    return {"type": "response.output_item.done", "output_index": place, "item": item}


def delta(place: int, text: str) -> Json:
    return {"type": "response.output_text.delta", "output_index": place, "delta": text}


DONE: Json = {"type": "response.completed", "response": {"usage": {"input_tokens": 3}}}


def test_two_output_messages_stay_two() -> None:
    found = answer(
        "openai", delta(0, "I looked"), delta(0, "."), message(0), delta(1, "Done."), DONE
    ).answer(0.0)
    assert "".join(part.text for part in found.parts if isinstance(part, Text)) == (
        "I looked.\n\nDone."
    )
    asked = ModelRequest(
        model="gpt-5.4",
        messages=(
            ChatMessage(role="user", parts=(Text(text="hi"),)),
            ChatMessage(role="assistant", parts=found.parts, model="openai:gpt-5.4"),
            ChatMessage(role="user", parts=(Text(text="and?"),)),
        ),
    )
    items = encode_responses(asked, shipped().info("openai", "gpt-5.4"))["input"]
    assert [(item["content"], item["phase"]) for item in items[1:3]] == [
        ("I looked.", "commentary"),
        ("Done.", "final_answer"),
    ]


def test_text_that_comes_only_with_the_end_of_its_item_is_kept() -> None:
    assert answer("openai", message(0, "Hi", "."), DONE).answer(0.0).parts == (Text(text="Hi."),)
    # And once, where deltas came as well.
    whole = answer("openai", delta(0, "Hi."), message(0, "Hi."), DONE).answer(0.0)
    assert whole.parts == (Text(text="Hi."),)


def test_text_that_comes_only_with_the_end_of_the_response_is_kept() -> None:
    response = {"output": [{"type": "reasoning"}, message(1, "Hi.")["item"]]}
    found = answer("openai", {"type": "response.completed", "response": response}).answer(0.0)
    assert (found.parts, found.stop) == ((Text(text="Hi."),), "stop")


# --- policy --------------------------------------------------------------------------------------

CYBER = {"code": "cyber_policy", "message": "This request was flagged for cybersecurity risk."}
FILTERED = {
    "code": "content_filter",
    "message": "The response was filtered due to the prompt triggering Azure's policy.",
    "innererror": {"code": "ResponsibleAIPolicyViolation"},
}
POLICIES: dict[str, tuple[str, VendorReply, str]] = {
    "in a stream": (
        "openai",
        stream({"type": "response.failed", "response": {"error": CYBER}}),
        "refusal",
    ),
    "as an event": ("openai", stream({"type": "error", **CYBER}), "refusal"),
    "as a reply": ("openai", refused(400, {"error": CYBER}), "refusal"),
    "in words": (
        "anthropic",
        refused(
            400,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "Output blocked by content filtering policy",
                },
            },
        ),
        "refusal",
    ),
    "by Azure's filter": ("openai-chat", refused(400, {"error": FILTERED}), "content_filter"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", POLICIES)
async def test_a_policy_refusal_is_not_retried(name: str, tmp_path: Path) -> None:
    provider, reply, reason = POLICIES[name]
    async with vendor_app(provider, [reply, GOOD_ENDS[provider]], tmp_path) as (app, server):
        session = await app.sessions.start_session(tools=[])
        result = await session.send_message("hi")
    assert (result.finish_reason, len(server.asked)) == (reason, 1)


# --- the cache that is kept for an hour ----------------------------------------------------------


def test_the_long_cache_is_used_from_the_first_long_pause_on() -> None:
    pace = SessionPace()
    seen = []
    for now in (0.0, 200.0, 400.0, 1_000.0, 1_010.0):
        pace.note("ses_a", now)
        seen.append(pace.is_slow("ses_a"))
    assert seen == [False, False, False, True, True]
    pace.note("ses_b", 0.0)
    # After more than an hour the long one would be gone as well.
    pace.note("ses_b", 4_000.0)
    assert not pace.is_slow("ses_b")


def test_every_mark_of_a_request_asks_for_the_long_cache_or_none() -> None:
    request = ModelRequest(
        model="claude-sonnet-5-5",
        messages=(ChatMessage(role="user", parts=(Text(text="hi"),)),),
        system="Work.",
    )
    info = shipped().info("anthropic", request.model)
    for long_cache, marks in ((True, {"1h"}), (False, {None})):
        body = encode_anthropic(request, info, long_cache=long_cache)
        blocks = [*body["system"], *body["messages"][0]["content"]]
        assert {block["cache_control"].get("ttl") for block in blocks} == marks


def test_tokens_that_are_kept_for_an_hour_cost_twice_the_input() -> None:
    report = {
        "input_tokens": 0,
        "cache_creation_input_tokens": 1_000_000,
        "cache_creation": {"ephemeral_1h_input_tokens": 1_000_000},
    }
    usage = read_usage(report, ANTHROPIC_USAGE)
    assert usage == Usage(cache_write_tokens=1_000_000, long_cache_tokens=1_000_000)
    info = shipped().info("anthropic", "claude-sonnet-5-5")
    assert info.price_input is not None
    assert info.cost(usage) == pytest.approx(2 * info.price_input)


def test_a_line_of_ollama_that_is_no_answer_is_no_success() -> None:
    found = answer("ollama", {"message": {"content": ""}, "done": True, "done_reason": "load"})
    assert found.finished is not None
    assert (found.finished.reason, found.finished.detail) == ("other", "load")
