"""Small servers on loopback that send exactly the bytes that a test gives them, over real
sockets.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeAlias

import anyio
from anyio.abc import ByteStream, SocketAttribute, SocketListener
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.tls import TLSListener


class ReceivedRequest(NamedTuple):
    """A request as the server saw it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class LoopbackConnection:
    """One connection, from the server's side."""

    def __init__(self, stream: ByteStream, server: LoopbackServer) -> None:
        self._stream = stream
        self._in = BufferedByteReceiveStream(stream)
        self._server = server

    async def request(self) -> ReceivedRequest | None:
        """The next request, or None when the client is gone."""
        try:
            head = await self._in.receive_until(b"\r\n\r\n", 1 << 20)
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
        body = b""
        if length := int(headers.get("content-length", "0")):
            body = await self._in.receive_exactly(length)
        asked = ReceivedRequest(method, path, headers, body)
        self._server.asked.append(asked)
        return asked

    async def send(self, data: bytes) -> None:
        await self._stream.send(data)

    async def reply(self, body: bytes, *, status: int = 200, headers: str = "") -> None:
        """A whole reply with its length."""
        head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
        await self.send(head.encode() + body)

    async def start_events(self, headers: str = "") -> None:
        """The head of a chunked event stream."""
        kind = "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
        await self.send(f"HTTP/1.1 200 OK\r\n{kind}{headers}\r\n".encode())

    async def chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def end_chunks(self) -> None:
        await self.send(b"0\r\n\r\n")

    async def close(self) -> None:
        await self._stream.aclose()

    async def reset(self) -> None:
        """Close with a reset instead of an end."""
        raw = self._stream.extra(SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        await self._stream.aclose()

    async def until_gone(self) -> None:
        """Wait until the client has closed the connection."""
        try:
            while True:
                await self._stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._server.gone.set()


Handler: TypeAlias = Callable[[LoopbackConnection], Awaitable[None]]


class LoopbackServer:
    """A running server: where it is, what it was asked, and whether a client has left."""

    def __init__(self) -> None:
        self.port = 0
        self.scheme = "http"
        self.asked: list[ReceivedRequest] = []
        self.connections = 0
        self.gone = anyio.Event()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"


@asynccontextmanager
async def serving(
    handler: Handler, *, tls: ssl.SSLContext | None = None, unix: str = ""
) -> AsyncGenerator[LoopbackServer]:
    """A server whose every connection is given to `handler`; a client that leaves is no error."""
    server = LoopbackServer()

    async def handle(stream: ByteStream) -> None:
        server.connections += 1
        line = LoopbackConnection(stream, server)
        try:
            async with stream:
                await handler(line)
        except (
            anyio.BrokenResourceError,
            anyio.ClosedResourceError,
            anyio.EndOfStream,
            ssl.SSLError,
        ):
            server.gone.set()

    raw = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
    raw.bind(unix or ("127.0.0.1", 0))
    raw.listen(1024)
    if not unix:
        server.port = raw.getsockname()[1]
    listener = await SocketListener.from_socket(raw)
    if tls is not None:
        server.scheme = "https"
    async with listener, anyio.create_task_group() as group:
        if tls is not None:
            secured = TLSListener(listener, tls, standard_compatible=False)
            group.start_soon(secured.serve, handle)
        else:
            group.start_soon(listener.serve, handle)
        try:
            yield server
        finally:
            group.cancel_scope.cancel()
