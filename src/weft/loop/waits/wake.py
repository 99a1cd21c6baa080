"""What ends a wait: decided from the state and from the facts that are about to be appended."""

from __future__ import annotations

import msgspec

from weft.events import (
    ChildFinished,
    CommandEnd,
    Fact,
    InputQueued,
    SystemNote,
    TurnFinished,
    TurnWaiting,
    TurnWoken,
)
from weft.loop.base import Commit
from weft.state import SessionState


def woken_fact(wait: TurnWaiting, by: str) -> TurnWoken:
    """The end of a wait."""
    return TurnWoken(wait_id=wait.wait_id, turn_id=wait.turn_id, by=by)


def with_wake(state: SessionState, commit: Commit) -> Commit:
    """The same commit, and with it the end of the wait that it ends, if there is one."""
    wait = state.turn.asleep
    if wait is None or any(isinstance(fact, TurnFinished | TurnWoken) for fact in commit.facts):
        return commit
    by = min((by for fact in commit.facts if (by := _wakes(wait, fact))), key=_rank, default="")
    if not by:
        return commit
    return msgspec.structs.replace(commit, facts=(*commit.facts, woken_fact(wait, by)))


def _rank(by: str) -> int:
    # An agent's end and the message that reports it are one append: it ended by what it was for.
    return int(by == "message")


def _wakes(wait: TurnWaiting, fact: Fact) -> str:
    """What a fact is to a wait; empty when it is nothing to it."""
    match fact:
        case SystemNote(background=CommandEnd(id=name)) if wait.on.name == name:
            return "command"
        case ChildFinished(child=child) if wait.on.name == child:
            return "agent"
        # Follow-ups are for later: whoever sends one wants the turn to come to its end first.
        case InputQueued(delivery="steering"):
            return "message"
        case _:
            return ""
