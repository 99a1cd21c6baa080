"""Events of a session over HTTP: no gap, no repeat, also when the connection or the server goes."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import chain, repeat
from typing import Final, Literal, Self, TypeAlias

import anyio
import msgspec

from weft.api import Draft
from weft.errors import ProviderUnavailable, StoreUnavailable, WeftError
from weft.events import (
    STATUS_SIGNALS,
    Event,
    FactBase,
    Replaced,
    SessionStatus,
    UnknownFact,
)
from weft.ids import SessionId
from weft.runtime import DraftEvent, decode_wire_event
from weft.server.client.server_link import BY_NAME, ClientForgotten, ServerLink
from weft.state import Request
from weft.transport import EventParser, HttpReply

BACK_OFF_SECONDS: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 5.0, 5.0, 5.0)
"""Pauses between tries to come back; a server that is started again takes seconds."""


LiveChoice: TypeAlias = bool | Literal["status"]
"""Which signals come besides the facts: all, none, or those of the status."""


class RemoteEvents:
    """An async iterator over the events of a session.

    Close it, or use it as a context manager: the connection is held until then.
    """

    def __init__(
        self,
        link: ServerLink,
        session_id: str,
        after: int | None,
        *,
        live: LiveChoice = True,
        end: int | None = None,
        lost: Callable[[str], None] | None = None,
        client: Callable[[], str] = str,
        attach: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        """With `end` they end with that fact.  `lost` is told when the connection went, and with
        an empty text when it is back.  `client` is attached for as long as they are followed;
        `attach` has one attach again that the server has forgotten.
        """
        self._client = client
        self._attach = attach
        self._live = live
        self._end = end
        self._lost = lost
        self.end_reason = ""
        """Why the session ended, once it has."""
        self._link = link
        self._session_id = session_id
        self._events: deque[Event] = deque()
        self._stack: AsyncExitStack | None = None
        self._reply: HttpReply | None = None
        self._parser = EventParser()
        self._is_over = False
        self._reading: anyio.CancelScope | None = None
        self.cursor = after
        """The last fact that was handed out; None before the first, for a reader from now on."""

    async def open(self) -> Self:
        """Join the session: what happens from now on is not missed.

        Raises:
            StoreUnavailable: the server cannot be reached.
            SessionNotFound: there is no such session.
        """
        try:
            await self._connect()
        except ProviderUnavailable as error:
            raise self._link.unreachable(error) from error
        return self

    @property
    def is_open(self) -> bool:
        """Whether more may come."""
        return not self._is_over

    def end_with(self, event: Event) -> None:
        """Hand this out after what is there, and end."""
        self._is_over = True
        self._events.append(event)
        if self._reading is not None:
            self._reading.cancel()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while True:
            event = await self._next()
            if isinstance(event, FactBase | UnknownFact):
                self.cursor = event.seq
                if self._end is not None and event.seq >= self._end:
                    await self.aclose()
                return event
            if self._live is True or isinstance(event, Replaced):
                return event
            if self._live == "status" and isinstance(event, STATUS_SIGNALS):
                return event

    async def _next(self) -> Event:
        if self._end is not None and (self.cursor or 0) >= self._end:
            await self.aclose()
        while not self._events:
            if self._is_over:
                await self._hang_up()
                raise StopAsyncIteration
            with anyio.CancelScope() as self._reading:
                await self._read()
            self._reading = None
        return self._events.popleft()

    async def _read(self) -> None:
        try:
            if self._reply is None:
                await self._connect()
            assert self._reply is not None
            data = await self._reply.read()
        except ProviderUnavailable:
            data = b""
        if not data and not self._is_over:
            await self._come_back()
            return
        for name, body in self._parser.feed(data):
            self._take(name, body)

    def _take(self, name: bytes, body: bytes) -> None:
        if name == b"closed":
            self.end_reason = str(msgspec.json.decode(body).get("why", ""))
            self._is_over = True
            return
        event = decode_wire_event(body)
        if isinstance(event, DraftEvent):
            # As signals, each part as one piece from the beginning.
            self._events.extend(event.pieces())
        else:
            self._events.append(event)

    async def _connect(self) -> None:
        await self._hang_up()
        client = self._client()
        try:
            await self._open_stream(client)
        except ClientForgotten:
            if self._attach is None:
                raise
            await self._attach(client)
            await self._open_stream(self._client())
        self._parser = EventParser()

    async def _open_stream(self, client: str) -> None:
        operation = BY_NAME["subscribe"]
        request = self._link.request(
            operation, {"id": self._session_id}, {}, {"after": self.cursor}, client
        )
        stack = AsyncExitStack()
        try:
            self._reply = await self._link.open_stream(request, stack)
        except BaseException:
            await stack.aclose()
            raise
        self._stack = stack

    async def _come_back(self) -> None:
        """Join again after the connection went; what was missed comes first.

        Raises:
            StoreUnavailable: the server stays away.
        """
        last: WeftError | None = None
        self._tell(f"the connection to {self._link.url} is lost; trying again")
        for pause in chain(BACK_OFF_SECONDS, repeat(BACK_OFF_SECONDS[-1]) if self._lost else ()):
            await anyio.sleep(pause)
            try:
                await self._connect()
            except (ProviderUnavailable, StoreUnavailable) as error:
                last = error  # gone, or on its way out
            else:
                await self._add_status()
                self._tell("")
                return
        assert last is not None
        self._is_over = True
        raise self._link.unreachable(last) from last

    async def _add_status(self) -> None:
        """Hand out what the session does now: a status is sent when it changes, and the last change
        may have been while no one listened.
        """
        try:
            answer = await self._link.call("get_status", {"id": self._session_id})
        except WeftError:
            return  # gone again: the next time tells
        status = SessionStatus(
            session_id=SessionId(self._session_id),
            after_seq=self.cursor or 0,
            status=answer.value,
        )
        self._events.append(status)

    def _tell(self, what: str) -> None:
        if self._lost is not None:
            self._lost(what)

    async def _hang_up(self) -> None:
        stack, self._stack, self._reply = self._stack, None, None
        if stack is not None:
            await stack.aclose()

    async def aclose(self) -> None:
        """Stop reading."""
        self._is_over = True
        await self._hang_up()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


class RemoteJoined(msgspec.Struct, frozen=True, kw_only=True):
    """A session as one moment has it, and all that comes after that moment; see `Joined`."""

    seq: int
    drafts: tuple[Draft, ...]
    requests: tuple[Request, ...]
    events: RemoteEvents
