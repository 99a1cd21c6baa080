"""What servers and proxies do wrong, over real sockets, and what the HTTP client makes of it."""

from __future__ import annotations

import gzip
import os
import socket

import anyio
import pytest

from tests.support.example_count import examples
from tests.support.http_exchange import (
    SHORT,
    CertificateAuthority,
    client_and_server,
    fetch,
    reply_ok,
)
from tests.support.loopback_server import Handler, LoopbackConnection, serving
from weft.errors import ProviderUnavailable, RequestRefused, UsageError
from weft.providers.base import ModelRequest
from weft.providers.catalogue import shipped
from weft.providers.credentials import ProviderAccess
from weft.providers.vendors import make_provider
from weft.transport import HttpClient, ProxySettings
from weft.transport.client import unreachable
from weft.transport.proxy import target

pytestmark = pytest.mark.anyio


def sends(data: bytes) -> Handler:
    """A server that answers every request with these bytes and keeps the connection."""

    async def handler(line: LoopbackConnection) -> None:
        while await line.request():
            await line.send(data)

    return handler


# --- framing ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "body", "is_kept"),
    [
        pytest.param(
            b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;a=b;c="d"\r\nabc\r\n0\r\n\r\n',
            b"abc",
            True,
            id="chunk extensions",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: "
            b"chunked\r\n\r\n3\r\nabc\r\n0\r\nx-sum: 1\r\n\r\n",
            b"abc",
            True,
            id="trailers",
        ),
        pytest.param(
            b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            b"ok",
            True,
            id="two informational replies",
        ),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", b"", True, id="204"),
        pytest.param(b"HTTP/1.1 304 Not Modified\r\n\r\n", b"", True, id="304"),
        pytest.param(
            b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", b"ok", False, id="HTTP/1.0"
        ),
        pytest.param(
            b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok",
            b"ok",
            True,
            id="HTTP/1.0 that stays",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokNOT HTTP AT ALL\r\n\r\n",
            b"ok",
            False,
            id="more than was announced",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
            b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil",
            b"ok",
            False,
            id="an answer to nothing",
        ),
    ],
)
async def test_an_odd_reply_is_read_and_only_a_clean_connection_is_kept(
    data: bytes, body: bytes, is_kept: bool
) -> None:
    async with client_and_server(sends(data)) as (client, server):
        for _ in range(2):
            assert await fetch(client, server.url) == body
        assert server.connections == (1 if is_kept else 2)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok!",
            id="two lengths",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            id="length and chunks",
        ),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n", id="negative length"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\nabc\r\n",
            id="bad chunk size",
        ),
        pytest.param(
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n", id="another protocol"
        ),
        pytest.param(b"HTTP/2 200\r\n\r\n", id="another version"),
        pytest.param(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 300_000, id="an endless header"),
    ],
)
async def test_a_reply_that_contradicts_itself_is_unavailable(data: bytes) -> None:
    async with client_and_server(sends(data)) as (client, server):
        with pytest.raises(ProviderUnavailable) as caught:
            await fetch(client, server.url, timeouts=SHORT)
        assert caught.value.retryable


async def test_a_compressed_body_that_is_cut_off_is_not_taken_for_a_whole_one() -> None:
    half = gzip.compress(os.urandom(2_000))[:-900]
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(half)
    async with client_and_server(sends(head + half)) as (client, server):
        with pytest.raises(ProviderUnavailable, match="damaged compressed body"):
            await fetch(client, server.url)


async def test_an_empty_compressed_body_is_empty() -> None:
    data = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n"
    async with client_and_server(sends(data)) as (client, server):
        assert await fetch(client, server.url) == b""


async def test_a_head_that_trickles_is_not_waited_for_longer_than_silence() -> None:
    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        await line.send(b"HTTP/1.1 200 OK\r\nx-slow: ")
        while not server.gone.is_set():
            await line.send(b"y")
            await anyio.lowlevel.checkpoint()

    async with client_and_server(handler) as (client, server):
        with pytest.raises(ProviderUnavailable, match=r"no answer within 0\.05 seconds"):
            await fetch(client, server.url, timeouts=SHORT)


