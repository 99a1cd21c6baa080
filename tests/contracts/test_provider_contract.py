"""What every Model promises, whoever made it."""

from __future__ import annotations

import json

import anyio
import pytest

from tests.providers.worlds import REQUEST, USAGE, WORLDS, World
from weft import errors
from weft.errors import ProviderError, ProviderUnavailable
from weft.providers.base import (
    CallArgs,
    CallStarted,
    Finished,
    Model,
    StreamEvent,
    TextPiece,
    ThinkingDone,
    ThinkingPiece,
    UsageSeen,
)
from weft.providers.script import (
    Answer,
    Break,
    CallTogether,
    CallTool,
    EndEarly,
    Fail,
    Finish,
    SayText,
    Spend,
    Stall,
    Step,
    Think,
)

pytestmark = pytest.mark.anyio


@pytest.fixture(params=sorted(WORLDS))
def world(request: pytest.FixtureRequest) -> World:
    return WORLDS[request.param]


def plan(*steps: Step) -> Answer:
    return Answer(steps=steps)


async def play(model: Model) -> list[StreamEvent]:
    async with model.stream(REQUEST) as events:
        return [event async for event in events]


def text_of(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextPiece))


def calls_of(events: list[StreamEvent]) -> list[tuple[str, object]]:
    """Name and arguments of each call; fails where arguments come before their call."""
    names: dict[int, str] = {}
    args: dict[int, str] = {}
    for event in events:
        if isinstance(event, CallStarted):
            assert event.index not in names
            names[event.index] = event.name
            args[event.index] = ""
        elif isinstance(event, CallArgs):
            args[event.index] += event.text
    assert list(names) == list(range(len(names)))
    return [(names[index], json.loads(args[index])) for index in names]


async def test_text_arrives_whole_and_in_order_and_finished_is_last(world: World) -> None:
    async with world(plan(SayText(text="héllo wörld 🎈 end", chunk=3))) as served:
        events = await play(served.model)
    assert text_of(events) == "héllo wörld 🎈 end"
    assert events[-1] == Finished(reason="stop")
    assert sum(isinstance(event, Finished) for event in events) == 1


async def test_thinking_comes_before_the_text_and_is_closed_with_its_proof(world: World) -> None:
    steps = (Think(text="let me see", signature="proof", chunk=4), SayText(text="yes"))
    async with world(plan(*steps)) as served:
        events = await play(served.model)
    thought = "".join(event.text for event in events if isinstance(event, ThinkingPiece))
    done = [event for event in events if isinstance(event, ThinkingDone)]
    kinds = [type(event) for event in events]
    assert thought == "let me see"
    assert len(done) <= 1
    assert kinds.index(ThinkingPiece) < kinds.index(TextPiece)
    if done:
        assert kinds.index(ThinkingDone) < kinds.index(TextPiece)


async def test_calls_are_numbered_and_their_arguments_join_to_json(world: World) -> None:
    calls = CallTogether(
        calls=(
            CallTool(name="read", args={"path": 'a\n"b" ü'}, chunk=3),
            CallTool(name="shell", args={"command": "true", "deep": {"a": [1, None]}}),
        )
    )
    async with world(plan(SayText(text="now"), calls)) as served:
        events = await play(served.model)
    assert calls_of(events) == [
        ("read", {"path": 'a\n"b" ü'}),
        ("shell", {"command": "true", "deep": {"a": [1, None]}}),
    ]
    assert events[-1] == Finished(reason="tool_calls")


async def test_usage_is_seen_before_the_end(world: World) -> None:
    async with world(plan(SayText(text="a"), Spend(usage=USAGE))) as served:
        events = await play(served.model)
    seen = [event.usage for event in events if isinstance(event, UsageSeen)]
    assert seen[-1] == served.usage
    assert isinstance(events[-1], Finished)


async def test_an_answer_cut_by_its_length_says_so(world: World) -> None:
    async with world(plan(SayText(text="a"), Finish(reason="length"))) as served:
        events = await play(served.model)
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.reason == "length"


