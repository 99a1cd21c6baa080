"""The contract of a model as tests: make a subclass that says how to serve a plan, and let pytest
collect it.

    class TestMyModel(ModelContract):
        @asynccontextmanager
        async def serve(self, plan: ScriptedAnswer) -> AsyncIterator[ServedModel]:
            async with my_server_that_says(plan) as address:
                yield ServedModel(MyModel(address))

    pytestmark = pytest.mark.anyio

A plan is an answer in the steps of the scripted model: the model under test must stream just that,
whatever its vendor's words are.  A failing step (`Fail`, `Break`, `EndEarly`) is what the vendor's
server does.  This module needs nothing of pytest's.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager

import anyio

from weft.errors import ProviderError, ProviderUnavailable
from weft.messages import Text, Usage
from weft.providers import (
    CallArgs,
    CallStarted,
    ChatMessage,
    Model,
    ModelRequest,
    StreamEvent,
    StreamFinished,
    TextPiece,
    ThinkingDone,
    ThinkingPiece,
    UsageSeen,
)
from weft.providers.script import (
    Break,
    CallTogether,
    CallTool,
    EndEarly,
    Fail,
    Finish,
    SayText,
    ScriptedAnswer,
    Spend,
    Stall,
    Step,
    Think,
)

REQUEST = ModelRequest(
    model="contract-model", messages=(ChatMessage(role="user", parts=(Text(text="hello"),)),)
)
"""What every test asks."""
USAGE = Usage(input_tokens=11, output_tokens=7, cache_read_tokens=5, reasoning_tokens=0)
"""What the plan of the test about usage spends."""

FAILURES = (
    (Fail(error="RateLimited", status=429, retry_after_seconds=7.0), True),
    (Fail(error="ProviderUnavailable", status=500), True),
    (Fail(error="ProviderUnavailable", status=529), True),
    (Fail(error="AuthFailed", status=401), False),
    (Fail(error="RequestRefused", status=400), False),
    (Fail(error="ContextTooLong", status=413), False),
)
"""What a vendor's status means, and whether the same request may be sent again."""


class ServedModel:
    """A model that will stream the plan; `left` is set when the other side notices that we are
    gone.

    `usage` is what the model will report where the plan spends `USAGE`: some vendors do not report
    all of it.
    """

    def __init__(self, model: Model, left: anyio.Event | None = None, usage: Usage = USAGE) -> None:
        self.model = model
        self.left = left
        self.usage = usage


