"""Server-sent events, for programs: one session, one topic, or what a call brings as it goes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import anyio
import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from weft.server.gate import abort_of

PING_SECONDS: Final = 15.0
PING: Final = b": ping\n\n"


class EventResponse(Response):
    """An answer that goes on: pieces of bytes as they come, and a ping when there are none."""

    def __init__(
        self, pieces: Callable[[Callable[[], None]], AsyncIterator[bytes]], closing: anyio.Event
    ) -> None:
        """`pieces` is handed what to call when the reader is too slow; `closing` is set when the
        server ends, and the answer ends with it.
        """
        super().__init__(None, 200, {"cache-control": "no-store"}, "text/event-stream")
        self._pieces = pieces(self.lose)
        self._closing = closing
        self._scope = anyio.CancelScope()
        self.lost = False

    def lose(self) -> None:
        """The reader is too slow: end its connection."""
        self.lost = True
        self._scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the pieces end, the reader goes, or the server does."""
        headers = [each for each in self.raw_headers if each[0] != b"content-length"]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if scope["method"] == "HEAD":
            await self._close_pieces()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        # At once, so that a reader knows that it has joined.
        await send({"type": "http.response.body", "body": PING, "more_body": True})
        with self._scope:
            async with anyio.create_task_group() as group:
                group.start_soon(self._watch_reader, receive, group.cancel_scope)
                group.start_soon(self._watch_server, group.cancel_scope)
                group.start_soon(self._ping, send)
                await self._send_pieces(send)
                group.cancel_scope.cancel()
        if self.lost:
            abort_of(dict(scope))
            with anyio.move_on_after(1):
                await receive()  # until uvicorn knows it, which would take this for a fault of ours
            return
        with anyio.move_on_after(1):
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    # No lock between the two that send: each piece is written whole, and either may come first.

    async def _send_pieces(self, send: Send) -> None:
        try:
            async for piece in self._pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        finally:
            await self._close_pieces()

    async def _close_pieces(self) -> None:
        with anyio.CancelScope(shield=True):
            close = getattr(self._pieces, "aclose", None)
            if close is not None:
                await close()

    async def _watch_reader(self, receive: Receive, scope: anyio.CancelScope) -> None:
        # One that only waits for its queue never learns that the client has left.
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    async def _watch_server(self, scope: anyio.CancelScope) -> None:
        await self._closing.wait()
        scope.cancel()

    async def _ping(self, send: Send) -> None:
        while True:
            await anyio.sleep(PING_SECONDS)
            await send({"type": "http.response.body", "body": PING, "more_body": True})


def piece_of(value: Any, *, event: str = "") -> bytes:
    """A value as one server-sent event."""
    named = f"event: {event}\n".encode() if event else b""
    return named + b"data: %b\n\n" % msgspec.json.encode(value, enc_hook=str)
