"""From the pieces of a stream to the parts of a node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.loop.answer import ARGS_LIMIT, BLOCK_WEIGHT, LONGEST_ANSWER, AnswerBuilder, ModelAnswer
from weft.messages import Text, Thinking, ToolCall, Usage
from weft.providers import (
    CallArgs,
    CallStarted,
    StreamEvent,
    StreamFinished,
    TextPiece,
    ThinkingDone,
    ThinkingPiece,
    UsageSeen,
)


def built(*events: StreamEvent) -> AnswerBuilder:
    builder = AnswerBuilder("vendor", "model")
    for event in events:
        builder.add(event)
    return builder


def answer(*events: StreamEvent) -> ModelAnswer:
    return built(*events).answer(1.0)


def test_pieces_join_in_the_order_they_came() -> None:
    got = answer(
        ThinkingPiece("hm"),
        ThinkingDone(signature="sig"),
        TextPiece("a"),
        TextPiece("b"),
        CallStarted(index=0, name="read", provider_id="p"),
        CallArgs(0, '{"path":'),
        CallArgs(0, ' "x"}'),
        TextPiece("c"),
        UsageSeen(Usage(input_tokens=1)),
        UsageSeen(Usage(input_tokens=2)),
        StreamFinished(reason="tool_calls"),
    )
    thinking, text, call, more = got.parts
    assert thinking == Thinking(text="hm", signature="sig", provider="vendor", model="model")
    assert text == Text(text="ab")
    assert isinstance(call, ToolCall)
    assert (call.name, call.args, call.provider_id) == ("read", {"path": "x"}, "p")
    assert more == Text(text="c")
    assert (got.usage, got.stop) == (Usage(input_tokens=2), "tool_calls")


def test_interleaved_calls_keep_their_own_arguments() -> None:
    got = answer(
        CallStarted(index=0, name="a"),
        CallStarted(index=1, name="b"),
        CallArgs(1, '{"n":2}'),
        CallArgs(0, '{"n":1}'),
        CallArgs(7, '{"n":7}'),
        StreamFinished(),
    )
    assert [(call.name, call.args) for call in got.calls] == [("a", {"n": 1}), ("b", {"n": 2})]
    assert len({call.call_uid for call in got.calls}) == 2


@pytest.mark.parametrize("raw", ["{", "[]", "7", '"x"', "{}{}", "{'a': 1}", "{" * 100_000, " "])
def test_what_is_no_object_is_kept_to_be_shown_and_never_run_with_nothing(raw: str) -> None:
    [call] = answer(CallStarted(index=0, name="a"), CallArgs(0, raw), StreamFinished()).calls
    assert call.args == {}
    assert call.raw_args
    assert len(call.raw_args) <= 2_000


def test_arguments_beyond_the_limit_are_malformed() -> None:
    raw = '{"a": "' + "x" * ARGS_LIMIT + '"}'
    [call] = answer(CallStarted(index=0, name="a"), CallArgs(0, raw), StreamFinished()).calls
    assert call.raw_args


def test_a_broken_answer_keeps_its_text_and_drops_reasoning_and_half_calls() -> None:
    builder = built(
        ThinkingPiece("hm"),
        TextPiece("so far"),
        CallStarted(index=0, name="a"),
        CallArgs(0, '{"x'),
    )
    assert builder.partial() == (Text(text="so far"),)
    assert builder.answer(1.0).stop is None


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ((), False),
        ((TextPiece(" \n"),), False),
        ((ThinkingPiece("hm"), ThinkingDone()), False),
        ((TextPiece("x"),), True),
        ((CallStarted(index=0, name="a"),), True),
    ],
)
def test_only_text_and_calls_say_something(events: tuple[StreamEvent, ...], says: bool) -> None:
    assert answer(*events, StreamFinished()).says_something == says


snippets = st.sampled_from(["", "a", " \n", '{"a":', " 1}", "[]", "\x00", "\ud800", "ü🎈"])
pieces: st.SearchStrategy[StreamEvent] = st.one_of(
    st.builds(TextPiece, snippets),
    st.builds(ThinkingPiece, snippets),
    st.builds(ThinkingDone, signature=snippets, redacted=snippets),
    st.builds(CallStarted, index=st.integers(0, 3), name=snippets),
    st.builds(CallArgs, st.integers(0, 4), snippets),
    st.just(UsageSeen(Usage())),
)


@given(events=st.lists(pieces, max_size=20))
def test_whatever_a_vendor_streams_becomes_an_answer_without_loss_of_text(
    events: list[StreamEvent],
) -> None:
    got = answer(*events, StreamFinished())
    said = "".join(event.text for event in events if isinstance(event, TextPiece))
    kept = "".join(part.text for part in got.parts if isinstance(part, Text))
    assert [sign for sign in kept if sign != "\ufffd"] == [
        sign for sign in said if sign != "\ud800"
    ]
    assert len(got.calls) == sum(isinstance(event, CallStarted) for event in events)
    for part in got.parts:
        assert not (isinstance(part, Text) and not part.text)


def test_calls_without_an_end_make_an_endless_answer() -> None:
    builder = built()
    for index in range(LONGEST_ANSWER // BLOCK_WEIGHT + 1):
        assert not builder.is_endless
        builder.add(CallStarted(index=index, name="read", provider_id="p"))
    assert builder.is_endless
