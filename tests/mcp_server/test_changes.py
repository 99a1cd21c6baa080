"""What the server tells unasked: sessions that come, and those that a client follows."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.support.world import World
from weft.app import App
from weft.jsonrpc import LineDecoder
from weft.mcp_server import McpDispatcher, serve_stdio, weft_offer
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
ABOUT = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}
GREETING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x"}}
LISTED = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"
KNOWN = "notifications/subscriptions/acknowledged"


class Follower:
    """A client that keeps what it is told."""

    def __init__(self) -> None:
        self._in, self._server_in = anyio.create_memory_object_stream[bytes](100)
        self._told, self.lines = anyio.create_memory_object_stream[dict[str, Any]](1000)
        self._decoder = LineDecoder()

    async def serve(self, app: App) -> None:
        async def receive() -> bytes:
            try:
                return await self._server_in.receive()
            except anyio.EndOfStream:
                return b""

        async def take(data: bytes) -> None:
            for line in self._decoder.feed(data):
                self._told.send_nowait(json.loads(line))

        with self._server_in:
            await serve_stdio(McpDispatcher(weft_offer(app)), receive, take)

    def send(self, **message: Any) -> None:
        self._in.send_nowait(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def until(self, *, method: str = "", number: int | None = None) -> dict[str, Any]:
        with anyio.fail_after(20):
            while True:
                line = await self.lines.receive()
                if line.get("method", "") == method and line.get("id") == number:
                    return line

    def close(self) -> None:
        self._in.close()

    def end(self) -> None:
        self._told.close()
        self.lines.close()


@asynccontextmanager
async def following(app: App) -> AsyncGenerator[Follower]:
    client = Follower()
    async with anyio.create_task_group() as group:
        group.start_soon(client.serve, app)
        try:
            yield client
        finally:
            client.close()
    client.end()


async def test_an_older_client_is_told_of_sessions_that_come_and_of_one_it_follows(
    world: World,
) -> None:
    async with world.open(ScriptedModel(["one", "two"])) as app:
        known = await app.sessions.start_session()
        await known.send_message("first")
        async with following(app) as client:
            client.send(id=1, method="initialize", params=GREETING)
            greeted = await client.until(number=1)
            offered = greeted["result"]["capabilities"]["resources"]
            assert offered == {"listChanged": True, "subscribe": True}
            client.send(method="notifications/initialized")
            uri = f"weft://session/{known.id}"
            client.send(id=2, method="resources/subscribe", params={"uri": uri})
            await client.until(number=2)
            await known.send_message("again")
            told = await client.until(method=UPDATED)
            assert told["params"] == {"uri": uri}
            await app.sessions.start_session(title="another")
            await client.until(method=LISTED)


async def test_a_newer_client_is_told_what_it_asks_for_and_nothing_else(world: World) -> None:
    async with world.open(ScriptedModel(["one", "two"])) as app:
        known = await app.sessions.start_session()
        await known.send_message("first")
        uri = f"weft://session/{known.id}"
        async with following(app) as client:
            wanted = {"resourceSubscriptions": [uri], "toolsListChanged": True}
            params = {"_meta": ABOUT, "notifications": wanted}
            client.send(id=7, method="subscriptions/listen", params=params)
            about = {"_meta": {f"{META}subscriptionId": 7}}
            agreed = await client.until(method=KNOWN)
            # The tools never change, so that there is nothing to tell of them.
            assert agreed["params"] == {**about, "notifications": {"resourceSubscriptions": [uri]}}
            await app.sessions.start_session(title="another")
            await known.send_message("again")
            told = await client.lines.receive()
            assert told["method"] == UPDATED
            assert told["params"] == {"uri": uri, **about}
            client.send(method="notifications/cancelled", params={"requestId": 7})


async def test_a_client_that_follows_nothing_any_more_is_told_nothing(world: World) -> None:
    async with world.open(ScriptedModel(["one", "two"])) as app:
        known = await app.sessions.start_session()
        await known.send_message("first")
        uri = f"weft://session/{known.id}"
        async with following(app) as client:
            client.send(id=1, method="initialize", params=GREETING)
            await client.until(number=1)
            for number, method in enumerate(("resources/subscribe", "resources/unsubscribe"), 2):
                client.send(id=number, method=method, params={"uri": uri})
                await client.until(number=number)
            await known.send_message("again")
            # The list is told of with the same change, behind what would be told of the session.
            await app.sessions.start_session(title="another")
            with anyio.fail_after(20):
                assert (await client.lines.receive())["method"] == LISTED


async def test_what_is_no_resource_cannot_be_followed(world: World) -> None:
    async with world.open(ScriptedModel([])) as app, following(app) as client:
        client.send(id=1, method="initialize", params=GREETING)
        await client.until(number=1)
        client.send(id=2, method="resources/subscribe", params={"uri": "file:///etc/passwd"})
        assert "error" in await client.until(number=2)
