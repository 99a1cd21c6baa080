"""Session hooks: which are run at an event, their input, and what their answers come to together.

Hooks of an event run one after the other, in the order in which they are written down; the first
that says no ends it.  A hook that changes a call's input is followed by all others judging the
input that will really run, those before it included, so that none is bypassed. What fails is
reported once for each hook and kind of failure, never again and never to a hook.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from weft.events import ErrorRaised, Fact, SystemNote
from weft.hooks.callback import call_back
from weft.hooks.config import HookCommand, HookTable
from weft.hooks.process import HookResult, run_hook
from weft.loop import HookRuling, Trigger, TurnHooks
from weft.messages import ToolCall, ToolResult
from weft.permissions import Verdict
from weft.workspace import Runner

ENDING_SECONDS: Final = 5.0
"""How long a hook may keep a session from ending."""

NOT_REPLACED: Final = (
    "a hook wants to replace the output of a tool, which is not supported; "
    "the turn ends before the model reads it"
)

# The strictest answer wins, whatever the order of the hooks; no opinion weighs least.
_SEVERITY: Final[dict[Verdict | None, int]] = {None: 0, "allow": 1, "ask": 2, "deny": 3}


class SessionHooks(TurnHooks):
    """Runs the hooks of one session."""

    def __init__(
        self,
        book: HookTable,
        *,
        session_id: str,
        project: str,
        runner: Runner,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._book = book
        self._session_id = session_id
        self._project = project
        self._runner = runner
        self._redact = redact
        self._reported: set[tuple[str, str, str]] = set()
        self.mode: Callable[[], str] = lambda: "default"
        """The permission mode that is in force; set by the owner of the session."""
        self.agent = ""
        """Of a session that works for another: what kind of agent it is."""
        self.has_begun = False
        """`SessionStart` was run in this process."""

    # -- a turn's events

    async def before_tool(self, call: ToolCall) -> HookRuling:
        hooks = self._book.of("PreToolUse", call.name)
        if not hooks:
            return HookRuling()
        return await _Round(self, hooks, call).ruling()

    async def before_asking(self, call: ToolCall, reason: str) -> HookRuling:
        return await self._consult("PermissionRequest", call.name, _call(call) | {"reason": reason})

    def wants_result(self, call: ToolCall) -> bool:
        book = self._book
        return bool(book.of("PostToolUse", call.name) or book.of("PostToolUseFailure", call.name))

    async def after_tool(self, call: ToolCall, result: ToolResult) -> HookRuling:
        response = {"text": result.text, "is_error": result.is_error, "status": result.status}
        hooks = self._book.of("PostToolUse", call.name)
        payload = _call(call) | {"tool_response": response}
        if result.is_error:
            # A callback hears of a failure by the event that is for failures, a program of the
            # user by both.
            hooks = [hook for hook in hooks if hook.callback is None]
            hooks += self._book.of("PostToolUseFailure", call.name)
            payload |= {"error": result.text}
        return await self._consult_all(hooks, payload)

    @property
    def wants_stop(self) -> bool:
        return bool(self._book.of(self._stop, self.agent))

    @property
    def _stop(self) -> str:
        return "SubagentStop" if self.agent else "Stop"

    async def before_stop(self, text: str, *, held_back: int) -> HookRuling:
        payload = {"stop_hook_active": held_back > 0, "last_assistant_message": text}
        return await self._consult(self._stop, self.agent, payload)

    async def before_compaction(self, trigger: Trigger, focus: str) -> HookRuling:
        payload = {"trigger": trigger, "custom_instructions": focus}
        return await self._consult("PreCompact", trigger, payload)

    async def after_compaction(self, trigger: Trigger, summary: str) -> HookRuling:
        return await self._consult("PostCompact", trigger, {"trigger": trigger, "summary": summary})

    # -- a session's events

    async def on_prompt(self, prompt: str) -> HookRuling:
        """Something was said to the session and is not accepted yet; `deny` keeps it out."""
        return await self._consult("UserPromptSubmit", "", {"prompt": prompt})

    async def on_start(self, source: str) -> HookRuling:
        """The first message of the session in this process: `startup` or `resume`."""
        return await self._consult("SessionStart", source, {"source": source})

    async def on_end(self, reason: str) -> None:
        """The session's life in this process is over; nothing can be put on record any more."""
        await self._consult("SessionEnd", reason, {"reason": reason}, at_most=ENDING_SECONDS)

    async def on_agent_start(self, prompt: str) -> HookRuling:
        """The session was given the task that it works on for another.

        What hooks add is for it to read.
        """
        return await self._consult("SubagentStart", self.agent, {"prompt": prompt})

    # -- running

    async def _consult(
        self, event: str, subject: str, payload: Mapping[str, Any], *, at_most: float | None = None
    ) -> HookRuling:
        """Run the hooks of an event, to the first that says no."""
        return await self._consult_all(self._book.of(event, subject), payload, at_most=at_most)

    async def _consult_all(
        self, hooks: list[HookCommand], payload: Mapping[str, Any], *, at_most: float | None = None
    ) -> HookRuling:
        answers: list[_HookAnswer] = []
        for hook in hooks:
            answers.append(await self.run(hook, payload, at_most=at_most))
            # Nothing that follows could allow it any more, and later hooks may have effects of
            # their own.
            if answers[-1].verdict == "deny":
                break
        return _together(answers)

    async def run(
        self, hook: HookCommand, payload: Mapping[str, Any], *, at_most: float | None = None
    ) -> _HookAnswer:
        """Run one hook, and take its answer."""
        if at_most is not None and hook.timeout_seconds > at_most:
            # A session that ends must not wait for minutes: its process may be about to be killed.
            hook = msgspec.structs.replace(hook, timeout_seconds=at_most)
        given = {
            "session_id": self._session_id,
            "cwd": self._project,
            "permission_mode": self.mode(),
            "hook_event_name": hook.event,
            **payload,
        }
        if self.agent:
            given |= {"agent_id": self._session_id, "agent_type": self.agent}
        if hook.callback is not None:
            return self._answer_of(hook, await call_back(hook, hook.callback, given))
        said = await run_hook(hook, given, runner=self._runner, project=self._project)
        return self._answer_of(hook, said)

    def _answer_of(self, hook: HookCommand, said: HookResult) -> _HookAnswer:
        if said.end == "fine":
            return self._fine(hook, said)
        reason = self._redact(said.reason).rstrip(".")
        if said.end == "blocked":
            return _HookAnswer(verdict="deny", reason=f"a hook blocked it: {reason}")
        facts = self._report_once(hook, said.end, reason)
        if said.end == "failed" or not hook.can_veto:
            return _HookAnswer(facts=facts)
        return _HookAnswer(
            verdict="deny",
            reason=f"the hook `{_name(hook)}` has to approve this, and it failed: {reason}",
            facts=facts,
        )

    def _fine(self, hook: HookCommand, said: HookResult) -> _HookAnswer:
        output, specific = said.output, said.output.specific
        if specific.decision is not None and specific.decision.wants_more:
            unread = HookResult(
                end="broken", reason="updatedPermissions of a hook are not supported"
            )
            return self._answer_of(hook, unread)
        # To pass the tool's own output on would show the model what the hook wants hidden; so the
        # turn ends before it is read.
        if specific.replaces_result:
            return _HookAnswer(verdict="deny", reason=NOT_REPLACED, halts=True)
        # As with other agents: plain output is context for the model at these two events, and
        # dropped at all others.
        spoken = said.text if hook.event in ("UserPromptSubmit", "SessionStart") else ""
        reason = specific.permission_decision_reason or output.reason
        args, halts = specific.updated_input, not output.goes_on
        if (decision := specific.decision) is not None:
            reason = decision.message or reason
            args = decision.updated_input if decision.updated_input is not None else args
            halts = halts or (decision.interrupt and decision.behavior == "deny")
        verdict = _verdict(said)
        facts: list[Fact] = []
        if output.system_message:
            facts.append(SystemNote(text=self._redact(output.system_message)))
        if not output.goes_on:
            verdict, reason = "deny", output.stop_reason or reason
        if verdict == "deny":
            reason = f"a hook blocked it: {reason}" if reason else "a hook blocked it"
        elif verdict is not None:
            reason = f"a hook decided: {reason}" if reason else "a hook decided"
        return _HookAnswer(
            verdict=verdict,
            reason=self._redact(reason).rstrip("."),
            args=args,
            context=self._redact(specific.additional_context or spoken),
            halts=halts,
            facts=tuple(facts),
        )

    def _report_once(self, hook: HookCommand, end: str, reason: str) -> tuple[Fact, ...]:
        # A hook that is broken fails with every call; one entry in the record says as much as a
        # thousand.
        failure = (hook.event, hook.command, end)
        if failure in self._reported:
            return ()
        self._reported.add(failure)
        message = f"the hook `{_name(hook)}` of {hook.event} failed: {reason}"
        return (ErrorRaised(message=message, where="hook", error=end),)


