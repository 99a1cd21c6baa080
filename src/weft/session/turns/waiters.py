"""Waiters for something to come true of a session: an answer to a request, or any condition."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import anyio

from weft.events import Fact, PermissionResolved, QuestionAnswered
from weft.ids import RequestId
from weft.state import SessionState

Resolution: TypeAlias = PermissionResolved | QuestionAnswered


class _Wait:
    """The waiters for one request share it."""

    def __init__(self) -> None:
        self.answered = anyio.Event()
        self.answer: Resolution | None = None


class FactWaiters:
    """Waits; `take` is called with every fact."""

    def __init__(self) -> None:
        self._requests: dict[RequestId, _Wait] = {}
        self._conditions: list[tuple[Callable[[SessionState], bool], anyio.Event]] = []

    def take(self, fact: Fact, state: SessionState) -> None:
        """Wake the waiters for this fact, or for what is true after it."""
        if isinstance(fact, (PermissionResolved, QuestionAnswered)):
            waiting = self._requests.pop(fact.request_id, None)
            if waiting is not None:
                waiting.answer = fact
                waiting.answered.set()
        for holds, changed in self._conditions:
            if holds(state):
                changed.set()

    async def resolution(
        self, request_id: RequestId, state: SessionState, asks: Callable[[], None]
    ) -> Resolution:
        """Wait until the request is answered; `asks` is called when it is not answered yet."""
        # It may have been answered before a process died: the turn that goes on finds the answer in
        # the log and must not ask a second time.
        for answered in state.turn.answers.values():
            if answered.request.request_id == request_id:
                return answered.answer
        waiting = self._requests.setdefault(request_id, _Wait())
        asks()
        while waiting.answer is None:
            await waiting.answered.wait()
        return waiting.answer

    async def until(
        self, holds: Callable[[SessionState], bool], state: Callable[[], SessionState]
    ) -> None:
        """Wait until something is true of the state; looked at with every fact."""
        # Checked again after each wake-up: facts that came before this task ran may have undone it.
        while not holds(state()):
            changed = anyio.Event()
            condition = (holds, changed)
            self._conditions.append(condition)
            try:
                await changed.wait()
            finally:
                self._conditions.remove(condition)
