"""Child sessions, which work for this one: sub-agents, candidates, steps of a plan."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from weft.events import AnyFact, ChildFinished, ChildStarted, FinishReason, TurnStarted
from weft.ids import CallUid, NodeId, SessionId, TurnId
from weft.messages import NOTHING_USED, Usage

ChildPurpose: TypeAlias = Literal["agent", "candidate", "step"]


class ChildSession(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is known of one child."""

    purpose: ChildPurpose = "agent"
    name: str = ""
    background: bool = False
    call_uid: CallUid | None = None
    node: NodeId | None = None
    turn_id: TurnId | None = None
    """The turn it was started in."""
    reason: FinishReason | None = None
    """How it ended; None while it is at work."""
    descendants: int = 0
    counted: dict[str, Usage] = {}
    """What the ledger has of it, by model.

    A child that goes on after an end is counted from there.
    """

    @property
    def is_open(self) -> bool:
        """True while no end of it is on record."""
        return self.reason is None


class ChildSessions(msgspec.Struct):
    """All children by their session id, oldest first."""

    known: dict[SessionId, ChildSession] = {}
    turn_id: TurnId | None = None
    """The newest turn."""

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        match fact:
            case TurnStarted(turn_id=turn_id):
                self.turn_id = turn_id
            case ChildStarted():
                self._started(fact)
            case ChildFinished(child=child):
                if (known := self.known.get(child)) is not None:
                    known.reason = fact.finish_reason
                    # A child that goes on reports its descendants again, old ones included; of its
                    # usage a second end reports only what is new.
                    known.descendants = max(known.descendants, fact.descendants)
                    _count(known, fact)
            case _:
                pass

    def _started(self, fact: ChildStarted) -> None:
        earlier = self.known.get(fact.child)
        if earlier is not None:  # a step that was stopped goes on with the same session
            earlier.reason = None
            earlier.turn_id = self.turn_id
            return
        self.known[fact.child] = ChildSession(
            purpose=fact.purpose,
            name=fact.name,
            background=fact.background,
            call_uid=fact.call_uid,
            node=fact.node,
            turn_id=self.turn_id,
        )

    def for_call(self, call_uid: CallUid) -> SessionId | None:
        """The child that works (or worked) for a call."""
        found = (child for child, about in self.known.items() if about.call_uid == call_uid)
        return next(found, None)

    def at_work(self, *, background: bool) -> list[SessionId]:
        """The children without an end on record."""
        return [
            child
            for child, about in self.known.items()
            if about.is_open and about.background == background
        ]


def _count(child: ChildSession, fact: ChildFinished) -> None:
    # A fact may hold only the sum; it counts under no model.
    models = fact.models or ({"": fact.usage} if fact.usage is not None else {})
    for model, usage in models.items():
        child.counted[model] = child.counted.get(model, NOTHING_USED) + usage