class _HookAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What one hook says."""

    verdict: Verdict | None = None
    reason: str = ""
    args: dict[str, Any] | None = None
    context: str = ""
    halts: bool = False
    facts: tuple[Fact, ...] = ()


class _Round:
    """The hooks before one call, until each has judged what will really run, or one says no."""

    def __init__(self, session: SessionHooks, hooks: list[HookCommand], call: ToolCall) -> None:
        self._session = session
        self._hooks = hooks
        self._call = call
        self._args = call.args
        self._answers: dict[int, _HookAnswer] = {}
        self._judged: dict[int, dict[str, Any]] = {}
        """The input that each hook has judged last, or made itself."""

    async def ruling(self) -> HookRuling:
        for number in range(len(self._hooks)):
            answer = await self._ask(number)
            if answer.verdict == "deny":
                return self._joined()
            if answer.args is not None:
                self._args = self._judged[number] = answer.args
        for number in range(len(self._hooks)):
            # A hook that answered before the input was changed has answered about something else.
            # What it would change now is not taken, for it changed or left it once; whether it says
            # no is.
            if self._judged[number] != self._args and (await self._ask(number)).verdict == "deny":
                break
        return self._joined()

    async def _ask(self, number: int) -> _HookAnswer:
        payload = _call(self._call) | {"tool_input": self._args}
        answer = await self._session.run(self._hooks[number], payload)
        # After the run and before its own change is taken: this is what the hook has seen.
        self._judged[number] = self._args
        before = self._answers.get(number)
        if before is not None:
            answer = msgspec.structs.replace(
                answer, facts=before.facts + answer.facts, context=before.context or answer.context
            )
        self._answers[number] = answer
        return answer

    def _joined(self) -> HookRuling:
        ruling = _together(list(self._answers.values()))
        return msgspec.structs.replace(ruling, args=self._args)


def _together(answers: list[_HookAnswer]) -> HookRuling:
    """The strictest answer counts; what is to be said and kept is added up."""
    if not answers:
        return HookRuling()
    strictest = max(answers, key=lambda answer: _SEVERITY[answer.verdict])
    return HookRuling(
        verdict=strictest.verdict,
        reason=strictest.reason,
        args=next((answer.args for answer in reversed(answers) if answer.args is not None), None),
        context="\n\n".join(answer.context for answer in answers if answer.context),
        halts=any(answer.halts for answer in answers),
        facts=tuple(fact for answer in answers for fact in answer.facts),
    )


def _verdict(said: HookResult) -> Verdict | None:
    output, specific = said.output, said.output.specific
    if specific.decision is not None:
        return specific.decision.behavior
    if specific.permission_decision is not None:
        decided = specific.permission_decision
        return None if decided == "defer" else decided
    if output.decision is None:
        return None
    return "deny" if output.decision in ("block", "deny") else "allow"


def _call(call: ToolCall) -> dict[str, Any]:
    return {"tool_name": call.name, "tool_input": call.args, "tool_use_id": call.call_uid}


def _name(hook: HookCommand) -> str:
    return hook.command if len(hook.command) <= 80 else f"{hook.command[:80]}…"
