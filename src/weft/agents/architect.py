"""Architect mode: a strong model plans, a fast one carries the plan out, step by step.

It runs where a turn would, and ends like one.  Where it stands is in the log: `next_of` reads from
the plan's facts what comes next, and the loop here does that one thing and looks again.  So a plan
that was killed in its second step goes on with the second step, and its child session, wherever
that stood.

Planning is a turn of this session with the planner's model, tools that change nothing, and the plan
as the structured result that it hands in.  Each step is a child session of its own, with the step
as all it knows.  When the child is done the step's check runs, here, behind the gate; if either
fails, the planner reads why and plans the rest anew, a bounded number of times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import anyio
import msgspec

from weft.agents.child_run import ChildRun, finished
from weft.agents.host import AgentHost, ChildEnd, ChildRequest
from weft.agents.plan import (
    EDITOR,
    MOST_REPLANS,
    WorkPlan,
    as_plan,
    failure_report,
    next_of,
    plain,
    report,
    step_prompt,
)
from weft.agents.plan_approval import CheckGate, approved_edits
from weft.agents.step_check import SHELL, CheckVerdict, StepCheck
from weft.agents.tool import depth_of
from weft.errors import UsageError
from weft.events import (
    ArchitectPhase,
    ArchitectPlan,
    ArchitectStep,
    CallOrigin,
    ChildStarted,
    Fact,
    FinishReason,
    NewMessage,
    PlanDecided,
    TurnFinished,
    finish_words,
)
from weft.ids import (
    CallUid,
    InputId,
    SessionId,
    TurnId,
    new_id,
    new_node_id,
    new_session_id,
)
from weft.loop import (
    Commit,
    PendingFacts,
    SessionWork,
    ToolCallEnvironment,
    Turn,
    TurnEnvironment,
    revision_of,
    settle_open_calls,
    stopped,
    tip_after,
)
from weft.messages import ModelName, Node, Text
from weft.permissions import ToolAction
from weft.session import SetBoundary
from weft.state import PlanState, SessionState

ENDS_ALL: Final[frozenset[FinishReason]] = frozenset({"max_budget", "auth_error", "provider_error"})
"""Ends of a step that another plan would not change."""


class StepEditor(msgspec.Struct, frozen=True, kw_only=True):
    """Who carries out the steps."""

    model: ModelName
    max_turns: int
    tools: tuple[str, ...]
    """What the session itself may use."""


class ArchitectRun(SessionWork):
    """A plan on its way."""

    def __init__(
        self,
        environment: TurnEnvironment,
        turn_id: TurnId,
        host: AgentHost,
        editor: StepEditor,
        checks: ToolCallEnvironment,
    ) -> None:
        """`environment` is the planner's: its model, its tools, and `submit` for the plan.
        `checks` is what the checks of steps pass, with the session's shell if it has one.
        """
        self._env = msgspec.structs.replace(environment, submitted=self._proposed)
        self._host = host
        self._editor = editor
        self._checks = checks
        self._pending = PendingFacts(environment.journal)
        """What checks have noted, for the commit that ends their step."""
        self.turn_id = turn_id
        self.scope = anyio.CancelScope()
        self.abort_reason = ""
        self.ends_as: FinishReason = "aborted"
        self.is_suspended = False
        self.is_compaction = False
        self.stops_after_step = False
        self._planner: Turn | None = None

    @property
    def _state(self) -> SessionState:
        return self._env.journal.state

    @property
    def _plan(self) -> PlanState:
        return self._state.plan

    # -- the work

    async def run(self) -> None:
        """Work until the turn is finished.

        One that is suspended, or cancelled from outside `scope`, stays open, to go on.
        """
        with self.scope:
            await self._work()
        if self.scope.cancelled_caught:
            await self._env.journal.commit(self._suspended if self.is_suspended else self.settled)

    async def _work(self) -> None:
        while self._is_open():
            coming = next_of(self._plan)
            if coming.do == "plan":
                await self._make_plan()
            elif coming.do == "wait":
                await self._wait_for_approval()
            elif coming.do == "step" and self.stops_after_step:
                # Like an abort, and between two steps: to continue is to go on with this one.
                self.abort_reason = f"stopped before step {coming.index + 1}, as you asked"
                await self._env.journal.commit(self.settled)
            elif coming.do == "step":
                await self._do_step(coming.index)
            else:
                await self._end()

    def _is_open(self) -> bool:
        turn = self._state.turn.open
        return turn is not None and turn.turn_id == self.turn_id

    def _suspended(self, state: SessionState) -> Commit:
        """What is known and not on record yet; it ends nothing."""
        if self._planner is not None:
            return self._planner.suspended(state)
        return self._pending.take(state, drop_draft=False)

    def settled(self, state: SessionState) -> Commit:
        """The facts that end the turn where it stands."""
        if self._planner is not None:
            self._planner.abort_reason = self.abort_reason
            self._planner.ends_as = self.ends_as
            return self._planner.settled(state)
        reason = self.abort_reason or "the turn was stopped"
        stop_check = stopped(self._checks, self._pending, self._is_check)

        def more(state: SessionState, noted: Sequence[Fact]) -> list[Fact]:
            return [
                *settle_open_calls(state, noted, by="abort", reason=reason),
                *stop_check(state, noted),
                self._finished(state, self.ends_as, self.abort_reason),
            ]

        return self._pending.take(state, more, drop_draft=True)

    def _is_check(self, call_uid: CallUid) -> bool:
        # The shell line of a Markdown command may run beside the plan; it is not ours to settle.
        return call_uid.startswith(f"{self._plan.plan_id}.")

    # -- planning

    async def _make_plan(self) -> None:
        """Have the planner hand in a plan; when it does not, the turn is over."""
        self._phase("replanning" if self._plan.plan_id else "planning")
        self._planner = Turn(self._env, self.turn_id)
        await self._planner.run()
        self._planner = None  # not when it was stopped: `settled` asks it for what it had

    def _proposed(self, state: SessionState, value: Any) -> Sequence[Fact]:
        """The facts of a plan that was handed in, and the decision on it where the user need not be
        asked.
        """
        # In the append that ends the planning: a crash leaves a plan that waits for approval, or
        # none.
        plan_id = new_id("pln", self._env.models.clock.now())
        proposed = ArchitectPlan(plan_id=plan_id, plan=value, turn_id=self.turn_id)
        automatic = self._automatic_decision(value)
        if automatic is None:
            return (proposed,)
        approved, reason = automatic
        decided = PlanDecided(plan_id=plan_id, approved=approved, reason=reason, by="weft")
        return (proposed, decided)

    def _automatic_decision(self, value: Any) -> tuple[bool, str] | None:
        """The decision that needs no user: approved or not, and why.

        None when the user has to decide.
        """
        if not value.get("steps"):
            return True, "there is nothing to do"
        gate = self._env.calls.gate
        decision = gate.decide(ToolAction(tool="architect", kind="other", target="plan"))
        if decision.verdict == "allow" or gate.when_asking == "yes":
            return True, ""
        if gate.when_asking == "no":
            return False, "a plan needs approval, and there is no user to approve it"
        return None

    async def _wait_for_approval(self) -> None:
        self._phase("awaiting_approval")
        self._env.journal.status("awaiting_permission")
        await self._env.journal.until(lambda state: not state.plan.is_waiting)
        self._env.journal.status("thinking")

    # -- a step

    async def _do_step(self, index: int) -> None:
        try:
            plan = as_plan(self._plan.plan)
        except UsageError as error:  # an edit by the user that came past the API's own check
            await self._finish("halted", str(error))
            return
        self._phase("executing", index)
        child = await self._started(index)
        end = await self._executed(plan, index, child)
        if end is not None and end.reason != "stop":
            await self._failed(plan, index, end.reason, _why(end), self._closing(child, end))
            return
        # The child's end is on record before the check runs: after a crash in the check, the work
        # of the step is not done a second time.
        if end is not None:
            await self._commit(*self._closing(child, end))
        verdict = await self._checked(plan, index)
        if verdict.passed:
            text = (end.text if end is not None else "") or verdict.text
            await self._commit(self._step(index, "passed", text, child))
        if verdict.halted:
            await self._finish("halted", verdict.halted)
        elif not verdict.passed:
            await self._failed(plan, index, "stop", verdict.text)

    async def _started(self, index: int) -> SessionId:
        """The child of a step; put on record when it is new, or goes on after it was stopped."""
        known = self._plan.steps.get(index)
        child = known.child if known is not None else None
        about = self._state.children.known.get(child) if child is not None else None
        # A child that was aborted goes on under its id: its conversation and its changes are still
        # there.
        if child is not None and about is not None and about.reason != "aborted":
            return child
        if child is None:
            child = new_session_id(self._env.models.clock.now())
        started = ChildStarted(
            child=child,
            node=tip_after(self._state, ()),
            purpose="step",
            name=f"step {index + 1}",
        )
        await self._commit(self._step(index, "started", "", child), started)
        return child

    async def _executed(self, plan: WorkPlan, index: int, child: SessionId) -> ChildEnd | None:
        """The child's end; None when it is on record from before."""
        about = self._state.children.known.get(child)
        if about is not None and not about.is_open:
            return None
        self._env.journal.status("executing_tool")
        child_run = ChildRun(
            self._host,
            self._wanted(plan, index, child),
            (Text(text=step_prompt(plan, index)),),
            label=f"step {index + 1}",
            goes_on=True,
        )
        return await child_run.run()

    def _wanted(self, plan: WorkPlan, index: int, child: SessionId) -> ChildRequest:
        step = plan.steps[index]
        bounded: tuple[SetBoundary, ...] = ()
        if step.boundary is not None:
            bound = SetBoundary(
                path=step.file,
                first=step.boundary.first,
                last=step.boundary.last,
                input_id=InputId(f"boundary-{child}"),
            )
            # Set by a command with an id of its own, so that a step that goes on after a crash does
            # not set it twice.
            bounded = (bound,)
        return ChildRequest(
            child=child,
            origin=CallOrigin(session_id=self._host.session_id, node=tip_after(self._state, ())),
            title=step.title,
            model=self._editor.model,
            tools=tuple(name for name in step.tools if name in self._editor.tools),
            permission_mode=self._host.mode,
            depth=depth_of(self._state) + 1,
            append_system_prompt=EDITOR,
            max_turns=self._editor.max_turns,
            facts=self._host.inherited(),
            first=bounded,
            rules=approved_edits(step),
        )

    async def _checked(self, plan: WorkPlan, index: int) -> CheckVerdict:
        step, node = plan.steps[index], tip_after(self._state, ())
        if not step.check or node is None:
            return CheckVerdict(True, "")
        if SHELL not in self._checks.tools:
            return CheckVerdict(True, "(not checked: this session has no shell)")
        self._phase("checking", index)
        # Derived and not random: after a crash the check is the same call, so that its intent is
        # settled and its permission found again.
        call_uid = CallUid(f"{self._plan.plan_id}.{index}")
        gate = CheckGate(self._checks.gate, step.check)
        environment = msgspec.structs.replace(self._checks, gate=gate)
        check = StepCheck(environment, self._pending, step.check, call_uid, node)
        verdict = await check.run()
        if verdict.passed:
            return verdict
        return msgspec.structs.replace(
            verdict, text=f"The check `{step.check}` failed:\n{verdict.text}"
        )

    async def _failed(
        self,
        plan: WorkPlan,
        index: int,
        reason: FinishReason,
        why: str,
        facts: Sequence[Fact] = (),
    ) -> None:
        """Back to the planner with the failure, unless another plan would not help, or enough were
        made.
        """
        # No money, no key or no provider: another plan would fail in the same way.
        if reason in ENDS_ALL:
            await self._commit(*facts, self._step(index, "failed", why))
            await self._finish(reason, f"step {index + 1} failed: {why}")
            return
        if self._plan.replans >= MOST_REPLANS:
            await self._commit(*facts, self._step(index, "failed", why))
            return
        # The report and the status of the step are one append: the planner never plans anew without
        # having read why.
        report_back = self._said("user", failure_report(plan, index, why), {"architect": "replan"})
        await self._commit(*facts, self._step(index, "replanned", why), report_back)

    # -- ending

    async def _end(self) -> None:
        """The plan is done, was turned down, or failed for good."""
        if self._plan.approved is False:
            reason = self._plan.reason
            why = f"the plan was turned down: {reason}" if reason else "the plan was turned down"
            await self._finish("halted", why)
            return
        failed = [i for i, step in self._plan.steps.items() if step.status == "failed"]
        if failed:
            why = self._plan.steps[failed[0]].detail
            await self._finish("halted", f"step {failed[0] + 1} failed: {why}")
            return
        await self._finish("stop")

    async def _finish(self, reason: FinishReason, detail: str = "") -> None:
        """End the turn with a report of what was done."""

        def build(state: SessionState) -> Commit:
            text, result = self._report(state, detail)
            # An answer of the assistant, so that the model of the next turn knows what was done.
            said = self._said("assistant", text, {"architect": "report"})
            settled = settle_open_calls(state, (), by="weft", reason=detail or reason)
            ended = self._finished(state, reason, detail, result)
            return self._pending.take(state, lambda *_: [*settled, said, ended], drop_draft=True)

        self._phase("done")
        await self._env.journal.commit(build)

    def _report(self, state: SessionState, detail: str) -> tuple[str, Any]:
        try:
            plan = as_plan(state.plan.plan)
        except UsageError:
            return detail, None
        text = report(state.plan, plan)
        if state.plan.approved is False:
            text = f"{detail[:1].upper()}{detail[1:]}."
        elif detail:
            text += f"\n\n{detail[:1].upper()}{detail[1:]}"
        steps = {str(index): step.status for index, step in state.plan.steps.items()}
        return text, {"plan": plain(plan), "steps": steps}

    def _finished(
        self, state: SessionState, reason: FinishReason, detail: str, deliverable: Any = None
    ) -> TurnFinished:
        turn = state.turn.open
        return TurnFinished(
            turn_id=self.turn_id,
            **finish_words(reason),
            detail=detail,
            iterations=turn.iterations if turn is not None else 0,
            deliverable=deliverable,
        )

    # -- small things

    async def _commit(self, *facts: Fact) -> None:
        # What a check has noted goes along, so that a step and the result of its check are on
        # record together or not at all.
        self._pending.note(*facts)
        await self._env.journal.commit(lambda state: self._pending.take(state, drop_draft=False))

    def _closing(self, child: SessionId, end: ChildEnd) -> tuple[Fact, ...]:
        return finished(self._state, child, end)

    def _step(
        self, index: int, status: Any, detail: str, child: SessionId | None = None
    ) -> ArchitectStep:
        known = self._plan.steps.get(index)
        return ArchitectStep(
            plan_id=self._plan.plan_id,
            index=index,
            status=status,
            detail=self._env.calls.redact(detail),
            child=child or (known.child if known is not None else None),
        )

    def _said(self, role: Any, text: str, metadata: dict[str, Any]) -> NewMessage:
        parent = tip_after(self._state, ())
        return NewMessage(
            node=Node(
                id=new_node_id(self._env.models.clock.now()),
                role=role,
                parts=(Text(text=text),),
                parent=parent,
                parent_revision=revision_of(self._state, parent),
                model=self._env.models.model_name if role == "assistant" else "",
                metadata=metadata,
            )
        )

    def _phase(self, phase: str, step: int | None = None) -> None:
        self._env.journal.signal(ArchitectPhase(phase=phase, step=step))


def _why(end: ChildEnd) -> str:
    ended = f"It ended with {end.reason}" + (f": {end.detail}." if end.detail else ".")
    return f"{ended}\n{end.text}" if end.text else ended
