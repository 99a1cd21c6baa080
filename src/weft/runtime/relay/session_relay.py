"""The relay of events: one subscription for each session, however many read it.

Each event is encoded once.  Pieces of an answer that come within a tick are merged, and readers are
handed the same bytes.  The relay never waits for a reader: each has a bounded queue, and one that
lets it overflow is lost; it comes back with its cursor and misses nothing that is stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Final, NamedTuple, Protocol

import anyio
import anyio.abc
import msgspec

from weft.errors import StoreUnavailable, WeftError
from weft.events import (
    CommandPrinted,
    Event,
    FactBase,
    PermissionRequest,
    QuestionAsked,
    RequestOffered,
    SessionStatus,
    Status,
    TextDelta,
    ThinkingDelta,
    TokenReceived,
    ToolArgsDelta,
    ToolOutput,
    UnknownFact,
)
from weft.ids import SessionId
from weft.runtime.relay.wire_codec import EncodedEvents, encoded, encoded_drafts
from weft.session import SessionPort, Subscription
from weft.session.log.answer_in_flight import AnswersInFlight
from weft.state import OpenTurnState, Request
from weft.store import Draft

logger = logging.getLogger(__name__)

TICK_SECONDS: Final = 0.016
"""How long pieces are gathered: a frame of a screen.  What comes after a pause does not wait."""
MOST_TICKS: Final = 1_024
MOST_BYTES: Final = 4 * 1024 * 1024
"""What one reader may leave unread."""
LOG_PAGE: Final = 200
"""Facts from the log that are sent at once."""
FACTS: Final = (FactBase, UnknownFact)
ASKS: Final = (PermissionRequest, QuestionAsked)
"""For `isinstance`, which takes several times as long with a union."""


class JoinedSource(NamedTuple):
    """A session as one moment has it, for a relay."""

    drafts: tuple[Draft, ...]
    """The answers in flight."""
    requests: tuple[Request, ...]
    """What waits for an answer of the user."""
    status: Status
    """What the session does."""
    events: Subscription
    """What goes on from there, or from a cursor."""


class EventSource(Protocol):
    """A session as a relay reads it."""

    @property
    def session_id(self) -> SessionId:
        """Which one."""
        ...

    @property
    def lives_here(self) -> bool:
        """Whether its end here is its end; one of another process may be found elsewhere again."""
        ...

    async def join(self, after: int | None = None) -> JoinedSource:
        """What is in flight and open, and the events that go on from there or from a cursor."""
        ...

    async def stored(self, after: int) -> Subscription:
        """The facts after a cursor, as far as there are any."""
        ...


class PortEvents:
    """The events of a session, read through its port."""

    def __init__(self, port: SessionPort) -> None:
        self._port = port
        self.session_id = port.session_id
        self.lives_here = port.lives_here

    async def join(self, after: int | None = None) -> JoinedSource:
        """See `EventSource`."""
        # No wait between these: what came in between would be shown twice or never.
        events = self._port.subscribe(after=after, live=True, retell=True)
        requests = tuple(self._port.state.turn.requests.values())
        return JoinedSource(self._port.drafts, requests, self._port.status, events)

    async def stored(self, after: int) -> Subscription:
        """See `EventSource`."""
        return self._port.subscribe(after=after, live=False)


class RelayReader:
    """What one reader has not been sent yet."""

    def __init__(self, lost: Callable[[], None]) -> None:
        """`lost` is called once, when it is too slow."""
        self._ticks: deque[EncodedEvents] = deque()
        self._weight = 0
        self._lost = lost
        self._waiter: asyncio.Future[None] | None = None
        self.is_lost = False
        self.is_closed = False

    def put(self, tick: EncodedEvents) -> None:
        """One more; never waits."""
        if self.is_lost or self.is_closed:
            return
        if len(self._ticks) >= MOST_TICKS or (
            self._ticks and self._weight + tick.weight > MOST_BYTES
        ):
            self.is_lost = True
            self._ticks.clear()
            self._lost()
        else:
            self._ticks.append(tick)
            self._weight += tick.weight
        self._wake()

    def close(self) -> None:
        """Nothing more comes."""
        self.is_closed = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next(self) -> EncodedEvents | None:
        """The next ones; None at the end."""
        while not self._ticks:
            if self.is_lost or self.is_closed:
                return None
            # A bare future: an event costs a turn of the loop, for every reader and tick.
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        tick = self._ticks.popleft()
        self._weight -= tick.weight
        return tick


class PendingEvents:
    """Events of one tick, pieces that continue each other merged."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._pieces: list[str] = []
        """What is behind the last event's own text."""
        self._length = 0

    def __bool__(self) -> bool:
        return bool(self._events)

    def add(self, event: Event) -> None:
        """One more."""
        name = _TEXT_FIELDS.get(type(event))
        piece = "" if name is None else str(getattr(event, name))
        if name is not None and self._events:
            last = self._events[-1]
            if type(last) is type(event) and _continues(last, event, self._length):
                self._pieces.append(piece)
                self._length += len(piece)
                return
        if self._pieces:
            self._settle()
        self._events.append(event)
        self._length = len(piece)

    def take(self) -> list[Event]:
        """All of them; none are left."""
        if self._pieces:
            self._settle()
        events, self._events, self._length = self._events, [], 0
        return events

    def _settle(self) -> None:
        last = self._events[-1]
        name = _TEXT_FIELDS[type(last)]
        whole = getattr(last, name) + "".join(self._pieces)
        self._events[-1] = msgspec.structs.replace(last, **{name: whole})
        self._pieces.clear()


