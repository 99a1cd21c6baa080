"""The scripted model: which answer a request gets, and how each step plays."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec
import pytest

from weft import errors
from weft.errors import ProviderError, ProviderUnavailable, RateLimited, RequestRefused, UsageError
from weft.ids import CallUid
from weft.messages import Text, ToolCall, Usage
from weft.providers.base import (
    CallArgs,
    CallResult,
    CallResults,
    CallStarted,
    ChatMessage,
    ModelRequest,
    StreamEvent,
    StreamFinished,
    TextPiece,
    ThinkingDone,
    ThinkingPiece,
    UsageSeen,
)
from weft.providers.logprobs import ScoredPiece, TokenLogprob
from weft.providers.script import (
    Break,
    CallRaw,
    CallTogether,
    CallTool,
    EndEarly,
    Fail,
    Finish,
    Garbage,
    Pause,
    SayText,
    Script,
    ScriptedAnswer,
    Spend,
    Stall,
    Think,
    When,
    parse_script,
)
from weft.providers.scripted import ScriptedModel, ScriptedProvider

pytestmark = pytest.mark.anyio


def asked(*texts: str, rounds: int = 0) -> ModelRequest:
    """A conversation: user and assistant in turn, then `rounds` tool rounds."""
    messages: list[ChatMessage | CallResults] = [
        ChatMessage(role="assistant" if i % 2 else "user", parts=(Text(text=text),))
        for i, text in enumerate(texts)
    ]
    for number in range(rounds):
        uid = CallUid(f"cal_{number}")
        messages.append(ChatMessage(role="assistant", parts=(ToolCall(call_uid=uid, name="read"),)))
        result = CallResult(call_uid=uid, provider_id="", tool_name="read", text="ok")
        messages.append(CallResults(results=(result,)))
    return ModelRequest(model="script", messages=tuple(messages))


async def play(model: ScriptedModel, request: ModelRequest | None = None) -> list[StreamEvent]:
    async with model.stream(request or asked("hello")) as events:
        return [event async for event in events]


def text_of(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextPiece))


async def test_text_comes_in_the_pieces_asked_for_then_usage_then_the_end() -> None:
    model = ScriptedModel([SayText(text="abcde", chunk=2)])
    assert await play(model) == [
        TextPiece("ab"),
        TextPiece("cd"),
        TextPiece("e"),
        UsageSeen(Usage(input_tokens=100, output_tokens=2)),
        StreamFinished(reason="stop"),
    ]


async def test_a_late_piece_does_not_delay_those_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    time, waits = 100.0, list[float]()

    async def sleep(seconds: float) -> None:
        nonlocal time
        waits.append(round(seconds, 3))
        time += seconds

    monkeypatch.setattr("weft.providers.scripted.anyio.sleep", sleep)
    monkeypatch.setattr("weft.providers.scripted.anyio.current_time", lambda: time)
    script = Script(answers=((SayText(text="x" * 40, chunk=1),),), pace_seconds=0.1)
    took = [0.0, 0.03, 0.25, 0.0, 0.0, 9.0, *[0.0] * 34]
    model = ScriptedModel(script)
    async with model.stream(asked("go")) as events:
        async for event in events:
            if isinstance(event, TextPiece):
                time += took[len(waits) - 1]
    # A short delay is made good by those behind it; of a long one only a moment.
    assert waits[:6] == [0.1, 0.1, 0.07, 0.0, 0.0, 0.05]
    assert waits[6:11] == [0.0, 0.0, 0.0, 0.05, 0.1]


async def test_tokens_come_with_their_probabilities_where_they_are_asked_for() -> None:
    token = (" Paris", -0.1, ((" Lyon", -3.0),))
    model = ScriptedModel([SayText(text=" Paris", tokens=(token,))] * 2)
    scored = await play(model, msgspec.structs.replace(asked("go"), logprobs=1))
    assert scored[0] == ScoredPiece(" Paris", (TokenLogprob(*token),))
    assert (await play(model, asked("go")))[0] == TextPiece(" Paris")


async def test_raw_text_counts_as_what_the_user_says() -> None:
    answer = ScriptedAnswer(when=When(user_says="upon a"), steps=(SayText(text=" time"),))
    raw = ModelRequest(model="m", messages=(), prompt="Once upon a")
    assert (await play(ScriptedModel([answer]), raw))[0] == TextPiece(" time")


async def test_thinking_is_closed_with_its_signature() -> None:
    model = ScriptedModel([[Think(text="hm", signature="sig"), SayText(text="yes")]])
    assert (await play(model))[:3] == [
        ThinkingPiece("hm"),
        ThinkingDone(signature="sig"),
        TextPiece("yes"),
    ]


async def test_parallel_calls_interleave_their_arguments_and_end_in_tool_calls() -> None:
    calls = CallTogether(
        calls=(
            CallTool(name="read", args={"p": 1}, chunk=4),
            CallRaw(name="write", args_text='{"p"', chunk=2),
        )
    )
    events = await play(ScriptedModel([calls]))
    assert events[:2] == [
        CallStarted(index=0, name="read", provider_id="call_0_0"),
        CallStarted(index=1, name="write", provider_id="call_0_1"),
    ]
    assert events[2:6] == [
        CallArgs(0, '{"p"'),
        CallArgs(1, '{"'),
        CallArgs(0, ":1}"),
        CallArgs(1, 'p"'),
    ]
    assert events[-1] == StreamFinished(reason="tool_calls")


async def test_call_ids_differ_from_turn_to_turn() -> None:
    model = ScriptedModel([CallTool(name="read"), CallTool(name="read")])
    first = await play(model, asked("go"))
    second = await play(model, asked("go", rounds=1))
    ids = [e.provider_id for e in (*first, *second) if isinstance(e, CallStarted)]
    assert len(set(ids)) == 2


async def test_usage_and_finish_steps_replace_the_made_up_ones() -> None:
    usage = Usage(input_tokens=7, cache_read_tokens=3)
    model = ScriptedModel([[Spend(usage=usage), Finish(reason="length"), SayText(text="unsaid")]])
    assert await play(model) == [UsageSeen(usage), StreamFinished(reason="length")]


async def test_a_break_raises_in_the_middle_and_keeps_what_came_before() -> None:
    model = ScriptedModel([[SayText(text="half"), Break()]])
    async with model.stream(asked("hi")) as events:
        assert await anext(events) == TextPiece("half")
        with pytest.raises(ProviderUnavailable, match="broke off"):
            await anext(events)


async def test_an_error_as_first_step_is_raised_before_the_stream_opens() -> None:
    model = ScriptedModel([Fail(error="RateLimited", status=429, retry_after_seconds=2.5)])
    entered = False
    with pytest.raises(RateLimited) as caught:
        async with model.stream(asked("hi")):
            entered = True
    assert not entered
    assert (caught.value.status, caught.value.retry_after_seconds) == (429, 2.5)


@pytest.mark.parametrize(
    "name", ["RateLimited", "ContextTooLong", "AuthFailed", "RequestRefused", "ProviderError"]
)
async def test_every_provider_error_can_be_scripted_in_the_middle(name: str) -> None:
    step = msgspec.convert({"do": "error", "error": name}, type=Fail)
    model = ScriptedModel([[SayText(text="a"), step]])
    with pytest.raises(ProviderError) as caught:
        await play(model)
    assert type(caught.value) is getattr(errors, name)


async def test_a_fault_with_times_hurts_so_often_and_then_passes() -> None:
    answer = ScriptedAnswer(steps=(SayText(text="a"), Break(times=2), SayText(text="b")))
    model = ScriptedModel(Script(answers=(answer,), by="content"))
    for _ in range(2):
        with pytest.raises(ProviderUnavailable):
            await play(model)
    assert text_of(await play(model)) == "ab"


async def test_an_opening_error_with_times_is_counted_once_a_play() -> None:
    model = ScriptedModel(
        Script(answers=(ScriptedAnswer(steps=(Fail(times=1), SayText(text="b"))),), loop=True)
    )
    with pytest.raises(ProviderUnavailable):
        await play(model)
    assert text_of(await play(model)) == "b"


async def test_an_early_end_has_no_finish() -> None:
    events = await play(ScriptedModel([[SayText(text="a"), EndEarly()]]))
    assert events == [TextPiece("a")]


async def test_a_stall_waits_for_its_gate_and_says_that_it_was_reached() -> None:
    model = ScriptedModel([[SayText(text="a"), Stall(gate="g"), SayText(text="b")]])
    heard: list[StreamEvent] = []

    async def listen() -> None:
        heard.extend(await play(model))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(listen)
            await model.gate("g").reached.wait()
            assert heard == []
            model.gate("g").opened.set()
    assert text_of(heard) == "ab"


async def test_a_stall_on_an_event_of_the_tests_own_ends_with_it() -> None:
    event = anyio.Event()
    event.set()
    model = ScriptedModel([[Stall(gate="g"), SayText(text="b")]], gates={"g": event})
    with anyio.fail_after(5):
        assert text_of(await play(model)) == "b"


async def test_a_stall_ends_when_it_is_cancelled() -> None:
    model = ScriptedModel([Stall()])
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(play, model)
            await model.gate().reached.wait()
            group.cancel_scope.cancel()


async def test_a_long_answer_can_be_cancelled_in_the_middle() -> None:
    model = ScriptedModel([SayText(text="x" * 100_000, chunk=1)])
    seen = 0
    with anyio.CancelScope() as scope:
        async with model.stream(asked("hi")) as events:
            async for _ in events:
                seen += 1
                if seen == 10:
                    scope.cancel()
    assert 10 <= seen < 100


async def test_answers_go_by_position_and_an_exhausted_script_refuses() -> None:
    model = ScriptedModel(["one", Pause()])
    assert text_of(await play(model)) == "one"
    await play(model)
    with pytest.raises(RequestRefused, match="2 answers and this request asks for number 3"):
        await play(model)


async def test_a_looping_script_begins_again() -> None:
    model = ScriptedModel(Script(answers=("one", "two"), loop=True))
    assert [text_of(await play(model)) for _ in range(5)] == ["one", "two", "one", "two", "one"]


async def test_by_content_a_new_process_goes_on_at_the_right_answer() -> None:
    script = Script(answers=("zero", "one", "two"), by="content")
    request = asked("go", rounds=2)
    assert text_of(await play(ScriptedModel(script), request)) == "two"
    assert text_of(await play(ScriptedModel(script), request)) == "two"


async def test_an_answer_with_a_condition_goes_first_and_is_never_used_up() -> None:
    answers = (
        ScriptedAnswer(steps=(SayText(text="title"),), when=When(user_says="name this")),
        "plain",
    )
    model = ScriptedModel(Script(answers=answers))
    assert text_of(await play(model, asked("name this chat"))) == "title"
    assert text_of(await play(model, asked("name this chat"))) == "title"
    assert text_of(await play(model, asked("hello"))) == "plain"


@pytest.mark.parametrize(
    ("when", "request_", "is_fit"),
    [
        (When(results=2), asked("a", rounds=2), True),
        (When(results=1), asked("a", rounds=2), False),
        (When(turns=3), asked("a", "b", "c", rounds=2), True),
        (When(rounds=2), asked("a", rounds=2), True),
        (When(since="fix", rounds=1), asked("fix it", rounds=1), True),
        (When(since="fix", rounds=0), asked("fix it", rounds=1), False),
        (When(since="fix"), asked("other", rounds=1), False),
        (When(user_says="new"), asked("new", "x", "old"), False),
        (When(system_says="x"), asked("a"), False),
    ],
)
async def test_conditions_read_the_request(
    when: When, request_: ModelRequest, is_fit: bool
) -> None:
    model = ScriptedModel(
        [ScriptedAnswer(steps=(SayText(text="fit"),), when=when), SayText(text="no")]
    )
    assert text_of(await play(model, request_)) == ("fit" if is_fit else "no")


async def test_a_function_may_choose_the_answer() -> None:
    model = ScriptedModel(["listed"], choose=lambda r: "made" if r.system else None)
    assert text_of(await play(model, msgspec.structs.replace(asked("a"), system="s"))) == "made"
    assert text_of(await play(model)) == "listed"


async def test_requests_are_remembered_up_to_a_bound() -> None:
    model = ScriptedModel(Script(answers=("x",), loop=True), keep_requests=2)
    for text in ("a", "b", "c"):
        await play(model, asked(text))
    assert model.requests == [asked("b"), asked("c")]
    assert model.last_request == asked("c")
    assert model.request_count == 3


KINDS = ["control_text", "orphan_args", "same_id", "unknown_tool", "deep_args", "not_an_object"]


@pytest.mark.parametrize("kind", [*KINDS, "empty"])
async def test_garbage_of_every_kind_streams_and_finishes(kind: str) -> None:
    step = msgspec.convert({"do": "garbage", "kind": kind}, type=Garbage)
    events = await play(ScriptedModel([step]))
    assert len(events) >= 3
    assert isinstance(events[-1], StreamFinished)


async def test_a_script_in_a_file_plays_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(
        '{"by": "content", "info": {"provider": "scripted", "name": "x", "context_window": 9},'
        ' "answers": ["hi", [{"do": "text", "text": "a"}], {"steps": [], "when": {"turns": 7}}]}'
    )
    provider = ScriptedProvider()
    model = provider.model(str(path))
    assert model is provider.model(str(path))
    assert model.info.context_window == 9
    assert text_of(await play(model)) == "hi"
    assert [info.name for info in await provider.models()] == ["x"]
    await provider.aclose()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"answers": [[{"do": "fly"}]]}', "Invalid value 'fly'"),
        ('{"answers": [], "lopp": true}', "unknown field `lopp`"),
        ("{", "truncated"),
    ],
)
def test_a_faulty_script_is_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_script(text)


def test_a_missing_script_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        ScriptedProvider().model(str(tmp_path / "none.json"))


def test_a_script_survives_the_way_through_json() -> None:
    script = Script(
        answers=(
            "a",
            (Think(text="t"), Stall(gate="g", times=1)),
            ScriptedAnswer(steps=(Garbage(),)),
        ),
        loop=True,
    )
    assert parse_script(msgspec.json.encode(script)) == script
