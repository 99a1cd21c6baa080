"""Facts of agents: child sessions, and the architect's plan."""

from __future__ import annotations

from typing import Any, Literal

from weft.events.base import FactBase
from weft.events.facts.turn import FinishReason, StoredReason, exact_reason
from weft.ids import CallUid, NodeId, SessionId, TurnId
from weft.messages import Usage


class ChildStarted(FactBase, frozen=True, tag="child_started"):
    """A session of its own works for one of our calls."""

    child: SessionId
    call_uid: CallUid | None = None
    node: NodeId | None = None
    purpose: Literal["agent", "candidate", "step"] = "agent"
    name: str = ""
    background: bool = False
    """It runs in the background; its end is reported when it comes."""


class ChildFinished(FactBase, frozen=True, tag="child_finished"):
    """A child came to its end."""

    child: SessionId
    reason: StoredReason
    usage: Usage | None = None
    """What it used since the last end of it that is on record."""
    text: str = ""
    models: dict[str, Usage] = {}
    """The same, model by model."""
    turn_id: TurnId | None = None
    """The turn it worked for."""
    node: NodeId | None = None
    """The node whose call it worked for."""
    descendants: int = 0
    """Agents that worked below it."""
    exact: str = ""
    """The reason where `reason` has no word for it."""

    @property
    def finish_reason(self) -> FinishReason:
        """Why it ended, in the most exact word."""
        return exact_reason(self.reason, self.exact)


class ArchitectPlan(FactBase, frozen=True, tag="architect_plan"):
    """The planner proposes a plan."""

    plan_id: str
    plan: dict[str, Any]
    turn_id: TurnId | None = None


class PlanEdited(FactBase, frozen=True, tag="plan_edited"):
    """The user changed the plan."""

    plan_id: str
    plan: dict[str, Any]


class PlanDecided(FactBase, frozen=True, tag="plan_decided"):
    """The plan was approved or rejected."""

    plan_id: str
    approved: bool
    reason: str = ""
    by: str = ""


class ArchitectStep(FactBase, frozen=True, tag="architect_step"):
    """One step of the plan started or ended."""

    plan_id: str
    index: int
    status: Literal["started", "passed", "failed", "skipped", "replanned"]
    detail: str = ""
    child: SessionId | None = None
