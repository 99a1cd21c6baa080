"""A way to a Postgres server that can be cut: a proxy on loopback, driven by the test."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

Cut = Callable[[str, int], bool]
"""Whether to cut a connection: in which direction (`to`, `from` the server) something goes, and how
many pieces have passed on this connection before, both ways."""


class PostgresProxy:
    """Passes bytes on until `cut` says that a connection breaks here, before they are passed."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self.cut: Cut = lambda _way, _before: False
        self.cuts = 0
        self.is_down = False
        """Set to refuse everything, like a server that is not there."""
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self) -> None:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def aclose(self) -> None:
        """End all connections."""
        self._server.close()
        self.break_all()
        await self._server.wait_closed()

    def break_all(self) -> None:
        """Cut every connection now."""
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_down:
            writer.transport.abort()
            return
        try:
            server_reader, server_writer = await asyncio.open_unix_connection(str(self._socket))
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, server_writer}
        self._writers |= ends
        count = itertools.count()
        ways = (
            self._pass("to", reader, server_writer, count),
            self._pass("from", server_reader, writer, count),
        )
        try:
            await asyncio.wait(
                [asyncio.ensure_future(way) for way in ways], return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for each in ends:
                each.transport.abort()
            self._writers -= ends

    async def _pass(
        self,
        way: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        count: Iterator[int],
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                if self.cut(way, next(count)):
                    self.cuts += 1
                    return
                writer.write(data)
                await writer.drain()


@contextlib.asynccontextmanager
async def cuttable(socket: Path) -> AsyncIterator[PostgresProxy]:
    """A proxy in front of the server that listens on `socket`."""
    proxy = PostgresProxy(socket)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.aclose()
