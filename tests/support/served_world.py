"""A server on a loopback port, in the test's own loop, and a plain HTTP client for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import msgspec

from tests.support.free_port import free_port
from tests.support.world import PATIENCE, World
from weft.app import App
from weft.clock import Clock
from weft.providers.scripted import ScriptedModel
from weft.server import ServerAddress, WeftServer


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return msgspec.json.decode(self.body)

    @property
    def kind(self) -> str:
        """The kind of an error."""
        return str(self.json["error"]["kind"])


class EventReader:
    """Reads server-sent events from a connection."""

    def __init__(self, stream: anyio.abc.ByteStream) -> None:
        self._stream = stream
        self._buffer = b""
        self.cursor: int | None = None

    async def more(self) -> bytes:
        """One more chunk of the body; empty at its end."""
        head = await self.until(b"\r\n")
        size = int(head, 16)
        while len(self._buffer) < size + 2:
            self._buffer += await self._stream.receive()
        body, self._buffer = self._buffer[:size], self._buffer[size + 2 :]
        return body

    async def until(self, mark: bytes) -> bytes:
        """All up to a mark, which is taken off."""
        while mark not in self._buffer:
            self._buffer += await self._stream.receive()
        found, _, self._buffer = self._buffer.partition(mark)
        return found

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """The events, until the other side ends."""
        text = b""
        while True:
            try:
                chunk = await self.more()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return
            if not chunk:
                return
            text += chunk
            while b"\n\n" in text:
                block, _, text = text.partition(b"\n\n")
                fields = dict(line.split(b": ", 1) for line in block.splitlines())
                if b"id" in fields:
                    self.cursor = int(fields[b"id"])
                if b"data" in fields:
                    event = msgspec.json.decode(fields[b"data"])
                    yield (
                        {"event": fields[b"event"].decode(), **event}
                        if b"event" in fields
                        else event
                    )


class ServedWorld:
    """A server that runs, and calls to it."""

    def __init__(self, world: World, server: WeftServer, app: App) -> None:
        self.world = world
        self.server = server
        self.app = app
        self.port = server.port
        self.token = server.tokens.program_token
        self.has_ended = anyio.Event()
        """Set when all of it is closed, its port included."""

    @property
    def origin(self) -> str:
        """The origin of its page."""
        return f"http://127.0.0.1:{self.port}"

    async def connect(self) -> anyio.abc.SocketStream:
        """A connection to it."""
        return await anyio.connect_tcp("127.0.0.1", self.port)

    def head(self, method: str, path: str, headers: Mapping[str, str | None], body: bytes) -> bytes:
        """A request, with what every good one has; a header that is None is left out."""
        given: dict[str, str | None] = {
            "Host": f"127.0.0.1:{self.port}",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json" if method not in ("GET", "HEAD") else None,
            "Content-Length": str(len(body)) if method not in ("GET", "HEAD") else None,
            **headers,
        }
        lines = [f"{name}: {value}" for name, value in given.items() if value is not None]
        return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode() + body

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> HttpAnswer:
        """Send a request below `/api` and read the answer."""
        raw = (
            body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        )
        data = self.head(method, f"/api{path}", {"Connection": "close", **(headers or {})}, raw)
        return await self.exchange(data)

    async def exchange(self, data: bytes) -> HttpAnswer:
        """Send these bytes, and read the answer to the end of the connection."""
        with anyio.fail_after(PATIENCE):
            async with await self.connect() as stream:
                await stream.send(data)
                received = b""
                try:
                    while True:
                        received += await stream.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    pass
        return parsed(received)

    async def good(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Call, and have the answer to a call that worked."""
        answer = await self.call(
            method, path, body, {name.replace("_", "-"): each for name, each in headers.items()}
        )
        assert answer.status < 300, (answer.status, answer.body)
        return answer.json if answer.body else None

    @asynccontextmanager
    async def follow(
        self, path: str, headers: Mapping[str, str | None] | None = None, **more: Any
    ) -> AsyncGenerator[EventReader]:
        """Read server-sent events."""
        del more
        async with await self.connect() as stream:
            await stream.send(self.head("GET", f"/api{path}", headers or {}, b""))
            reader = EventReader(stream)
            with anyio.fail_after(PATIENCE):
                head = await reader.until(b"\r\n\r\n")
            assert b" 200 " in head.splitlines()[0], head
            yield reader


def parsed(received: bytes) -> HttpAnswer:
    """An answer, from all bytes of a connection."""
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return HttpAnswer(status=int(first.split()[1]), headers=headers, body=body)


@asynccontextmanager
async def serving(
    world: World,
    *models: ScriptedModel,
    port: int = 0,
    page: Path | None = None,
    clock: Clock | None = None,
    address: ServerAddress | None = None,
    password: str = "",
    **parts: Any,
) -> AsyncGenerator[ServedWorld]:
    """Serve a world in this loop until the body is over."""
    app = world.open(*models, **parts)
    async with anyio.create_task_group() as group:
        await app.__aenter__()

        def open_other(folder: str) -> App:
            return world.open(*models, folder=folder, **parts)

        server = WeftServer(
            app,
            open_other,
            address or ServerAddress(port=port or free_port()),
            clock=clock,
            page=page,
            password=password,
        )
        served = ServedWorld(world, server, app)
        await group.start(_run, served)
        try:
            yield served
        finally:
            server.stop()


async def _run(served: ServedWorld, *, task_status: anyio.abc.TaskStatus[None]) -> None:
    try:
        await served.server.run(task_status=task_status)
    finally:
        served.has_ended.set()
