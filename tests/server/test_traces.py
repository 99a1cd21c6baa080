"""Traces of turns: spans with the times of the facts, and nothing of what was said."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import anyio
import pytest

from tests.support.served_world import serving
from tests.support.world import PATIENCE, World
from weft.errors import UsageError
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel
from weft.server.telemetry.traces import (
    NOTHING,
    Attributes,
    OpenSpan,
    OtelSink,
    SessionTracer,
    open_telemetry,
)

pytestmark = pytest.mark.anyio


class RecordedSpan:
    """A span, and what became of it."""

    def __init__(self, name: str, parent: OpenSpan | None, at: float, given: Attributes) -> None:
        self.name = name
        self.parent = parent
        self.began = at
        self.ended: float | None = None
        self.error = ""
        self.attributes = dict(given)

    def end(self, at: float, *, error: str = "", attributes: Attributes = NOTHING) -> None:
        assert self.ended is None
        self.ended, self.error = at, error
        self.attributes |= attributes


class RecordedSpans:
    """Keeps all spans."""

    def __init__(self) -> None:
        self.spans: list[RecordedSpan] = []

    def begin(
        self, name: str, at: float, parent: OpenSpan | None, attributes: Attributes
    ) -> RecordedSpan:
        self.spans.append(RecordedSpan(name, parent, at, attributes))
        return self.spans[-1]


async def test_a_turn_its_model_calls_and_its_tools_are_spans(plain_world: World) -> None:
    plain_world.write("secret.txt", "hidden")
    model = ScriptedModel([CallTool(name="read", args={"path": "secret.txt"}), "Seen."])
    sink = RecordedSpans()
    async with serving(plain_world, model) as served, anyio.create_task_group() as group:
        tracer = SessionTracer(served.server.parts.projects, sink)
        group.start_soon(tracer.run)
        session = await served.app.sessions.start_session()
        await session.send_message("What is in it?")
        with anyio.fail_after(PATIENCE):
            while not sink.spans or sink.spans[0].ended is None:
                await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    turn, *below = sink.spans
    assert [span.name for span in sink.spans] == ["turn", "model call", "tool read", "model call"]
    assert all(span.parent is turn for span in below)
    assert all(span.ended is not None and span.ended >= span.began for span in sink.spans)
    assert turn.attributes["weft.session"] == session.id
    assert [span.error for span in sink.spans] == [""] * 4
    assert below[1].attributes == {"gen_ai.tool.name": "read"}
    told = str([vars(span) for span in sink.spans])
    assert "hidden" not in told
    assert "secret.txt" not in told
    assert "What is in it" not in told


async def test_a_failed_turn_is_an_error(plain_world: World) -> None:
    sink = RecordedSpans()
    async with serving(plain_world, ScriptedModel([])) as served:
        tracer = SessionTracer(served.server.parts.projects, sink)
        session = await served.app.sessions.start_session()
        reply = await session.send_message("Go.")
        await tracer._trace(session)
    assert reply.finish_reason != "stop"
    assert sink.spans[0].error == reply.finish_reason


def test_without_the_extra_it_says_what_to_install() -> None:
    def load(name: str) -> Any:
        raise ImportError(name)

    with pytest.raises(UsageError, match=r"weft\[otel\]"):
        open_telemetry(load)


def test_spans_reach_the_library_with_their_times_and_parents() -> None:
    export = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    sdk = import_module("opentelemetry.sdk.trace")
    processors = import_module("opentelemetry.sdk.trace.export")
    kept = export.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(processors.SimpleSpanProcessor(kept))
    sink = OtelSink(provider.get_tracer("weft"), import_module("opentelemetry.trace"))
    turn = sink.begin("turn", 10.0, None, {"weft.turn": "t"})
    call = sink.begin("model call", 11.0, turn, {})
    call.end(12.0, error="failed", attributes={"gen_ai.usage.input_tokens": 3})
    turn.end(13.0)
    inner, outer = kept.get_finished_spans()
    assert (outer.name, outer.start_time, outer.end_time) == ("turn", 10 * 10**9, 13 * 10**9)
    assert inner.parent.span_id == outer.context.span_id
    assert inner.attributes["gen_ai.usage.input_tokens"] == 3
    assert not inner.status.is_ok
