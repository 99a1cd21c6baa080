"""One run from beginning to end, for programs that want an answer and no session."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

import anyio

from weft.api.results import Result
from weft.api.session import Session
from weft.app.app import open_app
from weft.errors import WeftError
from weft.events import Event
from weft.messages import Content
from weft.providers import Model
from weft.session import Subscription
from weft.store.location import StoreArgument
from weft.tools import Tool

logger = logging.getLogger(__name__)


async def run(
    prompt: Content,
    *,
    model: str | Model | None = None,
    tools: str | Sequence[str | Tool | Callable[..., Any]] = "all",
    cwd: str | os.PathLike[str] = ".",
    permission_mode: str = "default",
    max_turns: int | None = None,
    max_seconds: float | None = None,
    max_tool_calls: int | None = None,
    max_budget_usd: float | None = None,
    schema: Any = None,
    system_prompt: str | None = None,
    on_event: Callable[[Event], None] | None = None,
    store: StoreArgument | None = None,
) -> Result:
    """Run an agent on `prompt` to its end.  Nothing is kept unless `store` is given.

    No user is there to approve: what the permission mode does not allow is denied, and the model
    gets an error.  `schema` (a JSON Schema or a type) asks for a structured result, which is then
    in `Result.deliverable`.  `on_event` is called with every event; if it fails, that is logged and
    the run goes on.
    """
    options = {
        "max_turns": max_turns,
        "max_seconds": max_seconds,
        "max_tool_calls": max_tool_calls,
        "max_budget_usd": max_budget_usd,
        "schema": schema,
    }
    async with open_app(cwd, store if store is not None else "memory") as app:
        session = await app.sessions.start_session(
            model=model,
            tools=tools,
            permission_mode=permission_mode,
            system_prompt=system_prompt,
            asking="no",
        )
        if on_event is None:
            return await session.send_message(prompt, **options)
        return await _run_watched(session, prompt, on_event, options)


async def _run_watched(
    session: Session,
    prompt: Content,
    on_event: Callable[[Event], None],
    options: dict[str, Any],
) -> Result:
    # Subscribed before the prompt is sent, so that `on_event` misses nothing.
    events = await session.subscribe(after=0)
    result: Result | WeftError
    async with anyio.create_task_group() as group:
        group.start_soon(_hand_out, events, on_event)
        try:
            result = await session.send_message(prompt, **options)
        except WeftError as error:
            result = error  # raised outside of the group, which would wrap it
        # Ends the subscription too, and so the task that hands events out; the group would
        # otherwise wait for ever.
        await session.stop()
    if isinstance(result, WeftError):
        raise result
    return result


async def _hand_out(events: Subscription, on_event: Callable[[Event], None]) -> None:
    """Call `on_event` until the session stops.

    A callback that fails is logged, and the run goes on.
    """
    async with events:
        async for event in events:
            try:
                on_event(event)
            except Exception:
                logger.exception("a run's on_event failed")
