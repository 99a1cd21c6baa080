"""The relay of events: one subscription for each session, however many read it.

Each event is encoded once.  Pieces of an answer that come within a tick are merged, and readers are
handed the same bytes.  The relay never waits for a reader: each has a bounded queue, and one that
lets it overflow is lost; it comes back with its cursor and misses nothing that is stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, Final

import anyio
import anyio.abc
import msgspec

from weft.api import Draft, Joined, Session
from weft.app import App
from weft.errors import StoreUnavailable, WeftError
from weft.events import (
    AnswerRestarted,
    Event,
    FactBase,
    ModelCallStarted,
    NewMessage,
    TextDelta,
    ThinkingDelta,
    TokenReceived,
    ToolArgsDelta,
    ToolOutput,
    TurnFinished,
    UnknownFact,
    encode,
)
from weft.ids import NodeId, SessionId

logger = logging.getLogger(__name__)

TICK_SECONDS: Final = 0.016
"""How long pieces are gathered: a frame of a screen."""
MOST_TICKS: Final = 1_024
MOST_BYTES: Final = 4 * 1024 * 1024
"""What one reader may leave unread."""
LOG_PAGE: Final = 200
"""Facts from the log that are sent at once."""


class EncodedEvents:
    """Some events of one session, encoded for both wires when first asked for."""

    def __init__(self, session_id: str, events: Iterable[tuple[int | None, bytes]]) -> None:
        """Each event with its `seq`; None for what is not stored."""
        self._session_id = session_id
        self.events = tuple(events)
        self.weight = sum(len(body) for _, body in self.events)

    def after(self, seq: int) -> EncodedEvents:
        """Those that a reader with this cursor has not seen."""
        left = [each for each in self.events if each[0] is None or each[0] > seq]
        return self if len(left) == len(self.events) else EncodedEvents(self._session_id, left)

    @cached_property
    def sse(self) -> bytes:
        """As server-sent events; only facts have an id, which the reader comes back with."""
        return b"".join(
            b"data: %b\n\n" % body if seq is None else b"id: %d\ndata: %b\n\n" % (seq, body)
            for seq, body in self.events
        )

    @cached_property
    def frame(self) -> str:
        """As one frame of a WebSocket."""
        bodies = b",".join(body for _, body in self.events)
        name = msgspec.json.encode(self._session_id)
        return (b'{"s":%b,"e":[%b]}' % (name, bodies)).decode()


def encoded(event: Event) -> tuple[int | None, bytes]:
    """An event and its `seq`, if it is stored."""
    seq = event.seq if isinstance(event, FactBase | UnknownFact) else None
    return seq, encode(event)


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


class DraftsInFlight:
    """The answers in flight at the place in the stream that the relay has come to."""

    def __init__(self, session_id: SessionId, drafts: Iterable[Draft]) -> None:
        self._session_id = session_id
        self._texts: dict[NodeId, list[str]] = {}
        self._thinking: dict[NodeId, list[str]] = {}
        self._calls: dict[NodeId, dict[int, tuple[str, list[str]]]] = {}
        for draft in drafts:
            self._texts[draft.node] = [draft.text]
            self._thinking[draft.node] = [draft.thinking]
            self._calls[draft.node] = {
                call.index: (call.tool, [call.arguments]) for call in draft.calls
            }

    def take(self, event: Event) -> None:
        """Take one more event in."""
        match event:
            case TextDelta(node_id=node, offset=offset, text=text):
                _add(self._texts.setdefault(node, []), offset, text)
            case ThinkingDelta(node_id=node, offset=offset, text=text):
                _add(self._thinking.setdefault(node, []), offset, text)
            case ToolArgsDelta(node_id=node, index=index, tool_name=tool, offset=offset, text=text):
                held = self._calls.setdefault(node, {}).setdefault(index, (tool, []))
                _add(held[1], offset, text)
            case AnswerRestarted(node_id=node):
                self._drop(node)
            case NewMessage(node=message):
                self._drop(message.id)
            case TurnFinished():
                self._drop(*self._nodes())
            # A turn has one answer in flight: the next call voids what an earlier one left.
            case ModelCallStarted(purpose="turn", node=node):
                self._drop(*(each for each in self._nodes() if each != node))
            case _:
                pass

    def _nodes(self) -> list[NodeId]:
        return list(dict.fromkeys([*self._texts, *self._thinking, *self._calls]))

    def _drop(self, *nodes: NodeId) -> None:
        for node in nodes:
            for held in (self._texts, self._thinking, self._calls):
                held.pop(node, None)

    def frames(self, after_seq: int) -> Iterator[tuple[None, bytes]]:
        """Each of them as an event of the wire, to be taken as it is."""
        for node in self._nodes():
            draft: dict[str, Any] = {
                "kind": "draft",
                "session_id": self._session_id,
                "node_id": node,
                "text": "".join(self._texts.get(node, ())),
                "thinking": "".join(self._thinking.get(node, ())),
                "calls": [
                    {"index": index, "tool": tool, "arguments": "".join(pieces)}
                    for index, (tool, pieces) in sorted(self._calls.get(node, {}).items())
                ],
                "after_seq": after_seq,
            }
            yield None, msgspec.json.encode(draft)


def _add(pieces: list[str], offset: int, text: str) -> None:
    if offset == 0:
        pieces.clear()
    pieces.append(text)
    if len(pieces) > 256:  # few long ones: a text of a hundred thousand pieces is joined for each
        pieces[:] = ["".join(pieces)]


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
        last = self._events[-1] if self._events else None
        if last is not None and _continues(last, event, self._length):
            piece = _text(event)
            self._pieces.append(piece)
            self._length += len(piece)
            return
        self._settle()
        self._events.append(event)
        self._length = len(_text(event))

    def take(self) -> list[Event]:
        """All of them; none are left."""
        self._settle()
        events, self._events, self._length = self._events, [], 0
        return events

    def _settle(self) -> None:
        if not self._pieces:
            return
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
    TokenReceived: "token",
}


def _text(event: Event) -> str:
    name = _TEXT_FIELDS.get(type(event))
    return "" if name is None else str(getattr(event, name))


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
    if isinstance(last, TokenReceived) and isinstance(event, TokenReceived):
        return (event.node_id, event.branch_idx) == (last.node_id, last.branch_idx)
    return False


class SessionRelay:
    """The events of one session, for all its readers."""

    def __init__(
        self, app: App, session: Session, count: Callable[[int], None] = lambda events: None
    ) -> None:
        """`count` is told how many events were handed out."""
        self._count = count
        self._app = app
        self._session = session
        self._readers: dict[RelayReader, None] = {}
        self._pending = PendingEvents()
        self._timer: asyncio.TimerHandle | None = None
        self._joined: Joined | None = None
        self._drafts = DraftsInFlight(session.id, ())
        self._is_local = True
        self.seq = 0
        """The last fact that readers were handed, or will be with the next tick."""
        self.is_over = False

    async def open(self) -> None:
        """Begin to read the session."""
        self._take_over(await self._session.join())

    def _take_over(self, joined: Joined) -> None:
        self._joined = joined
        self._is_local = self._app.host.runs_here(self._session.id)
        self._drafts = DraftsInFlight(self._session.id, joined.drafts)
        self.seq = max(self.seq, joined.events.cursor)

    async def run(self) -> None:
        """Hand events out until the session ends."""
        try:
            while True:
                assert self._joined is not None
                async for event in self._joined.events:
                    self._take(event)
                if self._is_local or self.is_over:
                    return
                # Another process had it and is gone: whoever has it now goes on from the cursor.
                self._take_over(await self._session.join(after=self.seq))
                self._flush()
                self._hand_out(self._drafts_now())
        except WeftError:
            return  # it can be reached no more; readers come back, and are told why
        finally:
            self.close()

    def _take(self, event: Event) -> None:
        if isinstance(event, FactBase | UnknownFact):
            self.seq = event.seq
        self._drafts.take(event)
        self._pending.add(event)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(TICK_SECONDS, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._pending:
            return
        self._hand_out(EncodedEvents(self._session.id, map(encoded, self._pending.take())))

    @property
    def reader_count(self) -> int:
        """How many read it."""
        return len(self._readers)

    def _hand_out(self, tick: EncodedEvents) -> None:
        self._count(len(tick.events))
        for reader in tuple(self._readers):
            reader.put(tick)

    def _drafts_now(self) -> EncodedEvents:
        return EncodedEvents(self._session.id, self._drafts.frames(self.seq))

    def join(self, lost: Callable[[], None]) -> tuple[RelayReader, int, EncodedEvents]:
        """A new reader, the last fact before what it will be handed, and the answers in flight.

        No wait inside: nothing can fall between the three.
        """
        self._flush()
        reader = RelayReader(lost)
        self._readers[reader] = None
        return reader, self.seq, self._drafts_now()

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
        if self._joined is not None:
            self._joined.events.close()

    async def missed(self, after: int, upto: int) -> AsyncIterator[EncodedEvents]:
        """The facts after a cursor, up to another, from the log."""
        if after >= upto:
            return
        page: list[tuple[int | None, bytes]] = []
        async with await self._session.subscribe(after=after, live=False) as events:
            async for event in events:
                if not isinstance(event, FactBase | UnknownFact):
                    continue
                if event.seq > upto:
                    break
                page.append(encoded(event))
                if len(page) >= LOG_PAGE:
                    yield EncodedEvents(self._session.id, page)
                    page = []
                if event.seq == upto:
                    break
        if page:
            yield EncodedEvents(self._session.id, page)


class RelayHub:
    """The relays of a server, one for each session that is read."""

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
        self, app: App, session: Session, after: int | None, lost: Callable[[], None]
    ) -> AsyncGenerator[EncodedEvents]:
        """What a reader is sent: the facts that it missed, the answers in flight, then what comes.

        It ends with the session, with the server, or when the reader is lost.
        """
        relay = await self._relay(app, session)

        def count_lost() -> None:
            self.lost += 1
            lost()

        reader, seq, drafts = relay.join(count_lost)
        try:
            if after is not None:
                async for tick in relay.missed(after, seq):
                    yield tick
            if drafts.events:
                yield drafts
            while (live := await reader.next()) is not None:
                # A cursor may be ahead of the relay, which has not read so far yet.
                known = after is not None and after > seq
                yield live.after(after or 0) if known else live
        finally:
            relay.leave(reader)

    async def _relay(self, app: App, session: Session) -> SessionRelay:
        async with self._locks.setdefault(session.id, anyio.Lock()):
            relay = self._relays.get(session.id)
            if relay is not None and not relay.is_over:
                return relay
            if self._group is None or self.is_closing.is_set():
                raise StoreUnavailable("the server is closing; come back with your cursor")
            relay = SessionRelay(app, session, self._add)
            await relay.open()
            self._relays[session.id] = relay
            self._group.start_soon(self._run, session.id, relay)
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
