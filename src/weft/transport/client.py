"""The HTTP/1.1 client: finds or makes a connection, sends, and takes it back.

Connections that the server keeps open are used again.  One that turns out to have been closed
meanwhile is replaced once, unseen, provided that nothing of an answer had come.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TypeAlias

import anyio

from weft.errors import ProviderUnavailable, UsageError
from weft.request_sign import REQUEST_SENT
from weft.transport.base import HttpReply, HttpRequest, HttpTransport
from weft.transport.connection import HttpConnection, StreamedReply
from weft.transport.proxy import ProxyServer, ProxySettings, UrlTarget, is_literal, target

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port in, the addresses to connect to out, at least one.

It may raise.  What it returns is what is connected to.
"""

MAX_IDLE = 64
"""Connections that are kept open without a request, over all servers."""
MAX_IDLE_SECONDS = 55.0
"""How long such a connection is trusted: less than servers usually wait."""
NEXT_SECONDS = 4.0
"""How long one of several addresses may take, where a resolver has named them."""

_Key: TypeAlias = tuple[str, str, int, str, ProxyServer | None]


class HttpClient(HttpTransport):
    """A transport over TCP, TLS, HTTP and SOCKS5 proxies, and unix sockets."""

    def __init__(
        self,
        *,
        proxies: ProxySettings | None = None,
        resolve: Resolve | None = None,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        """`tls` makes the context for https.

        By default one with the system's trust store.  It is called once, late.
        """
        self._proxies = proxies or ProxySettings()
        self._resolve = resolve
        self._make_tls = tls or _system_trust
        self._tls: ssl.SSLContext | None = None
        self._idle: dict[_Key, list[HttpConnection]] = {}

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpReply]:
        """Send the request; leaving closes the connection at once unless it can be used again."""
        return self._send(request)

    async def aclose(self) -> None:
        """Close the connections that wait; those in use belong to their readers."""
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()

    @asynccontextmanager
    async def _send(self, request: HttpRequest) -> AsyncGenerator[HttpReply]:
        where = target(request.url, request.url_source)
        proxy = None if request.unix_socket else self._proxies.for_target(where)
        # Proxy and socket are part of the key: an open connection must not carry a request that is
        # meant to take another way.
        key = (where.scheme, where.host, where.port, request.unix_socket, proxy)
        connection, reply = await self._ask(request, where, proxy, key)
        try:
            yield reply
        finally:
            if connection.release():
                self._keep(key, connection)

    async def _ask(
        self, request: HttpRequest, where: UrlTarget, proxy: ProxyServer | None, key: _Key
    ) -> tuple[HttpConnection, StreamedReply]:
        head = _head(request, where, proxy)
        connection = self._take(key)
        while True:
            connection = connection or await self._connect(request, where, proxy)
            was_used = connection.requests > 0
            reply = connection.send(head, request.body, request.timeouts)
            REQUEST_SENT.get()()
            try:
                await reply.head()
            except ProviderUnavailable:
                connection.release()
                if was_used and not reply.got_bytes and not reply.fell_silent:
                    # The server had closed it while it waited here, and so probably the others.  A
                    # new one tells for certain; more tries could each be a request that is billed.
                    self._forget(key)
                    connection = None
                    continue
                raise
            # A cancel too: a connection whose reply may still arrive must not go back to the pool.
            except BaseException:
                connection.release()
                raise
            return connection, reply

    # --- the pool ----------------------------------------------------------------------

    def _take(self, key: _Key) -> HttpConnection | None:
        connections = self._idle.get(key)
        oldest = asyncio.get_running_loop().time() - MAX_IDLE_SECONDS
        while connections:
            # The newest first: the server is least likely to have closed that one, and the others
            # reach their age.
            connection = connections.pop()
            if connection.is_open and connection.idle_since >= oldest:
                return connection
            connection.close()
        self._idle.pop(key, None)
        return None

    def _forget(self, key: _Key) -> None:
        for connection in self._idle.pop(key, ()):
            connection.close()

    def _keep(self, key: _Key, connection: HttpConnection) -> None:
        if sum(map(len, self._idle.values())) >= MAX_IDLE:
            connection.close()
            return
        self._idle.setdefault(key, []).append(connection)

    # --- connecting --------------------------------------------------------------------

    async def _connect(
        self, request: HttpRequest, where: UrlTarget, proxy: ProxyServer | None
    ) -> HttpConnection:
        shown = request.unix_socket or f"{where.host}:{where.port}"
        try:
            with anyio.fail_after(request.timeouts.connect):
                if request.unix_socket:
                    return await self._open_unix(request.unix_socket, where)
                if proxy is not None:
                    return await self._open_through(where, proxy)
                return await self._open(where)
        except TimeoutError as error:
            seconds = request.timeouts.connect
            through = f" through the proxy {proxy.shown}" if proxy is not None else ""
            late = ProviderUnavailable(
                f"{shown} could not be reached{through} within {seconds:g} seconds"
            )
            late.timed_out = True
            raise late from error
        except OSError as error:
            raise unreachable(shown, error, request.url_source or "the base URL") from error

    async def _open_unix(self, path: str, where: UrlTarget) -> HttpConnection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_unix_connection(partial(HttpConnection, where.host), path)
        return connection

    async def _open(self, where: UrlTarget) -> HttpConnection:
        host, port = where.host, where.port
        if self._resolve is None:
            # asyncio tries every address of the name itself.
            return await self._dial(host, port, where)
        *others, last = await self._resolve(host, port)
        failure: OSError | None = None
        for address in others:
            try:
                # One that is silent must not take the time of the next.
                with anyio.fail_after(NEXT_SECONDS):
                    return await self._dial(address, port, where)
            except TimeoutError:
                continue
            except OSError as error:
                failure = failure or error
        try:
            return await self._dial(last, port, where)
        except OSError as error:
            raise failure or error from error

    async def _dial(self, address: str, port: int, where: UrlTarget) -> HttpConnection:
        # TLS begins as a step of its own: asyncio's way to do both at once forgets the socket when
        # it is cancelled between the two.
        loop = asyncio.get_running_loop()
        is_plain = where.scheme == "http"
        transport, protocol = await loop.create_connection(
            partial(HttpConnection, where.host) if is_plain else asyncio.Protocol,
            address,
            port,
            # RFC 8305: else a host with a dead IPv6 route costs the whole connect timeout. It needs
            # a name to resolve, so it is no use for a pinned or literal address.
            happy_eyeballs_delay=None if self._resolve or is_literal(address) else 0.25,
        )
        if isinstance(protocol, HttpConnection):
            return protocol
        return await self._secured(transport, where)

    async def _secured(self, transport: asyncio.Transport, where: UrlTarget) -> HttpConnection:
        """The connection with TLS on it; whatever goes wrong, or a cancel, closes it."""
        connection = HttpConnection(where.host)
        try:
            secured = await asyncio.get_running_loop().start_tls(
                transport, connection, self._tls_context(), server_hostname=where.host
            )
            # What asyncio returns when the server closed the connection during the handshake.
            if secured is None:
                raise ConnectionResetError("the other side closed the connection")
            # `start_tls` switches the protocol of a connection that is made, so it does not call
            # this.
            connection.connection_made(secured)
        except BaseException:
            transport.abort()
            raise
        return connection

    async def _open_through(self, where: UrlTarget, proxy: ProxyServer) -> HttpConnection:
        """A connection through a proxy: a tunnel, or the proxy itself for plain http."""
        from weft.transport.socks import SocksTunnel  # only behind a proxy
        from weft.transport.tunnel import ConnectTunnel

        if where.scheme == "http" and not proxy.is_socks:
            transport = await self._reach(proxy, asyncio.Protocol())
            return _handed_over(transport, where)
        tunnel = SocksTunnel(proxy) if proxy.is_socks else ConnectTunnel(proxy)
        transport = await self._reach(proxy, tunnel)
        try:
            if isinstance(tunnel, SocksTunnel):
                await tunnel.ask(await self._name_for(where, proxy), where.port)
            else:
                await tunnel.ask(where)
        except BaseException:
            transport.abort()
            raise
        if where.scheme == "http":
            return _handed_over(transport, where)
        return await self._secured(transport, where)

    async def _reach(self, proxy: ProxyServer, protocol: asyncio.Protocol) -> asyncio.Transport:
        """The connection to a proxy, with TLS on it where the proxy speaks that.

        Raises:
            ProviderUnavailable: it cannot be reached; the proxy is named, not what is behind it.
        """
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.create_connection(lambda: protocol, proxy.host, proxy.port)
            if proxy.scheme != "https":
                return transport
            try:
                secured = await loop.start_tls(
                    transport, protocol, self._tls_context(), server_hostname=proxy.host
                )
                if secured is None:
                    raise ConnectionResetError("the other side closed the connection")
            except BaseException:
                transport.abort()
                raise
        except OSError as error:
            raise unreachable(f"the proxy {proxy.shown}", error, proxy.variable) from error
        protocol.connection_made(secured)
        return secured

    async def _name_for(self, where: UrlTarget, proxy: ProxyServer) -> str:
        """The name or address that a SOCKS proxy is asked for."""
        if self._resolve is not None:
            # What was checked is what is connected to; the proxy might look up another address.
            return (await self._resolve(where.host, where.port))[0]
        if proxy.scheme == "socks5h" or is_literal(where.host):
            return where.host
        found = await asyncio.get_running_loop().getaddrinfo(
            where.host, where.port, type=socket.SOCK_STREAM
        )
        return str(found[0][4][0])

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = self._make_tls()
        return self._tls


