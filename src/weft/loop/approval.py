"""A request for permission: put on record, shown, answered, or left until its time is over.

An answer counts for exactly what was shown, also after a crash: a request that was open before is
the same request after it, and an answer that is on record is not asked for again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

import anyio
import anyio.abc
import msgspec

from weft.events import Fact, PermissionRequest, PermissionResolved, QuestionAnswered
from weft.faults import FailPointPair
from weft.ids import NodeId, RequestId, new_id
from weft.loop.base import ToolCallEnvironment
from weft.loop.pending_facts import PendingFacts
from weft.loop.tool_results import denial
from weft.messages import ToolCall
from weft.permissions import PolicyDecision, grant_pattern
from weft.sha256 import sha256
from weft.state import AnsweredRequest, SessionState
from weft.tools import PreparedCall, Tool

_ASK = FailPointPair("loop.ask")

T = TypeVar("T")

UNANSWERED = "it was not answered within {seconds:g} seconds"


class ReadyCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is prepared, on its way to permission or already permitted."""

    call: ToolCall
    tool: Tool
    prepared: PreparedCall
    shows_input: bool = False
    """A request for permission carries the input: the log has no other copy of it, because it was
    changed or because no answer of the model holds the call."""


class PermissionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the user answers to a request for permission."""

    allowed: bool
    text: str = ""
    """Of a denial: what the caller reads."""
    instead: dict[str, Any] | None = None
    """Another input, which the user allows in place of the one shown."""
    request: RequestId | None = None
    """The request that was answered, where it is on record."""


class PermissionApprover(Protocol):
    """Puts a request for permission to the user."""

    async def ask(self, ready: ReadyCall, decision: PolicyDecision) -> PermissionAnswer:
        """The answer to exactly this call; `decision.reason` says why it is asked about."""
        ...


async def within(
    seconds: float,
    sleep: Callable[[float], Awaitable[None]],
    wait: Callable[[], Awaitable[T]],
) -> T | None:
    """What `wait` gives, or None when it takes longer; `sleep` measures the time."""
    # Not `move_on_after`: tests and programs bring a clock of their own, which only `sleep` knows.
    found: list[T] = []

    async def take(group: anyio.abc.TaskGroup) -> None:
        found.append(await wait())
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(take, group)
        await sleep(seconds)
        group.cancel_scope.cancel()
    return found[0] if found else None


class PermissionAsk(PermissionApprover):
    """Asks by a request in the log, which every client of the session can see and answer."""

    def __init__(
        self,
        environment: ToolCallEnvironment,
        pending: PendingFacts,
        node: NodeId,
        record_as: str = "",
    ) -> None:
        self._env = environment
        self._pending = pending
        self._node = node
        self._record_as = record_as

    async def ask(self, ready: ReadyCall, decision: PolicyDecision) -> PermissionAnswer:
        resolved = await self._resolved(ready, decision)
        if isinstance(resolved, PermissionResolved) and resolved.instead is not None:
            return PermissionAnswer(
                allowed=True, instead=resolved.instead, request=resolved.request_id
            )
        if isinstance(resolved, PermissionResolved) and resolved.action != "deny":
            return PermissionAnswer(allowed=True, request=resolved.request_id)
        return PermissionAnswer(allowed=False, text=denial(resolved))

    async def _resolved(
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
            self._pending.note(
                PermissionRequest(
                    request_id=request_id,
                    call_uid=ready.call.call_uid,
                    node=self._node,
                    tool_name=self._record_as or ready.call.name,
                    tool_path=ready.prepared.action.target,
                    preview=self._shown_preview(ready),
                    shown_hash=shown,
                    always_pattern=grant_pattern(ready.prepared.action),
                    reason=decision.reason,
                    args=ready.call.args if ready.shows_input else None,
                )
            )
            await self._pending.commit(_ASK)
        journal.status("awaiting_permission")
        try:
            return await self._answer(request_id)
        finally:
            journal.status("executing_tool")

    def _shown_preview(self, ready: ReadyCall) -> str:
        """A diff without secrets; a command as it is, for the user has to see all of what runs."""
        preview = ready.prepared.preview
        return self._env.redact(preview) if ready.prepared.action.kind == "edit" else preview

    async def _answer(self, request_id: RequestId) -> PermissionResolved | QuestionAnswered:
        """The answer, or the denial that stands for it when none comes in time.  Of the two the
        first on record counts."""
        seconds = self._env.limits.ask_seconds
        if seconds is None:
            return await self._env.journal.resolution(request_id)
        journal = self._env.journal
        answer = await within(seconds, self._env.sleep, lambda: journal.resolution(request_id))
        if answer is not None:
            return answer

        def expired(state: SessionState, noted: Sequence[Fact]) -> list[Fact]:
            if request_id not in state.turn.requests:
                return []
            reason = UNANSWERED.format(seconds=seconds)
            return [
                PermissionResolved(request_id=request_id, action="deny", by="weft", reason=reason)
            ]

        # The user's answer may have arrived while the time ran out: the actor decides the order,
        # and the resolution that is on record first is the one that counts.
        await self._pending.commit(_ASK, expired)
        return await self._env.journal.resolution(request_id)

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
            # An open request for this call that showed something else: a file has changed since,
            # and an answer to what was shown then must not count for what is shown now.
            self._pending.note(
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
    # The preview is part of it: what the user agrees to is the diff, not the name of the file.
    shown = "\0".join((action.tool, action.target, ready.prepared.preview))
    return sha256(shown.encode("utf-8", "replace")).hexdigest()


def _is_for(answered: AnsweredRequest, shown: str) -> bool:
    request = answered.request
    return isinstance(request, PermissionRequest) and request.shown_hash == shown
