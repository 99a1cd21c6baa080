"""Prompts that are to be sent when their time has come."""

from __future__ import annotations

import math

import msgspec

from weft.events import (
    AnyFact,
    InputEdited,
    InputPromoted,
    InputRemoved,
    InputScheduled,
    ScheduleEnded,
    ScheduleFired,
    TurnFinished,
)
from weft.ids import EntryId, ScheduleId


class OpenSchedule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A schedule with a round to come."""

    scheduled: InputScheduled
    due: float
    """When the next round begins."""
    rounds: int = 0
    """Rounds that have begun."""
    entry_id: EntryId | None = None
    """The follow-up that the last round is, where a turn was at work."""

    def is_over(self, now: float) -> bool:
        """Whether no round begins any more: by now its end has passed."""
        return self.scheduled.ends is not None and now > self.scheduled.ends

    def missed(self, now: float) -> int:
        """How many rounds were due after the next one and before now."""
        every, last = self.scheduled.every, now
        if every is None:
            return 0
        if self.scheduled.ends is not None:
            last = min(last, self.scheduled.ends)
        return max(0, math.floor((last - self.due) / every))

    def after(self, fired: ScheduleFired) -> OpenSchedule:
        """The schedule when this round has begun."""
        every = self.scheduled.every or 0.0
        return msgspec.structs.replace(
            self,
            due=fired.due + every * (fired.missed + 1),
            rounds=fired.round,
            entry_id=fired.entry_id,
        )


class PromptSchedules(msgspec.Struct):
    """All schedules that have not ended, and whose round the open turn is."""

    open: dict[ScheduleId, OpenSchedule] = {}
    queued: dict[EntryId, InputScheduled] = {}
    """Rounds that wait behind a turn."""
    running: InputScheduled | None = None
    """What the open turn is a round of."""

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        match fact:
            case InputScheduled(schedule_id=schedule_id, due=due):
                self.open[schedule_id] = OpenSchedule(scheduled=fact, due=due)
            case ScheduleFired():
                self._fired(fact)
            case ScheduleEnded(schedule_id=schedule_id):
                self.open.pop(schedule_id, None)
            case InputPromoted(entries=entries):
                for entry_id in entries:
                    self.running = self.queued.pop(entry_id, self.running)
            case InputEdited(entry_id=entry_id) | InputRemoved(entry_id=entry_id):
                self._taken_over(entry_id)
            case TurnFinished():
                self.running = None
            case _:
                pass

    def _taken_over(self, entry_id: EntryId) -> None:
        """A round that waits is no round any more: its words are others, and what was given to it
        was given to those that the schedule says.
        """
        scheduled = self.queued.pop(entry_id, None)
        known = None if scheduled is None else self.open.get(scheduled.schedule_id)
        if known is not None and known.entry_id == entry_id:
            changed = msgspec.structs.replace(known, entry_id=None)
            self.open[known.scheduled.schedule_id] = changed

    def _fired(self, fact: ScheduleFired) -> None:
        known = self.open.get(fact.schedule_id)
        if known is None:
            return
        self.open[fact.schedule_id] = known.after(fact)
        if fact.entry_id is None:
            self.running = known.scheduled
        else:
            self.queued[fact.entry_id] = known.scheduled

    @property
    def next_due(self) -> float | None:
        """When the next round of any of them begins."""
        return min((each.due for each in self.open.values()), default=None)

    def overdue(self, now: float) -> list[OpenSchedule]:
        """Those whose next round is to begin by now, the one due longest first."""
        due = [each for each in self.open.values() if each.due <= now]
        return sorted(due, key=lambda each: each.due)
