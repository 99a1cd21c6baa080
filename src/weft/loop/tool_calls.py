"""Tool calls: checked, judged, permitted, intended, run and recorded.

This is the only way to run a tool.  A turn runs the calls of an answer by a `ToolCallBatch`; a
driver that has one call of its own (an architect's step check, the shell line of a Markdown
command) uses `run_one`, so that hooks, rules, limits and records hold for it as well.

Calls without an effect that stand next to each other run together; each one with an effect runs
alone, in the model's order.  An effect is committed as intended before it starts; its result goes
into the next append, which is the intent of the next effect or the start of the next model call.
An answer whose calls are all pure needs no append of its own.  Calls that sessions of their own
work on run together too, once all of them are intended.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Literal, TypeVar

import anyio
import anyio.abc
import msgspec

from weft import faults
from weft.actors import without_foreign_cancel
from weft.errors import (
    BadArguments,
    FinalToolError,
    SessionStopped,
    StoreError,
    ToolError,
    did_you_mean,
)
from weft.events import (
    CallPermission,
    Fact,
    QuestionAnswered,
    QuestionAsked,
    SystemNote,
    ToolComplete,
    ToolExecuting,
)
from weft.faults import FailPointPair
from weft.ids import BlobId, CallUid, NodeId, RequestId, new_id
from weft.loop.approval import PermissionApprover, PermissionAsk, ReadyCall
from weft.loop.base import Commit, ProjectFacts, ToolCallEnvironment
from weft.loop.hooks import HookRuling, TurnHooks
from weft.loop.pending_facts import More, PendingFacts
from weft.loop.tool_results import (
    NOT_RUN,
    STOPPED_WHILE_RUNNING,
    refused,
    settled,
    sound_forwarding,
    sound_outcome,
    sound_preparation,
    touched_facts,
    with_file_note,
)
from weft.messages import ToolCall, ToolResult, clean_text
from weft.permissions import PolicyDecision, with_hook
from weft.state import SessionState
from weft.tools import DelegateTool, ForwardingTool, PreparedCall, Tool, ToolOutcome, UserQuestion

logger = logging.getLogger(__name__)

T = TypeVar("T")

_INTENT = FailPointPair("loop.intent")
_QUESTION = FailPointPair("loop.question")
_TOOL_STARTS = faults.point("loop.tool.before_run")
_TOOL_ENDED = faults.point("loop.tool.after_run")
_BETWEEN = faults.point("loop.tool.between")
_TAKE_BACK_SECONDS: Final = 2.0
"""How long the end of a call may wait until a question of it is closed."""


CHANGES = 5
"""How often the input of one call may be changed; hooks and answers that never agree must come to
an end."""
A_HOOK = "A hook"
THE_USER = "The user"
NO_ONE_TO_ASK = "Denied: it needs the user's permission, and there is no one to ask."


class ReplacedInput(msgspec.Struct, frozen=True, kw_only=True):
    """Another input for a call."""

    args: dict[str, Any]
    by: str
    """Who changed it, as the model reads it."""
    is_permitted: bool = False
    """It comes from the user, who can also allow it: it is judged, but not asked about."""


class DriverCall(msgspec.Struct, frozen=True, kw_only=True):
    """How a call that no answer of the model holds goes on record, and how it is asked about."""

    notes_at: NodeId | None = None
    """Where the model reads what hooks say, for a call that belongs to no node."""
    record_as: str = ""
    """The tool's name in the log and in requests for permission; empty: the tool's own."""
    approver: PermissionApprover | None = None
    """Asks the user; None: a request in the log, like those of a turn."""
    intent_note: Callable[[str], str] = lambda target: ""
    """A note for the user that is stored with the intent, made of what the call works on."""


class ToolCallEnd(msgspec.Struct, frozen=True, kw_only=True):
    """What one call came to."""

    result: ToolResult
    has_run: bool
    """The tool ran and gave an outcome, be it a failure; false when it was refused or broke."""
    halted: str
    """Why a hook wants everything to end here; empty when none does."""


class ToolCallBatch:
    """The calls of one answer."""

    def __init__(
        self,
        environment: ToolCallEnvironment,
        pending: PendingFacts,
        node: NodeId | None,
        driver: DriverCall | None = None,
    ) -> None:
        """`driver` is given for a call of a driver's own.  Its `node` may be None: then no turn has
        made the call, and none ends it.
        """
        self._env = environment
        self._pending = pending
        # The log's format has a node for every call.  The empty id is no node: folds pass it over.
        self._node = node or NodeId("")
        self._driver = driver
        self._notes_at = node or (driver.notes_at if driver is not None else None)
        self._own = driver or DriverCall()
        self._permission = self._own.approver or PermissionAsk(
            environment, pending, self._node, self._own.record_as
        )
        self._allowed_by: dict[CallUid, str] = {}
        """The rule that allowed a call without a question; screens name it."""
        self._permissions: dict[CallUid, CallPermission] = {}
        self._gave_outcome: set[CallUid] = set()
        self.invalid = 0
        """Calls that could not be acted on: unknown tools, malformed arguments."""
        self.ran = 0
        """Calls that were understood, whatever came of them."""
        self.results: dict[CallUid, ToolResult] = {}
        """What each call came to."""
        self.halted = ""
        """Why a hook wants the turn to end; empty when none does."""

    def end_of(self, call_uid: CallUid) -> ToolCallEnd:
        """What a call came to that `run` has settled."""
        return ToolCallEnd(
            result=self.results[call_uid],
            has_run=call_uid in self._gave_outcome,
            halted=self.halted,
        )

    async def run(self, calls: tuple[ToolCall, ...]) -> None:
        """Settle every call; the results are pending afterwards."""
        allowed, beyond = calls[: self._env.limits.calls], calls[self._env.limits.calls :]
        # Only neighbours form a group: a read that stands behind a write may be there to see what
        # was written, so the model's order holds between groups.
        for manner, group in itertools.groupby(allowed, key=self._manner):
            if manner == "together":
                await self._run_together(list(group))
            elif manner == "beside":
                await self._run_concurrently(list(group))
            else:
                for call in group:
                    await self._run_alone(call)
                    _BETWEEN.hit()
        # Refused and not dropped: vendors do not accept a history in which a call has no result.
        for call in beyond:
            self._refuse(
                call,
                f"Refused: more than {self._env.limits.calls} calls in one answer.",
                status="invalid",
            )

    def leave(self, calls: Sequence[ToolCall], why: str) -> None:
        """Settle calls that are not run."""
        for call in calls:
            self._refuse(call, why, status="aborted")

    def _tool(self, name: str) -> Tool | None:
        tools = self._env.tools
        if (tool := tools.get(name)) is not None:
            return tool
        from weft.permissions import tool_named_now  # models mostly name what there is

        return tools.get(tool_named_now(name))

    def _manner(self, call: ToolCall) -> Literal["together", "beside", "alone"]:
        tool = self._tool(call.name)
        if isinstance(tool, DelegateTool):
            return "beside"
        return "together" if tool is not None and tool.effect == "pure" else "alone"

    # -- one after the other

    async def _run_alone(self, call: ToolCall) -> None:
        for ready in await self._all_ready([call]):
            await self._run_intended(ready)

    async def _run_intended(self, ready: ReadyCall) -> None:
        await self._intend(ready)
        outcome, duration_ms = await self._execute(ready)
        try:
            outcome = await self._with_report(ready, outcome)
        finally:
            # Also when the turn is aborted while it waits for the report: the effect has happened.
            self._record(ready.call, outcome, duration_ms)
        await self._tell_hooks([ready])

    async def _with_report(self, ready: ReadyCall, outcome: ToolOutcome) -> ToolOutcome:
        """The outcome, with what language servers say of the files that the call changed."""
        reports = self._env.edit_reports
        if reports is None or not outcome.touched:
            return outcome
        waits = ready.prepared.action.kind == "edit"
        report = reports.after_change(outcome.touched, waits=waits and self._driver is None)
        said = "" if report is None else await report
        return outcome if self._driver is not None else self._extended(outcome, said)

    def _extended(self, outcome: ToolOutcome, report: str) -> ToolOutcome:
        if not report:
            return outcome
        return msgspec.structs.replace(outcome, text=f"{outcome.text}\n{self._env.redact(report)}")

    async def _intend(self, *ready: ReadyCall) -> None:
        """Make the intents durable, together with all that is noted."""
        # The append must be over before anything runs: an effect without an intent on record could
        # not be distinguished from a call that never started, and recovery would run it a second
        # time.
        await self._note_user_edits()
        for each in ready:
            self._note_intent(each)
        await self._pending.commit(_INTENT)

    async def _note_user_edits(self) -> None:
        """What changed before the first effect since the last snapshot is no work of this
        session."""
        snapshots, state = self._env.snapshots, self._env.journal.state
        if snapshots is not None and not state.files.had_effect:
            self._pending.note_commit(await snapshots.before_effect(state))

    def _note_intent(self, ready: ReadyCall) -> None:
        if text := self._own.intent_note(ready.prepared.action.target):
            self._pending.note(SystemNote(text=clean_text(text), node=self._notes_at))
        self._pending.note(
            ToolExecuting(
                call_uid=ready.call.call_uid,
                node=self._node,
                tool_name=self._own.record_as or ready.call.name,
                target=ready.prepared.action.target,
                args=ready.call.args,
                effect=ready.tool.effect,
                attempt=self._attempt(ready.call.call_uid),
                pre_hashes=ready.prepared.pre_hashes,
                post_hashes=ready.prepared.post_hashes,
                pre_modes=ready.prepared.pre_modes,
                permission=self._permissions.get(ready.call.call_uid),
            ),
            *ready.prepared.facts,
            blobs=ready.prepared.keeps,
        )

    def _attempt(self, call_uid: CallUid) -> int:
        """Which attempt at a call this is; a driver may repeat one that a crash cut short."""
        state = self._env.journal.state
        if (earlier := state.turn.intents.get(call_uid)) is not None:
            return earlier.attempt + 1
        holder = state.tree.nodes.get(self._node)
        return 2 if holder is not None and call_uid in holder.results else 1

    # -- side by side

    async def _run_together(self, calls: list[ToolCall]) -> None:
        await self._run_all(await self._all_ready(calls))

    async def _run_concurrently(self, calls: list[ToolCall]) -> None:
        ready = await self._all_ready(calls)
        if not ready:
            return
        await self._intend(*ready)
        await self._run_all(ready)

    async def _run_all(self, ready: list[ReadyCall]) -> None:
        await self._run_each(ready)
        await self._tell_hooks(ready)

    async def _run_each(self, ready: list[ReadyCall]) -> None:
        waits = [each for each in ready if each.prepared.wait is not None]
        await self._run_side_by_side([each for each in ready if each.prepared.wait is None])
        # Last, and one after the other: what the others came to goes on record before the turn
        # waits, for that may take days.
        for each in waits:
            await self._run_wait(each)

    async def _run_side_by_side(self, ready: list[ReadyCall]) -> None:
        if len(ready) == 1:
            self._record(ready[0].call, *await self._finish_calls(ready[0]))
            return

        async def run_one(each: ReadyCall) -> None:
            # Noted the moment it ends: when the turn is aborted and another call does not let go,
            # this one keeps its result.
            self._record(each.call, *await self._finish_calls(each))

        async with anyio.create_task_group() as group:
            for each in ready:
                group.start_soon(run_one, each)

    # -- checking and permission

    async def _all_ready(self, calls: list[ToolCall]) -> list[ReadyCall]:
        """The calls that may run.  Once the turn is to end none may, also of those that had
        permission before."""
        ready: list[ReadyCall] = []
        # One after the other, also for calls that then run together: the user is shown one request
        # at a time, and "always" in answer to the first may settle the second.
        for call in calls:
            if self.halted:
                self._refuse(call, NOT_RUN, status="aborted")
            elif (each := await self._make_ready(call)) is not None:
                ready.append(each)
        if not self.halted:
            return ready
        for each in ready:
            self._refuse(each.call, NOT_RUN, status="aborted")
        return []

    async def _make_ready(self, call: ToolCall) -> ReadyCall | None:
        """A call that may run; None when it has been settled otherwise."""
        tool = self._tool(call.name)
        if tool is None:
            self._refuse_invalid(call, self._unknown_tool(call.name))
            return None
        if call.raw_args:
            self._refuse_invalid(
                call,
                "The arguments are not a JSON object, so nothing was run. "
                f"They began: {call.raw_args[:500]}",
            )
            return None
        shows_input = self._driver is not None
        if isinstance(tool, ForwardingTool):
            found = await self._forwarded(call, tool)
            if found is None:
                return None
            # The log has its arguments only inside those of the call that was made.
            (call, tool), shows_input = found, True
        # Before it is prepared: what a command could read is judged by the rules then.
        if self._env.reach_rules is not None:
            await self._env.reach_rules()
        prepared = await self._prepare(call, tool)
        if prepared is None:
            return None
        ready = ReadyCall(call=call, tool=tool, prepared=prepared, shows_input=shows_input)
        return await self._permitted(ready)

    async def _forwarded(
        self, call: ToolCall, tool: ForwardingTool
    ) -> tuple[ToolCall, Tool] | None:
        """The call that is meant by one; None when it was refused."""
        try:
            meant, args = await self._contained(
                tool, lambda: tool.forwarded(call.args), sound_forwarding
            )
        except (BadArguments, ToolError) as error:
            await self._record_unprepared(call, error)
            return None
        return msgspec.structs.replace(call, name=meant.name, args=args), meant

    async def _prepare(self, call: ToolCall, tool: Tool) -> PreparedCall | None:
        context = self._env.tool_context(call.call_uid)
        ask = partial(self._ask_in_call, call) if self._can_ask else None
        context = msgspec.structs.replace(context, node=self._node or None, ask=ask)
        try:
            prepared = await self._contained(
                tool, lambda: tool.prepare(call.args, context), sound_preparation
            )
        except (BadArguments, ToolError) as error:
            await self._record_unprepared(call, error)
            return None
        self.ran += 1
        return prepared

    async def _record_unprepared(self, call: ToolCall, error: BadArguments | ToolError) -> None:
        if isinstance(error, BadArguments):
            self._refuse_invalid(call, str(error))
            return
        self.ran += 1
        failed = ToolOutcome(text=str(error), is_error=True)
        self._record(call, await self._masked_outcome(failed), 0)

    async def _permitted(self, ready: ReadyCall) -> ReadyCall | None:
        """Ask the gate, the hooks, and the user where one of them says so; None when the call is
        not permitted.

        A call whose input is changed on the way is another call: it is prepared and judged from the
        beginning, so that neither a rule nor a hook is got round.
        """
        given: dict[str, Any] | None = None
        for _ in range(CHANGES):
            judged = await self._judged(ready)
            if judged is None:
                return None
            ready, decision = judged
            if decision.verdict == "ask" and ready.call.args == given:
                return ready  # the user gave this very input, and need not be asked about it
            answer = await self._answered(ready, decision)
            if isinstance(answer, bool):
                return ready if answer else None
            changed = await self._with_other_arguments(ready, answer.args, answer.by)
            if changed is None:
                return None
            ready, given = changed, answer.args if answer.is_permitted else None
        self._refuse(
            ready.call,
            f"Denied: its input was changed {CHANGES} times and never agreed on.",
            status="denied",
        )
        return None

    async def _judged(self, ready: ReadyCall) -> tuple[ReadyCall, PolicyDecision] | None:
        """What the gate and the hooks before the call say to it, as they want it; None when that
        cannot be prepared."""
        decision = self._env.gate.decide(ready.prepared.action)
        # A denial is final, so no hook is run for it: none could lift it, and they may take their
        # time.
        if self._env.hooks is None or decision.verdict == "deny":
            return ready, decision
        ruling = self._taken(await self._env.hooks.before_tool(ready.call))
        if ruling.args is not None and ruling.args != ready.call.args:
            # Judged again by the rules: a hook may not turn an input that is allowed into one that
            # is denied.
            changed = await self._with_other_arguments(ready, ruling.args, A_HOOK)
            if changed is None:
                return None
            ready, decision = changed, self._env.gate.decide(changed.prepared.action)
        return ready, with_hook(decision, ruling.verdict, ruling.reason)

    async def _answered(self, ready: ReadyCall, decision: PolicyDecision) -> bool | ReplacedInput:
        """Whether the call may run, or another input that is to be judged in its place."""
        hooks = self._env.hooks
        if hooks is not None and decision.verdict == "ask" and self._env.gate.when_asking != "yes":
            ruling = self._taken(await hooks.before_asking(ready.call, decision.reason))
            if ruling.args is not None and ruling.args != ready.call.args:
                return ReplacedInput(args=ruling.args, by=A_HOOK)
            decision = with_hook(decision, ruling.verdict, ruling.reason)
        return await self._is_permitted(ready, decision)

    async def _with_other_arguments(
        self, ready: ReadyCall, args: dict[str, Any], by: str
    ) -> ReadyCall | None:
        """The call with another input, prepared anew; a note says to the model and to the user what
        is run in its place.
        """
        call = msgspec.structs.replace(ready.call, args=args)
        shown = msgspec.json.encode(args).decode()
        self._say(f"{by} changed the input of the call of {call.name} to {shown}")
        prepared = await self._prepare(call, ready.tool)
        if prepared is None:
            return None
        return ReadyCall(call=call, tool=ready.tool, prepared=prepared, shows_input=True)

    async def _is_permitted(
        self, ready: ReadyCall, decision: PolicyDecision
    ) -> bool | ReplacedInput:
        call_uid = ready.call.call_uid
        if decision.verdict == "allow":
            if decision.rule:
                self._allowed_by[call_uid] = decision.rule
            text = decision.text or decision.reason
            self._permissions[call_uid] = CallPermission(by=decision.by, text=text)
            return True
        if decision.verdict == "deny":
            return self._denied(ready, f"Denied: {decision.reason}.")
        if (kept := self._kept_permission(ready)) is not None:
            self._permissions[call_uid] = kept
            return True
        match self._env.gate.when_asking:
            case "yes" if ready.prepared.action.escapes:
                # Yes to everything is meant for what the sandbox holds.
                return self._denied(
                    ready,
                    "Denied: only the user can let a command out of the sandbox, "
                    "and this session asks no one.",
                )
            case "yes" if _is_the_users(ready, decision):
                return self._denied(
                    ready,
                    f"Denied: {decision.reason}; only the user can allow it, "
                    "and this session asks no one.",
                )
            case "yes":
                self._permissions[call_uid] = CallPermission(by="auto_approve")
                return True
            case "no":
                return self._denied(ready, NO_ONE_TO_ASK)
            case "wait":
                return await self._user_allows(ready, decision)

    def _kept_permission(self, ready: ReadyCall) -> CallPermission | None:
        """What allowed a wait that another process began, where that holds for it here too."""
        wait, request = self._env.journal.state.turn.wait, ready.prepared.wait
        if wait is None or wait.call_uid != ready.call.call_uid:
            return None
        # The seal is over what is waited for alone: a log, or a hook, may have put another call in
        # the place of that one.
        if request is None or not request.keeps_permission or request.on is None:
            return None
        if request.on.place != wait.on.place:
            return None
        is_ours = self._env.gate.is_sealed(wait.wait_id, wait.unattended, wait.on.place)
        return wait.permission if is_ours else None

    async def _user_allows(
        self, ready: ReadyCall, decision: PolicyDecision
    ) -> bool | ReplacedInput:
        answer = await self._permission.ask(ready, decision)
        if answer.allowed:
            given = CallPermission(by="user", request=answer.request)
            self._permissions[ready.call.call_uid] = given
        if answer.instead is not None:
            return ReplacedInput(args=answer.instead, by=THE_USER, is_permitted=True)
        return answer.allowed or self._denied(ready, answer.text)

    def _denied(self, ready: ReadyCall, text: str) -> bool:
        self._refuse(ready.call, text, status="denied")
        return False

    # -- asking questions

    async def _finish_calls(self, ready: ReadyCall) -> tuple[ToolOutcome, int]:
        """Put the question to the user, or run the tool."""
        question = ready.prepared.question
        if question is None or self._env.gate.when_asking != "wait":
            return await self._execute(ready)
        started = self._env.clock.monotonic()
        answer = await self._put(ready.call, question)
        outcome = await self._masked_outcome(ToolOutcome(text=answer))
        return outcome, int((self._env.clock.monotonic() - started) * 1000)

    async def _put(self, call: ToolCall, question: UserQuestion) -> str:
        """The user's answer: one on record from before a crash, or a new one."""
        journal = self._env.journal
        answered = journal.state.turn.answers.get(call.call_uid)
        if answered is not None and isinstance(answered.answer, QuestionAnswered):
            return answered.answer.answer
        asked = [
            request
            for request in journal.state.turn.requests.values()
            if isinstance(request, QuestionAsked) and request.call_uid == call.call_uid
        ]
        request_id = asked[0].request_id if asked else await self._open_question(call, question)
        journal.status("awaiting_permission")
        try:
            resolved = await journal.resolution(request_id)
        finally:
            journal.status("executing_tool")
        return resolved.answer if isinstance(resolved, QuestionAnswered) else ""

    async def _open_question(self, call: ToolCall, question: UserQuestion) -> RequestId:
        request_id = RequestId(new_id("req", self._env.clock.now()))
        self._pending.note(
            QuestionAsked(
                request_id=request_id,
                call_uid=call.call_uid,
                node=self._node,
                question=question.text,
                options=question.options,
            )
        )
        await self._pending.commit(_QUESTION)
        return request_id

    @property
    def _can_ask(self) -> bool:
        return self._driver is None and self._env.gate.when_asking == "wait"

    async def _ask_in_call(self, call: ToolCall, question: UserQuestion) -> str | None:
        """Put a question to the user that comes up while a call runs; None where it was not
        answered.

        A call that a crash cuts short is not taken up again, and neither is its question.
        """
        request_id = await self._open_question(call, question)
        self._env.journal.status("awaiting_permission")
        try:
            resolved = await self._env.journal.resolution(request_id)
        except anyio.get_cancelled_exc_class():
            await self._take_back(request_id)
            raise
        finally:
            self._env.journal.status("executing_tool")
        if not isinstance(resolved, QuestionAnswered):
            return None
        return self._env.redact(resolved.answer)

    async def _take_back(self, request_id: RequestId) -> None:
        """Close a question that nobody waits for any more, which would take the next answer.

        Shielded.  One of a turn or a call that is over is closed by its end.
        """

        def close(state: SessionState) -> Commit:
            is_open = request_id in state.turn.requests
            return Commit(facts=(QuestionAnswered(request_id=request_id),) if is_open else ())

        with (
            suppress(SessionStopped, StoreError),
            anyio.move_on_after(_TAKE_BACK_SECONDS, shield=True),
        ):
            await self._env.journal.commit(close)

    # -- waiting

    async def _run_wait(self, ready: ReadyCall) -> None:
        """Let the turn wait, and then run the tool, which says what came of what it waited for."""
        from weft.loop.waits.call_wait import CallWait  # few turns wait

        assert ready.prepared.wait is not None
        call_uid = ready.call.call_uid
        allowed = self._permissions.get(call_uid)
        wait = CallWait(
            self._env, self._pending, self._node, call_uid, ready.prepared.wait, allowed
        )
        over = await wait.over()
        if over.is_error:
            self._record(ready.call, over, 0)
            return
        news, _ = await self._execute(ready)
        # A command that was looked at says itself how it ended.
        by_itself = news.text if over.data.get("woken_by") in ("command", None) else ""
        text = by_itself or "\n".join(part for part in (over.text, news.text) if part)
        outcome = msgspec.structs.replace(over, text=text)
        self._record(ready.call, outcome, wait.duration_ms)

    # -- hooks

    async def _tell_hooks(self, ready: Sequence[ReadyCall]) -> None:
        """Show what ran to the hooks that want to see it, and the model what they say."""
        hooks = self._env.hooks
        if hooks is None:
            return
        shown = [each for each in ready if hooks.wants_result(each.call)]
        if any(each.tool.effect != "pure" for each in shown):
            # What took effect is on record before a program runs that may take its time.
            await self._pending.commit(_INTENT)
        for each in shown:
            result = self.results.get(each.call.call_uid)
            if result is not None:
                await self._show(hooks, each.call, result)

    async def _show(self, hooks: TurnHooks, call: ToolCall, result: ToolResult) -> None:
        ruling = self._taken(await hooks.after_tool(call, result))
        # The call has run, so a denial can only be said to the model.
        if ruling.verdict == "deny":
            self._say(f"A hook says about the call of {call.name}: {ruling.reason}")

    def _taken(self, ruling: HookRuling) -> HookRuling:
        """What a hook wants on record or said is noted, and whether the turn is to end.

        The ruling is handed on.
        """
        self._pending.note(*ruling.facts)
        if ruling.context:
            self._say(ruling.context)
        if ruling.halts:
            self.halted = ruling.reason or "a hook ended the turn"
        return ruling

    def _say(self, text: str) -> None:
        """Note something for the model, behind the results of this answer, and for the user."""
        self._pending.note(SystemNote(text=clean_text(text), to_model=True, node=self._notes_at))

    # -- running and recording

    async def _execute(self, ready: ReadyCall) -> tuple[ToolOutcome, int]:
        """Run the tool; whatever goes wrong in it is its result."""
        journal, clock = self._env.journal, self._env.clock
        journal.status("executing_tool")
        started = clock.monotonic()
        _TOOL_STARTS.hit()
        try:
            outcome = await self._contained(ready.tool, ready.prepared.run, sound_outcome)
            self._gave_outcome.add(ready.call.call_uid)
        except ToolError as error:
            outcome = ToolOutcome(text=str(error), is_error=True)
        # A command that was cancelled cannot report what it changed. The first result after it
        # takes the changes along, so that a rewind finds them.
        if left := self._env.unreported_changes():
            outcome = msgspec.structs.replace(outcome, touched=(*left, *outcome.touched))
        _TOOL_ENDED.hit()
        duration_ms = int((clock.monotonic() - started) * 1000)
        return await self._masked_outcome(outcome), duration_ms

    async def _contained(
        self, tool: Tool, work: Callable[[], Awaitable[object]], check: Callable[[object], T]
    ) -> T:
        """What the tool's own code gives, checked.

        Whatever goes wrong in it comes out as a `ToolError`.
        """
        try:
            with anyio.move_on_after(tool.timeout_seconds):
                return check(await without_foreign_cancel(work()))
        except ToolError:
            raise
        # SystemExit too: a tool of a program that calls sys.exit() must not end the application
        # with all its sessions.
        except (Exception, SystemExit) as error:
            logger.exception("a tool failed", extra={"tool": tool.name})
            raise FinalToolError(f"The tool failed: {type(error).__name__}: {error}") from error
        # Reached only when the time is over; everything else has returned or raised.
        raise FinalToolError(f"Stopped: it ran longer than {tool.timeout_seconds:g} seconds.")

    def _record(self, call: ToolCall, outcome: ToolOutcome, duration_ms: int) -> None:
        """Note the result of a call; the outcome comes masked (`_masked_outcome`)."""
        limit = self._env.limits.result_characters
        # Not into a driver's own result, which is judged or shown to the user: the model may never
        # read it.
        if self._driver is None and (reports := self._env.edit_reports) is not None:
            outcome = self._extended(outcome, reports.late())
        if rule := self._allowed_by.pop(call.call_uid, ""):
            outcome = msgspec.structs.replace(outcome, data={**outcome.data, "allowed_by": rule})
        if self._env.result_note is not None and not outcome.is_error:
            outcome = with_file_note(outcome, self._env.result_note)
        facts, blobs = settled(call, self._node, outcome, duration_ms=duration_ms, limit=limit)
        moved = self._env.moved_ranges()
        projects = self._for_project(outcome) if outcome.project_facts else ()
        self._settle([*facts, *moved.facts], {**blobs, **moved.blobs}, projects)

    def _for_project(self, outcome: ToolOutcome) -> tuple[ProjectFacts, ...]:
        """What a result adds to the stream of the session's project."""
        project_id = self._env.journal.state.about.project_key
        return (ProjectFacts(project_id=project_id, facts=outcome.project_facts),)

    async def _masked_outcome(self, outcome: ToolOutcome) -> ToolOutcome:
        """The outcome without secrets; all of it, because what is shown is cut from it later, and
        half of a secret at the edge of the cut would not be recognised.
        """
        data, full = outcome.data, outcome.full_text
        # The lines around a change come out of the file, and may hold a key that no one touched.
        if isinstance(diff := data.get("diff"), str):
            data = {**data, "diff": await self._masked(diff)}
        # What a server answers beside its text may hold the key that it was given.
        if "structured" in data:
            data = await self._without_secrets(data)
        if full is not None:
            full = (await self._masked(full.decode("utf-8", "replace"))).encode()
        text = await self._masked(outcome.text)
        return msgspec.structs.replace(outcome, text=text, data=data, full_text=full)

    async def _without_secrets(self, data: dict[str, Any]) -> dict[str, Any]:
        """Data without secrets; without what cannot be masked."""
        written = msgspec.json.encode(data["structured"]).decode()
        masked = await self._masked(written)
        if masked == written:
            return data
        kept = {key: value for key, value in data.items() if key != "structured"}
        try:
            return {**kept, "structured": msgspec.json.decode(masked)}
        except msgspec.DecodeError:
            return kept

    async def _masked(self, text: str) -> str:
        # A program's tool may answer with megabytes.
        masks = self._env.redact_long
        return self._env.redact(text) if masks is None else await masks(text)

    def _refuse(self, call: ToolCall, text: str, *, status: str) -> None:
        self._settle([refused(call.call_uid, self._node, text, status=status)])

    def _settle(
        self,
        facts: Sequence[Fact],
        blobs: Mapping[BlobId, bytes] | None = None,
        projects: tuple[ProjectFacts, ...] = (),
    ) -> None:
        result = Commit(facts=tuple(facts), blobs=blobs or {}, projects=projects)
        self._pending.note_result(result)
        for fact in facts:
            if isinstance(fact, ToolComplete):
                self.results[fact.call_uid] = fact.result

    def _refuse_invalid(self, call: ToolCall, text: str) -> None:
        self.invalid += 1
        self._refuse(call, text, status="invalid")

    def _unknown_tool(self, name: str) -> str:
        hint = did_you_mean(name, self._env.tools)
        known = ", ".join(sorted(self._env.tools)) or "none"
        return f"There is no tool {name!r}{hint or '.'} The tools are: {known}."


