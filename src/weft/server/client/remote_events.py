"""Events of a session over HTTP: no gap, no repeat, also when the connection or the server goes."""

from __future__ import annotations

from collections import deque
from contextlib import AsyncExitStack
from typing import Any, Final, Self

import anyio
import msgspec

from weft.errors import ProviderUnavailable
from weft.events import (
    Event,
    FactBase,
    TextDelta,
    ThinkingDelta,
    ToolArgsDelta,
    UnknownFact,
    decode_event,
)
from weft.ids import NodeId, SessionId
from weft.server.client.server_link import BY_NAME, ServerLink
from weft.transport import EventParser, HttpReply

BACK_OFF_SECONDS: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 5.0, 5.0, 5.0)
"""Pauses between tries to come back; a server that is started again takes seconds."""


class RemoteDraft(msgspec.Struct, frozen=True, kw_only=True):
    """An answer in flight, as the server tells it to a reader that joins."""

    session_id: SessionId
    node_id: NodeId
    text: str = ""
    thinking: str = ""
    calls: tuple[dict[str, Any], ...] = ()
    after_seq: int = 0

    def pieces(self) -> list[Event]:
        """The same as signals, each part as one piece from the beginning."""
        head: dict[str, Any] = {
            "session_id": self.session_id,
            "after_seq": self.after_seq,
            "node_id": self.node_id,
        }
        found: list[Event] = []
        if self.thinking:
            found.append(ThinkingDelta(**head, offset=0, text=self.thinking))
        if self.text:
            found.append(TextDelta(**head, offset=0, text=self.text))
        found += [
            ToolArgsDelta(
                **head, index=call["index"], tool_name=call["tool"], text=call["arguments"]
            )
            for call in self.calls
        ]
        return found


class RemoteEvents:
    """An async iterator over the events of a session.

    Close it, or use it as a context manager: the connection is held until then.
    """

    def __init__(self, link: ServerLink, session_id: str, after: int | None) -> None:
        self._link = link
        self._session_id = session_id
        self._events: deque[Event] = deque()
        self._stack: AsyncExitStack | None = None
        self._reply: HttpReply | None = None
        self._parser = EventParser()
        self._is_over = False
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

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._is_over:
                raise StopAsyncIteration
            await self._read()
        event = self._events.popleft()
        if isinstance(event, FactBase | UnknownFact):
            self.cursor = event.seq
        return event

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
            self._is_over = True
        elif body.startswith(b'{"kind":"draft"'):
            self._events.extend(msgspec.json.decode(body, type=RemoteDraft).pieces())
        else:
            self._events.append(decode_event(body))

    async def _connect(self) -> None:
        await self._hang_up()
        operation = BY_NAME["subscribe"]
        request = self._link.request(
            operation, {"id": self._session_id}, {}, {"after": self.cursor}
        )
        stack = AsyncExitStack()
        try:
            self._reply = await self._link.open_stream(request, stack)
        except BaseException:
            await stack.aclose()
            raise
        self._stack = stack
        self._parser = EventParser()

    async def _come_back(self) -> None:
        """Join again after the connection went; what was missed comes first.

        Raises:
            StoreUnavailable: the server stays away.
        """
        last: ProviderUnavailable | None = None
        for pause in BACK_OFF_SECONDS:
            await anyio.sleep(pause)
            try:
                await self._connect()
                return
            except ProviderUnavailable as error:
                last = error
        assert last is not None
        self._is_over = True
        raise self._link.unreachable(last) from last

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
