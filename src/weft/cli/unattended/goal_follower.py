"""What a terminal shows of a goal that this process works for, until it is over."""

from __future__ import annotations

import anyio
import anyio.abc

from weft.api import Session
from weft.api.inspection import session_events
from weft.cli.exit_codes import FAILED, OK
from weft.cli.sanitize import clean_line
from weft.cli.signals import StopSignal
from weft.cli.stdio import tell, write_line
from weft.events import (
    Event,
    GoalChecked,
    GoalEnded,
    GoalPaused,
    GoalSet,
    NewMessage,
    PermissionRequest,
    QuestionAsked,
    ToolComplete,
    TurnStarted,
)
from weft.state import GOAL_OPTION
from weft.view import count_of, describe_call, goal_note

DENIED = "there is no user to approve it in this run"
LONGEST_ANSWER = 200


class GoalFollower:
    """Follows one goal."""

    def __init__(self, session: Session, after: int, rounds: int, *, is_verbose: bool) -> None:
        """`after` is the place in the log from which on it is followed, `rounds` those before."""
        self._after = after
        self._session = session
        self._is_verbose = is_verbose
        self._stop = StopSignal()
        self._round = rounds
        self._denied = 0
        self._code = FAILED

    async def run(self) -> int:
        """Until it has ended, or is paused; returns the exit code."""
        goal = await self._session.goal()
        if goal is None:
            return FAILED
        write_line(f"goal: {clean_line(goal.text)}")
        tell(f"session {self._session.id}")
        async with anyio.create_task_group() as group:
            await group.start(self._watch_signals)
            await self._follow()
            group.cancel_scope.cancel()
        if self._denied:
            were = "was" if self._denied == 1 else "were"
            tell(
                f"{count_of(self._denied, 'call')} needed approval and {were} denied: a goal works "
                "alone; "
                "--permission-mode accept_edits or auto lets it"
            )
        return self._stop.code or self._code

    async def _watch_signals(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async def settle() -> None:
            receipt = await self._session.abort(self._stop.reason)
            goal = await self._session.goal()
            # Between a round and its check there is nothing to abort.
            if receipt.turn_id is None and goal is not None and goal.status == "active":
                await self._session.pause_goal()

        await self._stop.watch(settle, task_status=task_status)

    async def _follow(self) -> None:
        events = await session_events(self._session, after=self._after, live="status")
        async with events:
            async for event in events:
                await self._take(event)
                if isinstance(event, GoalEnded) or (isinstance(event, GoalPaused) and event.paused):
                    return

    async def _take(self, event: Event) -> None:
        match event:
            case TurnStarted(options=options) if GOAL_OPTION in options:
                self._round += 1
                write_line(f"round {self._round}")
            case NewMessage(node=node) if node.role == "assistant":
                self._say_answer(node.text)
                if self._is_verbose:
                    for call in node.calls:
                        tell(f"  · {clean_line(describe_call(call.name, call.args))}")
            case GoalChecked() | GoalPaused() | GoalEnded() | GoalSet():
                self._say_goal(event)
            case PermissionRequest(request_id=request_id, child=child):
                # A call of the session itself is counted by its result.
                self._denied += child is not None
                await self._session.respond_to_permission(
                    "deny", request_id=request_id, meta={"reason": DENIED}
                )
            case QuestionAsked(request_id=request_id):
                await self._session.answer_question(request_id, f"({DENIED})")
            case ToolComplete(result=result) if result.status == "denied":
                self._denied += 1
            case _:
                pass

    def _say_answer(self, text: str) -> None:
        said = clean_line(" ".join(text.split()))
        if said:
            tell(f"  {said if len(said) <= LONGEST_ANSWER else said[: LONGEST_ANSWER - 1] + '…'}")

    def _say_goal(self, event: GoalChecked | GoalPaused | GoalEnded | GoalSet) -> None:
        if isinstance(event, GoalSet):
            return
        if isinstance(event, GoalEnded):
            self._code = OK if event.reason == "done" else FAILED
        write_line(clean_line(goal_note(event).text.removesuffix("; /goal resume goes on")))