async def run_one(
    environment: ToolCallEnvironment,
    call: ToolCall,
    node: NodeId | None,
    driver: DriverCall,
    pending: PendingFacts,
) -> ToolCallEnd:
    """Run a call that a driver makes itself, and say what it came to.

    The result is noted and not yet committed, so that it can go on record together with what the
    driver makes of it.  Cancelled, the driver commits with `stopped`.
    """
    batch = ToolCallBatch(environment, pending, node, driver)
    await batch.run((call,))
    return batch.end_of(call.call_uid)


def _is_the_users(ready: ReadyCall, decision: PolicyDecision) -> bool:
    """Whether only the user can answer, and nobody who says yes to everything."""
    action = ready.prepared.action
    # Hosts that a rule allows need no answer, so a question about them is about something else.
    asks_hosts = bool(action.hosts) and decision.is_firm
    return bool(action.exposes or action.unfamiliar) or asks_hosts


def stopped(
    environment: ToolCallEnvironment, pending: PendingFacts, calls: Callable[[CallUid], bool]
) -> More:
    """What a cancelled call leaves behind: the files that it had changed are noted at once, and the
    commit that takes the notes settles the call as aborted."""
    blobs: dict[BlobId, bytes] = {}
    intents = environment.journal.state.turn.intents
    last = next((uid for uid in reversed(intents) if calls(uid)), None)
    changed = touched_facts(environment.unreported_changes(), last, blobs)
    pending.note(*changed, blobs=blobs)

    def more(state: SessionState, noted: Sequence[Fact]) -> list[Fact]:
        # Decided inside the commit: an append of the intent whose wait was cancelled is carried out
        # all the same, and by now it is in the state.
        done = {fact.call_uid for fact in noted if isinstance(fact, ToolComplete)}
        return [
            refused(uid, intent.node, STOPPED_WHILE_RUNNING, status="aborted")
            for uid, intent in state.turn.intents.items()
            if calls(uid) and uid not in done
        ]

    return more
