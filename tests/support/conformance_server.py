"""The server that the official conformance suite judges: `/mcp` of a real `weft serve`, in an empty
home.

    python conformance_server.py [fixture]

With `fixture` it offers, in the place of Weft's own, the tools, resources and prompts that the
suite asks for by name; protocol, transport and gate are the same.
The suite can send no token, so that one is put into each request before the gate looks at it; all
else is as it is served.  The first line is the address; it ends with its standard input.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

import anyio

import weft
from tests.support.conformance_offer import fixture_offer
from weft.app import App
from weft.mcp_server import McpDispatcher, McpHttpEndpoint
from weft.server import ServerAddress, WeftServer

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class LetIn:
    """Puts the token of the server into requests that have none."""

    def __init__(self, inside: Any, token: str) -> None:
        self._inside = inside
        self._header = (b"authorization", f"Bearer {token}".encode())

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["headers"] = [*scope["headers"], self._header]
        await self._inside(scope, receive, send)


async def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        project = Path(home) / "project"
        project.mkdir()
        environ = {**os.environ, "HOME": home, "WEFT_HOME": home, "WEFT_REPO_INDEX": "off"}

        def open_app(folder: str) -> App:
            return weft.open(folder, "memory", {"lsp.enabled": False}, environ=environ)

        async with open_app(str(project)) as app, anyio.create_task_group() as group:
            server = WeftServer(app, open_app, ServerAddress())
            config = server._server.config
            if sys.argv[1:] == ["fixture"]:
                gate: Any = config.app
                gate._inside = McpHttpEndpoint(McpDispatcher(fixture_offer()))
            config.app = LetIn(config.app, server.tokens.program_token)
            await group.start(server.run)
            print(f"{server.url}/mcp", flush=True)
            await anyio.to_thread.run_sync(sys.stdin.read)
            server.stop()


if __name__ == "__main__":
    anyio.run(main)
