"""The one turn, or compaction, that a session has at work: set to work in a task of its own,
stopped, watched.

The actor never waits for it.  An abort trips its scope directly; what does not settle in time is
settled by the actor, which hears of it through the mailbox like of everything else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import anyio

from weft.actors import Mailbox, Supervisor, without_foreign_cancel
from weft.errors import WeftError
from weft.events import FinishReason
from weft.ids import EntryId, TurnId
from weft.loop import SessionWork, TurnJournal
from weft.session.work.mailbox_messages import AbortOverdue, Message, TimeOverdue, TurnEnded
from weft.state import SessionState

TELL_SECONDS: Final = 3.0
"""How long it may take to tell the session that a child works for of the end of its turn."""


class RunningWork:
    """What is at work, if anything is."""

    def __init__(
        self,
        mailbox: Mailbox[Message],
        supervisor: Supervisor,
        abort_seconds: float,
        turn_ended: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._mailbox = mailbox
        self._turn_ended = turn_ended
        self._supervisor = supervisor
        self._abort_seconds = abort_seconds
        self.turn: SessionWork | None = None
        self._journal: TurnJournal | None = None
        self.is_aborting = False
        """The work that runs, or ran last, was aborted."""
        self.abort_reason = ""
        """Why it was aborted."""
        self.queued_before: frozenset[EntryId] = frozenset()
        """What was in the queue when the work that runs, or ran last, began."""
        self.settled = anyio.Event()
        self._time_watch: anyio.CancelScope | None = None

    def start(self, work: SessionWork, journal: TurnJournal, state: SessionState) -> None:
        """Set something to work that writes through this journal."""
        self.turn = work
        self._journal = journal
        self.is_aborting = False
        self.queued_before = frozenset(state.queue.entries)
        # A new event for each piece of work: one that is set cannot be waited for again.
        self.settled = anyio.Event()
        self._supervisor.start(lambda: self._run(work), f"turn {work.turn_id}")

    def is_written_by(self, journal: TurnJournal) -> bool:
        """True while the work that runs is the one that this journal belongs to."""
        return self.turn is not None and journal is self._journal

    async def _run(self, turn: SessionWork) -> None:
        error: BaseException | None = None
        try:
            await without_foreign_cancel(turn.run())
        except Exception as failure:
            error = failure
        if self._turn_ended is not None:
            # Before its end is known to those who wait for it: a program that runs one turn is gone
            # then.  Bounded, since the session that is told may live elsewhere.
            with anyio.CancelScope(shield=True), anyio.move_on_after(TELL_SECONDS):
                await self._turn_ended()
        # Without waiting for room: an end that is lost would leave the session busy for ever, and
        # behind a slow disk a thousand commands may wait.
        with suppress(WeftError):  # the session is gone
            self._mailbox.post_now(TurnEnded(turn, error))

    def release(self) -> SessionWork | None:
        """It is over; returns what it was."""
        self.forget_time()
        # Cleared before the event is set: those who wake look whether a turn runs.
        work, self.turn = self.turn, None
        self.settled.set()
        return work

    def drop(self) -> None:
        """Stop it and forget it: what it still writes is refused."""
        self.forget_time()
        if self.turn is not None:
            self.turn.scope.cancel()
            self.turn = None

    def is_at(self, turn_id: TurnId | None) -> bool:
        """True while this turn is at work; None stands for any."""
        return self.turn is not None and turn_id in (None, self.turn.turn_id)

    def trip(self, reason: str, ends_as: FinishReason = "aborted") -> TurnId | None:
        """Abort it; its own clean-up settles everything.  Returns which one was aborted."""
        if self.turn is None:
            return None
        self.turn.ends_as = ends_as
        # Before the cancel: the clean-up that it starts writes the reason into the log.
        self.turn.abort_reason = self.abort_reason = reason
        self.is_aborting = True
        self.turn.scope.cancel()
        return self.turn.turn_id

    def stop_after_step(self, is_wanted: bool) -> TurnId | None:
        """Have it end after its present step, or not any more; returns which one, if it can."""
        if self.turn is None or self.turn.is_compaction or self.is_aborting:
            return None
        self.turn.stops_after_step = is_wanted
        return self.turn.turn_id

    def suspend(self) -> None:
        """Stop it because the program closes; a turn stays open in the log, and can go on."""
        # What the user has aborted stays aborted: its clean-up is at work already.
        if self.turn is not None and not self.is_aborting:
            self.turn.is_suspended = True
            self.turn.scope.cancel()

    def watch_time(
        self, work: SessionWork, seconds: float, sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        """See to it that the actor looks at its time in so many seconds, and no sooner."""
        self.forget_time()
        scope = self._time_watch = anyio.CancelScope()

        async def look() -> None:
            with scope:
                await sleep(seconds)
                if work is self.turn:
                    with suppress(WeftError):  # the session is gone
                        self._mailbox.post_now(TimeOverdue(work))

        self._supervisor.start(look, f"time of {work.turn_id}")

    def forget_time(self) -> None:
        """Nobody looks at the time any more."""
        watch, self._time_watch = self._time_watch, None
        if watch is not None:
            watch.cancel()

    def watch_abort(self) -> None:
        """See to it that the actor hears when it does not stop in time."""
        if (turn := self.turn) is not None:
            self._supervisor.start(lambda: self._watch(turn), f"abort {turn.turn_id}")

    async def _watch(self, turn: SessionWork) -> None:
        # A tool may ignore the cancel (a thread, a foreign library). The user was promised an end
        # within a second, so that the actor then ends the turn without it.
        with anyio.move_on_after(self._abort_seconds):
            await self.settled.wait()
            return
        with suppress(WeftError):  # the session is gone
            self._mailbox.post_now(AbortOverdue(turn))

    async def wait_settled(self, turn_id: TurnId | None) -> None:
        """Wait until this turn has come to its end."""
        if self.turn is not None and self.turn.turn_id == turn_id:
            await self.settled.wait()
