"""SOCKS5 tunnels through a proxy (RFC 1928, with the user name and password of RFC 1929)."""

from __future__ import annotations

import asyncio
import ipaddress
from typing import Final

from weft.errors import ProviderUnavailable
from weft.transport.proxy import ProxyServer

_REFUSALS: Final = {
    1: "it failed",
    2: "its rules forbid it",
    3: "the network is unreachable",
    4: "the host is unreachable",
    5: "the connection was refused",
    6: "the connection timed out",
    7: "it takes no CONNECT",
    8: "it does not know this kind of address",
}
"""What the replies of RFC 1928, section 6, mean."""
_PASSING: Final = frozenset({1, 3, 4, 5, 6})
"""Replies that may be another one the next time."""


class SocksTunnel(asyncio.Protocol):
    """Speaks with the proxy until the tunnel is open.

    Then another protocol takes the connection over.
    """

    def __init__(self, proxy: ProxyServer) -> None:
        self._proxy = proxy
        self._buffer = bytearray()
        self._is_lost = False
        self._waiter: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def ask(self, host: str, port: int) -> None:
        """Ask for a tunnel to a host, which may be a name for the proxy to look up.

        Raises:
            ProviderUnavailable: the proxy refuses, or does not speak SOCKS5.
        """
        await self._greet()
        self._send(b"\x05\x01\x00" + _address(host) + port.to_bytes(2, "big"))
        version, reply, _, kind = await self._read(4)
        if version != 5:
            raise self._no_socks()
        if reply != 0:
            error = ProviderUnavailable(
                f"the proxy {self._proxy.shown} refused to connect to {host}: "
                f"{_REFUSALS.get(reply, f'reply {reply}')}"
            )
            error.retryable = reply in _PASSING
            raise error
        # The address that the proxy connects from is of no use, but it has to be read: what
        # follows it belongs to the tunnel.
        size = {1: 4, 4: 16}.get(kind) or (await self._read(1))[0]
        await self._read(size + 2)

    async def _greet(self) -> None:
        has_user = bool(self._proxy.username)
        self._send(b"\x05\x02\x00\x02" if has_user else b"\x05\x01\x00")
        version, method = await self._read(2)
        if version != 5:
            raise self._no_socks()
        if method == 2 and has_user:
            name, word = (each.encode()[:255] for each in self._proxy.user_and_password)
            self._send(bytes([1, len(name)]) + name + bytes([len(word)]) + word)
            if (await self._read(2))[1] != 0:
                raise self._refused("the user name or password in its address is wrong")
        elif method != 0:
            raise self._refused("it wants a user name and password: socks5://USER:PASSWORD@HOST")

    def _send(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    async def _read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            if self._is_lost:
                raise self._no_socks()
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _no_socks(self) -> ProviderUnavailable:
        return self._refused("it does not answer in SOCKS5")

    def _refused(self, why: str) -> ProviderUnavailable:
        error = ProviderUnavailable(f"the proxy {self._proxy.shown} cannot be used: {why}")
        error.retryable = False
        return error


def _address(host: str) -> bytes:
    try:
        literal = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode("idna")[:255]
        return bytes([3, len(name)]) + name
    return (b"\x01" if literal.version == 4 else b"\x04") + literal.packed
