"""uvicorn's HTTP parser with the checks that an ASGI application comes too late for."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

MOST_HEADER_BYTES: Final = 64 * 1024
"""What the target and the headers of a request may weigh; the parser itself has no limit."""
HEAD_SECONDS: Final = 20.0
"""How long the head of a request may take, from the connection or from its first byte."""


WHOLE_SECONDS: Final = 60.0
"""How long the rest of a request may take after its head, whether or not it is read: an answer may
come before the body, and a client that goes on sending it would hold the connection for ever."""


class RefusedHead(ValueError):
    """The head of a request that is answered with 400, and the connection closed."""


class StrictHttpProtocol(HttpToolsProtocol):
    """Takes origin-form targets only, and heads of a bounded size.

    uvicorn drops the host of an absolute-form target (`GET http://evil.test/ HTTP/1.1`) and serves
    the rest as if the `Host` header had been meant.  By the standard the target is what counts: so
    the check of `Host` would look at what no one else does.
    """

    _weight = 0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has come; it may not sit here without a word."""
        super().connection_made(transport)
        self._expect(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
        self._forget_deadline()
        super().connection_lost(exc)

    def _expect(self, seconds: float) -> None:
        self._forget_deadline()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def on_message_begin(self) -> None:
        """A request begins."""
        self._weight = 0
        self._expect(HEAD_SECONDS)
        super().on_message_begin()
        # A reader that does not read is let go at once: to close would wait for it.
        scope: dict[str, Any] = self.scope  # type: ignore[assignment]  # a typed dictionary of theirs
        scope["extensions"] = {"weft.abort": {"abort": self.transport.abort}}

    def on_url(self, url: bytes) -> None:
        """More of the target."""
        self._weigh(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One more header."""
        self._weigh(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is whole."""
        # An error in here makes the parser fail, and that is answered with 400.
        if not self.url.startswith(b"/") or self.url.startswith(b"//"):
            raise RefusedHead("only a path is taken as the target of a request")
        self._expect(WHOLE_SECONDS)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._forget_deadline()
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """Another protocol goes on with the connection."""
        self._forget_deadline()
        super().handle_websocket_upgrade()

    def _weigh(self, more: int) -> None:
        self._weight += more
        if self._weight > MOST_HEADER_BYTES:
            raise RefusedHead("the head of the request is too large")


class AbortableWebSocket(WebSocketsSansIOProtocol):
    """A WebSocket whose reader can be let go at once."""

    def handle_connect(self, event: Request) -> None:
        """The handshake."""
        super().handle_connect(event)
        scope: dict[str, Any] | None = getattr(self, "scope", None)
        if scope is not None:
            scope["extensions"]["weft.abort"] = {"abort": self.transport.abort}
