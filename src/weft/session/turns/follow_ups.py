"""Which of the messages that wait is sent when a turn, or a compaction, has ended."""

from __future__ import annotations

import msgspec

from weft.events import Fact, InputPromoted, InputRemoved, QueuesRecalled
from weft.ids import EntryId
from weft.loop import SessionWork, Turn
from weft.session.work.running_work import RunningWork
from weft.state import QueueEntry, SessionState

ENDED_WELL = ("stop", "submitted")


class NextTurn(msgspec.Struct, frozen=True):
    """What starts the next turn."""

    entry: QueueEntry | None = None
    """A follow-up."""
    also_steering: bool = False
    """What was said meanwhile starts a turn too, for there was none that it could steer."""

    def __bool__(self) -> bool:
        return self.entry is not None or self.also_steering


class FollowUps:
    """Chooses the next one."""

    def __init__(self) -> None:
        self._awaited: set[EntryId] = set()
        """Those whose senders wait for the turn's end: they are sent whatever way the turn before
        ends.
        """

    def awaits(self, entry_id: EntryId) -> None:
        """The sender waits for the end of this message's turn."""
        self._awaited.add(entry_id)

    def take(self, fact: Fact) -> None:
        """No sender waits for what was taken back, and none for another turn once it has one."""
        match fact:
            case InputRemoved(entry_id=entry_id):
                self._awaited.discard(entry_id)
            case QueuesRecalled(entries=entries) | InputPromoted(entries=entries):
                self._awaited.difference_update(entries)
            case _:
                pass

    def after(self, work: SessionWork | None, state: SessionState, worker: RunningWork) -> NextTurn:
        """What comes after this work."""
        if work is not None and work.is_compaction:
            return self._after_compaction(state, worker)
        following = self.next(state)
        is_left = following.also_steering or _leaves_steering(work, state)
        return NextTurn(following.entry, is_left)

    def next(self, state: SessionState) -> NextTurn:
        """The next follow-up, if the turn ended well; else the first one whose sender waits.

        What was to steer a turn that is over, and whose sender waits, starts one, too.
        """
        if state.turn.open is not None:
            return NextTurn()
        steering = (each.entry_id for each in state.queue.waiting("steering"))
        return NextTurn(self._follow_up(state), not self._awaited.isdisjoint(steering))

    def _follow_up(self, state: SessionState) -> QueueEntry | None:
        waiting = state.queue.waiting("follow_up")
        # After an abort or an error the user looks first: what was queued for a success must not be
        # sent on top of a failure. A caller that waits in `send_message` would wait for ever.
        if state.turn.last_reason not in ENDED_WELL:
            waiting = tuple(each for each in waiting if each.entry_id in self._awaited)
        return waiting[0] if waiting else None

    def _after_compaction(self, state: SessionState, worker: RunningWork) -> NextTurn:
        """Only what was said during the compaction, and not after an abort.

        What waited before that waits on: neither a compaction nor its end is a turn that ended
        well.
        """
        new = [
            entry
            for entry_id, entry in state.queue.entries.items()
            if entry_id in self._awaited
            or (entry_id not in worker.queued_before and not worker.is_aborting)
        ]
        follow_up = next((entry for entry in new if entry.delivery == "follow_up"), None)
        return NextTurn(follow_up, any(entry.delivery == "steering" for entry in new))


def _leaves_steering(work: SessionWork | None, state: SessionState) -> bool:
    """A turn takes steering along until its end; other work has none that could be steered."""
    if isinstance(work, Turn) or not state.queue.waiting("steering"):
        return False
    return state.turn.last_reason in ENDED_WELL
