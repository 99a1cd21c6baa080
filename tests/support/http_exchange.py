"""An HTTP client and a loopback server that answers it, with and without TLS."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import trustme

from tests.support.loopback_server import Handler, LoopbackConnection, LoopbackServer, serving
from weft.transport import HttpClient, HttpReply, HttpRequest, HttpTimeouts

# The time to connect is not short: on a busy machine it would end before what a test waits for.
SHORT = HttpTimeouts(connect=10, first_byte=0.05, idle=0.05)


async def body_of(reply: HttpReply) -> bytes:
    parts = []
    while data := await reply.read():
        parts.append(data)
    return b"".join(parts)


async def fetch(client: HttpClient, url: str, **more: object) -> bytes:
    request = HttpRequest(url=url, body=b"{}", **more)  # type: ignore[arg-type]  # the test's own
    with anyio.fail_after(10):
        async with client.send(request) as reply:
            return await body_of(reply)


@asynccontextmanager
async def client_and_server(handler: Handler) -> AsyncGenerator[tuple[HttpClient, LoopbackServer]]:
    client = HttpClient()
    async with serving(handler) as server:
        yield client, server
        await client.aclose()


async def reply_ok(line: LoopbackConnection) -> None:
    while await line.request():
        await line.reply(b"ok")


class CertificateAuthority:
    """A certificate authority of our own."""

    def __init__(self) -> None:
        self._ca = trustme.CA()

    def server(self, *names: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert(*names).configure_cert(context)
        return context

    def write_certificate(self, path: Path) -> None:
        self._ca.cert_pem.write_to_path(str(path))

    def client(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self._ca.configure_trust(context)
        return context