_TEXT_FIELDS: Final[dict[type, str]] = {
    TextDelta: "text",
    ThinkingDelta: "text",
    ToolArgsDelta: "text",
    ToolOutput: "chunk",
    CommandPrinted: "chunk",
    TokenReceived: "token",
}


def _continues(last: Event, event: Event, length: int) -> bool:
    if isinstance(last, TextDelta) and isinstance(event, TextDelta):
        return event.node_id == last.node_id and event.offset == last.offset + length
    if isinstance(last, ThinkingDelta) and isinstance(event, ThinkingDelta):
        return event.node_id == last.node_id and event.offset == last.offset + length
    if isinstance(last, ToolArgsDelta) and isinstance(event, ToolArgsDelta):
        is_same = (event.node_id, event.index) == (last.node_id, last.index)
        return is_same and event.offset == last.offset + length
    if isinstance(last, ToolOutput) and isinstance(event, ToolOutput):
        return event.call_uid == last.call_uid
    if isinstance(last, CommandPrinted) and isinstance(event, CommandPrinted):
        return event.id == last.id and event.offset == last.offset + length
    if isinstance(last, TokenReceived) and isinstance(event, TokenReceived):
        return (event.node_id, event.branch_idx) == (last.node_id, last.branch_idx)
    return False


class SessionRelay:
    """The events of one session, for all its readers."""

    def __init__(
        self, source: EventSource, count: Callable[[int], None] = lambda events: None
    ) -> None:
        """`count` is told how many events were handed out."""
        self._count = count
        self._source = source
        self._session_id = source.session_id
        self._readers: dict[RelayReader, None] = {}
        self._pending = PendingEvents()
        self._timer: asyncio.Handle | None = None
        self._flushed_at = 0.0
        self._events: Subscription | None = None
        self._answers = AnswersInFlight()
        """Those in flight at the place in the stream that the relay has come to."""
        self._turn = OpenTurnState()
        """What waits for an answer at that place."""
        self._is_local = True
        self.seq = 0
        """The last fact that readers were handed, or will be with the next tick."""
        self.is_over = False

    async def open(self) -> None:
        """Begin to read the session."""
        self._take_over(await self._source.join())

    def _take_over(self, joined: JoinedSource) -> None:
        self._events = joined.events
        self._is_local = self._source.lives_here
        self.seq = max(self.seq, joined.events.cursor)
        self._turn = OpenTurnState(requests={each.request_id: each for each in joined.requests})
        self._answers = AnswersInFlight()
        for draft in joined.drafts:
            self._answers.put(draft, self.seq)

    async def run(self) -> None:
        """Hand events out until the session ends."""
        try:
            while True:
                assert self._events is not None
                async for event in self._events:
                    self._take(event)
                if self._is_local or self.is_over:
                    return
                # Another process had it and is gone: whoever has it now goes on from the cursor.
                joined = await self._source.join(after=self.seq)
                self._take_over(joined)
                # Nobody told it: the process that would have is gone.
                self._pending.add(
                    SessionStatus(
                        session_id=self._session_id, after_seq=self.seq, status=joined.status
                    )
                )
                self._flush()
                self._hand_out(self._as_it_stands(None))
        except WeftError:
            return  # it can be reached no more; readers come back, and are told why
        finally:
            self.close()

    def _take(self, event: Event) -> None:
        if isinstance(event, FACTS):
            self.seq = event.seq
            self._answers.take_fact(event)
            # Of the turn only its requests are told, and few facts are about one.
            if self._turn.requests or isinstance(event, ASKS):
                self._turn.apply(event)
        else:
            self._answers.take(event)
        self._pending.add(event)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            # At once after a pause, with what else is there by then: a reader waits for a tick only
            # while there is one already that keeps it busy.
            due = self._flushed_at + TICK_SECONDS
            is_due = due <= loop.time()
            # Where many sessions work each has a timer, and to sort them in takes longer.
            self._timer = loop.call_soon(self._flush) if is_due else loop.call_at(due, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._pending:
            return
        self._flushed_at = asyncio.get_running_loop().time()
        self._hand_out(EncodedEvents(self._session_id, map(encoded, self._pending.take())))

    @property
    def reader_count(self) -> int:
        """How many read it."""
        return len(self._readers)

    def _hand_out(self, tick: EncodedEvents) -> None:
        self._count(len(tick.events))
        for reader in tuple(self._readers):
            reader.put(tick)

    def _as_it_stands(self, after: int | None) -> EncodedEvents:
        """The answers in flight, and what waits for an answer that a reader with this cursor is not
        about to be told of anyway.

        A reader may have let go of a request: its answer was lost with the server that it was for.
        """
        drafts = encoded_drafts(self._session_id, self._answers.drafts, self.seq)
        offers = (
            RequestOffered(session_id=self._session_id, after_seq=self.seq, request=request)
            for request in self._turn.requests.values()
            if after is None or request.seq <= after
        )
        return EncodedEvents(self._session_id, (*drafts, *map(encoded, offers)))

    def join(
        self, lost: Callable[[], None], after: int | None = None
    ) -> tuple[RelayReader, int, EncodedEvents]:
        """A new reader, the last fact before what it will be handed, and what is in flight and
        open.

        No wait inside: nothing can fall between the three.
        """
        self._flush()
        reader = RelayReader(lost)
        self._readers[reader] = None
        return reader, self.seq, self._as_it_stands(after)

    def leave(self, reader: RelayReader) -> None:
        """A reader goes; with the last one the session is read no more, and may be unloaded."""
        self._readers.pop(reader, None)
        if not self._readers:
            self.close()

    def close(self) -> None:
        """End all readers."""
        if self.is_over:
            return
        self._flush()
        self.is_over = True
        for reader in tuple(self._readers):
            reader.close()
        if self._events is not None:
            self._events.close()

    async def missed(self, after: int, upto: int) -> AsyncIterator[EncodedEvents]:
        """The facts after a cursor, up to another, from the log."""
        if after >= upto:
            return
        page: list[tuple[int | None, bytes]] = []
        async with await self._source.stored(after) as events:
            async for event in events:
                if not isinstance(event, FACTS):
                    continue
                if event.seq > upto:
                    break
                page.append(encoded(event))
                if len(page) >= LOG_PAGE:
                    yield EncodedEvents(self._session_id, page)
                    page = []
                if event.seq == upto:
                    break
        if page:
            yield EncodedEvents(self._session_id, page)


class RelayHub:
    """The relays of one wire, one for each session that is read."""

    def __init__(self) -> None:
        self.relayed = 0
        """Events that were handed out, however many read them."""
        self.lost = 0
        """Readers that were too slow."""
        self._relays: dict[SessionId, SessionRelay] = {}
        self._locks: dict[SessionId, anyio.Lock] = {}
        self._group: anyio.abc.TaskGroup | None = None
        self.is_closing = anyio.Event()

    def __len__(self) -> int:
        return len(self._relays)

    def open(self, group: anyio.abc.TaskGroup) -> None:
        """Relays run in this group from now on."""
        self._group = group

    async def follow(
        self, source: EventSource, after: int | None, lost: Callable[[], None]
    ) -> AsyncGenerator[EncodedEvents]:
        """What a reader is sent: the facts that it missed, the answers in flight and the requests
        that are open, then what comes.

        It ends with the session, with the server, or when the reader is lost.
        """
        relay = await self.relay_of(source)

        def count_lost() -> None:
            self.lost += 1
            lost()

        reader, seq, standing = relay.join(count_lost, after)
        try:
            if after is not None:
                async for tick in relay.missed(after, seq):
                    yield tick
            if standing.events:
                yield standing
            while (live := await reader.next()) is not None:
                # A cursor may be ahead of the relay, which has not read so far yet.
                known = after is not None and after > seq
                yield live.after(after or 0) if known else live
        finally:
            relay.leave(reader)

    async def relay_of(self, source: EventSource) -> SessionRelay:
        """The relay of a session; begun, if it has none.

        Raises:
            StoreUnavailable: no more are begun.
        """
        session_id = source.session_id
        async with self._locks.setdefault(session_id, anyio.Lock()):
            relay = self._relays.get(session_id)
            if relay is not None and not relay.is_over:
                return relay
            if self._group is None or self.is_closing.is_set():
                raise StoreUnavailable("the server is closing; come back with your cursor")
            relay = SessionRelay(source, self._add)
            await relay.open()
            self._relays[session_id] = relay
            self._group.start_soon(self._run, session_id, relay)
            return relay

    async def _run(self, session_id: SessionId, relay: SessionRelay) -> None:
        try:
            await relay.run()
        except Exception:  # one session's events that cannot be read end no other's
            logger.exception("the events of a session could not be relayed")
        finally:
            if self._relays.get(session_id) is relay:
                del self._relays[session_id]
                self._locks.pop(session_id, None)

    def _add(self, events: int) -> None:
        self.relayed += events

    @property
    def reader_count(self) -> int:
        """How many readers there are, of all sessions."""
        return sum(relay.reader_count for relay in self._relays.values())

    def close(self) -> None:
        """End all readers; they come back with their cursors when the server does."""
        self.is_closing.set()
        for relay in list(self._relays.values()):
            relay.close()
