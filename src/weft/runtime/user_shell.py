"""Command lines that the user types in the chat: `!ls`, and `!!ls` for what the model is not shown.

They pass hooks, rules that deny, the sandbox and the records as a call of the model does, so that a
rewind knows what they changed.  Only the permission is not asked: the user typed the line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from weft.events import Fact, SystemNote
from weft.loop import (
    DriverCall,
    More,
    PermissionGate,
    ToolCallEnd,
    ToolCallEnvironment,
    tip_after,
)
from weft.permissions import PermissionRule, PolicyDecision, ToolAction
from weft.runtime.command_shell import DriverShell, ran_text
from weft.state import SessionState

USER_SHELL = "user_shell"
PRIVATE_SHELL = "user_shell_private"
"""How the calls are recorded: screens tell them from those of the model by their names."""


class UserGate(PermissionGate):
    """The session's policy without its questions: what it denies stays denied."""

    def __init__(self, gate: PermissionGate) -> None:
        self._gate = gate

    def decide(self, action: ToolAction) -> PolicyDecision:
        decision = self._gate.decide(action)
        if decision.verdict == "deny":
            return decision
        return PolicyDecision("allow", "the user typed it", by="user")

    @property
    def read_rules(self) -> tuple[PermissionRule, ...]:
        return self._gate.read_rules

    @property
    def reads_lines(self) -> bool:
        return self._gate.reads_lines

    @property
    def when_asking(self) -> Literal["wait", "yes", "no"]:
        # Only a hook can still ask, and the user has answered by typing the line.
        return "yes"


class UserShell(DriverShell):
    """Runs what the user types behind `!`."""

    def __init__(
        self,
        environment: ToolCallEnvironment,
        *,
        to_model: bool,
        check_client: Callable[[], None],
    ) -> None:
        env = msgspec.structs.replace(environment, gate=UserGate(environment.gate))
        driver = DriverCall(record_as=USER_SHELL if to_model else PRIVATE_SHELL)
        super().__init__(env, driver, check_client)
        self._to_model = to_model

    async def __call__(self, command: str) -> None:
        """Run a command line; the model reads of it with the next message.

        Raises:
            UsageError: it may not be run, or could not.
        """
        end = await self.run(command, self._note_of(command) if self._to_model else None)
        ran_text(f"`{command}`", end)

    def _note_of(self, command: str) -> Callable[[ToolCallEnd], More]:
        def noted(end: ToolCallEnd) -> More:
            text = f"[The user ran a command:]\n$ {self._env.redact(command)}\n{end.result.text}"

            def more(state: SessionState, facts: Sequence[Fact]) -> Sequence[Fact]:
                if not end.has_run:
                    return ()
                # The place is taken inside the commit: a turn may have gone on meanwhile, and a
                # note behind an older node would change what the model was sent already.
                return (SystemNote(text=text, to_model=True, node=tip_after(state, facts)),)

            return more

        return noted
