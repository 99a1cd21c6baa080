"""The proxy itself, over real sockets on loopback: what it lets through, and to whom."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio
import anyio.abc
import anyio.lowlevel
import pytest

from tests.support.allowed_hosts import file_server, judge, network, proxy
from weft.runtime.workspaces.session_egress import SessionEgress
from weft.workspace.egress.egress_proxy import EgressProxy
from weft.workspace.egress.host_lookup import HostLookup
from weft.workspace.egress.socket_io import accepted, received, sent

pytestmark = pytest.mark.anyio

PATIENCE = 20


def listening() -> socket.socket:
    made = socket.create_server(("127.0.0.1", 0))
    made.setblocking(False)
    return made


@asynccontextmanager
async def serving(gateway: EgressProxy) -> AsyncGenerator[int]:
    """The proxy, at work; gives its port."""
    with closing(listening()) as listener, anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(gateway.serve, listener)
            yield listener.getsockname()[1]
            group.cancel_scope.cancel()


async def all_of(source: socket.socket) -> bytes:
    found = b""
    while data := await received(source):
        found += data
    return found


async def asked(port: int, data: bytes) -> bytes:
    """Everything that comes back."""
    stream = await anyio.connect_tcp("127.0.0.1", port)
    async with stream:
        await stream.send(data)
        found = b""
        try:
            while True:
                found += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return found


def get(target: str, host: str) -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


async def test_a_plain_request_reaches_an_allowed_host_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    with file_server(tmp_path) as port:
        gateway = proxy(f"allow localhost:{port}")
        async with serving(gateway) as at:
            good = await asked(at, get(f"http://localhost:{port}/file", f"localhost:{port}"))
            assert good.endswith(b"content")
            bad = await asked(at, get(f"http://127.0.0.1:{port}/file", f"127.0.0.1:{port}"))
            assert bad.startswith(b"HTTP/1.1 403")
            assert f"fetch(domain:127.0.0.1:{port})".encode() in bad
        assert list(gateway.refused) == [("127.0.0.1", port)]


@pytest.mark.parametrize(
    "host",
    ["2130706433", "127.1", "0x7f.1", "0177.0.0.1", "[::ffff:7f00:1]", "localhost.", "LOCALHOST"],
)
async def test_no_spelling_of_an_address_gets_round_the_rules(tmp_path: Path, host: str) -> None:
    with file_server(tmp_path) as port:
        async with serving(proxy("allow example.org")) as at:
            for request in (
                get(f"http://{host}:{port}/", f"{host}:{port}"),
                f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode(),
            ):
                answer = await asked(at, request)
                assert answer.split()[1] in (b"400", b"403"), answer


async def test_a_name_that_leads_inside_is_refused_and_its_address_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    with file_server(tmp_path) as port:
        names = {"evil.test": ["127.0.0.1"], "mixed.test": ["1.1.1.1", "127.0.0.1"]}
        rules = (f"allow evil.test:{port}", f"allow mixed.test:{port}")
        for host in names:
            request = get(f"http://{host}:{port}/file", f"{host}:{port}")
            async with serving(proxy(*rules, names=names)) as at:
                assert (await asked(at, request)).startswith(b"HTTP/1.1 403")
            async with serving(proxy(*rules, f"allow 127.0.0.1:{port}", names=names)) as at:
                if host == "evil.test":
                    assert (await asked(at, request)).endswith(b"content")


async def test_a_name_is_looked_up_once_for_a_command(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    answers = [["127.0.0.1"], ["10.0.0.1"]]

    async def look_up(host: str) -> list[str]:
        return answers.pop(0)

    with file_server(tmp_path) as port:
        rules = judge(f"allow name.test:{port}", f"allow 127.0.0.1:{port}")
        gateway = EgressProxy(rules, HostLookup(look_up))
        async with serving(gateway) as at:
            for _ in range(3):
                request = get(f"http://name.test:{port}/file", f"name.test:{port}")
                assert (await asked(at, request)).endswith(b"content")
    assert len(answers) == 1


async def test_a_second_request_behind_the_first_is_not_passed_on() -> None:
    with closing(listening()) as server:
        port = server.getsockname()[1]
        async with serving(proxy(f"allow localhost:{port}")) as at:
            client = await anyio.connect_tcp("127.0.0.1", at)
            async with client:
                first = f"POST http://localhost:{port}/ HTTP/1.1\r\nHost: localhost:{port}\r\n"
                await client.send(f"{first}Content-Length: 2\r\n\r\nok".encode())
                await client.send(b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n")
                behind = await accepted(server)
                with closing(behind):
                    data = b""
                    while not data.endswith(b"\r\n\r\nok"):
                        data += await received(behind)
                    await sent(behind, b"HTTP/1.1 200 OK\r\n\r\ndone")
                    behind.shutdown(socket.SHUT_WR)
                    assert b"evil.test" not in data + await all_of(behind)


def hello(name: str) -> bytes:
    context = ssl.create_default_context()
    sent_bytes = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), sent_bytes, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return sent_bytes.read()


async def through_a_tunnel(gateway: EgressProxy, host: str, port: int, first: bytes) -> bytes:
    """What a server on that port gets of what a client sends through a tunnel to `host`."""
    with closing(socket.create_server(("127.0.0.1", port))) as server:
        server.setblocking(False)
        number = server.getsockname()[1]
        async with serving(gateway) as at:
            client = await anyio.connect_tcp("127.0.0.1", at)
            async with client:
                await client.send(f"CONNECT {host}:{number} HTTP/1.1\r\n\r\n".encode())
                assert (await client.receive()).startswith(b"HTTP/1.1 200")
                behind = await accepted(server)
                with closing(behind):
                    await client.send(first)
                    await client.send_eof()
                    return await all_of(behind)


async def test_tls_inside_a_tunnel_is_for_the_host_of_the_tunnel() -> None:
    with closing(listening()) as probe:
        port = probe.getsockname()[1]
    rules = (f"allow localhost:{port}",)
    mine, other = hello("localhost"), hello("evil.test")
    assert await through_a_tunnel(proxy(*rules), "localhost", port, mine) == mine
    gateway = proxy(*rules)
    assert await through_a_tunnel(gateway, "localhost", port, other) == b""
    assert "names evil.test" in next(iter(gateway.refused.values())).why


async def test_a_port_that_is_named_speaks_any_language() -> None:
    with closing(listening()) as probe:
        port = probe.getsockname()[1]
    sentence = b"SSH-2.0-x\r\n"
    found = await through_a_tunnel(proxy(f"allow localhost:{port}"), "localhost", port, sentence)
    assert found == sentence


class WebPort(SessionEgress):
    """Takes every port for one of the web."""

    def names_port(self, host: str, port: int) -> bool:
        return False


def web_proxy(port: int) -> EgressProxy:
    return EgressProxy(WebPort(network(f"allow localhost:{port}")))


async def test_a_port_of_the_web_speaks_tls_and_http_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    with closing(listening()) as probe:
        port = probe.getsockname()[1]
    mine, other = hello("localhost"), hello("evil.test")
    nothing = (other, hello("127.0.0.1"), b"SSH-2", b"G", b"PRI * HTTP/2.0\r\n\r\n")
    for first, arrives in ((mine, mine), *((each, b"") for each in nothing)):
        assert await through_a_tunnel(web_proxy(port), "localhost", port, first) == arrives
    with file_server(tmp_path) as served:
        gateway = web_proxy(served)
        async with serving(gateway) as at:
            for host, answer in ((f"localhost:{served}", b"content"), ("evil.test", b"400")):
                stream = await anyio.connect_tcp("127.0.0.1", at)
                async with stream:
                    await stream.send(f"CONNECT localhost:{served} HTTP/1.1\r\n\r\n".encode())
                    assert b" 200 " in await stream.receive()
                    await stream.send(get("/file", host))
                    assert answer in await rest_of(stream)


async def test_a_request_in_a_tunnel_may_come_letter_by_letter(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    with file_server(tmp_path) as port:
        gateway = web_proxy(port)
        async with serving(gateway) as at:
            stream = await anyio.connect_tcp("127.0.0.1", at)
            async with stream:
                await stream.send(f"CONNECT localhost:{port} HTTP/1.1\r\n\r\n".encode())
                assert b" 200 " in await stream.receive()
                for letter in get("/file", f"localhost:{port}"):
                    await stream.send(bytes([letter]))
                    await anyio.lowlevel.checkpoint()
                assert b"content" in await rest_of(stream)
        assert not gateway.refused


async def rest_of(stream: anyio.abc.SocketStream) -> bytes:
    found = b""
    try:
        while True:
            found += await stream.receive()
    except anyio.EndOfStream:
        return found


async def test_a_server_that_speaks_first_is_heard_at_a_port_that_is_named() -> None:
    with closing(listening()) as server:
        port = server.getsockname()[1]
        async with serving(proxy(f"allow localhost:{port}")) as at:
            client = await anyio.connect_tcp("127.0.0.1", at)
            async with client:
                await client.send(f"CONNECT localhost:{port} HTTP/1.1\r\n\r\n".encode())
                behind = await accepted(server)
                with closing(behind):
                    await sent(behind, b"220 hello\r\n")
                    data = b""
                    while not data.endswith(b"hello\r\n"):
                        data += await client.receive()


async def test_bytes_that_are_no_request_get_an_answer_or_an_end_and_hurt_nobody(
    tmp_path: Path,
) -> None:
    with file_server(tmp_path) as port:
        async with serving(proxy(f"allow localhost:{port}")) as at:
            for junk in (b"\0" * 1000 + b"\r\n\r\n", b"x" * 200_000, b"\r\n\r\n", b"\x05\x01\x00"):
                stream = await anyio.connect_tcp("127.0.0.1", at)
                try:
                    await stream.send(junk)
                finally:
                    await stream.aclose()
            good = await asked(at, get(f"http://localhost:{port}/", f"localhost:{port}"))
            assert good.startswith(b"HTTP/1.1 200")


async def test_a_body_in_tiny_chunks_keeps_neither_others_nor_the_server_busy() -> None:
    """Many are there at once; they arrive as a few, and the others have their turns meanwhile."""
    chunks = 20_000
    async with posting() as (client, behind), anyio.create_task_group() as group:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await anyio.lowlevel.checkpoint()
                turns += 1

        group.start_soon(count)
        group.start_soon(client.send, b"1\r\nx\r\n" * chunks + b"0\r\n\r\n")
        data = await read_until(behind, b"0\r\n\r\n")
        assert data.count(b"x") == chunks
        assert data.count(b"\r\n") < 500
        assert turns > 100
        group.cancel_scope.cancel()


async def test_a_small_chunk_is_sent_on_while_the_client_waits_for_an_answer() -> None:
    async with posting() as (client, behind):
        await client.send(b"5\r\nhello\r\n")
        assert (await read_until(behind, b"hello\r\n")).endswith(b"5\r\nhello\r\n")
        await client.send(b"7;x=y\r\n, w")
        assert (await read_until(behind, b", w\r\n")).endswith(b"3\r\n, w\r\n")
        await client.send(b"orld\r\n0\r\nA: b\r\n\r\n")
        assert (await read_until(behind, b"0\r\n\r\n")) == b"4\r\norld\r\n0\r\n\r\n"


async def test_half_a_body_in_chunks_is_not_ended_for_the_server() -> None:
    async with posting() as (client, behind):
        await client.send(b"5\r\nhello\r\n5\r\nhellox\r\n0\r\n\r\n")
        assert not (await all_of(behind)).endswith(b"0\r\n\r\n")


@asynccontextmanager
async def posting() -> AsyncGenerator[tuple[anyio.abc.SocketStream, socket.socket]]:
    """A client whose request has a body in chunks, and the server that has read its head."""
    with closing(listening()) as server:
        port = server.getsockname()[1]
        async with serving(proxy(f"allow localhost:{port}")) as at:
            client = await anyio.connect_tcp("127.0.0.1", at)
            async with client:
                head = f"POST http://localhost:{port}/ HTTP/1.1\r\nHost: localhost:{port}\r\n"
                await client.send(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
                with closing(await accepted(server)) as behind:
                    await read_until(behind, b"\r\n\r\n")
                    yield client, behind


async def read_until(source: socket.socket, end: bytes) -> bytes:
    data = b""
    while not data.endswith(end):
        data += await received(source)
    return data
