"""CONNECT tunnels through a proxy, before TLS begins inside them."""

from __future__ import annotations

import asyncio

from weft.errors import ProviderUnavailable
from weft.transport.proxy import ProxyServer, UrlTarget

_MAX_ANSWER = 16 * 1024


class ConnectTunnel(asyncio.Protocol):
    """Speaks with the proxy until the tunnel is open.

    Then another protocol takes the connection over.
    """

    def __init__(self, proxy: ProxyServer) -> None:
        self._proxy = proxy
        self._answer = bytearray()
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._answer += data
        # Nothing of the tunnel can stand behind the blank line: in TLS the client speaks first.
        if b"\r\n\r\n" in self._answer or len(self._answer) > _MAX_ANSWER:
            self._settle()

    def connection_lost(self, exc: Exception | None) -> None:
        self._settle()

    def _settle(self) -> None:
        if not self._done.done():
            self._done.set_result(None)

    async def ask(self, where: UrlTarget) -> None:
        """Ask for a tunnel to `where`.

        Raises:
            ProviderUnavailable: the proxy refuses, or does not speak HTTP.
        """
        assert self._transport is not None
        host = f"[{where.host}]" if ":" in where.host else where.host
        lines = [f"CONNECT {host}:{where.port} HTTP/1.1", f"host: {host}:{where.port}"]
        if self._proxy.authorization:
            lines.append(f"proxy-authorization: {self._proxy.authorization}")
        self._transport.write("\r\n".join([*lines, "", ""]).encode("ascii"))
        await self._done
        first, _, _ = bytes(self._answer).partition(b"\r\n")
        words = first.split(b" ", 2)
        name = self._proxy.shown
        if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
            raise ProviderUnavailable(f"the proxy {name} did not answer in HTTP")
        if not 200 <= int(words[1]) < 300:
            said = first.decode("latin-1")[:80]
            error = ProviderUnavailable(
                f"the proxy {name} refused to connect to {where.host}: {said}", status=int(words[1])
            )
            # A proxy that wants a password or forbids the host says so again the next time.
            error.retryable = int(words[1]) >= 500
            raise error