# --- connections that were kept --------------------------------------------------------


async def test_a_server_that_closes_on_every_request_is_asked_twice_at_most() -> None:
    """Whatever number of connections waits: each try may be a request that the vendor bills."""
    all_here = anyio.Event()
    is_broken = False

    async def handler(line: LoopbackConnection) -> None:
        while await line.request():
            if is_broken:
                return
            if len(server.asked) == 5:
                all_here.set()
            await all_here.wait()
            await line.reply(b"ok")

    async with client_and_server(handler) as (client, server):
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(fetch, client, server.url)
        assert server.connections == 5
        is_broken = True
        with pytest.raises(ProviderUnavailable, match="without an answer"):
            await fetch(client, server.url)
        assert len(server.asked) == 5 + 2


async def test_a_thousand_requests_leave_no_descriptor_behind() -> None:
    count = 0

    async def handler(line: LoopbackConnection) -> None:
        nonlocal count
        while await line.request():
            count += 1
            match count % 5:
                case 0:
                    return
                case 1:
                    await line.reply(b"x", headers="connection: close\r\n")
                case 2:
                    await line.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
                    return
                case 3:
                    await line.send(b"nonsense\r\n\r\n")
                case _:
                    await line.reply(b"ok")

    async with client_and_server(handler) as (client, server):
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(examples(1_000)):
            try:
                await fetch(client, server.url)
            except ProviderUnavailable:
                continue
        await client.aclose()
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(5):
            while len(os.listdir("/proc/self/fd")) > before + 2:
                await anyio.lowlevel.checkpoint()


# --- redirects -------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_an_error_that_names_the_place_and_the_key_goes_nowhere(
    status: int,
) -> None:
    async with serving(reply_ok) as other, client_and_server(reply_ok) as (client, _):

        async def moved(line: LoopbackConnection) -> None:
            await line.request()
            await line.reply(b"", status=status, headers=f"location: {other.url}/elsewhere\r\n")

        async with serving(moved) as server:
            access = ProviderAccess(key="sk-secret-secret", base_url=server.url)
            model = make_provider("anthropic", access, client, shipped()).model("")
            with pytest.raises(RequestRefused, match="/elsewhere; set the base URL") as caught:
                async with model.stream(ModelRequest(model="m", messages=())):
                    pass
        assert not caught.value.retryable
        assert other.asked == []


# --- addresses -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("no_proxy", "url", "is_excepted"),
    [
        ("*", "https://api.example.com", True),
        ("example.com", "https://api.example.com", True),
        (".example.com", "https://api.example.com", True),
        ("*.example.com", "https://api.example.com", True),
        ("example.com", "https://notexample.com", False),
        ("example.com:8443", "https://api.example.com:8443", True),
        ("example.com:8443", "https://api.example.com", False),
        ("10.0.0.0/8", "http://10.2.3.4:8000", True),
        ("10.0.0.0/8", "http://11.2.3.4", False),
        ("10.2.3.4:8000", "http://10.2.3.4:8000", True),
        ("10.2.3.4:8000", "http://10.2.3.4", False),
        ("fd00::/8", "http://[fd00::1]:8000", True),
        ("fd00::1", "http://[fd00::1]:8000", True),
        ("[fd00::1]", "http://[fd00::1]:8000", True),
        ("[fd00::1]:8000", "http://[fd00::1]:8000", True),
        ("[fd00::1]:8000", "http://[fd00::1]:9000", False),
        ("fd00::2", "http://[fd00::1]", False),
        ("a.example, b.example  c.example", "https://c.example", True),
        ("API.Example.COM", "https://api.example.com", True),
        ("10.0.0.0/99", "http://10.2.3.4", False),
        ("", "https://api.example.com", False),
        ("", "https://localhost:1", True),
        ("", "http://127.9.9.9", True),
        ("", "http://[::1]", True),
    ],
)
async def test_every_form_of_exception_is_understood(
    no_proxy: str, url: str, is_excepted: bool
) -> None:
    proxies = ProxySettings(https="http://proxy:3128", http="http://proxy:3128", no_proxy=no_proxy)
    assert (proxies.for_target(target(url)) is None) is is_excepted


