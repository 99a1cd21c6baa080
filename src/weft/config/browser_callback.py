"""A server on this machine that a browser is sent back to at the end of a login.

It lives as long as the login.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import anyio
from anyio.abc import ByteStream, SocketListener, SocketStream

from weft.errors import UsageError

HEAD_SECONDS: Final = 10.0
"""How long a browser may take for one request."""
DONE_PAGE: Final = (
    "<!doctype html><meta charset=utf-8><title>Weft</title><p>Weft has what it needs. "
    "You can close this window and go back to the terminal."
)
NO_PAGE: Final = "<!doctype html><title>Weft</title><p>Not found."
_MOST_HEAD: Final = 16 * 1024


async def loopback_listener(ports: Sequence[int]) -> SocketListener:
    """A listener on the first of these ports that can be had; 0 is any.

    Raises:
        UsageError: none can be had.
    """
    why = "no port was tried"
    for port in ports:
        # By its address: any other would let the whole network in.
        server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            # The browser's last connection to a server that is gone would keep the port for a
            # minute; a server that is there still keeps it.
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("127.0.0.1", port))
            server.listen()
            return await SocketListener.from_socket(server)
        except OSError as error:
            server.close()
            why = error.strerror or str(error)
    raise UsageError(f"cannot wait for the browser on this machine: {why}")


@asynccontextmanager
async def serving_browser(
    listener: SocketListener, serve: Callable[[SocketStream], Awaitable[None]]
) -> AsyncGenerator[None]:
    """Meanwhile every connection to the listener is given to `serve`."""

    async def contained(stream: SocketStream) -> None:
        try:
            await serve(stream)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the browser has gone; it asks again

    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, contained)
        try:
            yield
        finally:
            group.cancel_scope.cancel()


async def asked_target(stream: ByteStream) -> str:
    """The path and query that a browser asks for; empty where it is no request."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _MOST_HEAD:
        try:
            head += await stream.receive(4096)
        except anyio.EndOfStream:
            return ""
    words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    return words[1] if len(words) > 1 and words[0] == "GET" else ""


async def answer(stream: ByteStream, status: str, page: str, more: str = "") -> None:
    """Answer a browser; `more` are further lines of the head."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\n{more}"
    head += f"connection: close\r\ncontent-length: {len(page.encode())}\r\n\r\n"
    await stream.send((head + page).encode())


async def first_of(
    wait: Callable[[], Awaitable[str]], ask: Callable[[], Awaitable[str | None]]
) -> str | None:
    """What comes first of two; the other is cancelled."""
    found: list[str | None] = []

    async def run(what: Callable[[], Awaitable[str | None]]) -> None:
        found.append(await what())
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(run, wait)
        group.start_soon(run, ask)
    return found[0]
