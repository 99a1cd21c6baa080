"""A command of the user's that runs in the sandbox or not at all, and whose changes are reviewed
before they are the project's.

It passes hooks, rules that deny and the records as a line behind `!` does, so that a rewind takes
back what it changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import msgspec

from weft.errors import FinalToolError, UsageError
from weft.ids import CallUid
from weft.loop import ToolCallEnvironment
from weft.runtime.user_shell import UserShell
from weft.tools import ToolContext
from weft.tools.builtin.shell import ShellTool
from weft.workspace import ChangeReview, ProcessCommand, Runner, RunResult

NO_SANDBOX: Final = "there is no sandbox to run it in: {}; `weft doctor` says more"
SWITCHED_OFF: Final = "it is switched off (sandbox.mode)"


class ReviewedRunner(Runner):
    """Runs one command of the user's: it has all the time, and its changes are reviewed."""

    def __init__(
        self, inner: Runner, review: ChangeReview, on_output: Callable[[str], None]
    ) -> None:
        self._inner = inner
        self._review = review
        self._on_output = on_output
        self.result: RunResult | None = None

    def which(self, program: str, *, not_below: str = "") -> str | None:
        return self._inner.which(program, not_below=not_below)

    async def is_sandboxed(self) -> bool:
        return await self._inner.is_sandboxed()

    async def why_unconfined(self) -> str:
        return await self._inner.why_unconfined()

    async def run(
        self, command: ProcessCommand, on_output: Callable[[str], None] | None = None
    ) -> RunResult:
        if command.only_reads:
            return await self._inner.run(command, on_output)
        if not await self.is_sandboxed():
            raise FinalToolError(NO_SANDBOX.format(await self.why_unconfined() or SWITCHED_OFF))
        command = msgspec.structs.replace(command, review=self._review, timeout_seconds=math.inf)
        self.result = await self._inner.run(command, self._on_output)
        return self.result


class _PatientShell(ShellTool):
    timeout_seconds = math.inf


class ReviewedRun:
    """Runs a command in the sandbox of a session."""

    def __init__(
        self,
        environment: ToolCallEnvironment,
        *,
        review: ChangeReview,
        on_output: Callable[[str], None],
        check_client: Callable[[], None],
    ) -> None:
        self._context = environment.tool_context
        self._review, self._on_output = review, on_output
        self._runner: ReviewedRunner | None = None
        own = msgspec.structs.replace(
            environment, tools={"shell": _PatientShell()}, tool_context=self._reviewed
        )
        self._shell = UserShell(own, to_model=True, check_client=check_client)

    def _reviewed(self, call_uid: CallUid) -> ToolContext:
        context = self._context(call_uid)
        self._runner = ReviewedRunner(context.runner, self._review, self._on_output)
        return msgspec.structs.replace(context, runner=self._runner)

    async def __call__(self, command: str) -> RunResult:
        """Run it; gives how it ended.

        Raises:
            UsageError: there is no sandbox, or it may not be run.
        """
        runner = self._context(CallUid("")).runner
        if not await runner.is_sandboxed():
            raise UsageError(NO_SANDBOX.format(await runner.why_unconfined() or SWITCHED_OFF))
        await self._shell(command)
        if self._runner is None or self._runner.result is None:
            raise UsageError(f"`{command}` was not run")
        return self._runner.result