@pytest.mark.parametrize("address", ["http://proxy:port", "http://[::1", "http://proxy:99999"])
async def test_a_proxy_whose_address_makes_no_sense_is_reported(address: str) -> None:
    with pytest.raises(UsageError, match="HTTPS_PROXY is not right: the address of a proxy looks"):
        ProxySettings(https=address).for_target(target("https://api.example.com"))


@pytest.mark.parametrize("url", ["http://[::1", "http://h:99999/", "ftp://x", "/v1", "http://"])
async def test_an_address_that_makes_no_sense_is_reported(url: str) -> None:
    with pytest.raises(UsageError, match="is not a valid address"):
        target(url)


async def test_a_literal_of_the_sixth_version_is_reached_and_named_as_such() -> None:
    raw = socket.socket(socket.AF_INET6)
    try:
        raw.bind(("::1", 0))
    except OSError:
        pytest.skip("there is no IPv6 here")
    raw.listen()
    heard: list[bytes] = []

    async def answer() -> None:
        with anyio.fail_after(5):
            await anyio.wait_readable(raw)
            line, _ = raw.accept()
            await anyio.wait_readable(line)
            heard.append(line.recv(65536))
            line.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")
            line.close()

    url = f"http://[::1]:{raw.getsockname()[1]}/"
    async with anyio.create_task_group() as group:
        group.start_soon(answer)
        assert await fetch(HttpClient(), url) == b"ok"
    raw.close()
    assert b"host: " + url[len("http://") : -1].encode() in heard[0]


# --- TLS -------------------------------------------------------------------------------


async def test_plain_words_where_tls_was_expected_are_said_and_not_tried_again() -> None:
    async def handler(line: LoopbackConnection) -> None:
        await line.send(b"HTTP/1.1 400 This is plain HTTP\r\n\r\n" * 4)
        await line.until_gone()

    async with client_and_server(handler) as (client, server):
        with pytest.raises(ProviderUnavailable, match="does not speak TLS; should the") as caught:
            await fetch(client, server.url.replace("http://", "https://"))
        assert not caught.value.retryable
        with anyio.fail_after(5):
            await server.gone.wait()


@pytest.mark.parametrize("stage", ["handshake", "tunnel"])
async def test_a_cancel_in_the_middle_of_connecting_closes_the_socket(
    stage: str, authority: CertificateAuthority
) -> None:
    begun = anyio.Event()

    async def handler(line: LoopbackConnection) -> None:
        begun.set()
        await line.until_gone()

    async with serving(handler) as server:
        at_us = server.url.replace("http://", "https://")
        client = HttpClient()
        if stage == "tunnel":
            client, at_us = (
                HttpClient(proxies=ProxySettings(https=server.url)),
                "https://api.example.com",
            )
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(fetch, client, at_us)
                await begun.wait()
                group.cancel_scope.cancel()
            await server.gone.wait()


def test_refusals_of_all_addresses_of_a_name_are_one_refusal() -> None:
    six = "[Errno 111] Connect call failed ('::1', 1, 0, 0)"
    four = "[Errno 111] Connect call failed ('127.0.0.1', 1)"
    told = unreachable("localhost:1", OSError(f"Multiple exceptions: {six}, {four}"), "it")
    assert "nothing listens there" in str(told)
    far = OSError(f"Multiple exceptions: {six}, [Errno 113] No route to host")
    other = unreachable("h:1", far, "it")
    assert "nothing listens there" not in str(other)
