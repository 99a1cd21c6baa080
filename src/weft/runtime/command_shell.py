"""Shell lines of Markdown commands: run like a tool call of the model, and recorded like one.

Hooks, rules, limits and records are those of `weft.loop.tool_calls`.  Three things differ, because
no turn need be running: facts are appended by the session's actor itself, the user is asked by the
client that expands the command and not by a request in the log, and a folder that is not trusted
has each of its lines asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal

import anyio
import msgspec

from weft.errors import SessionStopped, UsageError
from weft.events import Fact, PermissionResolved, QuestionAnswered, Signal, Status
from weft.ids import CallUid, RequestId, new_call_uid
from weft.loop import (
    UNANSWERED,
    Build,
    CallJournal,
    DriverCall,
    More,
    PendingFacts,
    PermissionAnswer,
    PermissionApprover,
    PermissionGate,
    ReadyCall,
    ToolCallEnd,
    ToolCallEnvironment,
    run_one,
    stopped,
    tip_after,
    within,
)
from weft.messages import ToolCall
from weft.permissions import PermissionRule, PolicyDecision, ToolAction
from weft.project.markdown_commands import Ask, ShellRequest
from weft.session import SessionActor
from weft.state import SessionState

RECORD_SECONDS = 5.0
"""How long the record of a command that was stopped may take: the caller waits for it,
cancelled.
"""
SHELL = "shell"


class ActorJournal(CallJournal):
    """The log of a session, for calls that no turn makes."""

    def __init__(self, actor: SessionActor) -> None:
        self._actor = actor

    @property
    def state(self) -> SessionState:
        return self._actor.state

    async def commit(self, build: Build) -> Sequence[Fact]:
        return await self._actor.append(build)

    def signal(self, signal: Signal) -> None:
        self._actor.log.signal(signal)

    def status(self, status: Status) -> None:
        # The status is that of the turn.  A shell line may run beside one, and must not hide it.
        pass

    async def resolution(self, request_id: RequestId) -> PermissionResolved | QuestionAnswered:
        return await self._actor.resolution(request_id)

    async def until(self, holds: Callable[[SessionState], bool]) -> None:
        await self._actor.until(holds)


class CommandGate(PermissionGate):
    """The session's policy, for a command that may come from a folder the user does not trust."""

    def __init__(self, gate: PermissionGate, *, is_trusted: bool, can_ask: bool) -> None:
        self._gate = gate
        self._is_trusted = is_trusted
        self._can_ask = can_ask

    def decide(self, action: ToolAction) -> PolicyDecision:
        decision = self._gate.decide(action)
        if self._is_trusted or decision.verdict == "deny":
            return decision
        # Whatever the mode: a folder that came from elsewhere starts no program unseen.  Firm, so
        # that no hook can answer in the user's place.
        return PolicyDecision("ask", "this folder is not trusted", is_firm=True)

    @property
    def read_rules(self) -> tuple[PermissionRule, ...]:
        return self._gate.read_rules

    @property
    def reads_lines(self) -> bool:
        return self._gate.reads_lines

    @property
    def when_asking(self) -> Literal["wait", "yes", "no"]:
        if self._is_trusted and self._gate.when_asking == "yes":
            return "yes"
        return "wait" if self._can_ask else "no"


class ClientApprover(PermissionApprover):
    """Asks by the callback of the client that expands the command."""

    def __init__(self, name: str, ask: Ask, environment: ToolCallEnvironment) -> None:
        self._name = name
        self._ask = ask
        self._env = environment

    async def ask(self, ready: ReadyCall, decision: PolicyDecision) -> PermissionAnswer:
        command = ready.prepared.action.target
        request = ShellRequest(name=self._name, command=command, reason=decision.reason)
        seconds = self._env.limits.ask_seconds
        if seconds is None:
            allowed: bool | None = await self._ask(request)
        else:
            allowed = await within(seconds, self._env.sleep, lambda: self._ask(request))
        if allowed is None and seconds is not None:
            return PermissionAnswer(
                allowed=False, text=f"Denied: {UNANSWERED.format(seconds=seconds)}."
            )
        return PermissionAnswer(allowed=bool(allowed), text="Denied by the user.")


class DriverShell:
    """Runs command lines that no answer of the model holds, and puts them on record."""

    def __init__(
        self,
        environment: ToolCallEnvironment,
        driver: DriverCall,
        check_client: Callable[[], None],
    ) -> None:
        """`environment` is the session's own, with its shell among the tools; `check_client` raises
        where the client may only read."""
        self._env = environment
        self._driver = driver
        self._check_client = check_client

    async def run(self, command: str, more: Callable[[ToolCallEnd], More] | None) -> ToolCallEnd:
        """Run a command line; `more` makes facts of its end, which are stored together with it.

        All that it changed is on record when this returns, also when it is cancelled.
        """
        self._check_client()
        uid = new_call_uid(self._env.clock.now())
        call = ToolCall(call_uid=uid, name=SHELL, args={"command": command})
        pending = PendingFacts(self._env.journal)
        # No node has the call: a turn that begins and ends meanwhile must not end it in the log.
        tip = tip_after(self._env.journal.state, ())
        driver = msgspec.structs.replace(self._driver, notes_at=tip)
        try:
            end = await run_one(self._env, call, None, driver, pending)
        except BaseException:
            await self._record_stopped(uid, pending)
            raise
        await self._commit(pending, more(end) if more is not None else None)
        return end

    async def _record_stopped(self, uid: CallUid, pending: PendingFacts) -> None:
        # Shielded, because the command has taken effect, whatever became of the caller; and
        # bounded, because a store that does not answer must not hold a cancelled task for ever.
        more = stopped(self._env, pending, lambda call_uid: call_uid == uid)
        # A session that has stopped meanwhile takes nothing more: recovery will find the intent.
        record = anyio.move_on_after(RECORD_SECONDS, shield=True)
        with suppress(SessionStopped), record:
            await self._commit(pending, more)

    async def _commit(self, pending: PendingFacts, more: More | None = None) -> None:
        journal = self._env.journal
        await journal.commit(lambda state: pending.take(state, more, drop_draft=False))


class CommandShell(DriverShell):
    """Runs the shell lines of one Markdown command."""

    def __init__(
        self,
        name: str,
        environment: ToolCallEnvironment,
        ask: Ask | None,
        *,
        is_trusted: bool,
        check_client: Callable[[], None],
    ) -> None:
        gate = CommandGate(environment.gate, is_trusted=is_trusted, can_ask=ask is not None)
        env = msgspec.structs.replace(environment, gate=gate)
        driver = DriverCall(
            approver=None if ask is None else ClientApprover(name, ask, env),
            intent_note=lambda target: f"/{name} runs: {target}",
        )
        super().__init__(env, driver, check_client)
        self._name = name

    async def __call__(self, command: str) -> str:
        """Run a command line, and give what it printed, as the model would read it.

        Raises:
            UsageError: it may not be run, or could not.
        """
        end = await self.run(command, None)
        return ran_text(f"/{self._name}: `{command}`", end)


def ran_text(about: str, end: ToolCallEnd) -> str:
    """What a command printed.

    Raises:
        UsageError: it was not run.
    """
    if end.halted:
        raise UsageError(f"{about}: a hook says to stop: {end.halted}")
    if end.has_run:
        return end.result.text
    refused = end.result.status in ("denied", "invalid", "aborted")
    raise UsageError(f"{about} {'was not run' if refused else 'failed'}. {end.result.text}")
