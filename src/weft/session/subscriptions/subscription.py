"""Reading a session's events with a cursor: what was missed, then what comes; no gap, no repeat.

A subscription reads from its inbox as long as it keeps up.  The `seq` of each fact tells whether
one is missing; then, and after a loss, it reads on from the log and goes back to the inbox when it
has caught up.  A reader that stalls therefore costs the session nothing but a bounded inbox.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Literal, Self

from weft.actors import Inbox
from weft.events import STATUS_SIGNALS, AnyFact, Event, FactBase, Signal, UnknownFact, decode
from weft.ids import SessionId
from weft.session.log.answer_in_flight import is_of_answer, told_again
from weft.store import Draft, Store

# Small enough that a slow reader does not hold a whole log in memory.
PAGE = 500


class Subscription:
    """An async iterator over events.

    An object, not a generator: leaving the loop at any point is safe.
    """

    def __init__(
        self,
        inbox: Inbox[Event],
        store: Store,
        stream: str,
        *,
        after: int,
        close: Callable[[Inbox[Event]], None],
        mute: Callable[[Inbox[Event]], None],
        applied: Callable[[], int],
        behind: bool = True,
        known: Iterable[AnyFact] = (),
        live: bool | Literal["status"] = True,
        drafts: Callable[[], tuple[Draft, ...]] | None = None,
    ) -> None:
        """`known`: the first facts after the cursor, where they are at hand; with `behind`, there
        are more of them in the log.  `drafts`: the answers in flight, which are handed out anew
        after a loss.
        """
        self._inbox = inbox
        self._store = store
        self._stream = stream
        self._close = close
        self._mute = mute
        self._applied = applied
        """The last fact that the session itself has applied: no subscriber gets one before that."""
        # What is applied from now on is in the inbox, between the signals that came before and
        # after it. Read from the log it would overtake the pieces of the answer that it ends.
        self._upto = applied()
        """The last fact that is read from the log."""
        self._drafts = drafts
        self._retold: deque[Signal] = deque()
        self._behind = behind
        self._live = live
        self._from_log: deque[AnyFact] = deque(known)
        self.cursor = after
        """The last fact that was handed out; a new subscription after it misses nothing."""

    def leave_out_work(self) -> None:
        """Hand out no status that says that a turn goes on.

        For a reader that does not show it: each one would wake it up for nothing.
        """
        self._mute(self._inbox)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while True:
            if self._from_log:
                return self._hand_out(self._from_log.popleft())
            if self._behind or self._inbox.lost:
                await self._read_log()
                continue
            if self._retold:
                return self._retold.popleft()
            event = self._inbox.take_nowait()
            if event is None:
                # The end of the log, for a reader of what is stored: what was appended meanwhile
                # has been handed out, for the inbox was opened before the log was read.
                if self._live is False:
                    self.close()
                if self._inbox.closed:
                    raise StopAsyncIteration
                await self._inbox.wait()
                continue
            if not isinstance(event, (FactBase, UnknownFact)):
                if self._live is True or (self._live and isinstance(event, STATUS_SIGNALS)):
                    return event
                continue
            # Read from the log already: the inbox was filled while the log was read.
            if event.seq <= self.cursor:
                continue
            if event.seq == self.cursor + 1:
                return self._hand_out(event)
            # A gap: the inbox dropped something in between. The event is not kept, for the log has
            # it.
            self._behind = True
            self._upto = event.seq

    def _hand_out(self, fact: AnyFact) -> AnyFact:
        self.cursor = fact.seq
        return fact

    async def _read_log(self) -> None:
        """Read what is missing; at the log's end the inbox takes over again."""
        if self._inbox.lost:
            # Before the read: a loss that happens while it runs must be seen afterwards.
            self._inbox.forget_loss()
            # What has come since the loss is void, too: the log may have the whole answer by now,
            # and the drafts have these pieces in them.
            self._inbox.drop_where(is_of_answer)
            self._behind = True
            self._upto = self._applied()
            if self._drafts is not None:
                session = SessionId(self._stream)
                self._retold = deque(told_again(self._drafts(), session, self._upto))
        records = await self._store.read(self._stream, after=self.cursor, limit=PAGE)
        # A fact can be read from the log an instant before the session has applied it; then it
        # comes through the inbox.
        known = [record for record in records if record.seq <= self._upto]
        self._from_log.extend(decode(record.body) for record in known)
        # What comes after this place is in the inbox, which was opened before the log was read:
        # that order leaves no gap.
        if len(known) < PAGE:
            self._behind = False

    @property
    def is_open(self) -> bool:
        """False once it was closed, from either side."""
        return not self._inbox.closed

    def end_with(self, event: Event) -> None:
        """Hand out one last event, and end."""
        self._inbox.put(event)
        self._close(self._inbox)

    async def aclose(self) -> None:
        """Stop reading."""
        self.close()

    def close(self) -> None:
        """Stop reading."""
        self._close(self._inbox)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        # The collector calls this in whichever thread it happens to run, also while the session
        # publishes: mark, nothing else.
        self._inbox.abandoned = True
