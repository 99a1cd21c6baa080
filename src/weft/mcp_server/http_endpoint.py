"""An MCP server over Streamable HTTP, as one ASGI application; who may ask is decided before it.

Newer clients need nothing kept: each request stands for itself.  Older ones get a session when they
greet, by which their answers to our questions find the call that asked.  Calls are answered by a
stream, on which progress and questions come before the result; everything else by JSON.
"""

from __future__ import annotations

import base64
import binascii
import math
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, Final

import anyio
import msgspec

from weft.errors import WeftError
from weft.mcp_server.catalogue import INVALID_PARAMS, MISSING_CAPABILITY, RequestProblem
from weft.mcp_server.dispatcher import (
    HANDSHAKES,
    META,
    METHOD_NOT_FOUND,
    UNSUPPORTED_VERSION,
    ClientConnection,
    McpDispatcher,
    error_of,
)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MOST_BODY: Final = 8 * 1024 * 1024
BODY_SECONDS: Final = 30.0
MOST_SESSIONS: Final = 1_000
MOST_WAITING: Final = 1_000
"""Pieces of one stream that wait for a slow reader."""
PING_SECONDS: Final = 15.0
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
HEADER_MISMATCH: Final = -32020
_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_JSON: Final = (b"content-type", b"application/json")
_STATUS: Final = {
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
    INVALID_REQUEST: 400,
    MISSING_CAPABILITY: 400,
}
"""What a newer client is told by the status too."""


class _Message(msgspec.Struct):
    id: int | str | None = None
    method: str = ""
    params: dict[str, Any] | None = None
    result: Any = None
    error: dict[str, Any] | None = None


class _Question:
    def __init__(self) -> None:
        self.answered = anyio.Event()
        self.result: Any = None


class _HttpSession:
    """An older client, from its greeting on."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        """The token that greeted; no other can use the session."""
        self.version = ""
        self.capabilities: dict[str, Any] = {}
        self.questions: dict[str, _Question] = {}
        self.running: dict[int | str, anyio.CancelScope] = {}
        self.followed: set[str] = set()
        """Resources that it wants to be told of."""


class McpHttpEndpoint:
    """Answers requests to one path."""

    def __init__(self, dispatcher: McpDispatcher) -> None:
        self._dispatcher = dispatcher
        self._sessions: dict[str, _HttpSession] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of HTTP."""
        # RFC 9110, 5.5: blanks around a value are none of it.
        headers = {
            name.decode("latin-1"): text.decode("latin-1").strip(" \t")
            for name, text in scope["headers"]
        }
        match scope["method"]:
            case "POST":
                await self._post(headers, receive, send)
            case "GET" if (known := self._owned(headers)) is not None:
                await _ChangeStream(known, self._dispatcher).run(receive, send)
            case "DELETE":
                is_known = self._owned(headers) is not None
                if is_known:
                    del self._sessions[headers["mcp-session-id"]]
                await _reply(send, 200 if is_known else 404)
            case _:
                # Only who has greeted is told anything unasked.
                await _reply(send, 405, more=((b"allow", b"POST, DELETE"),))

    def _owned(self, headers: dict[str, str]) -> _HttpSession | None:
        """The session that a request names, where it is its own."""
        session = self._sessions.get(headers.get("mcp-session-id", ""))
        is_own = session is not None and session.owner == headers.get("authorization", "")
        return session if is_own else None

    async def _post(self, headers: dict[str, str], receive: Receive, send: Send) -> None:
        number: int | str | None = None
        try:
            message = await _message(receive)
            number = message.id
            session = self._session_of(message, headers)
            if not message.method:
                _take_answer(message, session)
                await _reply(send, 202)
            elif message.id is None:
                _take_notification(message, session)
                await _reply(send, 202)
            else:
                _check_headers(message, headers)
                await self._answer(message, session, headers, receive, send)
        except _Refusal as refusal:
            await _reply(send, refusal.status, _error(number, error_of("", refusal.problem)))

    def _session_of(self, message: _Message, headers: dict[str, str]) -> _HttpSession | None:
        """The session of an older client; None for a newer one, and before the greeting."""
        if message.method == "initialize" or _is_modern(message, headers):
            return None
        name = headers.get("mcp-session-id")
        if name is None:
            raise _Refusal(400, RequestProblem(-32000, "Server not initialized"))
        session = self._sessions.get(name)
        if session is None or session.owner != headers.get("authorization", ""):
            raise _Refusal(404, RequestProblem(-32001, "Session not found"))
        version = headers.get("mcp-protocol-version", session.version)
        if version not in HANDSHAKES:
            raise _Refusal(400, RequestProblem(INVALID_REQUEST, "Unsupported protocol version"))
        return session

    # -- requests

    async def _answer(
        self,
        message: _Message,
        session: _HttpSession | None,
        headers: dict[str, str],
        receive: Receive,
        send: Send,
    ) -> None:
        if message.method in ("tools/call", "subscriptions/listen"):
            stream = _CallStream(message, session, self._dispatcher)
            await stream.run(receive, send)
            return
        made = _HttpSession(headers.get("authorization", ""))
        known = session or made
        connection = ClientConnection(
            ask=_no_question,
            notify=lambda method, params: None,
            version=known.version,
            capabilities=known.capabilities,
            followed=known.followed,
        )
        status = 200
        more: tuple[tuple[bytes, bytes], ...] = ()
        answer = await _answered(self._dispatcher, message, connection)
        if "error" in answer and _is_modern(message, headers):
            status = _status_of(answer["error"])
        if message.method == "initialize" and "result" in answer:
            made.version, made.capabilities = connection.version, connection.capabilities
            name = secrets.token_urlsafe(24)
            if len(self._sessions) >= MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            self._sessions[name] = made
            more = ((b"mcp-session-id", name.encode()),)
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": message.id, **answer})
        await _reply(send, status, body, more=more)


