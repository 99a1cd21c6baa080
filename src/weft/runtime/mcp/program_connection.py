"""A connection to an MCP server inside the program that drives us: JSON-RPC messages, each carried
by a request over the program's lines."""

from __future__ import annotations

from typing import Any, Final, Protocol

import anyio
import msgspec

from weft.errors import WeftError
from weft.jsonrpc import JsonRpcPeer
from weft.mcp.connection import LONGEST, MCP_CANCEL, HeaderPairs, McpConnection
from weft.mcp.server import Handlers, StartTask

_UNDELIVERED: Final = -32000
_NO_ANSWER: Final = {"code": _UNDELIVERED, "message": "its answer is no JSON-RPC message"}


class ProgramLine(Protocol):
    """The way to the program."""

    async def __call__(self, server: str, message: dict[str, Any]) -> Any:
        """What the program answers a message to one of its servers.

        Raises:
            WeftError: it does not.
        """
        ...


class ProgramConnection(McpConnection):
    """A connection over the lines of the program."""

    mirrors_arguments = False
    takes_requests = False

    def __init__(
        self, name: str, line: ProgramLine, handlers: Handlers, start_task: StartTask
    ) -> None:
        self._name = name
        self._line = line
        self._start_task = start_task
        self._ended = anyio.Event()
        self._peer = JsonRpcPeer(
            handlers,
            decoder=_WholeMessages(),
            encode=lambda message: message,
            cancel=MCP_CANCEL,
            start_task=start_task,
        )
        start_task(lambda: self._peer.write(self._send))

    async def _send(self, data: bytes) -> None:
        message = msgspec.json.decode(data, type=dict[str, Any])
        # Apart, so that one call that takes long keeps none waiting.
        self._start_task(lambda: self._carry(message))

    async def _carry(self, message: dict[str, Any]) -> None:
        try:
            answer = await self._line(self._name, message)
        except WeftError as error:
            answer = {"error": {"code": _UNDELIVERED, "message": str(error)}}
        if "method" in message and "id" in message:
            said = answer if isinstance(answer, dict) else {"error": _NO_ANSWER}
            self.feed({**said, "id": message["id"]})

    def feed(self, message: dict[str, Any]) -> None:
        """Take in a message."""
        if not self._peer.closed:
            self._peer.feed(msgspec.json.encode(message))

    async def run(self) -> str:
        await self._ended.wait()
        return "ended"

    async def request(
        self, method: str, params: dict[str, Any], headers: HeaderPairs = ()
    ) -> msgspec.Raw:
        return await self._peer.request(method, params, msgspec.Raw, LONGEST)

    def notify(self, method: str, params: dict[str, Any]) -> None:
        if not self._peer.closed:
            self._peer.notify(method, params)

    def use_version(self, version: str) -> None:
        pass  # only HTTP repeats it

    def close(self, why: str) -> None:
        self._peer.close(why)
        self._ended.set()

    async def end(self) -> None:
        pass  # the program ends it


class _WholeMessages:
    def feed(self, chunk: bytes) -> list[bytes]:
        return [chunk]
