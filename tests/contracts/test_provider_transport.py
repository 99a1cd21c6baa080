"""The HTTP client over real sockets: what it must survive, and what it must not do."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import pytest

from tests.support.http_exchange import (
    SHORT,
    CertificateAuthority,
    body_of,
    client_and_server,
    fetch,
    reply_ok,
)
from tests.support.loopback_server import Handler, LoopbackConnection, serving
from tests.support.tunnel_proxy import tunnel_to
from weft.errors import ProviderUnavailable, UsageError
from weft.request_sign import REQUEST_SENT
from weft.transport import HttpClient, HttpRequest, HttpTimeouts, ProxySettings

pytestmark = pytest.mark.anyio


# --- framing ---------------------------------------------------------------------------


async def test_a_request_goes_out_whole_and_the_reply_comes_back() -> None:
    async with client_and_server(reply_ok) as (client, server):
        request = HttpRequest(
            url=f"{server.url}/v1/x?a=1", headers=(("x-key", "k"),), body=b'{"a":1}'
        )
        async with client.send(request) as reply:
            assert (reply.status, await body_of(reply)) == (200, b"ok")
    asked = server.asked[0]
    assert (asked.method, asked.path, asked.body) == ("POST", "/v1/x?a=1", b'{"a":1}')
    assert asked.headers["x-key"] == "k"
    assert asked.headers["host"] == f"127.0.0.1:{server.port}"
    assert asked.headers["accept-encoding"] == "identity"


async def test_a_caller_learns_that_its_request_has_left_before_there_is_an_answer() -> None:
    sent = anyio.Event()

    async def answers_then(line: LoopbackConnection) -> None:
        await line.request()
        await sent.wait()
        await line.reply(b"ok")

    told = REQUEST_SENT.set(sent.set)
    async with client_and_server(answers_then) as (client, server):
        assert not sent.is_set()
        with anyio.fail_after(5):
            async with client.send(HttpRequest(url=server.url)) as reply:
                assert await body_of(reply) == b"ok"
    REQUEST_SENT.reset(told)


async def test_a_get_has_no_body_and_no_length() -> None:
    async with (
        client_and_server(reply_ok) as (client, server),
        client.send(HttpRequest(url=server.url, method="GET")) as reply,
    ):
        await body_of(reply)
    assert "content-length" not in server.asked[0].headers
    assert server.asked[0].path == "/"


async def test_chunks_arrive_as_they_are_sent() -> None:
    go_on = anyio.Event()

    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        await line.start_events()
        await line.chunk(b"one")
        await go_on.wait()
        await line.chunk(b"two")
        await line.end_chunks()

    async with client_and_server(handler) as (client, server):
        with anyio.fail_after(5):
            async with client.send(HttpRequest(url=server.url)) as reply:
                assert await reply.read() == b"one"
                go_on.set()
                assert await body_of(reply) == b"two"


async def test_a_reply_cut_into_single_bytes_is_the_same_reply() -> None:
    whole = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: "
        b"b\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"
    )

    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        for at in range(len(whole)):
            await line.send(whole[at : at + 1])
        await line.until_gone()

    async with (
        client_and_server(handler) as (client, server),
        client.send(HttpRequest(url=server.url)) as reply,
    ):
        assert await body_of(reply) == b"abcd"
        assert reply.headers["x-a"] == "b"


async def test_a_body_without_length_ends_with_the_connection() -> None:
    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        await line.send(b"HTTP/1.1 200 OK\r\n\r\nall of it")

    async with client_and_server(handler) as (client, server):
        assert await fetch(client, server.url) == b"all of it"


async def test_hints_before_the_reply_are_passed_over() -> None:
    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        await line.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nlink: x\r\n\r\n")
        await line.reply(b"ok", status=201)

    async with (
        client_and_server(handler) as (client, server),
        client.send(HttpRequest(url=server.url)) as reply,
    ):
        assert (reply.status, await body_of(reply)) == (201, b"ok")
        assert "link" not in reply.headers


# --- keeping connections ---------------------------------------------------------------


async def test_a_connection_is_used_again() -> None:
    async with client_and_server(reply_ok) as (client, server):
        for _ in range(3):
            assert await fetch(client, server.url) == b"ok"
    assert server.connections == 1
    assert len(server.asked) == 3


async def test_a_connection_that_the_server_closes_is_not_used_again() -> None:
    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        await line.reply(b"ok", headers="connection: close\r\n")
        await line.until_gone()

    async with client_and_server(handler) as (client, server):
        for _ in range(2):
            assert await fetch(client, server.url) == b"ok"
    assert server.connections == 2


async def test_a_connection_that_died_while_it_waited_is_replaced_unseen() -> None:
    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        await line.reply(b"ok")
        await line.request()  # and hangs up on it

    async with client_and_server(handler) as (client, server):
        assert await fetch(client, server.url) == b"ok"
        assert await fetch(client, server.url) == b"ok"
    assert server.connections == 2


async def test_a_reply_that_broke_off_is_never_asked_for_twice() -> None:
    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        await line.reply(b"ok")
        await line.request()
        await line.send(b"HTTP/1.1 200 OK\r\n")
        await line.reset()

    async with client_and_server(handler) as (client, server):
        await fetch(client, server.url)
        with pytest.raises(ProviderUnavailable):
            await fetch(client, server.url)
    assert server.connections == 1


async def test_an_answer_to_nothing_spoils_the_connection() -> None:
    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        good = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
        await line.send(good + b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil")
        await line.until_gone()

    async with client_and_server(handler) as (client, server):
        assert await fetch(client, server.url) == b"ok"
        assert await fetch(client, server.url) == b"ok"
    assert server.connections == 2


async def test_fifty_requests_at_once_each_get_their_own_answer() -> None:
    async def handler(line: LoopbackConnection) -> None:
        while asked := await line.request():
            await line.reply(asked.path.encode())

    async with client_and_server(handler) as (client, server):
        seen: dict[int, bytes] = {}

        async def one(number: int) -> None:
            seen[number] = await fetch(client, f"{server.url}/{number}")

        for _ in range(2):
            async with anyio.create_task_group() as group:
                for number in range(50):
                    group.start_soon(one, number)
            assert seen == {number: f"/{number}".encode() for number in range(50)}
    assert server.connections <= 50


# --- faults ----------------------------------------------------------------------------


async def reset_in_the_middle(line: LoopbackConnection) -> None:
    await line.start_events()
    await line.chunk(b"half")
    await line.reset()


async def end_in_the_middle(line: LoopbackConnection) -> None:
    await line.start_events()
    await line.chunk(b"half")
    await line.close()


async def too_short(line: LoopbackConnection) -> None:
    await line.send(b"HTTP/1.1 200 OK\r\ncontent-length: 400\r\n\r\nhalf")
    await line.close()


async def broken_chunks(line: LoopbackConnection) -> None:
    await line.start_events()
    await line.chunk(b"half")
    await line.send(b"zz\r\nnot a chunk\r\n")
    await line.until_gone()


@pytest.mark.parametrize(
    "fault", [reset_in_the_middle, end_in_the_middle, too_short, broken_chunks]
)
async def test_a_body_that_breaks_off_raises_after_what_came(fault: Handler) -> None:
    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        await fault(line)

    async with client_and_server(handler) as (client, server):
        with anyio.fail_after(5):
            async with client.send(HttpRequest(url=server.url)) as reply:
                heard = b""
                with pytest.raises(ProviderUnavailable) as caught:  # noqa: PT012 - after any piece
                    while True:
                        heard += await reply.read()
    assert heard == b"half"
    assert caught.value.retryable


async def closes_at_once(line: LoopbackConnection) -> None:
    await line.request()


async def resets_at_once(line: LoopbackConnection) -> None:
    await line.request()
    await line.reset()


async def speaks_another_language(line: LoopbackConnection) -> None:
    await line.request()
    await line.send(b"SSH-2.0-OpenSSH_9.2\r\n")
    await line.until_gone()


async def never_ends_its_head(line: LoopbackConnection) -> None:
    await line.request()
    await line.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await line.send(b"x-more: " + b"y" * 4000 + b"\r\n")


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (closes_at_once, "closed the connection without an answer"),
        (resets_at_once, "closed the connection without an answer"),
        (never_ends_its_head, "bytes of headers|not HTTP"),
    ],
)
async def test_no_proper_answer_is_unavailable(handler: Handler, message: str) -> None:
    async with client_and_server(handler) as (client, server):
        with pytest.raises(ProviderUnavailable, match=message):
            await fetch(client, server.url)


async def test_a_server_that_does_not_speak_http_is_said_once_and_not_tried_again() -> None:
    async with client_and_server(speaks_another_language) as (client, server):
        with pytest.raises(ProviderUnavailable, match="does not speak HTTP; is the base") as caught:
            await fetch(client, server.url)
        assert not caught.value.retryable


async def test_no_server_listening_is_unavailable() -> None:
    async with client_and_server(reply_ok) as (client, server):
        pass
    with pytest.raises(ProviderUnavailable, match=f"could not reach 127.0.0.1:{server.port}"):
        await fetch(client, server.url)


async def test_an_unknown_host_is_unavailable() -> None:
    async def unknown(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(ProviderUnavailable, match=r"nowhere\.invalid:80: Name or service not"):
        await fetch(HttpClient(resolve=unknown), "http://nowhere.invalid/")


async def test_silence_before_the_head_and_in_the_body_is_unavailable() -> None:
    async def silent(line: LoopbackConnection) -> None:
        await line.request()
        await line.until_gone()

    async def falls_silent(line: LoopbackConnection) -> None:
        await line.request()
        await line.start_events()
        await line.chunk(b"half")
        await line.until_gone()

    for handler in (silent, falls_silent):
        async with client_and_server(handler) as (client, server):
            with pytest.raises(ProviderUnavailable, match=r"sent nothing for 0\.05 seconds"):
                await fetch(client, server.url, timeouts=SHORT)
            with anyio.fail_after(5):
                await server.gone.wait()


async def test_the_first_byte_and_the_next_ones_have_limits_of_their_own() -> None:
    """A model may think for minutes before it speaks; a stream that stops has broken."""

    async def thinks(line: LoopbackConnection) -> None:
        await line.request()
        await line.start_events()
        await line.until_gone()

    async def stops(line: LoopbackConnection) -> None:
        await line.request()
        await line.start_events()
        await line.chunk(b"half")
        await line.until_gone()

    beginning, rest = HttpTimeouts(first_byte=0.05, idle=99), HttpTimeouts(first_byte=99, idle=0.05)
    for handler, timeouts in ((thinks, beginning), (stops, rest)):
        async with client_and_server(handler) as (client, server):
            with pytest.raises(ProviderUnavailable, match=r"nothing for 0\.05 sec") as caught:
                await fetch(client, server.url, timeouts=timeouts)
            assert caught.value.timed_out


async def test_an_answer_may_begin_later_than_its_parts_may_come() -> None:
    beginning = anyio.Event()

    async def thinks(line: LoopbackConnection) -> None:
        await line.request()
        await line.start_events()
        # Another exchange that falls silent tells that the shorter limit has passed.
        await beginning.wait()
        await line.chunk(b"whole")
        await line.end_chunks()

    async def silent(line: LoopbackConnection) -> None:
        await line.request()
        await line.until_gone()

    async def pass_time(client: HttpClient, url: str) -> None:
        with pytest.raises(ProviderUnavailable):
            await fetch(client, url, timeouts=HttpTimeouts(first_byte=0.15))
        beginning.set()

    async with (
        client_and_server(thinks) as (client, server),
        serving(silent) as other,
        anyio.create_task_group() as group,
    ):
        group.start_soon(pass_time, client, other.url)
        patient = HttpTimeouts(first_byte=9, idle=0.05)
        assert await fetch(client, server.url, timeouts=patient) == b"whole"


async def test_a_silent_kept_connection_is_not_asked_again() -> None:
    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        await line.reply(b"ok")
        await line.request()
        await line.until_gone()

    async with client_and_server(handler) as (client, server):
        await fetch(client, server.url)
        with pytest.raises(ProviderUnavailable, match="sent nothing"):
            await fetch(client, server.url, timeouts=SHORT)
    assert server.connections == 1


async def test_a_connection_that_does_not_come_about_times_out() -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        await anyio.sleep_forever()
        return ()

    hasty = HttpTimeouts(connect=0.05)
    with pytest.raises(ProviderUnavailable, match=r"within 0.05 seconds"):
        await fetch(HttpClient(resolve=never), "http://slow.test/", timeouts=hasty)


# --- leaving ---------------------------------------------------------------------------


async def test_leaving_in_the_middle_closes_the_socket_at_once() -> None:
    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        await line.start_events()
        await line.chunk(b"half")
        await line.until_gone()

    async with client_and_server(handler) as (client, server):
        with anyio.fail_after(5):
            async with client.send(HttpRequest(url=server.url)) as reply:
                await reply.read()
            await server.gone.wait()


@pytest.mark.parametrize("answers", [False, True])
async def test_a_cancel_closes_the_socket_at_once(answers: bool) -> None:
    waits = anyio.Event()

    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        if answers:
            await line.start_events()
        waits.set()
        await line.until_gone()

    async with client_and_server(handler) as (client, server):
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(fetch, client, server.url)
                await waits.wait()
                group.cancel_scope.cancel()
            await server.gone.wait()


class ForwardableLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock a test can put forward."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


@pytest.mark.parametrize(
    "anyio_backend",
    [pytest.param(("asyncio", {"loop_factory": ForwardableLoop}), id="a clock of its own")],
)
async def test_a_slow_reader_is_neither_buried_nor_taken_for_a_silent_server() -> None:
    sent = 0

    async def handler(line: LoopbackConnection) -> None:
        nonlocal sent
        await line.request()
        await line.start_events()
        block = b"x" * 100_000
        for _ in range(500):
            await line.chunk(block)
            sent += len(block)
        await line.end_chunks()

    async def until_stuck() -> None:
        """Return when the server cannot get rid of any more."""
        before, rounds = -1, 0
        # Each round of the loop polls the sockets: where none of many moves a byte, none will.
        while rounds < 100:
            before, rounds = sent, rounds + 1 if sent == before else 0
            await anyio.lowlevel.checkpoint()

    loop = asyncio.get_running_loop()
    assert isinstance(loop, ForwardableLoop)
    timeouts = HttpTimeouts(first_byte=900, idle=900)
    async with (
        client_and_server(handler) as (client, server),
        client.send(HttpRequest(url=server.url, timeouts=timeouts)) as reply,
    ):
        first = await reply.read()
        await until_stuck()
        assert sent < 20_000_000
        loop.ahead += 1_000
        await until_stuck()  # the timer is due, and finds that the reader is the slow one
        assert len(first) + len(await body_of(reply)) == 50_000_000


# --- encodings -------------------------------------------------------------------------


async def test_gzip_that_was_not_asked_for_is_decoded() -> None:
    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        await line.reply(gzip.compress(b"plain " * 100), headers="content-encoding: gzip\r\n")
        await line.until_gone()

    async with client_and_server(handler) as (client, server):
        assert await fetch(client, server.url) == b"plain " * 100


@pytest.mark.parametrize(
    ("encoding", "make_body", "message"),
    [
        ("br", lambda: b"\x0b\x02", "answered in the encoding 'br'"),
        ("gzip", lambda: b"this is no gzip", "damaged"),
        ("gzip", lambda: gzip.compress(bytes(60_000_000)), "beyond all limits"),
    ],
    ids=["foreign", "damaged", "bomb"],
)
async def test_a_body_that_cannot_be_decoded_is_unavailable(
    encoding: str, make_body: Callable[[], bytes], message: str
) -> None:
    body = make_body()

    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        await line.reply(body, headers=f"content-encoding: {encoding}\r\n")
        await line.until_gone()

    async with client_and_server(handler) as (client, server):
        with pytest.raises(ProviderUnavailable, match=message):
            await fetch(client, server.url)


# --- TLS -------------------------------------------------------------------------------


async def test_tls_with_a_trusted_certificate_works_and_is_kept(
    authority: CertificateAuthority,
) -> None:
    async with serving(reply_ok, tls=authority.server("127.0.0.1")) as server:
        client = HttpClient(tls=authority.client)
        for _ in range(2):
            assert await fetch(client, server.url) == b"ok"
        await client.aclose()
    assert server.connections == 1


async def test_tls_with_an_unknown_authority_is_refused_for_good(
    authority: CertificateAuthority,
) -> None:
    async with serving(reply_ok, tls=authority.server("127.0.0.1")) as server:
        with pytest.raises(ProviderUnavailable, match="is not trusted") as caught:
            await fetch(HttpClient(), server.url)
    assert not caught.value.retryable
    assert server.asked == []


async def test_tls_for_another_name_is_refused(authority: CertificateAuthority) -> None:
    async with serving(reply_ok, tls=authority.server("other.test")) as server:
        with pytest.raises(ProviderUnavailable, match="is not trusted"):
            await fetch(HttpClient(tls=authority.client), server.url)
    assert server.asked == []


async def test_a_cancel_closes_a_tls_socket_at_once(authority: CertificateAuthority) -> None:
    waits = anyio.Event()

    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        waits.set()
        await line.until_gone()

    async with serving(handler, tls=authority.server("127.0.0.1")) as server:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(fetch, HttpClient(tls=authority.client), server.url)
                await waits.wait()
                group.cancel_scope.cancel()
            await server.gone.wait()


# --- proxies ---------------------------------------------------------------------------


async def test_https_goes_through_the_proxy_by_connect(authority: CertificateAuthority) -> None:
    async with (
        serving(reply_ok, tls=authority.server("api.example.test")) as server,
        serving(tunnel_to(server.port)) as proxy,
    ):
        proxies = ProxySettings(https=f"http://me:p%40ss@127.0.0.1:{proxy.port}")
        client = HttpClient(proxies=proxies, tls=authority.client)
        for _ in range(2):
            assert await fetch(client, "https://api.example.test/v1") == b"ok"
        await client.aclose()
    assert [(a.method, a.path) for a in proxy.asked] == [("CONNECT", "api.example.test:443")]
    assert proxy.asked[0].headers["proxy-authorization"] == "Basic bWU6cEBzcw=="
    assert "proxy-authorization" not in server.asked[0].headers
    assert len(server.asked) == 2


async def test_the_end_to_end_certificate_is_checked_through_the_proxy(
    authority: CertificateAuthority,
) -> None:
    async with (
        serving(reply_ok, tls=authority.server("other.test")) as server,
        serving(tunnel_to(server.port)) as proxy,
    ):
        proxies = ProxySettings(https=f"127.0.0.1:{proxy.port}")
        with pytest.raises(ProviderUnavailable, match="is not trusted"):
            await fetch(
                HttpClient(proxies=proxies, tls=authority.client), "https://api.example.test/"
            )


async def test_a_proxy_that_refuses_is_named() -> None:
    async def handler(line: LoopbackConnection) -> None:
        await line.request()
        await line.send(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
        await line.until_gone()

    async with serving(handler) as proxy:
        proxies = ProxySettings(https=f"http://u:secret@127.0.0.1:{proxy.port}")
        with pytest.raises(ProviderUnavailable, match="407 Proxy Authentication") as caught:
            await fetch(HttpClient(proxies=proxies), "https://api.example.test/")
        with anyio.fail_after(5):
            await proxy.gone.wait()
    assert not caught.value.retryable
    assert "secret" not in str(caught.value)


async def test_plain_http_is_asked_of_the_proxy_in_full() -> None:
    async with client_and_server(reply_ok) as (_, proxy):
        client = HttpClient(proxies=ProxySettings(http=proxy.url))
        assert await fetch(client, "http://api.example.test/v1") == b"ok"
        await client.aclose()
    assert proxy.asked[0].path == "http://api.example.test/v1"


async def test_no_proxy_and_this_machine_go_straight(authority: CertificateAuthority) -> None:
    async def here(host: str, port: int) -> Sequence[str]:
        return ("127.0.0.1",)

    async with serving(reply_ok, tls=authority.server("a.internal.test", "127.0.0.1")) as server:
        proxies = ProxySettings(https="http://127.0.0.1:1", no_proxy="x.test, .internal.test")
        client = HttpClient(proxies=proxies, tls=authority.client, resolve=here)
        assert await fetch(client, f"https://a.internal.test:{server.port}/") == b"ok"
        assert await fetch(client, server.url) == b"ok"
        await client.aclose()


async def test_a_proxy_we_cannot_use_is_refused_without_its_password() -> None:
    client = HttpClient(proxies=ProxySettings(https="socks4://u:secret@127.0.0.1:1"))
    with pytest.raises(UsageError, match="scheme 'socks4'") as caught:
        await fetch(client, "https://api.example.test/")
    assert "secret" not in str(caught.value)


# --- addresses -------------------------------------------------------------------------


async def test_only_the_pinned_addresses_are_connected_to() -> None:
    asked_for = []

    async def pin(host: str, port: int) -> Sequence[str]:
        asked_for.append((host, port))
        return ("127.0.0.2", "127.0.0.1")  # nobody listens on the first

    async with client_and_server(reply_ok) as (_, server):
        client = HttpClient(resolve=pin)
        assert await fetch(client, f"http://api.example.test:{server.port}/") == b"ok"
        await client.aclose()
    assert asked_for == [("api.example.test", server.port)]
    assert server.asked[0].headers["host"] == f"api.example.test:{server.port}"


async def test_a_refused_address_is_not_connected_to() -> None:
    async def refuse(host: str, port: int) -> Sequence[str]:
        raise ProviderUnavailable(f"{host} is not allowed")

    async with client_and_server(reply_ok) as (_, server):
        with pytest.raises(ProviderUnavailable, match="is not allowed"):
            await fetch(HttpClient(resolve=refuse), server.url)
    assert server.connections == 0


async def test_a_unix_socket_is_spoken_to_without_the_network(tmp_path: Path) -> None:
    path = str(tmp_path / "s.sock")
    async with serving(reply_ok, unix=path) as server:
        client = HttpClient()
        for _ in range(2):
            assert await fetch(client, "http://local/v1", unix_socket=path) == b"ok"
        await client.aclose()
    assert server.connections == 1
    assert server.asked[0].headers["host"] == "local"


@pytest.mark.parametrize(
    ("url", "headers", "message"),
    [
        ("ftp://x/", (), "is not a valid address"),
        ("http://h:port/", (), "is not a valid address"),
        ("http://127.0.0.1:1/", (("x-key", "a\r\nevil: 1"),), "line break"),
        ("http://127.0.0.1:1/", (("x-key", "schlüssel"),), "not ASCII"),
    ],
)
async def test_what_cannot_be_sent_is_refused(
    url: str, headers: tuple[tuple[str, str], ...], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        await fetch(HttpClient(), url, headers=headers)
    assert "evil" not in str(caught.value)
    assert "schl" not in str(caught.value)
