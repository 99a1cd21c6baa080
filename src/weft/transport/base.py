"""The transport interface: a request in, a reply whose body streams out."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec


class HttpTimeouts(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait, in seconds."""

    connect: float = 10.0
    """For the connection, the proxy's tunnel and the TLS handshake together."""
    first_byte: float = 300.0
    """For the first bytes of a reply's body: a model reads and thinks before it speaks, and many
    servers send nothing meanwhile.
    """
    idle: float = 60.0
    """For the next bytes of a reply that has begun."""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request.  `host`, `content-length` and `accept-encoding` are added to the headers."""

    url: str
    """`http://…` or `https://…`."""
    method: str = "POST"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    unix_socket: str = ""
    """Path of a socket to speak through, instead of the network.

    The URL then gives only host name and path.
    """
    timeouts: HttpTimeouts = HttpTimeouts()
    url_source: str = ""
    """The variable or setting that names the address, for sentences about a wrong one."""


class HttpReply(Protocol):
    """The head of a reply, and its body as it comes."""

    status: int
    headers: dict[str, str]
    """Names in lower case; of repeated ones the last."""

    async def read(self) -> bytes:
        """The next bytes of the body, decompressed; empty at its end.

        Raises:
            ProviderUnavailable: the connection was reset, ended early or fell silent.
        """
        ...


class HttpTransport(Protocol):
    """A way to send requests."""

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpReply]:
        """Send the request; entered when the head of the reply is there.

        Leaving closes the connection at once, unless the body was read to its end and the server
        keeps it open.

        Raises:
            ProviderUnavailable: the server could not be reached, or broke off.
        """
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...
