"""Facts of agents: child sessions, the architect's plan, and the candidates of a fan-out."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from weft.events.base import FactBase
from weft.events.facts.turn import FinishReason, StoredReason, exact_reason
from weft.ids import BlobId, CallUid, NodeId, SessionId, TurnId
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


class FanSlot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Candidates of one model."""

    model: str = ""
    """With the effort it thinks with, as `provider:model:high`; empty: the session's own."""
    n: int = 1


class FanBase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The project that all candidates of a fan-out began with."""

    kind: Literal["now", "head"] = "now"
    commit: str = ""
    """Empty where there is none."""
    at_ns: int = 0


# The first versions of this and of `fan_kept` were named and never written.
class FanStarted(FactBase, frozen=True, tag="fan_started@2"):
    """Several candidates for one task are to be made."""

    fan_id: str
    prompt: str = ""
    node: NodeId | None = None
    """Where they branch off; None before the first message."""
    plan: tuple[FanSlot, ...] = ()
    verify: str = ""
    """The command that each is verified with; empty: none."""
    verify_runs: int = 1
    base: FanBase | None = None
    budget_usd: float | None = None
    stop: Literal["all", "verified"] = "all"
    judge: str = ""
    """The model that is asked where candidates stand equal; empty: none."""
    agent: str = ""
    """The kind of sub-agent that works isolated in it, as its one candidate; empty: none does."""


class FanCandidateStarted(FactBase, frozen=True, tag="fan_candidate_started"):
    """A candidate is at work."""

    fan_id: str
    index: int
    """From 1."""
    child: SessionId
    model: str = ""
    isolation: Literal["overlay", "reflink", "worktree"] = "overlay"
    place: str = ""
    """Where what it writes lies, below the folder of the sandbox."""
    network: bool = False
    """It uses the machine's network; else it has one of its own."""


class FanCandidateEnded(FactBase, frozen=True, tag="fan_candidate_ended"):
    """A candidate's turn is over; one that goes on ends again."""

    fan_id: str
    index: int
    reason: StoredReason = "stop"
    exact: str = ""
    """The reason where `reason` has no word for it."""
    usage: Usage | None = None
    seconds: float = 0.0
    diff: BlobId | None = None
    """What it changed, as text."""
    files: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0
    touches_checks: bool = False
    """It changed tests, their settings, or files of the verify command."""
    group: str = ""
    """Equal for candidates whose changes come to the same."""
    text: str = ""
    """Its last words."""

    @property
    def finish_reason(self) -> FinishReason:
        """Why it ended, in the most exact word."""
        return exact_reason(self.reason, self.exact)


class FanVerified(FactBase, frozen=True, tag="fan_verified"):
    """The verify command was run once."""

    fan_id: str
    index: int = 0
    """The candidate; 0 for the base itself."""
    run: int = 1
    on: Literal["candidate", "base_tests", "base", "merged"] = "candidate"
    """`base_tests`: the candidate with the tests as the base has them; `base`: no candidate at all;
    `merged`: the project with the candidate's changes, before they are put there.
    """
    command: str = ""
    exit_code: int | None = None
    """None when it did not end in time, or did not start."""
    seconds: float = 0.0
    output: BlobId | None = None
    passed: bool = False


class FanJudged(FactBase, frozen=True, tag="fan_judged"):
    """A model was asked, pair by pair, which of the candidates that stood equal are better."""

    fan_id: str
    order: tuple[int, ...] = ()
    """Those that it compared, the best first."""
    model: str = ""
    reason: str = ""
    """What it said of the pairs in which one was better."""


class FanKept(FactBase, frozen=True, tag="fan_kept@2"):
    """A candidate's changes were put into the project."""

    fan_id: str
    index: int
    node: NodeId | None = None
    """The message that says so."""
    merged: tuple[str, ...] = ()
    """Files that the user had changed, too, and that have both changes now."""
    conflicts: tuple[str, ...] = ()
    """Files that stayed the user's."""
    aside: str = ""
    """Where the candidate's versions of those are."""
    files: tuple[str, ...] = ()
    """All files that were changed; each has a `file_touched` next to this."""
    marked: tuple[str, ...] = ()
    """Files in which both versions stand between conflict markers."""


class FanCandidateDropped(FactBase, frozen=True, tag="fan_candidate_dropped"):
    """A candidate was given up.  Its session and its diff stay; of one that was pruned the overlay
    is gone, of others it stays, too.
    """

    fan_id: str
    index: int
    why: Literal["pruned", "budget", "stopped", "failed"] = "pruned"
    detail: str = ""
    """What failed, in a sentence."""
    work: BlobId | None = None
    """What a pruned one had changed, from which it can be made again."""


class FanCandidateRestored(FactBase, frozen=True, tag="fan_candidate_restored"):
    """A candidate that was pruned is there again, with what it had changed."""

    fan_id: str
    index: int


class FanClosed(FactBase, frozen=True, tag="fan_closed"):
    """A fan-out is over: no candidate of it is at work, and no overlay is left."""

    fan_id: str
