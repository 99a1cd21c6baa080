"""The goal of a session, as programs and screens see it."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from weft.ids import SessionId
from weft.runtime.session_host import SessionHost
from weft.session import goal_words, is_sealed_by
from weft.session.goal_text import NO_SANDBOX
from weft.state import SessionState
from weft.view import GOAL_ENDS, GOAL_PAUSES

__all__ = ["NO_SANDBOX", "Goal", "GoalRound", "GoalStatus", "goal_of"]

GoalStatus: TypeAlias = Literal["active", "checking", "paused", "done", "ended"]


class GoalRound(msgspec.Struct, frozen=True, kw_only=True):
    """What the check of one round came to."""

    round: int
    by: str
    """`command` or `judge`."""
    done: bool
    exit_code: int | None
    progress: bool
    detail: str
    """The end of what the command printed, or the judge's reason."""
    at: float


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """What a session works for, turn after turn."""

    id: str
    session_id: SessionId
    text: str
    check: str
    judge: str
    status: GoalStatus
    reason: str = ""
    """Why it is paused or has ended, in a word."""
    detail: str = ""
    """The same in a sentence."""
    asks: bool = False
    """A round waits for an answer of the user's."""
    round: int = 0
    """How many rounds have begun."""
    max_rounds: int
    cost_usd: float = 0.0
    """What was spent for it."""
    max_budget_usd: float | None = None
    seconds: float = 0.0
    """How long it was worked for."""
    max_seconds: float | None = None
    mode: str = "default"
    """The permission mode of its rounds where no user is there."""
    is_sealed: bool = True
    """False: what it may do was given on another machine, or by another user."""
    revision: int = 0
    checks: tuple[GoalRound, ...] = ()
    """The last checks, oldest first."""


def goal_of(state: SessionState, host: SessionHost) -> Goal | None:
    """The goal of a session in this state; None where it never had one."""
    stands, goal = state.goal, state.goal.goal
    if goal is None:
        return None
    status, reason, detail = _status(state)
    spent = (state.ledger.total.cost_usd or 0.0) - stands.cost_before
    given = goal.permission
    is_sealed = is_sealed_by(host.services.seal, state, goal.goal_id, given, goal_words(goal))
    return Goal(
        id=goal.goal_id,
        session_id=state.session_id,
        text=goal.text,
        check=goal.check,
        judge=goal.judge,
        status=status,
        reason=reason,
        detail=detail,
        asks=stands.is_open and bool(state.turn.requests),
        round=stands.rounds,
        max_rounds=goal.max_rounds,
        cost_usd=max(0.0, spent),
        max_budget_usd=goal.max_budget_usd,
        seconds=stands.elapsed(host.now()),
        max_seconds=goal.max_seconds,
        mode=given.mode if given is not None else "default",
        is_sealed=is_sealed,
        revision=goal.revision,
        checks=tuple(
            GoalRound(
                round=each.round,
                by=each.by,
                done=each.done,
                exit_code=each.exit_code,
                progress=each.progress,
                detail=each.detail,
                at=each.at,
            )
            for each in stands.checked
        ),
    )


def _status(state: SessionState) -> tuple[GoalStatus, str, str]:
    stands = state.goal
    if (ended := stands.ended) is not None:
        said = GOAL_ENDS.get(ended.reason, ended.reason)
        status: GoalStatus = "done" if ended.reason == "done" else "ended"
        return status, ended.reason, _sentence(said, ended.detail)
    if (pause := stands.paused) is not None:
        said = GOAL_PAUSES.get(pause.reason, pause.reason)
        return "paused", pause.reason, _sentence(said, pause.detail)
    is_checked = stands.next == "check" and stands.turn_id is None and state.turn.open is None
    return ("checking" if is_checked else "active"), "", ""


def _sentence(said: str, detail: str) -> str:
    return f"{said}: {detail}" if detail else said
