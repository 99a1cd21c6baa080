"""uvicorn's HTTP parser with the checks that an ASGI application comes too late for."""

from __future__ import annotations

from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

MOST_HEADER_BYTES: Final = 64 * 1024
"""What the target and the headers of a request may weigh; the parser itself has no limit."""


class RefusedHead(ValueError):
    """The head of a request that is answered with 400, and the connection closed."""


class StrictHttpProtocol(HttpToolsProtocol):
    """Takes origin-form targets only, and heads of a bounded size.

    uvicorn drops the host of an absolute-form target (`GET http://evil.test/ HTTP/1.1`) and serves
    the rest as if the `Host` header had been meant.  By the standard the target is what counts: so
    the check of `Host` would look at what no one else does.
    """

    _weight = 0

    def on_message_begin(self) -> None:
        """A request begins."""
        self._weight = 0
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
        super().on_headers_complete()

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
