"""The check of a step: a shell command that a plan names, run like a tool call of the model.

Hooks, rules, limits and records are those of `weft.loop.tool_calls`; here the call is made and its
end is read.  A check that a crash cut short is settled by recovery like any effect, which tells the
user; unlike the model's calls it is then run again, because the plan asks for it, and a note says
so.
"""

from __future__ import annotations

import msgspec

from weft.ids import CallUid, NodeId
from weft.loop import DriverCall, PendingFacts, ToolCallEnd, ToolCallEnvironment, run_one
from weft.messages import ToolCall

NAME = "check"
"""The name of such a call in the log, which tells it from the model's own calls of `shell`."""
SHELL = "shell"
SECONDS = 600.0
"""How long a check may take: test suites run longer than what a model starts between two
answers.
"""


class CheckVerdict(msgspec.Struct, frozen=True):
    """What a check came to."""

    passed: bool
    text: str
    halted: str = ""
    """Why a hook wants the turn to end; empty when none does."""


class StepCheck:
    """One run of one step's check."""

    def __init__(
        self,
        environment: ToolCallEnvironment,
        pending: PendingFacts,
        command: str,
        call_uid: CallUid,
        node: NodeId,
    ) -> None:
        """`environment.tools` has the session's shell; `pending` takes the result, for the commit
        that ends the step."""
        self._env = environment
        self._pending = pending
        self._command = command
        self._call_uid = call_uid
        self._node = node

    async def run(self) -> CheckVerdict:
        """Run the command if it is permitted."""
        args = {"command": self._command, "timeout_seconds": SECONDS}
        call = ToolCall(call_uid=self._call_uid, name=SHELL, args=args)
        driver = DriverCall(record_as=NAME, intent_note=self._note)
        end = await run_one(self._env, call, self._node, driver, self._pending)
        return CheckVerdict(not end.result.is_error, self._text(end), end.halted)

    def _text(self, end: ToolCallEnd) -> str:
        text = end.result.text
        return text if end.has_run else f"The check `{self._command}` was not run. {text}"

    def _note(self, target: str) -> str:
        holder = self._env.journal.state.tree.nodes.get(self._node)
        ran_before = holder is not None and self._call_uid in holder.results
        return f"The check `{target}` is run again." if ran_before else ""