def _status_of(error: dict[str, Any]) -> int:
    # Of parameters only what stands in the envelope is a matter of HTTP.
    is_envelope = error["code"] == INVALID_PARAMS and error["message"].startswith("_meta")
    return 400 if is_envelope else _STATUS.get(error["code"], 200)


class _CallStream:
    """The answer to one call: JSON where nothing comes before it, and else a stream of events."""

    def __init__(
        self, message: _Message, session: _HttpSession | None, dispatcher: McpDispatcher
    ) -> None:
        self._message = message
        self._session = session
        self._dispatcher = dispatcher
        self._sending, self._pieces = anyio.create_memory_object_stream[dict[str, Any]](math.inf)
        self._waiting = 0

    async def run(self, receive: Receive, send: Send) -> None:
        """Make the call, and send what comes of it until the client goes."""
        number, session = self._message.id, self._session
        assert number is not None
        is_sent = False
        async with anyio.create_task_group() as group:
            if session is not None:
                session.running[number] = group.cancel_scope
            group.start_soon(self._watch, receive, group.cancel_scope)
            group.start_soon(self._call)
            with self._pieces:
                is_sent = await self._send_all(send)
            group.cancel_scope.cancel()
        if session is not None:
            session.running.pop(number, None)
        with anyio.move_on_after(1):
            if not is_sent:  # it was cancelled before there was anything to say
                await _reply(send, 200)
            else:
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_all(self, send: Send) -> bool:
        """Send what comes; False where nothing was begun."""
        has_begun = False
        while True:
            message: dict[str, Any] | None = None
            with anyio.move_on_after(PING_SECONDS):
                try:
                    message = await self._pieces.receive()
                    self._waiting -= 1
                except anyio.EndOfStream:
                    return has_begun
            if message is not None and not has_begun and "method" not in message:
                await self._send_alone(message, send)
                return True
            if not has_begun:
                has_begun = True
                head = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
                await send({"type": "http.response.start", "status": 200, "headers": head})
            piece = b": ping\n\n" if message is None else _event(message)
            await send({"type": "http.response.body", "body": piece, "more_body": True})

    async def _send_alone(self, message: dict[str, Any], send: Send) -> None:
        is_refused = "error" in message and self._session is None
        status = _status_of(message["error"]) if is_refused else 200
        body = msgspec.json.encode({"jsonrpc": "2.0", **message})
        head = [_JSON, (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": body, "more_body": True})

    async def _watch(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    async def _call(self) -> None:
        session = self._session
        connection = ClientConnection(
            ask=self._ask,
            notify=lambda method, params: self._put({"method": method, "params": params}),
            version="" if session is None else session.version,
            capabilities={} if session is None else session.capabilities,
        )
        with self._sending:
            answer = await _answered(self._dispatcher, self._message, connection)
            self._put({"id": self._message.id, **answer})

    def _put(self, message: dict[str, Any]) -> None:
        is_note = "id" not in message
        if is_note and self._waiting >= MOST_WAITING:
            return  # progress that no one reads
        self._waiting += 1
        self._sending.send_nowait(message)

    async def _ask(self, method: str, params: dict[str, Any]) -> Any:
        if self._session is None:
            return None
        name = secrets.token_hex(8)
        question = self._session.questions[name] = _Question()
        try:
            self._put({"id": name, "method": method, "params": params})
            await question.answered.wait()
        finally:
            del self._session.questions[name]
        return question.result


class _ChangeStream:
    """What an older client is told unasked."""

    def __init__(self, session: _HttpSession, dispatcher: McpDispatcher) -> None:
        self._session = session
        self._dispatcher = dispatcher
        self._sending, self._pieces = anyio.create_memory_object_stream[bytes](MOST_WAITING)

    async def run(self, receive: Receive, send: Send) -> None:
        """Tell what changes until the client goes."""
        head = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        session = self._session
        connection = ClientConnection(
            ask=_no_question,
            notify=self._put,
            version=session.version,
            capabilities=session.capabilities,
            followed=session.followed,
        )

        async def tell() -> None:
            await self._dispatcher.tell_changes(connection)
            if self._dispatcher.tells_changes:
                # There is nothing more to tell: the application ends, and must not wait for us.
                group.cancel_scope.cancel()

        with self._sending, self._pieces:
            async with anyio.create_task_group() as group:
                group.start_soon(tell)
                group.start_soon(self._send_all, send)
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()
        with anyio.move_on_after(1):
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _put(self, method: str, params: dict[str, Any]) -> None:
        with suppress(anyio.WouldBlock):  # it does not read, and can ask for the list
            self._sending.send_nowait(_event({"method": method, "params": params}))

    async def _send_all(self, send: Send) -> None:
        while True:
            piece = b": ping\n\n"
            with anyio.move_on_after(PING_SECONDS):
                piece = await self._pieces.receive()
            await send({"type": "http.response.body", "body": piece, "more_body": True})


def _event(message: dict[str, Any]) -> bytes:
    data = msgspec.json.encode({"jsonrpc": "2.0", **message})
    return b"event: message\ndata: " + data + b"\n\n"


class _Refusal(Exception):
    def __init__(self, status: int, problem: RequestProblem) -> None:
        super().__init__(str(problem))
        self.status = status
        self.problem = problem


async def _answered(
    dispatcher: McpDispatcher, message: _Message, connection: ClientConnection
) -> dict[str, Any]:
    try:
        params = message.params or {}
        return {"result": await dispatcher.answer(message.method, params, connection, message.id)}
    except (WeftError, OSError, ValueError, KeyError, TypeError) as error:
        return {"error": error_of(message.method, error)}


async def _no_question(method: str, params: dict[str, Any]) -> Any:
    return None


async def _message(receive: Receive) -> _Message:
    body = bytearray()
    with anyio.move_on_after(BODY_SECONDS):
        while True:
            part = await receive()
            body += part.get("body", b"")
            if len(body) > MOST_BODY:
                raise _Refusal(413, RequestProblem(INVALID_REQUEST, "the message is too large"))
            if part["type"] == "http.disconnect" or not part.get("more_body"):
                break
    try:
        value = msgspec.json.decode(bytes(body))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise _Refusal(400, RequestProblem(PARSE_ERROR, "this is not JSON")) from error
    try:
        if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
            raise ValueError("no message of JSON-RPC 2.0")
        return msgspec.convert(value, _Message)
    except (ValueError, RecursionError) as error:
        raise _Refusal(400, RequestProblem(INVALID_REQUEST, f"no message: {error}")) from error


def _meta_version(message: _Message) -> Any:
    meta = (message.params or {}).get("_meta")
    return meta.get(f"{META}protocolVersion") if isinstance(meta, dict) else None


def _is_modern(message: _Message, headers: dict[str, str]) -> bool:
    told = headers.get("mcp-protocol-version")
    return _meta_version(message) is not None or (told is not None and told not in HANDSHAKES)


def _check_headers(message: _Message, headers: dict[str, str]) -> None:
    """Refuse a request whose head says something else than its body: machines on the way may have
    judged it by its head."""
    if not _is_modern(message, headers):
        return
    version = _meta_version(message)
    if version is None:
        raise _Refusal(400, RequestProblem(INVALID_PARAMS, "_meta has no protocol version"))
    said = {"mcp-protocol-version": version, "mcp-method": message.method}
    if key := _NAMED.get(message.method):
        said["mcp-name"] = (message.params or {}).get(key)
    for name, value in said.items():
        if _plain(headers.get(name)) != value:
            why = f"the header {name} does not say what the body says"
            raise _Refusal(400, RequestProblem(HEADER_MISMATCH, why))


def _plain(value: str | None) -> str | None:
    """A header as it was meant; what is not plain ASCII comes wrapped."""
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _take_answer(message: _Message, session: _HttpSession | None) -> None:
    name = message.id if isinstance(message.id, str) else ""
    question = None if session is None else session.questions.get(name)
    if question is not None:
        question.result = None if message.error is not None else message.result
        question.answered.set()


def _take_notification(message: _Message, session: _HttpSession | None) -> None:
    if message.method == "notifications/cancelled" and session is not None:
        number = (message.params or {}).get("requestId")
        if isinstance(number, (int, str)) and number in session.running:
            session.running[number].cancel()


def _error(number: int | str | None, error: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "error": error})


async def _reply(
    send: Send, status: int, body: bytes = b"", more: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    length = (b"content-length", str(len(body)).encode())
    headers = [length, *((_JSON,) if body else ()), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
