"""The pipes of an MCP server: one message a line, requests side by side, cancels and questions."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
import anyio.abc
import msgspec

from weft.errors import WeftError
from weft.jsonrpc import LineDecoder
from weft.mcp_server.catalogue import RequestProblem
from weft.mcp_server.dispatcher import ClientConnection, McpDispatcher, error_of

logger = logging.getLogger(__name__)

INVALID_REQUEST: Final = -32600
MOST_AT_ONCE: Final = 64
"""Requests that are worked on at the same time."""


class _Message(msgspec.Struct):
    id: int | str | None = None
    method: str = ""
    params: dict[str, Any] | None = None
    result: Any = None
    error: dict[str, Any] | None = None


class ClientGone(WeftError):
    """The client did not answer what it was asked, and never will."""


class StdioLoop:
    """One client at the other end of two pipes."""

    def __init__(self, dispatcher: McpDispatcher, send: Callable[[bytes], Awaitable[None]]) -> None:
        self._dispatcher = dispatcher
        self._send = send
        self._connection = ClientConnection(ask=self._ask, notify=self._notify)
        self._running: dict[int | str, anyio.CancelScope] = {}
        self._asked: dict[str, _Question] = {}
        self._last = 0
        self._group: anyio.abc.TaskGroup | None = None
        self._writing = anyio.Lock()

    async def run(self, receive: Callable[[], Awaitable[bytes]]) -> None:
        """Serve until the client closes its end."""
        decoder = LineDecoder()
        async with anyio.create_task_group() as group:
            self._group = group
            group.start_soon(self._dispatcher.tell_changes, self._connection)
            while chunk := await receive():
                for line in decoder.feed(chunk):
                    self._take(line)
            # What it does not wait for any more is not worked on; turns that run go on.
            for question in self._asked.values():
                question.answered.set()
            group.cancel_scope.cancel()

    def _take(self, line: bytes) -> None:
        assert self._group is not None
        try:
            message = msgspec.json.decode(line, type=_Message)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            self._group.start_soon(self._refuse, None, "this is no message")
            return
        if not message.method:
            self._take_answer(message)
        elif message.id is None:
            self._take_notification(message)
        elif len(self._running) >= MOST_AT_ONCE or message.id in self._running:
            self._group.start_soon(self._refuse, message.id, "too many requests at once")
        else:
            scope = self._running[message.id] = anyio.CancelScope()
            self._group.start_soon(self._answer, message, scope)

    def _take_notification(self, message: _Message) -> None:
        if message.method == "notifications/cancelled":
            number = (message.params or {}).get("requestId")
            if isinstance(number, (int, str)) and number in self._running:
                self._running[number].cancel()

    def _take_answer(self, message: _Message) -> None:
        question = self._asked.get(message.id) if isinstance(message.id, str) else None
        if question is not None:
            question.result = None if message.error is not None else message.result
            question.answered.set()

    async def _answer(self, message: _Message, scope: anyio.CancelScope) -> None:
        assert message.id is not None
        reply: dict[str, Any] | None = None
        try:
            with scope:
                params = message.params or {}
                result = await self._dispatcher.answer(
                    message.method, params, self._connection, message.id
                )
                reply = {"result": result}
        except (RequestProblem, WeftError, OSError, ValueError, KeyError, TypeError) as error:
            reply = {"error": error_of(message.method, error)}
        finally:
            self._running.pop(message.id, None)
        # A request that was cancelled gets no answer.
        if reply is not None:
            await self._write({"id": message.id, **reply})

    async def _refuse(self, number: int | str | None, why: str) -> None:
        await self._write({"id": number, "error": {"code": INVALID_REQUEST, "message": why}})

    # -- what we say by ourselves

    async def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._last += 1
        name = f"weft-{self._last}"
        question = self._asked[name] = _Question()
        try:
            await self._write({"id": name, "method": method, "params": params})
            await question.answered.wait()
        finally:
            del self._asked[name]
        return question.result

    def _notify(self, method: str, params: dict[str, Any]) -> None:
        if self._group is not None:
            self._group.start_soon(self._write, {"method": method, "params": params})

    async def _write(self, message: dict[str, Any]) -> None:
        data = msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n"
        # Whole lines: a cancel in the middle of one would spoil all that follow.
        with anyio.CancelScope(shield=True):
            async with self._writing:
                try:
                    await self._send(data)
                except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                    logger.info("the client reads no more")


class _Question:
    """A request of ours that is not answered yet."""

    def __init__(self) -> None:
        self.answered = anyio.Event()
        self.result: Any = None


async def serve_stdio(
    dispatcher: McpDispatcher,
    receive: Callable[[], Awaitable[bytes]],
    send: Callable[[bytes], Awaitable[None]],
) -> None:
    """Serve one client until it closes its end."""
    await StdioLoop(dispatcher, send).run(receive)
