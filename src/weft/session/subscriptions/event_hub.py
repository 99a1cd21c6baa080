"""The hub of a session's events: which subscribers get which, in the process that owns the session
and in those that watch it from outside.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Literal

from weft.actors import Hub, Inbox
from weft.events import AT_WORK, STATUS_SIGNALS, AnyFact, Event, SessionStatus, Signal
from weft.session.subscriptions.subscription import Subscription
from weft.store import Draft, Store

RECENT_BYTES = 16 * 1024
"""What the facts may weigh that are kept for subscribers that are a little behind."""


class RecentFacts:
    """The last few facts of a session, as many as weigh little."""

    def __init__(self) -> None:
        self._facts: deque[tuple[AnyFact, int]] = deque()
        self._weight = 0

    def add(self, fact: AnyFact, weight: int) -> None:
        """Take in the newest; the oldest go when all together are too heavy."""
        # After a failed append the state is read from the log again, and may have gone further.
        if self._facts and self._facts[-1][0].seq + 1 != fact.seq:
            self._facts.clear()
            self._weight = 0
        self._facts.append((fact, weight))
        self._weight += weight
        while self._weight > RECENT_BYTES:
            self._weight -= self._facts.popleft()[1]

    def between(self, after: int, upto: int) -> list[AnyFact]:
        """All facts after the one and up to the other; none when some of them are not here."""
        found = [fact for fact, _ in self._facts if after < fact.seq <= upto]
        return found if len(found) == upto - after else []


class EventHub:
    """Facts and the status go to every subscriber, other signals to those that want live ones."""

    def __init__(
        self,
        session_id: str,
        store: Store,
        *,
        applied: Callable[[], int],
        drafts: Callable[[], tuple[Draft, ...]] = tuple,
    ) -> None:
        """`applied` is the `seq` of the last fact that the session's state holds, `drafts` are its
        answers in flight.
        """
        self._session_id = session_id
        self._store = store
        self._applied = applied
        self._drafts = drafts
        self._facts: Hub[Event] = Hub()
        self._signals: Hub[Event] = Hub()
        self._work: Hub[Event] = Hub()
        """Those that are told what a turn does while it goes on."""
        self._recent = RecentFacts()
        self.has_live_readers = self._signals.has_readers
        """Whether a subscriber wants what is not stored."""

    @property
    def is_read(self) -> bool:
        """True while there is a subscriber."""
        return self._facts.has_readers()

    def publish(self, fact: AnyFact, weight: int) -> None:
        """Hand out a fact that was applied."""
        self._recent.add(fact, weight)
        self._facts.publish(fact, weight)

    def wants(self, signal: Signal) -> bool:
        """True while a subscriber would get it."""
        return self._readers_of(signal).has_readers()

    def publish_signal(self, signal: Signal, weight: int) -> None:
        """Hand out what is not stored."""
        self._readers_of(signal).publish(signal, weight)

    def _readers_of(self, signal: Signal) -> Hub[Event]:
        # First, for the pieces of answers: there are thousands of them.
        if not isinstance(signal, STATUS_SIGNALS):
            return self._signals
        if isinstance(signal, SessionStatus) and signal.status in AT_WORK:
            return self._work
        # Any other status goes to every subscriber, so that one that waits for a turn learns when
        # it stops short.
        return self._facts

    def subscribe(
        self,
        *,
        after: int | None,
        live: bool | Literal["status"],
        closed: bool,
        retell: bool = False,
    ) -> Subscription:
        """Read events: those after the cursor, or (None) those from now on.

        Live ones too, only the status, or none; with `retell`, the answers in flight anew after a
        loss.
        """
        # Before the place in the log is looked at: what is applied from now on is in the inbox.
        inbox = self._facts.open_inbox()
        if live is True:
            self._signals.add(inbox)
        if live is not False:
            self._work.add(inbox)
        # A subscriber of a stopped session still reads the log to its end.
        if closed:
            inbox.close()
        applied = self._applied()
        start = applied if after is None else after
        # Whoever waits for the message that it has just sent is a few facts behind: those are here,
        # and need not be read.
        known = self._recent.between(start, applied)
        return Subscription(
            inbox,
            self._store,
            self._session_id,
            after=start,
            close=self._drop_inbox,
            mute=self._work.leave_out,
            applied=self._applied,
            behind=start + len(known) < applied,
            known=known,
            live=live,
            drafts=self._drafts if retell else None,
        )

    def _drop_inbox(self, inbox: Inbox[Event]) -> None:
        for hub in (self._facts, self._signals, self._work):
            hub.drop(inbox)

    def close(self) -> None:
        """End all subscriptions."""
        for hub in (self._facts, self._signals, self._work):
            hub.close()
