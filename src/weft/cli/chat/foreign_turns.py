"""Whether the turn that runs was begun by another process.

What the user types steers a turn of this chat.  In a turn that a command line waits for, the model
would answer the chat instead, and the command line would print that: so what is typed then waits
for the turn's end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import anyio

from weft.events import (
    Event,
    FactBase,
    InputPromoted,
    InputQueued,
    NewMessage,
    TurnFinished,
    TurnStarted,
    UnknownFact,
)
from weft.ids import EntryId, InputId, TurnId

CATCH_UP_SECONDS = 2.0
"""How long the events may be behind; without them what is typed is taken to meet our own turn."""


ANY_TURN: Final = TurnId("")
"""The turn that runs, where its id is not known."""


class ForeignTurns:
    """Follows a session's facts, and knows what others began by the ids that are not ours.

    What the session begins by itself, as when a background command has ended, has no id.
    """

    def __init__(
        self, seq: int = 0, running: TurnId | None = None, waiting: Iterable[EntryId] = ()
    ) -> None:
        """`running` is the turn that another process is at work on when we come, after `seq`, and
        `waiting` are the messages that are queued there.
        """
        self._seq = seq
        self._foreign = running
        self._sent: set[InputId] = set()
        self._queued: set[InputId] = set()
        self._entries: set[EntryId] = set(waiting)
        """Queued messages of others."""
        self._begins = False
        """The append that is being taken in was asked for by another process."""
        self._taken = anyio.Event()

    def sent(self, input_id: InputId) -> None:
        """This one is ours."""
        self._sent.add(input_id)

    def was_queued(self, input_id: InputId) -> bool:
        """True for a message of ours that was accepted while a turn ran."""
        return input_id in self._queued

    def are_ours(self, entries: Iterable[str]) -> bool:
        """True when no other process has queued any of these messages."""
        return self._entries.isdisjoint(map(EntryId, entries))

    @property
    def has_foreign(self) -> bool:
        """True while a turn that another process began is at work."""
        return self._foreign is not None

    def is_foreign(self, turn_id: TurnId) -> bool:
        """True when another process began this turn."""
        return turn_id == self._foreign

    async def caught_up(self, seq: int) -> None:
        """Wait, not for long, until the facts up to this one were taken in."""
        # The state is ahead of the events that a screen has shown: a turn that has just begun
        # would pass for ours.
        with anyio.move_on_after(CATCH_UP_SECONDS):
            while self._seq < seq:
                await self._taken.wait()

    def take(self, event: Event) -> None:
        """Take one more event in."""
        if isinstance(event, FactBase | UnknownFact):
            self._seq = event.seq
            self._taken.set()
            self._taken = anyio.Event()
        if not isinstance(event, FactBase):
            return
        if event.cause is not None:
            # On the first fact of an append; the start of the turn is a later one.
            self._begins = event.cause.input_id not in self._sent
        match event:
            case InputQueued(entry_id=entry_id, cause=cause):
                if self._begins:
                    self._entries.add(entry_id)
                elif cause is not None:
                    self._queued.add(cause.input_id)
                self._begins = False
            case InputPromoted(entries=entries):
                self._begins = self._begins or not self._entries.isdisjoint(entries)
                self._entries.difference_update(entries)
            case TurnStarted(turn_id=turn_id):
                self._foreign = turn_id if self._begins else None
                self._begins = False
            case TurnFinished(turn_id=turn_id) if self._foreign in (turn_id, ANY_TURN):
                self._foreign = None
            case NewMessage():
                pass
            case _:
                self._begins = False
