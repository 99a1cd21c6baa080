"""The plan of architect mode: its steps, what the user decided, and how far it has come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from weft.events import (
    AnyFact,
    ArchitectPlan,
    ArchitectStep,
    PlanDecided,
    PlanEdited,
    TurnStarted,
)
from weft.ids import SessionId

StepStatus: TypeAlias = Literal["started", "passed", "failed", "skipped", "replanned"]


class StepState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one step stands."""

    status: StepStatus
    detail: str = ""
    child: SessionId | None = None


class DoneStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step of an earlier plan that stays done when the rest is replanned."""

    step: dict[str, Any]
    detail: str = ""


class PlanState(msgspec.Struct, kw_only=True):
    """The newest plan of the present task; without an id there is none."""

    plan_id: str = ""
    plan: dict[str, Any] = {}
    approved: bool | None = None
    """None: not decided yet."""
    reason: str = ""
    """Why it was turned down, where it was said."""
    steps: dict[int, StepState] = {}
    done: list[DoneStep] = []
    replans: int = 0
    """How often the rest was replanned since a step last passed."""

    @property
    def is_waiting(self) -> bool:
        """True while a plan waits for the user's decision."""
        return bool(self.plan_id) and self.approved is None

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        match fact:
            case TurnStarted(continued=continued):
                # A turn that goes on keeps its plan; any other prompt is another task.
                if continued and not self._is_over():
                    self._try_again()
                else:
                    self._forget()
            case ArchitectPlan(plan_id=plan_id, plan=plan):
                self._propose(plan_id, plan)
            case PlanEdited(plan_id=plan_id, plan=plan):
                if plan_id == self.plan_id:
                    self.plan = plan
            case PlanDecided(plan_id=plan_id, approved=approved, reason=reason):
                # A client may answer a plan that was replaced meanwhile; its word counts for that
                # plan alone.
                if plan_id == self.plan_id:
                    self.approved, self.reason = approved, reason
            case ArchitectStep(plan_id=plan_id):
                if plan_id == self.plan_id:
                    self._step(fact)
            case _:
                pass

    def _forget(self) -> None:
        """Another task begins."""
        self.plan_id, self.plan, self.approved, self.reason = "", {}, None, ""
        self.steps, self.done, self.replans = {}, [], 0

    def _is_over(self) -> bool:
        """Done, or turned down."""
        passed = sum(step.status in ("passed", "skipped") for step in self.steps.values())
        return self.approved is False or (self.approved is True and passed == len(self._planned()))

    def _try_again(self) -> None:
        """The user continues the task: steps that had failed for good start again."""
        self.steps = {i: step for i, step in self.steps.items() if step.status != "failed"}
        self.replans = 0

    def _propose(self, plan_id: str, plan: dict[str, Any]) -> None:
        # Before the plan is replaced: the numbers of the steps are those of the old one.
        self.done += self._passed()
        self.plan_id, self.plan, self.approved, self.reason = plan_id, plan, None, ""
        self.steps = {}

    def _passed(self) -> list[DoneStep]:
        return [
            DoneStep(step=step, detail=self.steps[index].detail)
            for index, step in enumerate(self._planned())
            if isinstance(step, dict)
            and index in self.steps
            and self.steps[index].status == "passed"
        ]

    def _planned(self) -> Sequence[Any]:
        # A plan is JSON that a model wrote and the user may have edited; a fold must not fail on
        # it.
        planned = self.plan.get("steps")
        return planned if isinstance(planned, list | tuple) else ()

    def _step(self, fact: ArchitectStep) -> None:
        self.steps[fact.index] = StepState(status=fact.status, detail=fact.detail, child=fact.child)
        if fact.status == "passed":
            self.replans = 0
        elif fact.status == "replanned":
            self.replans += 1
