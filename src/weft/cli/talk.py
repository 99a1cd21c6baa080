"""Turns of a session that nobody sits at: send, follow, answer what is asked, wait for the end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.abc

from weft.app import App, Result, Session
from weft.cli.answers import whole, with_whole_text
from weft.cli.sinks import Sink
from weft.events import (
    ArchitectPlan,
    Event,
    PermissionRequest,
    QuestionAsked,
    ToolComplete,
    TurnFinished,
)

DENIED = "nobody is there to ask: this is a run without a person"


class Talk:
    """One session, its events handed to a sink, its questions answered."""

    def __init__(
        self,
        app: App,
        session: Session,
        sink: Sink,
        ask: Callable[[PermissionRequest], Awaitable[None]] | None = None,
        ask_plan: Callable[[ArchitectPlan], Awaitable[None]] | None = None,
    ) -> None:
        """`ask` and `ask_plan` put requests to somebody; without them nobody is there, and the answer is no."""
        self._app = app
        self.session = session
        self._sink = sink
        self._ask = ask or self._deny
        self._ask_plan = ask_plan
        self._ended: set[str] = set()
        self._progress = anyio.Event()
        self.denied = 0
        """Calls that nobody gave leave for."""
        self.is_unread = False
        """Whoever read our output went away."""

    async def follow(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Hand out events until the session stops."""
        events = await self.session.subscribe(live=self._sink.wants_signals)
        task_status.started()
        async with events:
            async for event in events:
                await self._take(await whole(event, self._app))

    async def send(self, send: Callable[[], Awaitable[Result]]) -> Result:
        """Send something and wait until its turn is over and all its events are handed out."""
        result = with_whole_text(await send())
        with anyio.move_on_after(5):
            while str(result.turn_id) not in self._ended:
                await self._progress.wait()
        return result

    async def _take(self, event: Event) -> None:
        await self._hand_out(event)
        match event:
            case PermissionRequest():
                await self._ask(event)
            case ArchitectPlan() if self._ask_plan is not None:
                await self._ask_plan(event)
            case QuestionAsked(request_id=request_id):
                await self.session.answer_question(request_id, f"({DENIED})")
            case ToolComplete(result=result) if result.status == "denied":
                self.denied += 1
            case TurnFinished(turn_id=turn_id):
                self._ended.add(turn_id)
                self._progress.set()
                self._progress = anyio.Event()
            case _:
                pass

    async def _hand_out(self, event: Event) -> None:
        if self.is_unread:
            return
        try:
            self._sink.take(event)
        except BrokenPipeError:
            # Nobody reads any more, so the work would be for nobody.
            self.is_unread = True
            await self.session.abort("nobody reads the output any more")

    async def _deny(self, request: PermissionRequest) -> None:
        await self.answer(request.request_id, "deny", DENIED)

    async def answer(self, request_id: str, action: Any, reason: str = "") -> None:
        """Answer a request for leave."""
        await self.session.respond_to_permission(
            action, request_id=request_id, meta={"reason": reason} if reason else None
        )
