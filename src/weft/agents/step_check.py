"""The check of a step: a command that passes the same gate as every other, is intended before it runs and recorded after.

A check that a crash cut short is settled by recovery like any effect, which tells the person; it is then run again, and says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container
from typing import Any

import msgspec

from weft.errors import ToolError
from weft.events import (
    Fact,
    PermissionRequest,
    PermissionResolved,
    SystemNote,
    ToolComplete,
    ToolExecuting,
)
from weft.ids import CallUid, NodeId, RequestId, new_id
from weft.loop import Commit, TurnEnvironment
from weft.messages import ToolCall, ToolResult, clean_text
from weft.permissions import grant_pattern, with_hook
from weft.state import SessionState
from weft.tools import PreparedCall, ToolOutcome, builtin_tools

NAME = "check"
SECONDS = 600.0


class CheckVerdict(msgspec.Struct, frozen=True):
    """What a check came to; `facts` go with the step's own."""

    passed: bool
    text: str
    facts: tuple[Fact, ...] = ()


class StepCheck:
    """One run of one step's check."""

    def __init__(
        self, environment: TurnEnvironment, command: str, call_uid: CallUid, node: NodeId
    ) -> None:
        self._env = environment
        self._command = command
        self._call_uid = call_uid
        self._node = node
        self._args: dict[str, Any] = {"command": command, "timeout_seconds": SECONDS}

    async def run(self) -> CheckVerdict:
        """Get leave, intend, run."""
        shell = builtin_tools()["shell"]
        context = self._env.tool_context(self._call_uid)
        try:
            prepared = await shell.prepare(self._args, context)
        except ToolError as error:
            return CheckVerdict(False, str(error))
        refusal = await self._refusal(prepared)
        if refusal is not None:
            return CheckVerdict(False, f"The check `{self._command}` was not run: {refusal}")
        await self._commit(*self._intent())
        outcome = await _come_to_an_end(prepared)
        text = self._env.redact(clean_text(outcome.text))
        return CheckVerdict(not outcome.is_error, text, (self._complete(outcome, text),))

    async def _commit(self, *facts: Fact) -> None:
        await self._env.journal.commit(lambda state: Commit(facts=facts))

    def _intent(self) -> tuple[Fact, ...]:
        ran_before = self._call_uid in _results(self._env.journal.state, self._node)
        intent = ToolExecuting(
            call_uid=self._call_uid,
            node=self._node,
            tool_name=NAME,
            target=self._command,
            args={"command": self._command},
            attempt=2 if ran_before else 1,
        )
        if not ran_before:
            return (intent,)
        note = SystemNote(text=f"The check `{self._command}` is run again.", node=self._node)
        return (note, intent)

    def _complete(self, outcome: ToolOutcome, text: str) -> ToolComplete:
        limit = self._env.limits.result_characters
        return ToolComplete(
            call_uid=self._call_uid,
            node=self._node,
            result=ToolResult(
                call_uid=self._call_uid,
                text=text[-limit:],
                is_error=outcome.is_error,
                data=outcome.data,
            ),
            is_error=outcome.is_error,
        )

    # -- leave

    async def _refusal(self, prepared: PreparedCall) -> str | None:
        """Why it may not run; None when it may."""
        decision = self._env.gate.decide(prepared.action)
        if self._env.hooks is not None and decision.verdict != "deny":
            # To a guard it is a command like any other.
            call = ToolCall(call_uid=self._call_uid, name="shell", args=self._args)
            ruling = await self._env.hooks.before_tool(call)
            if ruling.facts:
                await self._commit(*ruling.facts)
            if ruling.args not in (None, self._args):
                return "a hook wants another input, which a check cannot be given"
            decision = with_hook(decision, ruling.verdict, ruling.reason)
        if decision.verdict == "allow":
            return None
        if decision.verdict == "deny":
            return f"denied, {decision.reason}"
        match self._env.gate.when_asking:
            case "yes":
                return None
            case "no":
                return "it needs somebody's leave, and nobody is there to give it"
            case "wait":
                return await self._ask(prepared, decision.reason)

    async def _ask(self, prepared: PreparedCall, reason: str) -> str | None:
        journal = self._env.journal
        shown = hashlib.sha256(prepared.preview.encode("utf-8", "replace")).hexdigest()
        request_id = self._asked(shown)
        if request_id is None:
            request_id = RequestId(new_id("req", self._env.clock.now()))
            request = PermissionRequest(
                request_id=request_id,
                call_uid=self._call_uid,
                node=self._node,
                tool_name=NAME,
                tool_path=self._command,
                preview=prepared.preview,
                shown_hash=shown,
                always_pattern=grant_pattern(prepared.action),
                reason=reason,
                args={"command": self._command},
            )
            await self._commit(request)
        journal.status("awaiting_permission")
        try:
            resolved = await journal.resolution(request_id)
        finally:
            journal.status("executing_tool")
        if isinstance(resolved, PermissionResolved) and resolved.action != "deny":
            return None
        if isinstance(resolved, PermissionResolved) and resolved.instead is not None:
            return "a check cannot be given another command in the answer; edit the plan instead"
        said = resolved.reason if isinstance(resolved, PermissionResolved) else ""
        return "denied by the person" + (f", who said: {said}" if said else "")

    def _asked(self, shown: str) -> RequestId | None:
        """The request from before a crash, answered or not."""
        turn = self._env.journal.state.turn
        answered = turn.answers.get(self._call_uid)
        requests = [*turn.requests.values(), *([answered.request] if answered else [])]
        for request in requests:
            is_ours = request.call_uid == self._call_uid
            if isinstance(request, PermissionRequest) and is_ours and request.shown_hash == shown:
                return request.request_id
        return None


async def _come_to_an_end(prepared: PreparedCall) -> ToolOutcome:
    try:
        return await prepared.run()
    except ToolError as error:
        return ToolOutcome(text=str(error), is_error=True)


def _results(state: SessionState, node: NodeId) -> Container[CallUid]:
    holder = state.tree.nodes.get(node)
    return holder.results if holder is not None else ()
