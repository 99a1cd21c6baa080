"""A request for permission: put on record, shown, answered, or left until its time is over.

An answer counts for exactly what was shown, also after a crash: a request that was open before is
the same request after it, and an answer that is on record is not asked for again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import anyio
import anyio.abc
import msgspec

from weft.events import Fact, PermissionRequest, PermissionResolved, QuestionAnswered
from weft.faults import FailPointPair
from weft.ids import NodeId, RequestId, new_id
from weft.loop.base import TurnEnvironment
from weft.loop.pending_facts import PendingFacts
from weft.messages import ToolCall
from weft.permissions import PolicyDecision, grant_pattern
from weft.state import AnsweredRequest, SessionState
from weft.tools import PreparedCall, Tool

_ASK = FailPointPair("loop.ask")


class ReadyCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call with leave to run."""

    call: ToolCall
    tool: Tool
    prepared: PreparedCall
    is_changed: bool = False
    """The input is another than the model gave."""


class PermissionAsk:
    """Asks for permission to run the calls of one answer."""

    def __init__(self, environment: TurnEnvironment, notebook: PendingFacts, node: NodeId) -> None:
        self._env = environment
        self._notebook = notebook
        self._node = node

    async def ask(
        self, ready: ReadyCall, decision: PolicyDecision
    ) -> PermissionResolved | QuestionAnswered:
        """An answer to exactly this request: one on record from before a crash, or a new one."""
        journal = self._env.journal
        shown = _shown_hash(ready)
        answered = journal.state.turn.answers.get(ready.call.call_uid)
        if answered is not None and _is_for(answered, shown):
            return answered.answer
        request_id = self._open_request(ready, shown)
        if request_id is None:
            request_id = RequestId(new_id("req", self._env.clock.now()))
            self._notebook.note(
                PermissionRequest(
                    request_id=request_id,
                    call_uid=ready.call.call_uid,
                    node=self._node,
                    tool_name=ready.call.name,
                    tool_path=ready.prepared.action.target,
                    preview=ready.prepared.preview,
                    shown_hash=shown,
                    always_pattern=grant_pattern(ready.prepared.action),
                    reason=decision.reason,
                    args=ready.call.args if ready.is_changed else None,
                )
            )
            await self._notebook.commit(_ASK)
        journal.status("awaiting_permission")
        try:
            return await self._answer(request_id)
        finally:
            journal.status("executing_tool")

    async def _answer(self, request_id: RequestId) -> PermissionResolved | QuestionAnswered:
        """The answer, or the denial that stands for it when none comes in time.  Of the two the
        first on record counts."""
        seconds = self._env.limits.ask_seconds
        if seconds is None:
            return await self._env.journal.resolution(request_id)
        if (answer := await self._answer_within(seconds, request_id)) is not None:
            return answer

        def expired(state: SessionState, noted: Sequence[Fact]) -> list[Fact]:
            if request_id not in state.turn.requests:
                return []
            reason = f"nobody answered within {seconds:g} seconds"
            return [
                PermissionResolved(request_id=request_id, action="deny", by="weft", reason=reason)
            ]

        await self._notebook.commit(_ASK, expired)
        return await self._env.journal.resolution(request_id)

    async def _answer_within(
        self, seconds: float, request_id: RequestId
    ) -> PermissionResolved | QuestionAnswered | None:
        answers: list[PermissionResolved | QuestionAnswered] = []

        async def wait(group: anyio.abc.TaskGroup) -> None:
            answers.append(await self._env.journal.resolution(request_id))
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(wait, group)
            await self._env.sleep(seconds)
            group.cancel_scope.cancel()
        return answers[0] if answers else None

    def _open_request(self, ready: ReadyCall, shown: str) -> RequestId | None:
        """The request that was open before a crash, if it showed the very same; another one is
        void."""
        for request in self._env.journal.state.turn.requests.values():
            if not isinstance(request, PermissionRequest):
                continue
            if request.call_uid != ready.call.call_uid:
                continue
            if request.shown_hash == shown:
                return request.request_id
            self._notebook.note(
                PermissionResolved(
                    request_id=request.request_id,
                    action="deny",
                    by="weft",
                    reason="what was shown has changed meanwhile",
                )
            )
        return None


def _shown_hash(ready: ReadyCall) -> str:
    action = ready.prepared.action
    shown = "\0".join((action.tool, action.target, ready.prepared.preview))
    return hashlib.sha256(shown.encode("utf-8", "replace")).hexdigest()


def _is_for(answered: AnsweredRequest, shown: str) -> bool:
    request = answered.request
    return isinstance(request, PermissionRequest) and request.shown_hash == shown
