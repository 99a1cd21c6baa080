"""A proxy that consents to every CONNECT and passes bytes to one port of this machine."""

from __future__ import annotations

import anyio
from anyio.abc import ByteStream

from tests.support.loopback_server import Handler, LoopbackConnection


async def piped(near: ByteStream, to_port: int) -> None:
    """Pass bytes to a port on this machine and back."""
    async with await anyio.connect_tcp("127.0.0.1", to_port) as far:

        async def back() -> None:
            async for data in far:
                await near.send(data)

        async with anyio.create_task_group() as group:
            group.start_soon(back)
            try:
                while True:
                    await far.send(await near.receive())
            except anyio.EndOfStream:
                pass
            finally:
                group.cancel_scope.cancel()


def tunnel_to(port: int) -> Handler:
    """The proxy, for `serving`."""

    async def handler(line: LoopbackConnection) -> None:
        if await line.request():
            await line.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await piped(line._stream, port)

    return handler
