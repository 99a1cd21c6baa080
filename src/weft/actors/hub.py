"""Publish and subscribe: events to many readers, without ever waiting for one.

Each reader has a bounded inbox.  One that falls behind loses what does not fit and can see it:
`Inbox.lost` counts, and a reader that needs every event reads the missed ones from where they are
stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")

CAPACITY = 1024
"""Events one reader may leave unread."""
MOST_WEIGHT = 4 * 1024 * 1024
"""What they may weigh together.

How much one weighs is said when it is published, in bytes or characters.
"""


class Inbox(Generic[T]):
    """What one reader has not read yet."""

    __slots__ = (
        "_arrived",
        "_capacity",
        "_events",
        "_waiting",
        "_weight",
        "abandoned",
        "closed",
        "lost",
    )

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._events: deque[tuple[T, int]] = deque()
        self._weight = 0
        self._arrived = anyio.Event()
        self._waiting = False
        self.lost = 0
        """Events dropped since `forget_loss`."""
        self.closed = False
        self.abandoned = False
        """Set by a reader's finalizer, which may run in any thread and in the middle of `publish`:
        it marks, the hub removes.
        """

    def put(self, event: T, weight: int = 0) -> None:
        """Add an event; when full, everything unread is dropped and counted.

        An empty inbox takes any one event.
        """
        unread = len(self._events)
        # Everything unread goes, not only the oldest: the reader goes back to the store for what it
        # missed, and after that the inbox must continue without a gap.
        if unread >= self._capacity or (unread and self._weight + weight > MOST_WEIGHT):
            self.lost += unread + 1
            self.drop_all()
        else:
            self._events.append((event, weight))
            self._weight += weight
        self._wake()

    def forget_loss(self) -> None:
        """The reader has made up for what it lost."""
        self.lost = 0

    def take_nowait(self) -> T | None:
        """The next event, None when there is none."""
        if not self._events:
            return None
        event, weight = self._events.popleft()
        self._weight -= weight
        return event

    def drop_where(self, is_void: Callable[[T], bool]) -> None:
        """Throw away those of the unread that are void."""
        self._events = deque(each for each in self._events if not is_void(each[0]))
        self._weight = sum(weight for _, weight in self._events)

    def drop_all(self) -> None:
        """Throw away what is unread."""
        self._events.clear()
        self._weight = 0

    async def wait(self) -> None:
        """Wait until there is something to read, something was lost, or the inbox is closed."""
        # No await between this check and the wait, so no event can slip in between.
        if self._events or self.lost or self.closed:
            return
        # An anyio event cannot be reset. A new one for each wait, not for each `put`, which runs
        # for every event and every reader.
        self._arrived = anyio.Event()
        self._waiting = True
        try:
            await self._arrived.wait()
        finally:
            self._waiting = False

    def close(self) -> None:
        """No more events will come."""
        self.closed = True
        self._wake()

    def _wake(self) -> None:
        if self._waiting:
            self._arrived.set()


class Hub(Generic[T]):
    """The readers of one topic."""

    def __init__(self) -> None:
        # A dict as a set that keeps its order: readers get an event in the order in which they
        # came.
        self._inboxes: dict[Inbox[T], None] = {}

    def __len__(self) -> int:
        return sum(not inbox.abandoned for inbox in tuple(self._inboxes))

    def has_readers(self) -> bool:
        """Whether an event would be read; readers that were abandoned are let go."""
        if not self._inboxes:
            return False
        for inbox in tuple(self._inboxes):
            if inbox.abandoned:
                self.drop(inbox)
        return bool(self._inboxes)

    def open_inbox(self, capacity: int = CAPACITY) -> Inbox[T]:
        """Start reading; events published from now on arrive."""
        inbox: Inbox[T] = Inbox(capacity)
        self._inboxes[inbox] = None
        return inbox

    def add(self, inbox: Inbox[T]) -> None:
        """Let an inbox that is open elsewhere receive these events too."""
        self._inboxes[inbox] = None

    def leave_out(self, inbox: Inbox[T]) -> None:
        """Hand these events to an inbox no more; it stays open for those of other hubs."""
        self._inboxes.pop(inbox, None)

    def drop(self, inbox: Inbox[T]) -> None:
        """Stop reading."""
        self._inboxes.pop(inbox, None)
        inbox.close()

    def publish(self, event: T, weight: int = 0) -> None:
        """Hand an event to every reader; never waits, never fails."""
        # A copy: dropping an abandoned reader changes the dict, and a dict must not change while it
        # is iterated over.
        for inbox in tuple(self._inboxes):
            if inbox.abandoned:
                self.drop(inbox)
            else:
                inbox.put(event, weight)

    def close(self) -> None:
        """End all readers."""
        for inbox in tuple(self._inboxes):
            inbox.close()
        self._inboxes.clear()
