"""Facts of prompts that are sent when their time has come, with no user there."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.events.base import FactBase
from weft.ids import EntryId, ScheduleId
from weft.messages import Part


class UnattendedPermission(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the user gave to one schedule, and to nothing else: a round that begins when no user is
    there has this mode and these grants.
    """

    mode: str = "default"
    grants: tuple[str, ...] = ()
    """Patterns that are allowed, as `permission_resolved` has them."""
    # A log may come from elsewhere: what it says was given counts only with a seal of this user's.
    seal: str = ""
    """HMAC-SHA256 over all that was given, and to what."""


class InputScheduled(FactBase, frozen=True, tag="input_scheduled"):
    """A prompt is to be sent at a time, once or again and again."""

    schedule_id: ScheduleId
    due: float
    """Wall-clock seconds of the first round."""
    parts: tuple[Part, ...]
    every: float | None = None
    """Seconds between two rounds; None for one round alone."""
    max_rounds: int | None = None
    ends: float | None = None
    """No round begins after this time."""
    options: dict[str, Any] = {}
    """Of each turn, as in `turn_started`."""
    permission: UnattendedPermission | None = None
    by: str = ""
    """The client that asked for it; empty for a program that did not attach."""


# In one append with the turn that the round begins, or with the follow-up that is queued for it: so
# a round happens once, whenever the process dies.
class ScheduleFired(FactBase, frozen=True, tag="schedule_fired"):
    """A round of a schedule has begun."""

    schedule_id: ScheduleId
    round: int
    """Counted from 1."""
    due: float
    """When it was due."""
    missed: int = 0
    """Rounds that were due after it and before now, which this one stands for too."""
    entry_id: EntryId | None = None
    """The follow-up that it is, where a turn was at work; None where it began one."""


class ScheduleEnded(FactBase, frozen=True, tag="schedule_ended"):
    """No further round begins."""

    schedule_id: ScheduleId
    # An open word: an older program shows a later one as it is.
    reason: str
    """`done` (it was for one time), `cancelled`, `max_rounds`, or `ended` (its last day came)."""
    detail: str = ""
