"""The goal of a session: where it stands, and what comes next for it."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from weft.events import (
    AnyFact,
    GoalChecked,
    GoalEnded,
    GoalPaused,
    GoalSet,
    ModelCallStarted,
    PermissionRequest,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    SessionRestarted,
    TurnFinished,
    TurnStarted,
    TurnWaiting,
    TurnWoken,
)
from weft.ids import TurnId
from weft.state.turn import GONE_ON_BY_USER

GOAL_OPTION: Final = "goal"
"""The option of a turn that is a round: the id of its goal."""
REMEMBERED_CHECKS: Final = 30
REMEMBERED_RESTARTS: Final = 10
_STOPS: Final = frozenset({"aborted", "auth_error", "provider_error", "context_overflow"})
"""Ends of a turn that pause a goal: the user wants it, or another round would end the same way."""
SHORT_DETAIL: Final = 300
"""Characters of what an earlier check printed; of the last one all is kept."""


GOAL_TIMED: Final = frozenset(
    {
        *(GoalChecked, GoalEnded, GoalPaused, TurnStarted, TurnFinished, TurnWaiting, TurnWoken),
        *(ModelCallStarted, PermissionRequest, PermissionResolved, QuestionAsked, QuestionAnswered),
        SessionRestarted,
    }
)
"""Facts from which on the time of a goal is counted anew."""


class SessionGoal(msgspec.Struct):
    """The one goal of a session, active, paused or ended."""

    goal: GoalSet | None = None
    """Its newest revision; None where there never was one."""
    began: float = 0.0
    cost_before: float = 0.0
    """What the session had cost when it began."""
    next: Literal["round", "check"] = "round"
    """What is to come, or to be done again where it was cut off."""
    turn_id: TurnId | None = None
    """The round that is open."""
    last_turn: TurnId | None = None
    """The round that ended last; None again when a user has it go on with the next one."""
    rounds: int = 0
    """How many have begun."""
    checked: tuple[GoalChecked, ...] = ()
    """The last checks, oldest first."""
    verdicts: dict[str, bool] = {}
    idle: int = 0
    """Rounds in a row without progress."""
    paused: GoalPaused | None = None
    ended: GoalEnded | None = None
    trouble: str = ""
    """How the last turn ended, where that pauses the goal."""
    restarts: tuple[float, ...] = ()
    """When it went on in another process."""
    seconds: float = 0.0
    """How long it was worked for, until `since`."""
    since: float | None = None
    """From when on time counts that is not in `seconds`; None while it does not."""
    holds: dict[str, bool] = {}
    """Waits and questions that are open: their time does not count."""

    # -- what is asked of it

    @property
    def is_open(self) -> bool:
        """Whether there is one that has not ended."""
        return self.goal is not None and self.ended is None

    @property
    def is_active(self) -> bool:
        """Whether something is done for it by itself."""
        return self.is_open and self.paused is None

    @property
    def wake_at(self) -> float | None:
        """Since when it is due, where no process works for it."""
        return self.began if self.is_active else None

    @property
    def round_at_work(self) -> GoalSet | None:
        """The goal, while one of its rounds is the open turn."""
        return self.goal if self.turn_id is not None else None

    def elapsed(self, now: float) -> float:
        """How many seconds it has been worked for."""
        return self.seconds + (max(0.0, now - self.since) if self.since is not None else 0.0)

    def has_other_verdict(self, verdict: str) -> bool:
        """Whether no earlier round had this one."""
        return verdict not in self.verdicts

    # -- facts

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        if isinstance(fact, GoalSet):
            self._set(fact)
        elif self.goal is None or _is_of_another(fact, self.goal):
            return
        elif self.ended is None:
            self._count(fact)
            self._apply(fact)
        elif isinstance(fact, TurnFinished) and fact.turn_id == self.turn_id:
            # The round goes on when its goal is cleared; to the turns behind it nothing is lent.
            self.turn_id, self.last_turn = None, fact.turn_id

    def _set(self, fact: GoalSet) -> None:
        is_edit = self.goal is not None and self.goal.goal_id == fact.goal_id
        if not is_edit:
            fresh = SessionGoal()
            for name in self.__struct_fields__:
                setattr(self, name, getattr(fresh, name))
            self.began = self.since = fact.at
        self.goal, self.idle = fact, 0

    def _apply(self, fact: AnyFact) -> None:
        match fact:
            case TurnStarted(turn_id=turn_id, options=options):
                assert self.goal is not None
                if options.get(GOAL_OPTION) == self.goal.goal_id:
                    self.turn_id, self.rounds = turn_id, self.rounds + 1
            case TurnFinished(turn_id=turn_id, finish_reason=reason, detail=detail):
                self._turn_ended(turn_id, reason, detail)
            case GoalChecked(verdict=verdict, progress=progress):
                self.checked = (*map(_shortened, self.checked), fact)[-REMEMBERED_CHECKS:]
                self.verdicts = {**self.verdicts, verdict: True}
                self.idle = 0 if progress else self.idle + 1
                self.next = "round"
            case GoalPaused(paused=paused):
                self.paused, self.trouble = (fact if paused else None), ""
                if not paused:
                    self._looked_at()
            case GoalEnded():
                self.ended = fact
            case SessionRestarted(at=at, reason=reason) if reason != GONE_ON_BY_USER:
                self.restarts = (*self.restarts, at)[-REMEMBERED_RESTARTS:]
            case _:
                pass

    def _looked_at(self) -> None:
        """A user has it go on: what was in the way is not held against it any more."""
        self.restarts = ()
        if self.next == "round":
            self.last_turn = None

    def _turn_ended(self, turn_id: TurnId, reason: str, detail: str) -> None:
        is_stopped = reason in _STOPS
        if turn_id == self.turn_id:
            self.turn_id, self.last_turn = None, turn_id
            self.next = "round" if is_stopped else "check"
        if is_stopped and self.paused is None:
            self.trouble = f"{reason}: {detail}" if detail else reason

    # -- time

    def _count(self, fact: AnyFact) -> None:
        match fact:
            case TurnWaiting(wait_id=name):
                held = {**self.holds, name: True}
            case PermissionRequest(request_id=name) | QuestionAsked(request_id=name):
                held = {**self.holds, name: True}
            case TurnWoken(wait_id=name):
                held = {each: True for each in self.holds if each != name}
            case PermissionResolved(request_id=name) | QuestionAnswered(request_id=name):
                held = {each: True for each in self.holds if each != name}
            case TurnFinished():
                held = {}
            case _:
                held = self.holds
        # Between the last fact of a process and the first of the next one nothing was done.
        if self.since is not None and not isinstance(fact, SessionRestarted):
            self.seconds += max(0.0, fact.at - self.since)
        self.holds = held
        is_paused = self.paused is not None
        if isinstance(fact, GoalPaused):
            is_paused = fact.paused
        is_over = is_paused or isinstance(fact, GoalEnded)
        self.since = None if held or is_over else fact.at


def _is_of_another(fact: AnyFact, goal: GoalSet) -> bool:
    """Whether it is of the goal before: one was cleared, and a check of it ended later."""
    return isinstance(fact, GoalChecked | GoalPaused | GoalEnded) and fact.goal_id != goal.goal_id


def _shortened(checked: GoalChecked) -> GoalChecked:
    if len(checked.detail) <= SHORT_DETAIL:
        return checked
    return msgspec.structs.replace(checked, detail=checked.detail[-SHORT_DETAIL:])
