"""Proxies of the HTTP client over real sockets: https proxies, SOCKS5, and proxies that fail."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import SocketListener, SocketStream

from tests.support.http_exchange import CertificateAuthority, client_and_server, fetch, reply_ok
from tests.support.loopback_server import LoopbackConnection, serving
from tests.support.tunnel_proxy import piped, tunnel_to
from weft.config.providers import proxies_of
from weft.errors import ProviderUnavailable
from weft.transport import HttpClient, HttpTimeouts, ProxySettings

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority()


# --- a proxy that speaks TLS itself ----------------------------------------------------


async def test_https_goes_through_an_https_proxy_with_tls_inside_tls(
    authority: CertificateAuthority,
) -> None:
    async with (
        serving(reply_ok, tls=authority.server("api.example.test")) as server,
        serving(tunnel_to(server.port), tls=authority.server("127.0.0.1")) as proxy,
    ):
        proxies = ProxySettings(https=f"https://me:word@127.0.0.1:{proxy.port}")
        client = HttpClient(proxies=proxies, tls=authority.client)
        assert await fetch(client, "https://api.example.test/v1") == b"ok"
        await client.aclose()
    assert [(a.method, a.path) for a in proxy.asked] == [("CONNECT", "api.example.test:443")]
    assert proxy.asked[0].headers["proxy-authorization"] == "Basic bWU6d29yZA=="
    assert server.asked[0].path == "/v1"


async def test_plain_http_is_asked_of_an_https_proxy_in_full(
    authority: CertificateAuthority,
) -> None:
    async with serving(reply_ok, tls=authority.server("127.0.0.1")) as proxy:
        client = HttpClient(proxies=ProxySettings(http=proxy.url), tls=authority.client)
        assert await fetch(client, "http://api.example.test/v1") == b"ok"
        await client.aclose()
    assert proxy.asked[0].path == "http://api.example.test/v1"


async def test_the_certificate_of_an_https_proxy_is_checked_and_the_proxy_named(
    authority: CertificateAuthority,
) -> None:
    async with serving(reply_ok, tls=authority.server("other.test")) as proxy:
        client = HttpClient(proxies=ProxySettings(https=proxy.url), tls=authority.client)
        with pytest.raises(ProviderUnavailable, match="certificate of the proxy") as caught:
            await fetch(client, "https://api.example.test/")
    assert f"127.0.0.1:{proxy.port}" in str(caught.value)


# --- SOCKS5 ----------------------------------------------------------------------------


class SocksProxy:
    """A SOCKS5 proxy that connects to one port, whatever it is asked for."""

    def __init__(self, to_port: int, *, user: str = "", reply: int = 0) -> None:
        self._to_port = to_port
        self._user = user
        self._reply = reply
        self.port = 0
        self.asked: list[tuple[str, int]] = []
        self.users: list[str] = []

    async def __call__(self, stream: SocketStream) -> None:
        async with stream:
            try:
                await self._serve(stream)
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return

    async def _serve(self, stream: SocketStream) -> None:
        _, count = await self._take(stream, 2)
        offered = await self._take(stream, count)
        method = 2 if self._user else 0
        await stream.send(bytes([5, method if method in offered else 255]))
        if self._user and method in offered and not await self._log_in(stream):
            return
        _, _, _, kind = await self._take(stream, 4)
        size = {1: 4, 4: 16}.get(kind) or (await self._take(stream, 1))[0]
        raw = await self._take(stream, size)
        port = int.from_bytes(await self._take(stream, 2), "big")
        families = {1: socket.AF_INET, 4: socket.AF_INET6}
        host = socket.inet_ntop(families[kind], raw) if kind in families else raw.decode()
        self.asked.append((host, port))
        # A name as the address that it is bound to: its length differs, and it has to be read.
        await stream.send(bytes([5, self._reply, 0, 3, 5]) + b"proxy" + b"\0\0")
        if not self._reply:
            await piped(stream, self._to_port)

    async def _log_in(self, stream: SocketStream) -> bool:
        _, size = await self._take(stream, 2)
        name = await self._take(stream, size)
        word = await self._take(stream, (await self._take(stream, 1))[0])
        self.users.append(f"{name.decode()}:{word.decode()}")
        is_right = self.users[-1] == self._user
        await stream.send(bytes([1, 0 if is_right else 1]))
        return is_right

    @staticmethod
    async def _take(stream: SocketStream, size: int) -> bytes:
        # Byte by byte: the client must not depend on how the answers are cut.
        data = b""
        while len(data) < size:
            data += await stream.receive(1)
        return data


@asynccontextmanager
async def running(proxy: SocksProxy) -> AsyncGenerator[SocksProxy]:
    raw = socket.socket()
    raw.bind(("127.0.0.1", 0))
    raw.listen()
    proxy.port = raw.getsockname()[1]
    listener = await SocketListener.from_socket(raw)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, proxy)
        yield proxy
        group.cancel_scope.cancel()


async def test_https_goes_through_socks_and_the_proxy_looks_the_name_up(
    authority: CertificateAuthority,
) -> None:
    async with (
        serving(reply_ok, tls=authority.server("api.example.test")) as server,
        running(SocksProxy(server.port)) as proxy,
    ):
        proxies = ProxySettings(https=f"socks5h://127.0.0.1:{proxy.port}")
        client = HttpClient(proxies=proxies, tls=authority.client)
        for _ in range(2):
            assert await fetch(client, "https://api.example.test/v1") == b"ok"
        await client.aclose()
    assert proxy.asked == [("api.example.test", 443)]
    assert len(server.asked) == 2


async def test_plain_http_goes_through_socks_as_if_there_were_no_proxy() -> None:
    async with client_and_server(reply_ok) as (_, server), running(SocksProxy(server.port)) as p:
        client = HttpClient(proxies=ProxySettings(http=f"socks5h://127.0.0.1:{p.port}"))
        assert await fetch(client, "http://api.example.test/v1") == b"ok"
        await client.aclose()
    assert p.asked == [("api.example.test", 80)]
    assert server.asked[0].path == "/v1"


@pytest.mark.parametrize("host", ["192.0.2.7", "[2001:db8::7]"])
async def test_addresses_go_to_a_socks_proxy_as_addresses(host: str) -> None:
    async with client_and_server(reply_ok) as (_, server), running(SocksProxy(server.port)) as p:
        client = HttpClient(proxies=ProxySettings(http=f"socks5://127.0.0.1:{p.port}"))
        assert await fetch(client, f"http://{host}:8080/") == b"ok"
        await client.aclose()
    assert p.asked == [(host.strip("[]"), 8080)]


async def test_a_pinned_address_is_what_a_socks_proxy_connects_to() -> None:
    async def pin(host: str, port: int) -> tuple[str, ...]:
        return ("192.0.2.9",)

    async with client_and_server(reply_ok) as (_, server), running(SocksProxy(server.port)) as p:
        proxies = ProxySettings(http=f"socks5h://127.0.0.1:{p.port}")
        client = HttpClient(proxies=proxies, resolve=pin)
        assert await fetch(client, "http://api.example.test/") == b"ok"
        await client.aclose()
    assert p.asked == [("192.0.2.9", 80)]


async def test_a_socks_proxy_gets_the_user_and_password_of_its_address() -> None:
    async with (
        client_and_server(reply_ok) as (_, server),
        running(SocksProxy(server.port, user="me:p@ss")) as proxy,
    ):
        address = f"socks5h://me:p%40ss@127.0.0.1:{proxy.port}"
        client = HttpClient(proxies=ProxySettings(http=address))
        assert await fetch(client, "http://api.example.test/") == b"ok"
        await client.aclose()
        for wrong, why in (("me:no@", "is wrong"), ("", "wants a user name and password")):
            address = f"socks5h://{wrong}127.0.0.1:{proxy.port}"
            client = HttpClient(proxies=ProxySettings(http=address))
            with pytest.raises(ProviderUnavailable, match=why) as caught:
                await fetch(client, "http://api.example.test/")
            assert not caught.value.retryable
    assert proxy.users == ["me:p@ss", "me:no"]


@pytest.mark.parametrize(
    ("reply", "why", "is_retried"),
    [(2, "its rules forbid it", False), (5, "was refused", True), (99, "reply 99", False)],
)
async def test_what_a_socks_proxy_refuses_is_said(reply: int, why: str, is_retried: bool) -> None:
    async with running(SocksProxy(1, reply=reply)) as proxy:
        client = HttpClient(proxies=ProxySettings(https=f"socks5h://127.0.0.1:{proxy.port}"))
        with pytest.raises(ProviderUnavailable, match=why) as caught:
            await fetch(client, "https://api.example.test/")
    assert f"the proxy 127.0.0.1:{proxy.port} refused to connect to api.example.test" in str(
        caught.value
    )
    assert caught.value.retryable is is_retried


async def test_a_web_server_that_was_named_as_a_socks_proxy_is_told_apart() -> None:
    async def web(line: LoopbackConnection) -> None:
        await line.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await line.until_gone()

    async with serving(web) as server:
        client = HttpClient(proxies=ProxySettings(https=f"socks5h://127.0.0.1:{server.port}"))
        with pytest.raises(ProviderUnavailable, match="does not answer in SOCKS5"):
            await fetch(client, "https://api.example.test/")


# --- proxies that fail -----------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["http", "https", "socks5h"])
async def test_a_proxy_that_is_down_is_named_instead_of_what_is_behind_it(scheme: str) -> None:
    raw = socket.socket()
    raw.bind(("127.0.0.1", 0))  # bound, and not listening: nothing else can take the port
    port = raw.getsockname()[1]
    proxies = proxies_of({"all_proxy": f"{scheme}://u:secret@127.0.0.1:{port}"})
    client = HttpClient(proxies=proxies)
    with pytest.raises(ProviderUnavailable) as caught:
        await fetch(client, "https://api.example.test/")
    raw.close()
    said = str(caught.value)
    assert f"could not reach the proxy 127.0.0.1:{port}: nothing listens there" in said
    assert "is all_proxy right?" in said
    assert "secret" not in said


async def test_a_silent_proxy_is_named() -> None:
    async def silent(line: LoopbackConnection) -> None:
        await line.until_gone()

    async with serving(silent) as proxy:
        client = HttpClient(proxies=ProxySettings(https=f"socks5h://127.0.0.1:{proxy.port}"))
        short = HttpTimeouts(connect=0.05)
        with pytest.raises(ProviderUnavailable, match="through the proxy 127") as caught:
            await fetch(client, "https://api.example.test/", timeouts=short)
    assert caught.value.timed_out


def test_the_environment_names_proxies_of_every_kind() -> None:
    both = proxies_of({"ALL_PROXY": "socks5h://a:1", "https_proxy": "https://b:2"})
    assert (both.https, both.http) == ("https://b:2", "socks5h://a:1")