class ModelContract:
    """What every model promises, whatever its vendor.  Each test's name is the claim."""

    def serve(self, plan: ScriptedAnswer) -> AbstractAsyncContextManager[ServedModel]:
        """A model that streams the plan, as often as it is asked."""
        raise NotImplementedError

    async def test_text_arrives_whole_and_in_order_and_finished_is_last(self) -> None:
        async with self.serve(plan(SayText(text="héllo wörld 🎈 end", chunk=3))) as served:
            events = await play(served.model)
        assert text_of(events) == "héllo wörld 🎈 end"
        assert events[-1] == StreamFinished(reason="stop")
        assert sum(isinstance(event, StreamFinished) for event in events) == 1

    async def test_thinking_comes_before_the_text_and_is_closed_with_its_proof(self) -> None:
        steps = (Think(text="let me see", signature="proof", chunk=4), SayText(text="yes"))
        async with self.serve(plan(*steps)) as served:
            events = await play(served.model)
        thought = "".join(event.text for event in events if isinstance(event, ThinkingPiece))
        done = [event for event in events if isinstance(event, ThinkingDone)]
        kinds = [type(event) for event in events]
        assert thought == "let me see"
        assert len(done) <= 1
        assert kinds.index(ThinkingPiece) < kinds.index(TextPiece)
        if done:
            assert kinds.index(ThinkingDone) < kinds.index(TextPiece)

    async def test_calls_are_numbered_and_their_arguments_join_to_json(self) -> None:
        calls = CallTogether(
            calls=(
                CallTool(name="read", args={"path": 'a\n"b" ü'}, chunk=3),
                CallTool(name="shell", args={"command": "true", "deep": {"a": [1, None]}}),
            )
        )
        async with self.serve(plan(SayText(text="now"), calls)) as served:
            events = await play(served.model)
        assert calls_of(events) == [
            ("read", {"path": 'a\n"b" ü'}),
            ("shell", {"command": "true", "deep": {"a": [1, None]}}),
        ]
        assert events[-1] == StreamFinished(reason="tool_calls")

    async def test_usage_is_seen_before_the_end(self) -> None:
        async with self.serve(plan(SayText(text="a"), Spend(usage=USAGE))) as served:
            events = await play(served.model)
        seen = [event.usage for event in events if isinstance(event, UsageSeen)]
        assert seen[-1] == served.usage
        assert isinstance(events[-1], StreamFinished)

    async def test_an_answer_cut_by_its_length_says_so(self) -> None:
        async with self.serve(plan(SayText(text="a"), Finish(reason="length"))) as served:
            events = await play(served.model)
        last = events[-1]
        assert isinstance(last, StreamFinished)
        assert last.reason == "length"

    async def test_a_broken_stream_raises_unavailable_after_what_came(self) -> None:
        async with (
            self.serve(plan(SayText(text="half"), Break())) as served,
            served.model.stream(REQUEST) as events,
        ):
            # What came before the break must reach the caller: it is what the user has seen on the
            # screen.
            heard = ""
            with raises(ProviderUnavailable) as caught:
                async for event in events:
                    heard += event.text if isinstance(event, TextPiece) else ""
        assert heard == "half"
        assert isinstance(caught.error, ProviderUnavailable)
        assert caught.error.retryable

    async def test_a_stream_that_just_ends_never_claims_to_have_finished(self) -> None:
        async with self.serve(plan(SayText(text="half"), EndEarly())) as served:
            heard: list[StreamEvent] = []
            try:
                async with served.model.stream(REQUEST) as events:
                    async for event in events:
                        heard.append(event)  # noqa: PERF401 - what came before an error counts
            except ProviderUnavailable:
                pass
        assert text_of(heard) == "half"
        assert not any(isinstance(event, StreamFinished) for event in heard)

    async def test_leaving_early_closes_at_once(self) -> None:
        steps = (SayText(text="ab", chunk=1), Stall(), SayText(text="never"))
        with anyio.fail_after(5):
            async with self.serve(plan(*steps)) as served:
                async with served.model.stream(REQUEST) as events:
                    await anext(events)
                if served.left is not None:
                    await served.left.wait()
                with raises(StopAsyncIteration):
                    await anext(events)

    async def test_a_cancel_ends_a_stalled_stream_at_once(self) -> None:
        with anyio.fail_after(5):
            async with self.serve(plan(SayText(text="a"), Stall())) as served:
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

    async def test_a_failure_is_a_provider_error_with_its_status(self) -> None:
        for fail, retryable in FAILURES:
            async with self.serve(plan(fail)) as served:
                with raises(ProviderError) as caught:
                    await play(served.model)
            error = caught.error
            assert type(error).__name__ == fail.error
            assert isinstance(error, ProviderError)
            assert (error.status, error.retry_after_seconds) == (
                fail.status,
                fail.retry_after_seconds,
            )
            assert error.retryable is retryable

    async def test_a_model_can_be_asked_again_after_a_broken_stream(self) -> None:
        async with self.serve(plan(SayText(text="x"), Break())) as served:
            for _ in range(2):
                with raises(ProviderUnavailable):
                    await play(served.model)

    async def test_two_streams_at_once_do_not_mix(self) -> None:
        async with self.serve(plan(SayText(text="abcdefgh", chunk=1))) as served:
            model = served.model
            async with model.stream(REQUEST) as one, model.stream(REQUEST) as two:
                heard: dict[int, list[StreamEvent]] = {1: [], 2: []}
                while not any(isinstance(event, StreamFinished) for event in heard[2]):
                    heard[1].append(await anext(one))
                    heard[2].append(await anext(two))
        assert text_of(heard[1]) == text_of(heard[2]) == "abcdefgh"


# --- helpers -----------------------------------------------------------------------------


class RaisedError:
    """What a block raised."""

    error: BaseException | None = None


@contextlib.contextmanager
def raises(kind: type[BaseException]) -> Iterator[RaisedError]:
    """The block must raise `kind`."""
    raised = RaisedError()
    try:
        yield raised
    except kind as error:
        raised.error = error
    assert raised.error is not None, f"expected {kind.__name__}, and nothing was raised"


def plan(*steps: Step) -> ScriptedAnswer:
    """An answer of these steps."""
    return ScriptedAnswer(steps=steps)


async def play(model: Model) -> list[StreamEvent]:
    """All that the model streams."""
    async with model.stream(REQUEST) as events:
        return [event async for event in events]


def text_of(events: list[StreamEvent]) -> str:
    """The text in these events."""
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
