"""Operations without a session of their own: one model call, or one run to its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from typing import Any, Final

import anyio

from weft.api import Answer, Result, Session, query, stream
from weft.app import App
from weft.errors import WeftError
from weft.runtime import error_body
from weft.server.bodies import MessageContent
from weft.server.errors import ErrorAnswer
from weft.server.operation import LARGE_BODY, ApiCall, ApiOperation, ChangeBody, given
from weft.server.sse import EventResponse, piece_of
from weft.thinking_levels import ThinkingLevel

FINISHED: Final = b'{"kind":"turn_finished"'


class QueryBody(ChangeBody, frozen=True, kw_only=True):
    """A question for one model."""

    prompt: MessageContent
    model: str | None = None
    """Without it, the configured one."""
    system: str | None = None
    schema: dict[str, Any] | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    thinking: ThinkingLevel | None = None
    stop: list[str] | None = None
    retries: int | None = None


class RunBody(ChangeBody, frozen=True, kw_only=True):
    """A task for one run, which is not kept."""

    prompt: MessageContent
    project: str | None = None
    """The name of a project in paths; without it, the main one."""
    model: str | None = None
    tools: str | list[str] | None = None
    permission_mode: str | None = None
    system_prompt: str | None = None
    max_turns: int | None = None
    max_seconds: float | None = None
    max_tool_calls: int | None = None
    max_budget_usd: float | None = None
    schema: dict[str, Any] | None = None


def _question(call: ApiCall, app: App) -> dict[str, Any]:
    body: QueryBody = call.body
    fields = given(body, "input_id")
    host = app.host
    named = host.default_named() if body.model is None else host.model_named(body.model)
    if named.effort is not None:
        fields.setdefault("thinking", named.effort)
    return {**fields, "model": host.model(named.name)}


async def _query(call: ApiCall) -> Answer | EventResponse:
    fields = _question(call, await call.app())
    if not call.wants_events:
        return await query(**fields)
    answers = stream(**fields)

    async def pieces(lost: Callable[[], None]) -> AsyncIterator[bytes]:
        del lost  # it is waited for: there is one reader
        async with answers:
            try:
                async for delta in answers:
                    yield piece_of(delta)
                yield piece_of(answers.answer, event="answer")
            except WeftError as error:
                yield failed(error)

    return EventResponse(pieces, call.parts.relays.is_closing)


def failed(error: WeftError) -> bytes:
    """An error as the last event of an answer that had begun."""
    return piece_of(ErrorAnswer(error=error_body(error)), event="error")


async def _run(call: ApiCall) -> Result | EventResponse:
    body: RunBody = call.body
    projects = call.parts.projects
    app = projects.main if body.project is None else await projects.named(body.project)
    named = ("model", "tools", "permission_mode", "system_prompt")
    fields = given(body, "input_id", "prompt", "project")
    start = {name: value for name, value in fields.items() if name in named}
    options = {name: value for name, value in fields.items() if name not in named}
    session = await app.sessions.start_session(**start, store="memory", asking="no")
    if not call.wants_events:
        try:
            return await session.send_message(body.prompt, **options)
        finally:
            await _drop(app, session)

    async def pieces(lost: Callable[[], None]) -> AsyncIterator[bytes]:
        try:
            await session.send_prompt(body.prompt, **options)
            async with aclosing(call.parts.relays.follow_session(app, session, 0, lost)) as ticks:
                async for tick in ticks:
                    yield tick.sse
                    if any(event.startswith(FINISHED) for _, event in tick.events):
                        break
        except WeftError as error:
            yield failed(error)
        finally:
            await _drop(app, session)

    return EventResponse(pieces, call.parts.relays.is_closing)


async def _drop(app: App, session: Session) -> None:
    """Leave nothing of a run that is not kept."""
    with anyio.CancelScope(shield=True), suppress(WeftError):
        await app.sessions.delete_session(session.id)


QUERIES: tuple[ApiOperation, ...] = (
    ApiOperation(
        method="POST",
        path="/query",
        name="query",
        says="One model call, without tools and history; as events where those are accepted.",
        run=_query,
        body=QueryBody,
        answer=Answer,
        streams=True,
        calls=("weft.query", "weft.stream"),
        remembers=False,
        most_bytes=LARGE_BODY,
    ),
    ApiOperation(
        method="POST",
        path="/run",
        name="run",
        says="One agent run to its end, which is not kept; as events where those are accepted.",
        run=_run,
        body=RunBody,
        answer=Result,
        streams=True,
        calls=("weft.run",),
        remembers=False,
        most_bytes=LARGE_BODY,
    ),
)
