"""Streams of each vendor, as the vendors document them, and the habits of those who
imitate them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import (
    AuthFailed,
    ContextTooLong,
    ProviderError,
    ProviderUnavailable,
    RateLimited,
    RequestRefused,
)
from weft.messages import Usage
from weft.providers.anthropic.decode import AnthropicDecoder
from weft.providers.base import (
    CallArgs,
    CallStarted,
    StreamDecoder,
    StreamEvent,
    StreamFinished,
    TextPiece,
    ThinkingDone,
    ThinkingPiece,
    UsageSeen,
)
from weft.providers.google.decode import GeminiDecoder
from weft.providers.http_model import FrameSplitter
from weft.providers.ollama.decode import LineFrames, OllamaDecoder
from weft.providers.openai.decode import ResponsesDecoder
from weft.providers.openai_chat.decode import ChatDecoder
from weft.transport import EventParser

STREAMS = Path(__file__).with_name("streams")
MAKE: dict[str, tuple[Callable[[], FrameSplitter], Callable[[], StreamDecoder]]] = {
    "anthropic": (EventParser, lambda: AnthropicDecoder("anthropic")),
    "openai": (EventParser, lambda: ResponsesDecoder("openai")),
    "chat": (EventParser, lambda: ChatDecoder("openai-chat")),
    "gemini": (EventParser, lambda: GeminiDecoder("google")),
    "ollama": (LineFrames, lambda: OllamaDecoder("ollama")),
}


def decode(vendor: str, *pieces: bytes) -> list[StreamEvent]:
    """Everything that a stream means, to its end."""
    make_frames, make_decoder = MAKE[vendor]
    frames, decoder = make_frames(), make_decoder()
    events: list[StreamEvent] = []
    for piece in pieces:
        for name, data in frames.feed(piece):
            events += decoder.feed(name, data)
    if not decoder.is_finished:
        for name, data in frames.finish():
            events += decoder.feed(name, data)
    if not decoder.is_finished:
        events += decoder.end()
    return events


def sse(*values: object) -> bytes:
    return b"".join(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values)


def only(events: list[StreamEvent], *kinds: type) -> list[StreamEvent]:
    return [event for event in events if isinstance(event, kinds)]


EXPECTED: dict[str, tuple[str, list[StreamEvent]]] = {
    "anthropic": (
        "anthropic-thinking-tools.sse",
        [
            UsageSeen(
                Usage(
                    input_tokens=472,
                    output_tokens=2,
                    cache_read_tokens=3400,
                    cache_write_tokens=1200,
                )
            ),
            ThinkingPiece("The user wants both files."),
            ThinkingDone(signature="EqQBCkYIBBgC"),
            ThinkingDone(redacted="EmwKAhgBEgy3"),
            TextPiece("I'll read "),
            TextPiece("them."),
            CallStarted(index=0, name="read", provider_id="toolu_01T1"),
            CallArgs(0, '{"path":'),
            CallArgs(0, ' "a.txt"}'),
            CallStarted(index=1, name="now", provider_id="toolu_01T2"),
            CallArgs(1, "{}"),
            UsageSeen(
                Usage(
                    input_tokens=472,
                    output_tokens=89,
                    cache_read_tokens=3400,
                    cache_write_tokens=1200,
                )
            ),
            StreamFinished(reason="tool_calls"),
        ],
    ),
    "openai": (
        "openai-reasoning-tools.sse",
        [
            ThinkingPiece("**Reading**"),
            ThinkingPiece("\n\n"),
            ThinkingPiece("both files"),
            ThinkingDone(signature="rs_68af gAAAAABo2"),
            TextPiece("Reading."),
            CallStarted(index=0, name="read", provider_id="call_qLm"),
            CallStarted(index=1, name="now", provider_id="call_xYz"),
            CallArgs(0, '{"path"'),
            CallArgs(0, ':"a.txt"}'),
            CallArgs(1, "{}"),
            UsageSeen(
                Usage(
                    input_tokens=20, output_tokens=93, cache_read_tokens=1024, reasoning_tokens=64
                )
            ),
            StreamFinished(reason="tool_calls"),
        ],
    ),
    "chat": (
        "chat-tools.sse",
        [
            TextPiece("Reading."),
            CallStarted(index=0, name="read", provider_id="call_DdmO9pD3xa9XTPNJ32zg2hcA"),
            CallArgs(0, '{"path"'),
            CallStarted(index=1, name="now", provider_id="call_2"),
            CallArgs(0, ':"a.txt"}'),
            UsageSeen(Usage(input_tokens=93, output_tokens=46, cache_read_tokens=1024)),
            CallArgs(1, "{}"),
            StreamFinished(reason="tool_calls"),
        ],
    ),
    "gemini": (
        "gemini-thinking-tools.sse",
        [
            ThinkingPiece("**Planning**\n\n"),
            UsageSeen(Usage(input_tokens=110, output_tokens=30, reasoning_tokens=30)),
            ThinkingDone(),
            TextPiece("Reading."),
            UsageSeen(Usage(input_tokens=110, output_tokens=33, reasoning_tokens=30)),
            CallStarted(index=0, name="read", provider_id="8f2b", signature="EtQECtEEAdHtim"),
            CallArgs(0, '{"path": "a.txt"}'),
            CallStarted(index=1, name="now"),
            CallArgs(1, "{}"),
            UsageSeen(Usage(input_tokens=110, output_tokens=50, reasoning_tokens=30)),
            UsageSeen(
                Usage(input_tokens=10, output_tokens=51, cache_read_tokens=100, reasoning_tokens=30)
            ),
            StreamFinished(reason="tool_calls"),
        ],
    ),
    "ollama": (
        "ollama-thinking-tools.ndjson",
        [
            ThinkingPiece("Both "),
            ThinkingPiece("files."),
            ThinkingDone(),
            TextPiece("Reading."),
            CallStarted(index=0, name="read"),
            CallArgs(0, '{"path":"a.txt"}'),
            CallStarted(index=1, name="now"),
            CallArgs(1, "{}"),
            UsageSeen(Usage(input_tokens=169, output_tokens=15)),
            StreamFinished(reason="tool_calls"),
        ],
    ),
}


@pytest.mark.parametrize("vendor", sorted(EXPECTED))
def test_a_documented_stream_is_read_to_the_last_event(vendor: str) -> None:
    file, expected = EXPECTED[vendor]
    assert decode(vendor, (STREAMS / file).read_bytes()) == expected


@pytest.mark.parametrize("vendor", sorted(EXPECTED))
@given(data=st.data())
def test_a_stream_means_the_same_however_it_is_cut(vendor: str, data: st.DataObject) -> None:
    file, expected = EXPECTED[vendor]
    whole = (STREAMS / file).read_bytes()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)), max_size=8)))
    bounds = [0, *cuts, len(whole)]
    pieces = [whole[a:b] for a, b in pairwise(bounds)]
    assert decode(vendor, *pieces) == expected


@pytest.mark.parametrize("vendor", sorted(EXPECTED))
@given(data=st.data())
def test_a_stream_that_ends_early_never_claims_to_have_finished(
    vendor: str, data: st.DataObject
) -> None:
    file, _ = EXPECTED[vendor]
    whole = (STREAMS / file).read_bytes()
    # Everything from the vendor's word that it stopped on is the end; what lies before it is too
    # early.
    marks = [
        b'"message_delta"',
        b'"response.completed"',
        b'"finish_reason":"tool',
        b'"finishReason"',
        b'"done":true',
    ]
    last = max(whole.find(mark) for mark in marks)
    cut = data.draw(st.integers(0, last))
    with pytest.raises(ProviderUnavailable):
        decode(vendor, whole[:cut])


@pytest.mark.parametrize("vendor", sorted(EXPECTED))
@given(junk=st.binary(max_size=60))
def test_junk_in_a_stream_is_a_provider_error_and_nothing_else(vendor: str, junk: bytes) -> None:
    framed = junk.replace(b"\n", b"") + b"\n" if vendor == "ollama" else b"data: " + junk + b"\n\n"
    with suppress(ProviderError):
        decode(vendor, framed)


# --- errors in the stream --------------------------------------------------------------


def anthropic_error(kind: str, message: str = "m") -> bytes:
    return sse({"type": "error", "error": {"type": kind, "message": message}})


@pytest.mark.parametrize(
    ("vendor", "stream", "error", "retryable"),
    [
        ("anthropic", anthropic_error("overloaded_error"), ProviderUnavailable, True),
        ("anthropic", anthropic_error("api_error"), ProviderUnavailable, True),
        ("anthropic", anthropic_error("rate_limit_error"), RateLimited, True),
        ("anthropic", anthropic_error("authentication_error"), AuthFailed, False),
        ("anthropic", anthropic_error("invalid_request_error"), RequestRefused, False),
        (
            "anthropic",
            anthropic_error("invalid_request_error", "prompt is too long: 9 > 8"),
            ContextTooLong,
            False,
        ),
        (
            "openai",
            sse({"type": "error", "code": "rate_limit_exceeded", "message": "slow down"}),
            RateLimited,
            True,
        ),
        (
            "openai",
            sse(
                {
                    "type": "response.failed",
                    "response": {"error": {"code": "server_error", "message": "oops"}},
                }
            ),
            ProviderUnavailable,
            True,
        ),
        (
            "openai",
            sse(
                {
                    "type": "response.failed",
                    "response": {"error": {"code": "context_length_exceeded", "message": "long"}},
                }
            ),
            ContextTooLong,
            False,
        ),
        (
            "openai",
            sse(
                {
                    "type": "response.failed",
                    "response": {"error": {"code": "insufficient_quota", "message": "no money"}},
                }
            ),
            RateLimited,
            False,
        ),
        ("chat", sse({"error": {"code": 502, "message": "upstream"}}), ProviderUnavailable, True),
        (
            "chat",
            sse({"error": {"message": "exceed", "type": "exceed_context_size_error", "code": 400}}),
            ContextTooLong,
            False,
        ),
        (
            "gemini",
            sse({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}),
            ProviderUnavailable,
            True,
        ),
        ("ollama", b'{"error":"model runner has crashed"}\n', ProviderUnavailable, True),
    ],
)
def test_an_error_inside_the_stream_is_the_right_error(
    vendor: str, stream: bytes, error: type[ProviderError], retryable: bool
) -> None:
    with pytest.raises(ProviderError) as caught:
        decode(vendor, stream)
    assert type(caught.value) is error
    assert caught.value.retryable is retryable


# --- how answers end -------------------------------------------------------------------


def chat_chunk(delta: object, reason: str | None = None) -> object:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


@pytest.mark.parametrize(
    ("vendor", "stream", "expected"),
    [
        (
            "anthropic",
            sse(
                {"type": "message_delta", "delta": {"stop_reason": "refusal"}},
                {"type": "message_stop"},
            ),
            StreamFinished(reason="refusal", detail="refusal"),
        ),
        (
            "anthropic",
            sse(
                {
                    "type": "message_delta",
                    "delta": {
                        "stop_reason": "refusal",
                        "stop_details": {"type": "refusal", "category": "cyber"},
                    },
                },
            ),
            StreamFinished(reason="refusal", detail="refusal: cyber"),
        ),
        (
            "anthropic",
            sse({"type": "message_delta", "delta": {"stop_reason": "pause_turn"}}),
            StreamFinished(reason="pause", detail="pause_turn"),
        ),
        (
            "chat",
            sse(chat_chunk({"content": "x"}, "length")),
            StreamFinished(reason="length", detail="length"),
        ),
        (
            "chat",
            sse(chat_chunk({}, "content_filter")),
            StreamFinished(reason="content_filter", detail="content_filter"),
        ),
        ("chat", b"data: [DONE]\n\n", StreamFinished(reason="stop")),
        (
            "openai",
            sse(
                {
                    "type": "response.incomplete",
                    "response": {"incomplete_details": {"reason": "content_filter"}},
                }
            ),
            StreamFinished(reason="content_filter", detail="content_filter"),
        ),
        (
            "gemini",
            sse({"promptFeedback": {"blockReason": "SAFETY"}}),
            StreamFinished(reason="safety", detail="the prompt was blocked: SAFETY"),
        ),
        (
            "gemini",
            sse(
                {
                    "candidates": [
                        {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "bad"}
                    ]
                }
            ),
            StreamFinished(reason="malformed_call", detail="MALFORMED_FUNCTION_CALL: bad"),
        ),
        (
            "ollama",
            b'{"done":true,"done_reason":"length"}\n',
            StreamFinished(reason="length", detail="length"),
        ),
    ],
)
def test_every_way_to_end_has_its_reason(
    vendor: str, stream: bytes, expected: StreamFinished
) -> None:
    assert decode(vendor, stream)[-1] == expected


# --- habits ----------------------------------------------------------------------------


def chat_call(name: str | None, arguments: object, **more: object) -> object:
    return chat_chunk(
        {"tool_calls": [{**more, "function": {"name": name, "arguments": arguments}}]}
    )


def test_calls_that_all_claim_the_same_place_are_told_apart_by_their_ids() -> None:
    stream = sse(
        chat_call("read", '{"a":1}', index=0, id="x"),
        chat_call("read", '{"a":2}', index=0, id="y"),
        chat_chunk({}, "stop"),
    )
    events = decode("chat", stream)
    assert only(events, CallStarted, CallArgs) == [
        CallStarted(index=0, name="read", provider_id="x"),
        CallArgs(0, '{"a":1}'),
        CallStarted(index=1, name="read", provider_id="y"),
        CallArgs(1, '{"a":2}'),
    ]
    assert events[-1] == StreamFinished(reason="tool_calls")


def test_calls_without_a_place_begin_with_their_name_and_go_on_without_it() -> None:
    stream = sse(
        chat_call("read", '{"a"'),
        chat_call(None, ":1}"),
        chat_call("now", {}),
        chat_chunk({}, "tool_calls"),
    )
    assert only(decode("chat", stream), CallStarted, CallArgs) == [
        CallStarted(index=0, name="read"),
        CallArgs(0, '{"a"'),
        CallArgs(0, ":1}"),
        CallStarted(index=1, name="now"),
        CallArgs(1, "{}"),
    ]


def test_an_id_that_is_repeated_in_every_piece_is_one_call() -> None:
    stream = sse(
        chat_call("read", '{"a"', index=0, id="x"),
        chat_call("read", ":1}", index=0, id="x"),
        chat_chunk({}, "tool_calls"),
    )
    started = only(decode("chat", stream), CallStarted)
    assert len(started) == 1


def test_reasoning_in_either_field_is_closed_before_the_answer() -> None:
    stream = sse(
        chat_chunk({"reasoning": "a"}),
        chat_chunk({"reasoning_content": "b"}),
        chat_chunk({"content": "c"}, "stop"),
    )
    assert decode("chat", stream)[:4] == [
        ThinkingPiece("a"),
        ThinkingPiece("b"),
        ThinkingDone(),
        TextPiece("c"),
    ]


def test_a_tool_name_made_legal_comes_back_as_its_own() -> None:
    decoder = ChatDecoder("x", {"fs_read_1": "fs.read"})
    chunk = json.dumps(chat_call("fs_read_1", "{}", index=0, id="a")).encode()
    assert next(iter(decoder.feed(b"", chunk))) == CallStarted(
        index=0, name="fs.read", provider_id="a"
    )


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (rb'"a\ud83dz"', "a�z"),
        (rb'"\ud83d\ude00"', "😀"),
        (rb'"\\ud83d"', "\\ud83d"),
        (b'"\xff\xfeok"', "��ok"),
        (rb'"\ude00\ud83d"', "��"),
    ],
)
def test_broken_characters_are_replaced_and_whole_ones_kept(raw: bytes, expected: str) -> None:
    data = b'data: {"choices":[{"delta":{"content":' + raw + b'},"finish_reason":"stop"}]}\n\n'
    assert decode("chat", data)[0] == TextPiece(expected)


def test_a_million_brackets_are_refused_not_fatal() -> None:
    with pytest.raises(ProviderUnavailable, match="cannot be understood"):
        decode("chat", b"data: " + b"[" * 1_000_000 + b"\n\n")


def test_kinds_of_events_that_came_later_are_passed_over() -> None:
    stream = sse({"type": "hologram_delta"}, {"type": "content_block_delta", "index": 9})
    tail = sse({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    assert decode("anthropic", stream + tail) == [StreamFinished(reason="stop")]


# --- odd servers -----------------------------------------------------------------------


def test_reasoning_among_the_pieces_of_a_content_is_told_from_text() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    events = decode(
        "chat",
        sse(
            chat_chunk({"content": [thought]}),
            chat_chunk({"content": [{"type": "text", "text": "yes"}]}),
            chat_chunk({"content": ""}, "stop"),
        ),
    )
    assert events == [
        ThinkingPiece("hm"),
        ThinkingDone(),
        TextPiece("yes"),
        StreamFinished(reason="stop"),
    ]


def test_a_call_without_a_place_that_repeats_name_and_id_is_one_call() -> None:
    def piece(arguments: str) -> object:
        function = {"name": "read", "arguments": arguments}
        return chat_chunk({"tool_calls": [{"id": "a", "function": function}]})

    events = decode("chat", sse(piece('{"a":'), piece("1}"), chat_chunk({}, "tool_calls")))
    assert [type(event) for event in events] == [CallStarted, CallArgs, CallArgs, StreamFinished]


@pytest.mark.parametrize("reason", ["error", "insufficient_system_resource"])
def test_a_server_that_stops_for_its_own_reasons_may_be_asked_again(reason: str) -> None:
    with pytest.raises(ProviderUnavailable, match=reason) as caught:
        decode("chat", sse(chat_chunk({"content": "x"}), chat_chunk({}, reason)))
    assert caught.value.retryable


def test_tokens_written_to_a_cache_are_told_apart() -> None:
    details = {"cached_tokens": 50, "cache_write_tokens": 30}
    usage = {"input_tokens": 100, "output_tokens": None, "input_tokens_details": details}
    events = decode("openai", sse({"type": "response.completed", "response": {"usage": usage}}))
    seen = [event.usage for event in events if isinstance(event, UsageSeen)]
    assert seen == [Usage(input_tokens=20, cache_read_tokens=50, cache_write_tokens=30)]
