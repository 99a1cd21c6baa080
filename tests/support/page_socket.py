"""A page's WebSocket: what it follows, and what came."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from tests.support.served_world import ServedWorld


class PageConnection:
    """One connection."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def say(self, **order: Any) -> None:
        """Send an order: `follow` and `after`, or `drop`."""
        await self.socket.send(msgspec.json.encode(order).decode())

    async def frames(self) -> AsyncIterator[dict[str, Any]]:
        """What comes, frame by frame."""
        async for text in self.socket:
            yield msgspec.json.decode(text)

    async def events(self, session: str) -> AsyncIterator[dict[str, Any]]:
        """The events of one session."""
        async for frame in self.frames():
            if frame["s"] == session:
                for event in frame.get("e", ()):
                    yield event


@asynccontextmanager
async def page_socket(
    served: ServedWorld,
    *,
    token: str | None = None,
    origin: str | None = "",
    protocols: list[str] | None = None,
    **more: Any,
) -> AsyncGenerator[PageConnection]:
    """Connect as a page does; `origin` None leaves it out."""
    offered = protocols or ["weft.v1", f"bearer.{served.token if token is None else token}"]
    given = served.origin if origin == "" else origin
    async with connect(
        f"ws://127.0.0.1:{served.port}/api/ws",
        origin=None if given is None else Origin(given),
        subprotocols=[Subprotocol(each) for each in offered],
        compression=None,
        proxy=None,
        **more,
    ) as socket:
        yield PageConnection(socket)
