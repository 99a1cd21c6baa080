"""`weft mcp serve`: Weft as an MCP server over its standard input and output."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

import anyio

from weft.app import App
from weft.cli.exit_codes import OK, first_of
from weft.cli.signals import StopSignal
from weft.errors import UsageError, WeftError
from weft.file_io import write_ready
from weft.mcp_server import McpDispatcher, serve_stdio, weft_offer

CHUNK: Final = 64 * 1024


def run_server(app: App) -> int:
    """Serve the one client at the other end of the pipes, until it closes them."""
    try:
        return anyio.run(_serve, app)
    except* (WeftError, OSError) as errors:
        raise first_of(errors) from None


async def _serve(app: App) -> int:
    if os.isatty(0):
        raise UsageError("`weft mcp serve` is started by another program, which speaks MCP to it")
    pipes = _Pipes()
    stop = StopSignal()
    async with app, anyio.create_task_group() as group:

        async def end() -> None:
            group.cancel_scope.cancel()

        await group.start(stop.watch, end)
        await serve_stdio(McpDispatcher(weft_offer(app)), pipes.receive, pipes.send)
        group.cancel_scope.cancel()
    return stop.code or OK


class _Pipes:
    """Standard input and output, taken for the protocol alone."""

    def __init__(self) -> None:
        self._input = 0
        self._output = os.dup(1)
        # Whatever else prints would be taken for a message.
        os.dup2(2, 1)
        os.set_blocking(self._output, False)

    async def receive(self) -> bytes:
        with suppress(PermissionError):  # of a file, which can be read at any time
            await anyio.wait_readable(self._input)
        return os.read(self._input, CHUNK)

    async def send(self, data: bytes) -> None:
        while data := write_ready(self._output, data):
            # A client that reads slowly holds up its own answers and nothing else.
            await anyio.wait_writable(self._output)
