"""The driver of turns without a terminal: send, follow, answer requests, wait for the end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import anyio
import anyio.abc

from weft.api.inspection import SessionEvents, session_events
from weft.api.results import Result
from weft.api.session import Session
from weft.api.turn_waiter import withdraw
from weft.app import App
from weft.cli.headless.answers import whole, with_whole_text
from weft.cli.headless.output_formats import OutputSink
from weft.cli.headless.own_turn import OwnTurn
from weft.errors import Owned
from weft.events import (
    ArchitectPlan,
    Event,
    PermissionRequest,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    SessionStatus,
    ToolComplete,
    TurnFinished,
)

DENIED = "there is no user to approve it in this run"


class RequestAsker(Protocol):
    """Passes a session's requests on; the answer comes later, as a command."""

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
        """A request was answered, here or by another client."""
        ...


class TurnDriver:
    """One session, its events handed to a sink, its questions answered."""

    def __init__(
        self,
        app: App,
        session: Session,
        sink: OutputSink,
        asker: RequestAsker | None = None,
        own: OwnTurn | None = None,
    ) -> None:
        """Without an `asker` every request is denied; with `own`, only what belongs to that turn is
        handed out and answered.
        """
        self._own = own
        self._app = app
        self.session = session
        self._sink = sink
        self._asker = asker
        self._ended: set[str] = set()
        self._progress = anyio.Event()
        self.denied = 0
        """Calls that were denied."""
        self.unread: BrokenPipeError | None = None
        """The reader of our output has closed it."""

    async def follow(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Hand out events until the session stops."""
        wants_signals = self._sink.wants_signals
        events = await session_events(
            self.session, live=True if wants_signals else "status", work=wants_signals
        )
        task_status.started()
        async with events:
            try:
                await self._hand_out_all(events, wants_signals)
            except Owned:
                # The process that has the session does not answer.  The one message of a run waits
                # for the same process, and only its sender knows whether it was accepted there.
                if self._own is None:
                    raise

    async def _hand_out_all(self, events: SessionEvents, wants_signals: bool) -> None:
        async for event in events:
            if not wants_signals and isinstance(event, SessionStatus):
                continue
            await self._take(await whole(event, self._app))
            if self._own is not None and str(self._own.turn_id) in self._ended:
                # No further: should the owner go now, a run that is about to end would open the
                # session only to close it.
                return

    async def send(self, send: Callable[[], Awaitable[Result]]) -> Result:
        """Send something and wait until its turn is over and all its events are handed out."""
        # The call returns when the turn is durable; its last events may still be on their way to
        # us.
        result = with_whole_text(await send())
        # Bounded: a follower that has ended with its session never hands that event out.
        with anyio.move_on_after(5):
            while str(result.turn_id) not in self._ended:
                await self._progress.wait()
        return result

    async def _take(self, event: Event) -> None:
        if self._own is not None:
            was_foreign = self._own.is_foreign
            self._own.take(event)
            if was_foreign:
                return
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
                # Events cannot be cleared, so each end gets a new one; every waiter looks at
                # `_ended` again.
                self._ended.add(turn_id)
                self._progress.set()
                self._progress = anyio.Event()
            case _:
                pass

    async def _put(self, event: PermissionRequest | QuestionAsked | ArchitectPlan) -> None:
        """Pass a request on; without an asker the answer is no."""
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
            # The turn itself ends: where there is no user to approve it, the loop rejects the plan.
            case ArchitectPlan():
                pass

    async def _hand_out(self, event: Event) -> None:
        if self.unread is not None:
            return
        try:
            # The event is handed out before it is acted on: a program sees the request before it
            # sees that we have denied it.
            self._sink.take(event)
        except BrokenPipeError as error:
            # The reader is gone, so the rest of the turn would be work that no one sees.
            self.unread = error
            await self.give_up("the reader of the output is gone")

    async def give_up(self, reason: str) -> bool:
        """Abort our turn, or take our message back that waits for it; False when neither is there.

        Another's turn goes on.
        """
        own = self._own
        if own is None:
            await self.session.abort(reason)
            return True
        return await withdraw(self.session, own.input_id, own.turn_id, reason)

    async def answer(self, request_id: str, action: Any, reason: str = "") -> None:
        """Answer a permission request."""
        await self.session.respond_to_permission(
            action, request_id=request_id, meta={"reason": reason} if reason else None
        )
