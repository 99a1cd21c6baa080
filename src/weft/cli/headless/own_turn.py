"""Which of a session's turns is the one that this run asked for.

Other processes may talk to the same session: what their turns say and ask is not ours to print, to
answer or to abort.
"""

from __future__ import annotations

from weft.events import (
    Event,
    FactBase,
    InputPromoted,
    InputQueued,
    TurnFinished,
    TurnStarted,
)
from weft.ids import EntryId, TurnId


class OwnTurn:
    """Follows a session's facts, and knows our turn by the id that our message was sent under."""

    def __init__(self, input_id: str, running: TurnId | None, *, continues: bool) -> None:
        """`running` is the turn that is open when we come; with `continues` it becomes ours."""
        self.input_id = input_id
        self._running = running
        self._began_ours = False
        self._is_promoted = False
        self.queued: EntryId | None = None
        """Our message, while it waits for its turn."""
        self.turn_id: TurnId | None = running if continues else None

    @property
    def is_foreign(self) -> bool:
        """A turn runs that is not ours."""
        return self._running is not None and self._running != self.turn_id

    def take(self, event: Event) -> None:
        """Take one more event in."""
        if not isinstance(event, FactBase):
            return
        if event.cause is not None and event.cause.input_id == self.input_id:
            # The cause is on the first fact of an append; the turn's start may be a later one.
            self._began_ours = True
        match event:
            case InputQueued(entry_id=entry_id) if self._began_ours and self.turn_id is None:
                self.queued, self._began_ours = entry_id, False
            case InputPromoted(entries=entries) if self.queued in entries:
                self.queued, self._is_promoted = None, True
            case TurnStarted(turn_id=turn_id):
                self._start(turn_id)
            case TurnFinished(turn_id=turn_id) if turn_id == self._running:
                self._running = None
            case _:
                pass

    def _start(self, turn_id: TurnId) -> None:
        self._running = turn_id
        if self.turn_id is None and (self._began_ours or self._is_promoted):
            self.turn_id = turn_id
