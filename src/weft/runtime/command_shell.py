"""Shell commands of slash commands: judged, asked about and run like any that a model asks for, through the same door, and put on record."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from weft.errors import ToolError, UsageError
from weft.ids import CallUid
from weft.loop import PermissionGate, TurnHooks
from weft.messages import ToolCall
from weft.permissions import PolicyDecision, with_hook
from weft.project.markdown_commands import Ask, ShellRequest
from weft.tools import PreparedCall, Tool, ToolContext, ToolOutcome

RECORD_SECONDS = 5.0
"""How long what a command changed may take to be put on record when the command was stopped."""


class CommandShell:
    """Runs the shell commands of one slash command."""

    def __init__(
        self,
        name: str,
        *,
        tool: Tool,
        context: Callable[[], ToolContext],
        record: Callable[[CallUid, ToolOutcome | None], Awaitable[None]],
        gate: PermissionGate,
        hooks: TurnHooks | None,
        ask: Ask | None,
        is_trusted: bool,
        note: Callable[[str], Awaitable[object]],
        redact: Callable[[str], str],
    ) -> None:
        self._name = name
        self._tool = tool
        self._new_context = context
        self._record = record
        self._gate = gate
        self._hooks = hooks
        self._ask = ask
        self._is_trusted = is_trusted
        self._note = note
        self._redact = redact

    async def __call__(self, command: str) -> str:
        """Run a command line, and give what it printed.

        Raises:
            UsageError: it may not be run.
        """
        context = self._new_context()
        call = ToolCall(call_uid=context.call_uid, name=self._tool.name, args={"command": command})
        try:
            prepared = await self._with_leave(call, context)
            await self._note(f"/{self._name} runs: {prepared.action.target}")
            outcome = await self._run(prepared, call.call_uid)
        except ToolError as error:
            raise UsageError(f"/{self._name}: `{command}` could not be run: {error}") from error
        return self._redact(outcome.text)

    async def _run(self, prepared: PreparedCall, call_uid: CallUid) -> ToolOutcome:
        """Run it; what it has changed is on record when this returns, also when it is stopped."""
        outcome: ToolOutcome | None = None
        try:
            outcome = await prepared.run()
            return outcome
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(RECORD_SECONDS):
                await self._record(call_uid, outcome)

    async def _with_leave(self, call: ToolCall, context: ToolContext) -> PreparedCall:
        prepared = await self._tool.prepare(call.args, context)
        decision = self._gate.decide(prepared.action)
        if self._hooks is not None and decision.verdict != "deny":
            ruling = await self._hooks.before_tool(call)
            if ruling.args is not None and ruling.args != call.args:
                prepared = await self._tool.prepare(ruling.args, context)
                decision = self._gate.decide(prepared.action)
            decision = with_hook(decision, ruling.verdict, ruling.reason)
        if not self._is_trusted:
            # Whatever the mode: a folder that came from elsewhere starts no program unseen.
            decision = with_hook(decision, "ask", "this folder is not trusted")
        await self._check(decision, prepared.action.target)
        return prepared

    async def _check(self, decision: PolicyDecision, command: str) -> None:
        refused = f"/{self._name}: `{command}` may not be run: "
        if decision.verdict == "deny":
            raise UsageError(refused + decision.reason)
        if decision.verdict == "allow" or (self._gate.when_asking == "yes" and self._is_trusted):
            return
        if self._ask is None:
            raise UsageError(refused + "it needs somebody's leave, and nobody is there to give it")
        request = ShellRequest(name=self._name, command=command, reason=decision.reason)
        if not await self._ask(request):
            raise UsageError(refused + "it was not allowed")
