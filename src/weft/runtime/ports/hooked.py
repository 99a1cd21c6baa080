"""The port to a session with hooks: each message passes them before it reaches the mailbox.

Whatever the user says reaches the model by a command: a prompt, steering, a follow-up, another text
for one that waits or that was said. All of them pass here, in the process that has the session,
wherever they come from; so none gets round a hook.  The hooks run *before* the command is handed to
the actor: its mailbox must not wait for a program, and what a hook refuses was never accepted.  One
message is looked at after the other, so they keep their order; all else goes past at once.

A repeated `input_id` runs no hook again and gets the first answer: what hooks add is no part of
what was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import anyio
import msgspec

from weft.config.settings import Config
from weft.errors import HookRefused
from weft.events import Fact, SystemNote
from weft.hooks.config import HookTable, read_hooks
from weft.hooks.session_hooks import SessionHooks
from weft.loop import Commit, tip_after
from weft.messages import File, Part, Text
from weft.project.trust import ProjectFiles
from weft.runtime.ports.local import HookProvider, LocalPort
from weft.session import Command, ContinueTurn, EditNode, EditQueued, SendPrompt, SessionActor
from weft.state import SessionState
from weft.workspace import Runner

T = TypeVar("T")
CommandT = TypeVar("CommandT", bound=Command[Any])

CONTEXT_NAME = "context from a hook"

_MESSAGES: Final[tuple[type[Command[Any]], ...]] = (SendPrompt, EditQueued, EditNode, ContinueTurn)
"""The commands by which words reach the model."""


class HookedPort(LocalPort):
    """The way to an actor of this process, through its hooks."""

    def __init__(self, actor: SessionActor, hooks: SessionHooks, agent: str = "") -> None:
        super().__init__(actor)
        self._hooks = hooks
        self._one_by_one = anyio.Lock()
        hooks.mode = lambda: actor.gate.mode
        hooks.agent = agent

    async def call(self, command: Command[T]) -> T:
        """Have a command carried out.  A cancel while a hook runs leaves nothing behind; after that
        it ends only the wait.

        Raises:
            HookRefused: a hook does not let the message pass; nothing was sent.
        """
        if not isinstance(command, _MESSAGES):
            return await super().call(command)
        async with self._one_by_one:
            added = await self._added_to(command)
            return await super().call(_with_context(command, added) if added else command)

    async def close(self, why: str, *, suspends: bool = False) -> None:
        await super().close(why, suspends=suspends)
        if self._hooks.has_begun:
            # Once per life of the session in this process, and only where its start was seen.
            self._hooks.has_begun = False
            await self._hooks.on_end(why)

    async def _added_to(self, command: Command[Any]) -> str:
        """What hooks add to a message that they let pass; only a prompt can carry it."""
        # A command that will be refused must not run the user's programs first.
        self.actor.clients.check(command)
        if self._was_carried_out(command):
            return ""
        if self._hooks.agent and not command.client:
            return await self._added_to_task(command)
        if not self._is_said(command):
            return ""
        await self._begin()
        if not isinstance(command, SendPrompt | EditQueued | EditNode):
            return ""
        ruling = await self._hooks.on_prompt(_text(command.parts))
        await self._put_on_record(ruling.facts)
        if ruling.verdict == "deny":
            raise HookRefused(f"the message was not sent: {ruling.reason}")
        return ruling.context if isinstance(command, SendPrompt) else ""

    async def _added_to_task(self, command: Command[Any]) -> str:
        """What a model sends to its agent is not the user's prompt, but the agent's hooks may add
        to it.
        """
        if not isinstance(command, SendPrompt):
            return ""
        ruling = await self._hooks.on_agent_start(_text(command.parts))
        await self._put_on_record(ruling.facts)
        return ruling.context

    def _was_carried_out(self, command: Command[Any]) -> bool:
        return command.input_id is not None and command.input_id in self.actor.state.inputs.causes

    def _is_said(self, command: Command[Any]) -> bool:
        """False where an answer of the model is edited, not a message of the user."""
        if not isinstance(command, EditNode):
            return True
        node = self.actor.state.tree.nodes.get(command.node)
        return node is not None and node.role == "user"

    async def _begin(self) -> None:
        """Run what is to be run when the session is spoken to for the first time in this
        process.
        """
        if self._hooks.has_begun:
            return
        is_new = self.actor.state.tree.head is None
        ruling = await self._hooks.on_start("startup" if is_new else "resume")
        self._hooks.has_begun = True
        facts: list[Fact] = [*ruling.facts]
        if ruling.context:
            facts.append(SystemNote(text=ruling.context, to_model=True))
        await self._put_on_record(facts)

    async def _put_on_record(self, facts: Sequence[Fact]) -> None:
        if not facts:
            return

        def build(state: SessionState) -> Commit:
            # Found when it is written: a turn may have moved the line while the hook ran.
            here = tip_after(state, ())
            return Commit(
                facts=tuple(
                    msgspec.structs.replace(fact, node=here)
                    if isinstance(fact, SystemNote)
                    else fact
                    for fact in facts
                )
            )

        await self.actor.append(build)


def _with_context(command: CommandT, added: str) -> CommandT:
    return msgspec.structs.replace(command, context=(File(name=CONTEXT_NAME, text=added),))


def _text(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text | File))


class PortHooks(HookProvider):
    """The hooks of one session, as the manager holds them."""

    def __init__(self, hooks: SessionHooks) -> None:
        self._hooks = hooks

    @property
    def of_turns(self) -> SessionHooks:
        return self._hooks

    def port_to(self, actor: SessionActor, agent: str) -> LocalPort:
        return HookedPort(actor, self._hooks, agent)


class HookSource:
    """All hooks of an application, and those of each session."""

    def __init__(
        self,
        config: Config,
        seen: ProjectFiles | None,
        *,
        runner: Runner,
        redact: Callable[[str], str],
        more: HookTable | None = None,
    ) -> None:
        """`more` are the hooks of a program that drives us; it may hand them over later."""
        self.book = HookTable(hooks_of_settings(config, seen).all(), more=more)
        self._runner = runner
        self._redact = redact

    def renew(self, config: Config, seen: ProjectFiles | None) -> None:
        """Take the hooks that the settings name now; sessions that are open heed them at once."""
        self.book.replace(hooks_of_settings(config, seen).all())

    def of(self, session_id: str, project: str) -> PortHooks:
        """The hooks of one session."""
        return PortHooks(
            SessionHooks(
                self.book,
                session_id=session_id,
                project=project,
                runner=self._runner,
                redact=self._redact,
            )
        )


def hooks_of_settings(config: Config, seen: ProjectFiles | None) -> HookTable:
    """The hooks that the settings name; those of a project are bound to the scripts that they were
    trusted with.

    Raises:
        UsageError: one of them cannot be read.
    """
    hooks = [
        hook for layer in config.layers("hooks") for hook in read_hooks(layer.value, layer.source)
    ]
    if seen is None:
        return HookTable(hooks)
    return HookTable(
        msgspec.structs.replace(hook, scripts=seen.scripts_of(hook.command))
        if hook.source.startswith(f"{seen.path}/")
        else hook
        for hook in hooks
    )