async def test_a_broken_stream_raises_unavailable_after_what_came(world: World) -> None:
    async with (
        world(plan(SayText(text="half"), Break())) as served,
        served.model.stream(REQUEST) as events,
    ):
        heard = ""
        with pytest.raises(ProviderUnavailable) as caught:  # noqa: PT012 - it may come after any event
            while True:
                event = await anext(events)
                heard += event.text if isinstance(event, TextPiece) else ""
    assert heard == "half"
    assert caught.value.retryable


async def test_a_stream_that_just_ends_never_claims_to_have_finished(world: World) -> None:
    async with world(plan(SayText(text="half"), EndEarly())) as served:
        heard: list[StreamEvent] = []
        try:
            async with served.model.stream(REQUEST) as events:
                async for event in events:
                    heard.append(event)  # noqa: PERF401 - what came before an error counts
        except ProviderUnavailable:
            pass
    assert text_of(heard) == "half"
    assert not any(isinstance(event, Finished) for event in heard)


async def test_leaving_early_closes_at_once(world: World) -> None:
    steps = (SayText(text="ab", chunk=1), Stall(), SayText(text="never"))
    with anyio.fail_after(5):
        async with world(plan(*steps)) as served:
            async with served.model.stream(REQUEST) as events:
                await anext(events)
            if served.left is not None:
                await served.left.wait()
            with pytest.raises(StopAsyncIteration):
                await anext(events)


async def test_a_cancel_ends_a_stalled_stream_at_once(world: World) -> None:
    with anyio.fail_after(5):
        async with world(plan(SayText(text="a"), Stall())) as served:
            heard: list[StreamEvent] = []
            first = anyio.Event()

            async def listen() -> None:
                async with served.model.stream(REQUEST) as events:
                    async for event in events:
                        heard.append(event)
                        if isinstance(event, TextPiece):
                            first.set()

            async with anyio.create_task_group() as group:
                group.start_soon(listen)
                await first.wait()
                group.cancel_scope.cancel()
            if served.left is not None:
                await served.left.wait()
    assert text_of(heard) == "a"


ERRORS = [
    ("RateLimited", 429, 7.0, True),
    ("ProviderUnavailable", 500, None, True),
    ("ProviderUnavailable", 529, None, True),
    ("AuthFailed", 401, None, False),
    ("RequestRefused", 400, None, False),
    ("ContextTooLong", 413, None, False),
]


@pytest.mark.parametrize(("name", "status", "after", "retryable"), ERRORS)
async def test_a_failure_is_a_provider_error_with_its_status(
    world: World, name: str, status: int, after: float | None, retryable: bool
) -> None:
    fail = Fail(error=name, status=status, retry_after_seconds=after)  # type: ignore[arg-type]  # from the table
    async with world(plan(fail)) as served:
        with pytest.raises(ProviderError) as caught:
            await play(served.model)
    assert type(caught.value) is getattr(errors, name)
    assert caught.value.status == status
    assert caught.value.retry_after_seconds == after
    assert caught.value.retryable is retryable


async def test_a_model_can_be_asked_again_after_a_broken_stream(world: World) -> None:
    async with world(plan(SayText(text="x"), Break())) as served:
        for _ in range(2):
            with pytest.raises(ProviderUnavailable):
                await play(served.model)


async def test_two_streams_at_once_do_not_mix(world: World) -> None:
    async with world(plan(SayText(text="abcdefgh", chunk=1))) as served:
        model = served.model
        async with model.stream(REQUEST) as one, model.stream(REQUEST) as two:
            heard: dict[int, list[StreamEvent]] = {1: [], 2: []}
            while not any(isinstance(event, Finished) for event in heard[2]):
                heard[1].append(await anext(one))
                heard[2].append(await anext(two))
    assert text_of(heard[1]) == text_of(heard[2]) == "abcdefgh"