def _handed_over(transport: asyncio.Transport, where: UrlTarget) -> HttpConnection:
    """The open connection as one that HTTP is spoken on."""
    connection = HttpConnection(where.host)
    transport.set_protocol(connection)
    connection.connection_made(transport)
    return connection


def _system_trust() -> ssl.SSLContext:
    """Loading the trust store costs tens of milliseconds, so this is called for the first https
    request only.
    """
    return ssl.create_default_context()


def _head(request: HttpRequest, where: UrlTarget, proxy: ProxyServer | None) -> bytes:
    path = where.path
    # Identity: a compressor would hold small events back until its block is full.
    lines = [f"host: {where.authority}", "accept-encoding: identity"]
    if proxy is not None and where.scheme == "http" and not proxy.is_socks:
        # RFC 9112, 3.2.2: a proxy gets the whole URI.
        path = f"http://{where.authority}{where.path}"
        if proxy.authorization:
            lines.append(f"proxy-authorization: {proxy.authorization}")
    # RFC 9110, 8.6: a POST without a body says so; some servers answer 411 to one that has no
    # length.
    if request.body or request.method not in ("GET", "HEAD"):
        lines.append(f"content-length: {len(request.body)}")
    lines += [f"{name}: {value}" for name, value in request.headers]
    # A key that was pasted with its line break would begin a header of its own.
    for line in lines:
        if "\r" in line or "\n" in line:
            raise UsageError(
                "a header holds a line break; look at the key and the headers in config"
            )
    head = "\r\n".join([f"{request.method} {path} HTTP/1.1", *lines, "", ""])
    try:
        return head.encode("ascii")
    except UnicodeEncodeError as error:
        raise UsageError(
            "a header or the address holds characters that are not ASCII; look at the key in config"
        ) from error


_NOT_TLS = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"}
)
"""What OpenSSL calls an answer that is no TLS; which one depends on its version."""


def unreachable(shown: str, error: OSError, setting: str) -> ProviderUnavailable:
    """The error as the user reads it; an untrusted certificate is not worth a retry."""
    reason = error.strerror or str(error) or type(error).__name__
    if isinstance(error, ConnectionRefusedError) or _all_refused(str(error)):
        reason = f"nothing listens there; is it running, and is {setting} right?"
    found = ProviderUnavailable(f"could not reach {shown}: {reason}")
    if type(error).__name__ == "SSLCertVerificationError":
        found = ProviderUnavailable(
            f"the certificate of {shown} is not trusted: {getattr(error, 'verify_message', reason)}"
        )
        found.retryable = False
    elif getattr(error, "reason", "") in _NOT_TLS:
        found = ProviderUnavailable(
            f"{shown} does not speak TLS; should {setting} begin with http://?"
        )
        found.retryable = False
    return found


def _all_refused(said: str) -> bool:
    """A name with several addresses gives one error that only tells of the others in words."""
    refused = said.count(f"[Errno {errno.ECONNREFUSED}]")
    return said.startswith("Multiple exceptions") and 0 < refused == said.count("[Errno ")
