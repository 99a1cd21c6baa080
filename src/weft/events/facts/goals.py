"""Facts of a goal: what is worked for turn after turn, until a check says that it is reached."""

from __future__ import annotations

from weft.events.base import FactBase
from weft.events.facts.schedules import UnattendedPermission
from weft.ids import CallUid, GoalId, TurnId


class GoalSet(FactBase, frozen=True, tag="goal_set"):
    """A goal is worked for; or one that there is, is another from now on."""

    goal_id: GoalId
    text: str
    revision: int = 0
    """0 where it begins; an edit is the next one."""
    check: str = ""
    """A command line: exit code 0 says that the goal is reached."""
    judge: str = ""
    """A model that is asked, where the command passes or there is none."""
    max_budget_usd: float | None = None
    max_seconds: float | None = None
    max_rounds: int = 25
    permission: UnattendedPermission | None = None
    """What the rounds may do when no user is there; without a valid seal none begins."""
    by: str = ""
    """The client that asked for it; empty for a program that did not attach."""


class GoalPaused(FactBase, frozen=True, tag="goal_paused"):
    """Nothing more is begun for a goal; or it goes on."""

    goal_id: GoalId
    paused: bool = True
    # An open word: an older program shows a later one as it is.
    reason: str = ""
    """`user`, `stopped` (a turn or the check was), `moved` (the conversation went elsewhere),
    `failed` (a turn, or the check, came to no end), `unsealed`, `restarts`."""
    detail: str = ""


class GoalChecked(FactBase, frozen=True, tag="goal_checked"):
    """What the check of one round came to."""

    goal_id: GoalId
    round: int
    """How many rounds have begun."""
    turn_id: TurnId | None = None
    """The turn that was the round."""
    # An open word, as above.
    by: str = "command"
    """`command` or `judge`: which of the two said it."""
    done: bool = False
    exit_code: int | None = None
    tree: str | None = None
    """The hash of the project's files behind it; None where that is not known."""
    verdict: str = ""
    """A digest of exit code and output, without times and the like."""
    progress: bool = True
    """Files have changed since the round before, and no earlier round had this verdict."""
    call_uid: CallUid | None = None
    """The run of the command; its `tool_complete` has what it printed."""
    detail: str = ""


class GoalEnded(FactBase, frozen=True, tag="goal_ended"):
    """A goal is worked for no more."""

    goal_id: GoalId
    # An open word, as above.
    reason: str
    """`done`, `no_progress`, `max_rounds`, `max_budget`, `max_time`, `cleared`."""
    detail: str = ""
