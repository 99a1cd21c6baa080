"""Turns of a session that nobody sits at: send, follow, answer what is asked, wait for the end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import anyio
import anyio.abc

from weft.api.results import Result
from weft.api.session import Session
from weft.app import App
from weft.cli.headless.answers import whole, with_whole_text
from weft.cli.headless.output_formats import OutputSink
from weft.events import (
    ArchitectPlan,
    Event,
    PermissionRequest,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    ToolComplete,
    TurnFinished,
)

DENIED = "there is no user to approve it in this run"


class RequestAsker(Protocol):
    """Puts to somebody what a session asks; the answer comes later, as a command."""

    async def ask(self, request: PermissionRequest) -> None:
        """Something needs permission."""
        ...

    async def ask_plan(self, event: ArchitectPlan) -> None:
        """A plan waits for approval."""
        ...

    async def ask_question(self, event: QuestionAsked) -> None:
        """The model asks something."""
        ...

    async def resolved(self, request_id: str) -> None:
        """A request was answered, by whomever."""
        ...


class TurnDriver:
    """One session, its events handed to a sink, its questions answered."""

    def __init__(
        self, app: App, session: Session, sink: OutputSink, asker: RequestAsker | None = None
    ) -> None:
        """Without an `asker` nobody is there, and the answer is no."""
        self._app = app
        self.session = session
        self._sink = sink
        self._asker = asker
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
            case PermissionRequest() | QuestionAsked() | ArchitectPlan():
                await self._put(event)
            case (
                PermissionResolved(request_id=request_id) | QuestionAnswered(request_id=request_id)
            ) if self._asker is not None:
                await self._asker.resolved(request_id)
            case ToolComplete(result=result) if result.status == "denied":
                self.denied += 1
            case TurnFinished(turn_id=turn_id):
                self._ended.add(turn_id)
                self._progress.set()
                self._progress = anyio.Event()
            case _:
                pass

    async def _put(self, event: PermissionRequest | QuestionAsked | ArchitectPlan) -> None:
        """Put what is asked to whoever is there; without anybody the answer is no."""
        asker = self._asker
        match event:
            case PermissionRequest() if asker is not None:
                await asker.ask(event)
            case PermissionRequest(request_id=request_id):
                await self.answer(request_id, "deny", DENIED)
            case QuestionAsked() if asker is not None:
                await asker.ask_question(event)
            case QuestionAsked(request_id=request_id):
                await self.session.answer_question(request_id, f"({DENIED})")
            case ArchitectPlan() if asker is not None:
                await asker.ask_plan(event)
            case ArchitectPlan():
                pass

    async def _hand_out(self, event: Event) -> None:
        if self.is_unread:
            return
        try:
            self._sink.take(event)
        except BrokenPipeError:
            # Nobody reads any more, so the work would be for nobody.
            self.is_unread = True
            await self.session.abort("the reader of the output is gone")

    async def answer(self, request_id: str, action: Any, reason: str = "") -> None:
        """Answer a request for leave."""
        await self.session.respond_to_permission(
            action, request_id=request_id, meta={"reason": reason} if reason else None
        )
