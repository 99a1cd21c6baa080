"""Traces of turns for OpenTelemetry: a span for each turn, and below it one for each model call and
each tool call.

Made from the facts of a session, with their times; what was said, arguments and results are left
out.  The library is an extra, and loaded when traces are asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import anyio
import anyio.abc

from weft.errors import UsageError, WeftError
from weft.events import (
    Event,
    ModelCallStarted,
    NewMessage,
    SessionStatus,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
    TurnStarted,
)
from weft.ids import SessionId
from weft.messages import Usage
from weft.view import SUCCESSFUL

if TYPE_CHECKING:  # they import the operations
    from weft.api import Session
    from weft.server.projects import ServedProjects

logger = logging.getLogger(__name__)

TOPIC: Final = "sessions"
MISSING: Final = "traces need the extra: pip install 'weft[otel]'"


Attributes: TypeAlias = Mapping[str, str | int]
NOTHING: Final[Attributes] = {}


class OpenSpan(Protocol):
    """A span that has begun."""

    def end(self, at: float, *, error: str = "", attributes: Attributes = NOTHING) -> None:
        """It is over."""


class SpanSink(Protocol):
    """Where spans go."""

    def begin(
        self, name: str, at: float, parent: OpenSpan | None, attributes: Attributes
    ) -> OpenSpan:
        """A span begins, below another or on its own."""


class TurnTraces:
    """The spans of one session, from its events."""

    def __init__(self, session_id: str, sink: SpanSink) -> None:
        self._session_id = session_id
        self._sink = sink
        self._turn: OpenSpan | None = None
        self._calls: dict[str, OpenSpan] = {}
        """Model calls and tool calls that are under way, by the id of their message or call."""
        self._tools: dict[str, str] = {}
        """The names of tools, by the id of the call."""

    def take(self, event: Event) -> None:
        """One more event."""
        match event:
            case TurnStarted(at=at, turn_id=turn):
                self._end_all(at, "interrupted")
                self._turn = self._sink.begin(
                    "turn", at, None, {"weft.session": self._session_id, "weft.turn": turn}
                )
            case ModelCallStarted(at=at, node=node, model=model):
                given = {"gen_ai.request.model": model}
                self._calls[node] = self._sink.begin("model call", at, self._turn, given)
            case NewMessage(at=at, node=message):
                self._tools |= {call.call_uid: call.name for call in message.calls}
                if message.id not in self._calls:
                    return
                self._calls.pop(message.id).end(at, attributes=_tokens(message.usage))
            case ToolExecuting(at=at, call_uid=call, tool_name=tool):
                self._calls[call] = self._tool(tool, at)
            case ToolComplete(at=at, call_uid=call, is_error=failed, duration_ms=duration):
                span = self._calls.pop(call, None)
                if span is None:  # one that only reads is put on record when it is done
                    tool = self._tools.get(call, "")
                    span = self._tool(tool, at - duration / 1000)
                span.end(at, error="the tool failed" if failed else "")
            case TurnFinished(at=at, finish_reason=reason):
                self._end_all(at, "" if reason in SUCCESSFUL else reason)
            case _:
                pass

    def _tool(self, tool: str, at: float) -> OpenSpan:
        return self._sink.begin(f"tool {tool}", at, self._turn, {"gen_ai.tool.name": tool})

    def _end_all(self, at: float, error: str) -> None:
        for call in self._calls.values():
            call.end(at, error=error)
        self._calls.clear()
        if self._turn is not None:
            self._turn.end(at, error=error)
            self._turn = None


def _tokens(used: Usage | None) -> Attributes:
    if used is None:
        return NOTHING
    return {
        "gen_ai.usage.input_tokens": used.input_tokens,
        "gen_ai.usage.output_tokens": used.output_tokens,
    }


class SessionTracer:
    """Follows every session that works in the server, while it does."""

    def __init__(self, projects: ServedProjects, sink: SpanSink) -> None:
        self._projects = projects
        self._sink = sink
        self._followed: set[SessionId] = set()
        self._cursors: dict[SessionId, int] = {}

    async def run(self) -> None:
        """Trace until cancelled."""
        async with anyio.create_task_group() as group:
            async for change in await self._projects.main.subscribe(TOPIC):
                for session_id in change.ids:
                    if session_id not in self._followed:
                        self._followed.add(session_id)
                        group.start_soon(self._follow, session_id)

    async def _follow(self, session_id: SessionId) -> None:
        try:
            for app in self._projects.apps:
                session = await app.sessions.find_session(session_id)
                if session is not None and app.host.runs_here(session_id):
                    await self._trace(session)
                    return
        except WeftError:
            logger.warning("a session could not be traced", exc_info=True)
        finally:
            self._followed.discard(session_id)

    async def _trace(self, session: Session) -> None:
        """Until its turn is over: a reader would keep the session from being unloaded."""
        traces = TurnTraces(session.id, self._sink)
        after = self._cursors.get(session.id, 0)
        async with await session.subscribe(after=after, live="status") as events:
            async for event in events:
                traces.take(event)
                if isinstance(event, SessionStatus):
                    is_over = event.status in ("idle", "interrupted", "error")
                else:
                    is_over = isinstance(event, TurnFinished)
                self._cursors[session.id] = events.cursor
                if is_over and await session.get_status() in ("idle", "interrupted", "error"):
                    return


def open_telemetry(load: Callable[[str], Any]) -> SpanSink:
    """Spans for OpenTelemetry, sent as its environment variables say (`OTEL_EXPORTER_OTLP_…`).

    `load` imports a module by its name.

    Raises:
        UsageError: the extra is not installed.
    """
    try:
        trace = load("opentelemetry.trace")
        sdk = load("opentelemetry.sdk.trace")
        export = load("opentelemetry.sdk.trace.export")
        exporter = load("opentelemetry.exporter.otlp.proto.http.trace_exporter").OTLPSpanExporter()
    except ImportError as error:
        raise UsageError(MISSING) from error
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.BatchSpanProcessor(exporter))
    return OtelSink(provider.get_tracer("weft"), trace)


class OtelSink:
    """Spans of OpenTelemetry's library."""

    def __init__(self, tracer: Any, trace: Any) -> None:
        """`trace` is the module of its API."""
        self._tracer = tracer
        self._trace = trace

    def begin(
        self, name: str, at: float, parent: OpenSpan | None, attributes: Attributes
    ) -> OpenSpan:
        """A span begins."""
        above = getattr(parent, "inner", None)
        context = None if above is None else self._trace.set_span_in_context(above)
        inner = self._tracer.start_span(
            name, context=context, start_time=_nanoseconds(at), attributes=attributes
        )
        return _OtelSpan(inner, self._trace)


class _OtelSpan:
    def __init__(self, inner: Any, trace: Any) -> None:
        self.inner = inner
        self._trace = trace

    def end(self, at: float, *, error: str = "", attributes: Attributes = NOTHING) -> None:
        for name, value in attributes.items():
            self.inner.set_attribute(name, value)
        if error:
            self.inner.set_status(self._trace.Status(self._trace.StatusCode.ERROR, error))
        self.inner.end(_nanoseconds(at))


def _nanoseconds(at: float) -> int:
    return int(at * 1e9)
